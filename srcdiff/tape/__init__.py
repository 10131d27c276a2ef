"""Two gradient tapes, as fast as we could make them: the benchmarks compare srcdiff with them.

Both tapes differentiate plain Python functions on numbers and NumPy arrays.

- `eager.value_and_grad` records every call and reads the record backwards.
- `compiled.value_and_grad` records once, and runs the record forwards and backwards in one compiled loop for as long as
  the function would take the same branches.
"""

from srcdiff.tape import compiled, eager

__all__ = ["compiled", "eager"]
