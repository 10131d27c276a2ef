"""Writes random draws: a seed at the beginning, and derivatives along the path."""

from __future__ import annotations

from tests.fuzz.constructs.construct import Construct, Operation, Statement
from tests.fuzz.kinds import Array, Expression, Real

#: Draws by location and scale, as a generator spells them; `{2}` is the size.
DRAWS = (
    "{0}.normal({1}, 0.4{2})",
    "{0}.normal(0.2, abs({1}) + 0.1{2})",
    "{0}.uniform({1}, 1.7{2})",
    "{0}.exponential(abs({1}) + 0.1{2})",
    "{0}.laplace({1}, 0.3{2})",
    "{0}.gumbel({1}, 0.2{2})",
    "{0}.logistic({1}, 0.2{2})",
    "{0}.rayleigh(abs({1}) + 0.2{2})",
    "{0}.lognormal(0.2 * {1}, 0.3{2})",
    "{0}.weibull(1.5{2}) * {1}",
    "{0}.standard_exponential({3}) * {1}",
)


class Draws(Construct):
    """Numbers and arrays of random draws, from NumPy's global generator or from one of the program."""

    def begin(self) -> None:
        """The source of the numbers. Only programs draw, not the functions that they call."""
        w = self.writer
        seed = w.random.randint(0, 99)
        if w.chance(0.5):
            w.emit(f"np.random.seed({seed})")
            self.source = "np.random"
        else:
            w.emit(f"rng = np.random.default_rng({seed})")
            self.source = "rng"
            w.reserved.add("rng")

    source = ""

    def draws(self) -> bool:
        return bool(self.source) and self.writer.iterations <= 16

    def expressions(self) -> list[Operation]:
        return [(3.0, self.number)] if self.draws() else []

    def number(self, depth: int) -> Expression:
        w = self.writer
        if self.source == "np.random" or w.chance(0.8):
            ways = [way for way in DRAWS if "standard_exponential" not in way]
            return Expression(w.pick(ways).format(self.source, w.real(min(depth, 1), 1.0), ""), 4.0)
        return Expression(f"{w.real(min(depth, 1), 1.0)} * rng.{w.pick(('standard_normal', 'random'))}()", 4.0)

    def statements(self) -> list[Statement]:
        if not self.draws():
            return []
        found: list[Statement] = [(4.0, self.array)]
        if self.writer.fixed(1, empty=False):
            found.append((2.0, self.selected))
        return found

    def array(self) -> None:
        w = self.writer
        shape = w.some_shape(1)
        size = str(shape[0]) if len(shape) == 1 else str(shape)
        text = w.pick(DRAWS).format(self.source, w.real(1, 1.0), f", size={size}", size)
        kind = Array(shape)
        name = w.target("array", kind)
        w.emit(f"{name} = {text}")
        w.bind(name, kind)

    def selected(self) -> None:
        """The elements in random order, or some of them."""
        w = self.writer
        source = w.pick(w.fixed(1, empty=False))
        (length,) = w.shape_of(source)
        way = w.random.randrange(3)
        if way == 0 and source in w.variables and w.bindable(source, w.variables[source]):
            w.emit(f"{self.source}.shuffle({source})")
            return
        if way == 1:
            name = w.target("real", Real())
            w.emit(f"{name} = {self.source}.choice({source})")
            w.bind(name, Real())
            return
        name = w.target("array", Array((length,)))
        w.emit(f"{name} = {self.source}.permutation({source})")
        w.bind(name, Array((length,)))
