"""Writes expressions and statements on complex numbers and complex arrays.

Numbers stay within four in size, as real ones do: what may be larger is scaled, or brought inside by a function.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.constructs.construct import Construct, Leaf, Operation, Signature, Statement
from tests.fuzz.kinds import Array, Complex, Expression, Real, Shape, Style, Type

#: Functions of `cmath` and NumPy, the absolute value up to which they have no pole, and a bound for the result.
FUNCTIONS: tuple[tuple[str, str, float, float], ...] = (
    ("sin", "sin", 1.5, 2.4),
    ("cos", "cos", 1.5, 2.4),
    ("sinh", "sinh", 1.5, 2.4),
    ("cosh", "cosh", 1.5, 2.4),
    ("exp", "exp", 1.5, 4.5),
    ("tan", "tan", 0.8, 1.1),
    ("tanh", "tanh", 0.8, 1.1),
    ("atan", "arctan", 0.8, 1.1),
    ("asin", "arcsin", 0.8, 1.0),
    ("asinh", "arcsinh", 0.8, 1.0),
    ("atanh", "arctanh", 0.8, 1.1),
    ("sqrt", "sqrt", 4.0, 2.0),
)


def shifted(function: str) -> str:
    """The beginning of an argument. The product of two roots of zero has a derivative, but that of each is infinite."""
    return "0.4j + " if function == "sqrt" else ""


class ComplexNumbers(Construct):
    """Complex scalars and arrays, their parts, products, equations and Fourier transforms."""

    header = "import cmath\n\ndef bounded(z):\n    return z / (1.0 + abs(z) ** 2)\n"

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        vector = Array((max(style.sizes[0], 1),), "complex")
        options: list[Signature] = [
            ({"z": Complex(), "x": Real()}, Complex()),
            ({"z": Complex(), "zeta": Complex()}, Real()),
            ({"wave": vector, "x": Real()}, random.choice((vector, Complex(), Real(), None))),
        ]
        return random.sample(options, random.randint(0, 2))

    @classmethod
    def parameters(cls, random: Random, style: Style, known: dict[str, Type]) -> dict[str, Type]:
        n, m = (max(length, 1) for length in style.sizes)
        found: dict[str, Type] = {}
        if random.random() < 0.6:
            found["omega"] = Complex()
        if random.random() < 0.7:
            found["signal"] = Array(random.choice(((n,), (n,), (m,), (n, n), (n, m))), "complex")
        return found

    # ---------------------------------------------------------------------------------------------------------- names

    def numbers(self) -> list[str]:
        return self.writer.of(lambda kind: isinstance(kind, Complex))

    def arrays(self, rank: int | None = None) -> list[str]:
        return self.writer.fixed(rank, "complex", empty=False)

    def assignable(self, kind: Type) -> list[str]:
        w = self.writer
        return [name for name, known in w.variables.items() if known == kind and w.bindable(name, kind)]

    # -------------------------------------------------------------------------------------------------------- numbers

    def number(self, depth: int = 2, limit: float = 4.0) -> str:
        return self.tamed(self.number_expression(depth), limit)

    def tamed(self, found: Expression, limit: float) -> str:
        if found.bound <= limit:
            return found.text
        if found.bound <= 5.0 * limit and self.writer.chance(0.6):
            return f"{max(0.1, round(limit / found.bound, 1))} * ({found.text})"
        return f"{'' if limit >= 0.5 else '0.5 * '}bounded({found.text})"

    def number_leaf(self) -> Expression:
        w = self.writer
        options: list[Leaf] = [(0.5, self.number_made)]
        if self.numbers():
            options.append((4.0, lambda: Expression(w.pick(self.numbers()), 4.0)))
        if self.arrays():
            options.append((3.0, lambda: Expression(w.element(w.pick(self.arrays())), 4.0)))
        return w.weighted(options)()  # type: ignore[no-any-return]

    def number_made(self) -> Expression:
        """A new number from simple real ones."""
        w = self.writer
        reals = [name for name in w.reals() if w.variables[name] == Real()]
        first, second = (w.pick(reals) if reals and w.chance(0.7) else w.constant() for _ in range(2))
        texts = (
            f"complex({first}, {second})",
            f"({first} + 1j * ({second}))",
            f"({w.constant()} - {abs(float(w.constant()))}j)",
            f"cmath.rect({first}, {second})",
            f"{first} * cmath.exp(1j * ({second}))",
        )
        return Expression(w.pick(texts), 5.0)

    def number_expression(self, depth: int) -> Expression:
        w = self.writer
        if depth <= 0:
            return self.number_leaf()
        known = w.functions(lambda result: isinstance(result, Complex))
        options = [
            (1.5, lambda d: self.number_leaf()),
            (4.0, self.number_arithmetic),
            (2.0, self.number_function),
            (1.0, self.number_conjugate),
            (0.8, self.number_power),
            (0.8, self.number_of_reals),
            (0.5, self.number_conditional),
            (1.5 if self.arrays() else 0.0, self.number_reduction),
            (2.5 if known else 0.0, lambda d: Expression(w.call(w.pick(known), d), 4.0)),
        ]
        return w.weighted([option for option in options if option[0]])(depth - 1)  # type: ignore[no-any-return]

    def number_arithmetic(self, depth: int) -> Expression:
        w = self.writer
        left = self.number_expression(depth)
        right = self.number_expression(depth) if w.chance(0.7) else w.expression(depth)
        return self.combined(left, right)

    def combined(self, left: Expression, right: Expression) -> Expression:
        """A sum, a difference, a product or a quotient of two numbers, or of two arrays."""
        w = self.writer
        operator = w.pick("++--***/")
        if operator == "/":
            return Expression(f"(({left.text}) / (2.0 + bounded({right.text})))", left.bound / 1.5)
        if w.chance(0.3):
            left, right = right, left
        if operator == "*":
            if left.bound * right.bound > 60.0:
                left = Expression(f"bounded({left.text})", 0.5)
            return Expression(f"(({left.text}) * ({right.text}))", left.bound * right.bound)
        return Expression(f"(({left.text}) {operator} ({right.text}))", left.bound + right.bound)

    def number_function(self, depth: int) -> Expression:
        own, of_numpy, limit, bound = self.writer.pick(FUNCTIONS)
        name = self.writer.pick((f"cmath.{own}", f"np.{of_numpy}"))
        return Expression(f"{name}({shifted(own)}{self.number(depth, limit)})", bound)

    def number_of_reals(self, depth: int) -> Expression:
        first, second = self.writer.real(depth, 2.0), self.writer.real(depth, 2.0)
        text = self.writer.pick(("complex({0}, {1})", "({0} + 1j * ({1}))", "cmath.rect({0}, {1})"))
        return Expression(text.format(first, second), 3.0)

    def number_conjugate(self, depth: int) -> Expression:
        found = self.number_expression(depth)
        text = self.writer.pick(("({0}).conjugate()", "np.conj({0})", "(-({0}))", "1j * ({0})")).format(found.text)
        return Expression(text, found.bound)

    def number_power(self, depth: int) -> Expression:
        w = self.writer
        small, other = self.number(depth, 2.0), self.number(0, 1.0)
        options = (
            Expression(f"({small}) ** {w.pick((2, 3))}", 8.0),
            Expression(f"(2.0 + bounded({small})) ** {w.pick((-1, -2, 0.5, 1.5))}", 4.0),
            Expression(f"(2.0 + bounded({small})) ** ({other})", 4.0),
            Expression(f"({small}) ** ({w.integer(0)[0]} % 3)", 4.0),
            Expression(f"cmath.log(2.5 + bounded({small}))", 1.5),
            Expression(f"(1.2 + ({w.real(0, 2.0)}) ** 2) ** ({other})", 6.0),
        )
        return w.pick(options)  # type: ignore[no-any-return]

    def number_conditional(self, depth: int) -> Expression:
        yes, no = self.number_expression(depth), self.number_expression(depth)
        return Expression(f"({yes.text} if {self.writer.condition(0)} else {no.text})", max(yes.bound, no.bound))

    def number_reduction(self, depth: int) -> Expression:
        w = self.writer
        shape = w.shape_of(w.pick(self.arrays()))
        first = self.array(shape, depth, 1.5)
        if len(shape) == 1 and w.chance(0.5):
            second = self.array(shape, 0, 1.5)
            text = w.pick(("np.vdot({0}, {1})", "np.dot({0}, {1})", "(({0}) @ ({1}))"))
            return Expression(text.format(first, second), 2.3 * shape[0])
        text = w.pick(("np.sum({0})", "({0}).sum()", "np.mean({0})", "np.prod(bounded({0}))"))
        size = 1
        for length in shape:
            size *= length
        return Expression(text.format(first), 1.5 * size)

    # --------------------------------------------------------------------------------------------------------- arrays

    def array(self, shape: Shape, depth: int = 2, limit: float = 4.0) -> str:
        return self.tamed(self.array_expression(shape, depth), limit)

    def array_expression(self, shape: Shape, depth: int) -> Expression:
        w = self.writer
        if not shape:
            return self.number_expression(min(depth, 1))
        if depth <= 0:
            return self.array_leaf(shape)
        result = Array(shape, "complex")
        known = w.functions(lambda kind: kind == result)
        options = [
            (1.5, lambda s, d: self.array_leaf(s)),
            (4.0, self.array_arithmetic),
            (2.0, self.array_function),
            (0.8, self.array_conjugate),
            (0.7, self.array_choice),
            (0.7, self.array_masked),
            (2.0, self.array_transform),
            (0.7, self.array_rearranged),
            (1.5, self.array_product),
            (0.6, self.array_solution),
            (2.5 if known else 0.0, lambda s, d: Expression(w.call(w.pick(known), d), 4.0)),
        ]
        return w.weighted([option for option in options if option[0]])(shape, depth - 1)  # type: ignore[no-any-return]

    def array_leaf(self, shape: Shape) -> Expression:
        w = self.writer
        same = w.of_shape(shape, "complex")
        if same and w.chance(0.7):
            return Expression(w.pick(same), 4.0)
        if self.arrays() and w.chance(0.4):
            larger = [name for name in self.arrays() if w.has_part(name, shape)]
            if larger:
                return Expression(w.part(w.pick(larger), shape), 4.0)
        first, second = w.array(shape, 0, 2.0), w.array(shape, 0, 2.0)
        texts = (
            f"({first} + 1j * {second})",
            f"({first}) * np.exp(1j * ({second}))",
            f"({first}) * {self.number(0, 2.0)}",
            f"np.full({w.lengths_text(shape)}, {self.number(0)})",
        )
        return Expression(w.pick(texts), 4.0)

    def array_arithmetic(self, shape: Shape, depth: int) -> Expression:
        w = self.writer
        left = self.array_expression(shape, depth)
        other = w.narrower(shape)
        right = self.array_expression(other, depth) if w.chance(0.7) else w.array_expression(other, depth)
        return self.combined(left, right)

    def array_function(self, shape: Shape, depth: int) -> Expression:
        _, name, limit, bound = self.writer.pick(FUNCTIONS)
        return Expression(f"np.{name}({shifted(name)}{self.array(shape, depth, limit)})", bound)

    def array_conjugate(self, shape: Shape, depth: int) -> Expression:
        found = self.array_expression(shape, depth)
        text = self.writer.pick(("({0}).conj()", "np.conj({0})", "1j * ({0})")).format(found.text)
        return Expression(text, found.bound)

    def array_choice(self, shape: Shape, depth: int) -> Expression:
        w = self.writer
        first, second = self.array(shape, depth), self.array(shape, 0)
        condition = w.pick(("({0}).real > {1}", "np.abs({0}) > {1}")).format(
            self.array(shape, 0), abs(float(w.constant()))
        )
        return Expression(f"np.where({condition}, {first}, {second})", 4.0)

    def array_masked(self, shape: Shape, depth: int) -> Expression:
        """Functions that have no derivative at zero, where a number is not zero; spectra of constants contain zeros."""
        w = self.writer
        constant = f"np.fft.fft(np.full({w.lengths_text(shape)}, {self.number(0)}))"
        given = w.pick((constant, f"({self.array(shape, 0)})", f"({self.array(shape, 0)}).imag * 1j"))
        text = w.pick(
            ("np.sqrt({0})", "({0}) ** 0.5", "0.1 * np.log({0})", "np.angle({0})", "np.conj({0}) / np.abs({0})")
        )
        taken = f"np.where(np.abs({given}) > 1e-9, {text.format(given)}, {self.number(0)})"
        if w.chance(0.5):
            return Expression(taken, 4.0)
        return Expression(f"np.where(np.abs({given}) > 1e-9, bounded({text.format(given)} + {given}), 1j)", 1.0)

    def array_transform(self, shape: Shape, depth: int) -> Expression:
        """A Fourier transform along one axis."""
        w = self.writer
        axis = w.random.randrange(len(shape))
        length = shape[axis]
        if len(shape) == 1 and w.chance(0.3):
            longer = w.array((2 * (length - 1),), depth, 2.0) if length > 1 else w.array((1,), depth, 2.0)
            return Expression(f"{round(1.0 / length, 2)} * np.fft.rfft({longer})", 4.0)
        given = self.array(shape, depth, 4.0)
        where = "" if len(shape) == 1 else f", axis={axis}"
        scale = round(1.0 / length, 2)
        texts = (
            f"{scale} * np.fft.fft({given}{where})",
            f"np.fft.ifft({given}{where})",
            f"{round(length**-0.5, 2)} * np.fft.fft({given}{where}, norm='ortho')",
            f"np.fft.fftshift({given})",
        )
        return Expression(w.pick(texts), 4.0)

    def array_rearranged(self, shape: Shape, depth: int) -> Expression:
        w = self.writer
        given = self.array(shape, depth)
        options = [f"np.roll({given}, {w.pick((1, -1, 2))})", f"({given})[::-1]", f"({given}).copy()"]
        if len(shape) == 2:
            options.append(f"({self.array(shape[::-1], depth)}).T")
        if len(shape) == 1:
            options.append(f"{round(1.0 / shape[0], 2)} * np.cumsum({given})")
            if shape[0] > 1:
                parts = self.array((1,), depth), self.array((shape[0] - 1,), depth)
                options.append(f"np.concatenate(({parts[0]}, {parts[1]}))")
        return Expression(w.pick(options), 4.0)

    def array_product(self, shape: Shape, depth: int) -> Expression:
        w = self.writer
        if len(shape) > 2:
            return self.array_arithmetic(shape, depth)
        inner = w.pick((1, 2, 3))
        if len(shape) == 2 and w.chance(0.25):
            first, second = (self.array((length,), depth, 2.0) for length in shape)
            return Expression(f"np.outer({first}, {second})", 4.0)
        left: Shape = (shape[0], inner)
        right: Shape = (inner, *shape[1:])
        first = self.array(left, depth, 2.0) if w.chance(0.7) else w.array(left, depth, 2.0)
        return Expression(f"(({first}) @ ({self.array(right, depth, 2.0)}))", 4.0 * inner)

    def array_solution(self, shape: Shape, depth: int) -> Expression:
        """The solution of equations with a well-conditioned matrix."""
        w = self.writer
        if len(shape) > 2:
            return self.array_function(shape, depth)
        n = shape[0]
        matrix = f"{2.0 * n} * np.eye({n}) + bounded({self.array((n, n), depth)})"
        if shape == (n, n) and w.chance(0.4):
            return Expression(f"np.linalg.inv({matrix})", 1.0)
        return Expression(f"np.linalg.solve({matrix}, {self.array(shape, depth)})", 4.0)

    # ---------------------------------------------------------------------------------------------------- real numbers

    def leaves(self) -> list[Leaf]:
        known = self.numbers() or self.arrays()
        return [(4.0, lambda: self.part_of(self.number_leaf().text))] if known else []

    def expressions(self) -> list[Operation]:
        found: list[Operation] = [(1.5, lambda depth: self.part_of(f"({self.number(depth)})"))]
        if self.arrays() and self.writer.iterations <= 32 and not self.writer.inside_array:
            found.append((2.0, self.number_of_array))
        return found

    def part_of(self, text: str) -> Expression:
        w = self.writer
        way = w.pick(("{0}.real", "{0}.imag", "abs({0})", "np.abs({0})", "abs({0}) ** 2", "phase", "({0} * {0}).imag"))
        if way == "phase":  # in loops, numbers shrink until the derivatives of their angles are infinite
            return Expression(f"{w.pick(('cmath.phase', 'np.angle'))}(0.3 + {text})", 3.2)
        return Expression(way.format(text), 16.0 if "*" in way else 4.0)

    def number_of_array(self, depth: int) -> Expression:
        w = self.writer
        given = self.array(w.shape_of(w.pick(self.arrays())), min(depth, 1))
        texts = (
            "np.sum(np.abs({0}) ** 2)",
            "np.sum(np.abs({0}))",
            "np.sum(({0}).real * {1})",
            "np.mean(({0}).imag)",
            "np.linalg.norm({0})",
            "np.max(np.abs({0}))",
            "np.sum(np.angle(0.3 + {0}))",
            "np.vdot({0}, {0}).real",
        )
        return Expression(w.pick(texts).format(given, w.constant()), 60.0)

    # ------------------------------------------------------------------------------------------------------ statements

    def statements(self) -> list[Statement]:
        w = self.writer
        found: list[Statement] = [(5.0, self.assign_number), (4.0, self.assign_array)]
        if self.assignable(Complex()):
            found.append((4.0, self.augment_number))
        if self.arrays():
            found += [(4.0, self.write_element), (4.0, self.write_part), (3.0, self.write_real_part)]
            found += [(1.5, self.bind_real_view), (1.5, self.bind_view), (1.5, self.write_masked)]
            found.append((2.0, self.augment_array))
        return found if w.iterations <= 32 else found[:1]

    def compounds(self) -> list[Statement]:
        return [(2.0, self.loop_over_array)] if self.arrays() and self.writer.iterations <= 16 else []

    def assign_number(self) -> None:
        w = self.writer
        text = self.number(w.pick((1, 2, 2)))
        name = w.target("complex", Complex())
        w.emit(f"{name} = complex({text})" if w.chance(0.1) else f"{name} = {text}")
        w.bind(name, Complex())

    def growth(self, given: str) -> str:
        """An augmented assignment that lets numbers grow slowly, for an operand of at most one."""
        w = self.writer
        number = f"{w.pick((0.9, 0.6))}j" if w.chance(0.4) else f"{w.pick((0.9, -0.8))}"
        return str(w.pick((f"+= {given}", f"-= {given}", f"*= {number}", f"/= 2.0 + bounded({given})")))

    def augment_number(self) -> None:
        w = self.writer
        w.emit(f"{w.pick(self.assignable(Complex()))} {self.growth(self.number(1, 0.5))}")

    def assign_array(self) -> None:
        w = self.writer
        shape = w.some_shape(1)
        if self.arrays() and w.chance(0.6):
            shape = w.shape_of(w.pick(self.arrays()))
        kind = Array(shape, "complex")
        made = (f"np.zeros({w.lengths_text(shape)}, dtype=complex)", f"1j * np.ones({w.lengths_text(shape)})")
        text = w.pick(made) if w.chance(0.3) else self.array(shape, 2)
        name = w.target("wave", kind)
        w.emit(f"{name} = {text}")
        w.bind(name, kind)

    def augment_array(self) -> None:
        w = self.writer
        name = w.pick(self.arrays())
        w.emit(f"{name} {self.growth(self.array(w.shape_of(name), 1, 0.5))}")

    def write_element(self) -> None:
        w = self.writer
        place = w.element(w.pick(self.arrays()))
        if w.chance(0.4):
            w.emit(f"{place} {self.growth(self.number(1, 0.5))}")
        else:
            w.emit(f"{place} = {self.number(2) if w.chance(0.8) else w.real(1)}")

    def write_part(self) -> None:
        w = self.writer
        name = w.pick(self.arrays())
        text, shape = w.view(name)
        known = tuple(length for length in shape if length is not None)
        if 0 in known:
            return
        text += "[:]" if text.endswith(".T") else ""
        narrow = w.narrower(known)
        given = w.array(narrow, 1) if w.chance(0.2) else self.array(narrow, 2)
        w.emit(f"{text} = {given}" if w.chance(0.6) else f"{text} {self.growth(self.array(narrow, 1, 0.5))}")

    def write_real_part(self) -> None:
        """The real or the imaginary part of an array, of which both are views."""
        w = self.writer
        name, part = w.pick(self.arrays()), w.pick(("real", "imag"))
        shape = w.shape_of(name)
        index = ", ".join(w.index(length, name, axis) for axis, length in enumerate(shape))
        texts = (
            f"{name}.{part} = {w.array(shape, 1)}",
            f"{name}.{part} *= {w.pick((0.9, -0.7))}",
            f"{name}.{part}[:] = {w.array(shape, 1)}",
            f"{name}.{part}[{index}] = {w.real(2)}",
            f"{name}.{part}[{index}] {w.growth(Real())}",
        )
        w.emit(w.pick(texts))

    def bind_real_view(self) -> None:
        """A name for the real or the imaginary part. A write to it is a write to the array."""
        w = self.writer
        name = w.pick(self.arrays())
        kind = Array(w.shape_of(name))
        target = w.target("view", kind)
        w.emit(f"{target} = {name}.{w.pick(('real', 'imag'))}")
        w.bind(target, kind)

    def bind_view(self) -> None:
        w = self.writer
        text, shape = w.view(w.pick(self.arrays()))
        kind = Array(shape, "complex")
        if 0 in shape:
            return
        target = w.target("wave", kind)
        w.emit(f"{target} = {text}")
        w.bind(target, kind)

    def write_masked(self) -> None:
        w = self.writer
        name = w.pick(self.arrays())
        mask = w.pick((f"np.abs({name}) > {abs(float(w.constant()))}", f"{name}.real > {w.constant()}"))
        w.emit(f"{name}[{mask}] {self.growth(self.number(0, 0.5))}")

    def loop_over_array(self) -> bool:
        """A loop over the elements of a vector, or over its indices."""
        w = self.writer
        vectors = self.arrays(1)
        if not vectors:
            return True
        name = w.pick(vectors)
        length = w.shape_of(name)[0]
        item = w.unused(("mode", "line", "ray"))
        return w.loop_body(f"for {item} in {name}:", [(item, Complex())], length, True, [], [])

    # ------------------------------------------------------------------------------------------------------------ ends

    def value(self, kind: Type) -> str | None:
        if isinstance(kind, Complex):
            return self.number(1)
        if isinstance(kind, Array) and kind.kind == "complex":
            return self.array(tuple(length or 1 for length in kind.shape), 1)
        return None

    def terms(self) -> list[str]:
        """The real and imaginary parts of all names."""
        w = self.writer
        numbers = ("abs({0}) ** 2", "{0}.real * {0}.imag", "0.7 * {0}.imag")
        arrays = ["np.sum(np.abs({0}) ** 2)", "np.sum({0} * {0}).imag", "np.sum({0}.real * {0}.imag)"]
        arrays.append("np.sum(np.abs(np.fft.fft({0}))) ** 2")
        found = [w.pick(numbers).format(name) for name in self.numbers()]
        return found + [w.pick(arrays).format(name) for name in self.arrays()]
