"""From a request to a function that runs: the reader, the passes, the cache and a backend."""
