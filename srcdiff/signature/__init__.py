"""The structures of arguments and results: taken apart into values, and put together again."""
