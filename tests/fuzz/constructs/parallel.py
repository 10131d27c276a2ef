"""Writes loops over `prange` with independent iterations, except for sums."""

from __future__ import annotations

from tests.fuzz.constructs.construct import Construct, Statement
from tests.fuzz.kinds import LARGE, Array, Integer, Real


class Parallel(Construct):
    """Loops that fill an array, add to a number, or both. Their local names are new."""

    header = "from numba import prange\n"

    def compounds(self) -> list[Statement]:
        w = self.writer
        return [(6.0, self.loop)] if w.iterations <= 8 and not w.nested and w.recursion is None else []

    def loop(self) -> None:
        w = self.writer
        length = max(w.some_shape(1)[0], 1)
        kind = Array((length,))
        target = w.target("array", kind)
        if not self.is_new(target):
            target = w.unused(("filled", "out", "gathered"))
        w.emit(f"{target} = {w.pick((f'np.zeros({length})', f'np.ones({length})', f'np.empty({length})'))}")
        empty = "empty" in w.lines[-1]
        totals = [name for name in w.reals() if w.variables[name] == LARGE and w.bindable(name, LARGE)]
        before, iterations = dict(w.variables), w.iterations
        counter = w.unused(("i", "j", "lane"))
        w.emit(f"for {counter} in prange({length}):")
        with w.indented():
            for name in totals:
                w.variables.pop(name)  # a sum is read after the loop
            w.variables.pop(target, None)
            w.variables[counter] = Integer(0, length - 1)
            w.iterations *= length
            own = w.unused(("own", "private", "inner"))
            w.emit(f"{own} = {w.real(2)}")
            w.variables[own] = Real()
            if w.chance(0.3):
                w.emit(f"if {w.comparison()}:")
                w.emit(f"    {own} {w.growth(Real())}")
            if w.chance(0.3):
                w.emit(f"for step7 in range({w.random.randint(1, 3)}):")
                w.emit(f"    {own} = math.sin({own}) + {w.real(1, 1.0)}")
            w.emit(f"{target}[{counter}] {'=' if empty else w.pick(('=', '+=', '*='))} {w.real(2)}")
            if totals and w.chance(0.7):
                w.emit(f"{w.pick(totals)} += {w.real(1)} * {own}")
            elif not empty:
                w.emit(f"{target}[{counter}] += {own}")
        w.variables, w.iterations = before, iterations
        w.bind(target, kind)

    def is_new(self, name: str) -> bool:
        return name not in self.writer.variables and name.isidentifier()
