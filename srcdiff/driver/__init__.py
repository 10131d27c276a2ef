"""From a request to a compiled function: front end, cache, passes and backend."""
