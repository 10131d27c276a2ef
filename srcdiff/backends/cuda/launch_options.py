"""The options for how kernels are launched."""

from __future__ import annotations

from srcdiff.diagnostics.options import INTEGERS, Option

_INTEGER_OR_NONE = (*INTEGERS, type(None))

LAUNCHING: dict[str, Option] = {
    "threads": Option("None or an integer from 1 to 1024", _INTEGER_OR_NONE, lambda n: n is None or 1 <= n <= 1024),
    "blocks": Option("None or a positive integer", _INTEGER_OR_NONE, lambda n: n is None or n >= 1),
    "memory_limit": Option("None or a positive number of bytes", _INTEGER_OR_NONE, lambda n: n is None or n >= 1),
    "stream": Option("0 or a stream of `numba.cuda`", (object,), lambda s: hasattr(s, "synchronize") or s == 0),
}
