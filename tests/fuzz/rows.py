"""Writes statements on lists of lists.

A list of lists always has an element, and so has each list in it. Further elements are added and removed.
"""

from __future__ import annotations

from tests.fuzz.arrays import ArrayWriter
from tests.fuzz.kinds import Expression, Real, Rows


class RowWriter(ArrayWriter):
    """Writes statements on lists of lists."""

    def rows(self) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Rows))

    def create_rows(self) -> None:
        self.groups += 1
        kind = Rows(self.groups)
        name = self.fresh("rows", kind)
        count = self.pick(("1", "2", "3", f"max(1, {self.integer(0)[0]} % 4)"))
        way = self.random.randrange(4)
        if way == 0:
            self.emit(f"{name} = [[{self.real(1)}], [{self.real(1)}, {self.real(1)}]]")
        elif way == 1:
            self.emit(f"{name} = [[{self.real(1)}] for _ in range({count})]")
        elif way == 2:
            self.emit(f"{name} = [[{self.real(1)} for _ in range(2)] for _ in range({count})]")
        else:
            self.variables.pop(name, None)  # its old meaning is gone
            text = self.row_text()
            self.emit(f"{name} = []")
            self.emit(f"for _ in range({count}):")
            with self.indented():
                self.emit(f"{name}.append({text})")
        self.bind(name, kind)

    def row(self, name: str) -> str:
        """One of the inner lists."""
        return f"{name}[{self.pick(('0', '-1', f'{self.integer(0)[0]} % len({name})'))}]"

    def row_element(self) -> Expression:
        return Expression(f"{self.row(self.pick(self.rows()))}[{self.pick(('0', '-1'))}]", 4.0)

    def row_expression(self, depth: int) -> Expression:
        name = self.pick(self.rows())
        way = self.random.randrange(5)
        if way == 0:
            return Expression(f"0.1 * len({self.row(name)})", 2.0)
        if way == 1:
            return Expression(f"sum({self.row(name)})", 30.0)
        if way == 2:
            return Expression(f"max({self.row(name)})", 4.0)
        if way == 3:
            return Expression(f"sum([sum(part8) for part8 in {name}])", 60.0)
        return Expression(f"sum([math.sin(part8[-1]) * len(part8) for part8 in {name}])", 60.0)

    def changeable_rows(self) -> list[str]:
        if self.nested:
            return []
        return [n for n in self.rows() if self.variables[n].group not in self.frozen_groups]  # type: ignore[union-attr]

    def change_rows(self) -> None:
        """A statement that changes a list of lists, or one of its lists."""
        names = self.changeable_rows()
        if not names or self.iterations > 16:
            return self.write_row_element()
        name = self.pick(names)
        self.weighted(
            [
                (3.0, self.append_row),
                (3.0, self.append_to_row),
                (1.5, self.pop_row),
                (1.5, self.pop_from_row),
                (1.0, self.replace_row),
                (1.0, self.swap_rows),
                (1.0, self.row_method),
                (1.0, self.row_by_name),
            ]
        )(name)
        return None

    def row_text(self) -> str:
        return f"[{', '.join(self.real(1) for _ in range(self.random.randint(1, 3)))}]"

    def append_row(self, name: str) -> None:
        """A new list of some numbers, or one that is computed from another list."""
        text = self.row_text()
        if self.chance(0.3):
            text = self.pick((f"list({self.row(name)})", f"[0.5 * part8 for part8 in {self.row(name)}]"))
        self.emit(f"{name}.append({text})")

    def append_to_row(self, name: str) -> None:
        self.emit(f"{self.row(name)}.append({self.real(2)})")

    def pop_row(self, name: str) -> None:
        self.emit(f"if len({name}) > 1:")
        with self.indented():
            targets = [n for n in self.reals() if self.variables[n] == Real() and self.bindable(n, Real())]
            if targets:
                self.emit(f"{targets[0]} = 0.5 * {name}.pop()[0]")
            else:
                self.emit(f"{name}.pop()")

    def pop_from_row(self, name: str) -> None:
        row = self.row(name)
        self.emit(f"if len({row}) > 1:")
        with self.indented():
            self.emit(f"{row}[0] = 0.5 * {row}.pop({self.pick(('', '', '0'))})")

    def replace_row(self, name: str) -> None:
        self.emit(f"{self.row(name)} = {self.row_text()}")

    def swap_rows(self, name: str) -> None:
        self.emit(f"{name}[0], {name}[-1] = {name}[-1], {name}[0]")

    def row_method(self, name: str) -> None:
        row = self.row(name)
        self.emit(
            self.pick(
                (
                    f"{row}.reverse()",
                    f"{row}.insert(0, {self.real(1)})",
                    f"{row}.extend({self.row_text()})",
                    f"{row} += {self.row_text()}",
                    f"{row}.sort()",
                )
            )
        )

    def row_by_name(self, name: str) -> None:
        """A list with a name, before or after it becomes an element of a list of lists."""
        own = "line8"
        if own in self.reserved or own in self.variables:
            return
        if self.chance(0.5):
            self.emit(f"{own} = {self.row(name)}")
            self.emit(f"{own}.append({self.real(1)})")
        else:
            self.emit(f"{own} = {self.row_text()}")
            self.emit(f"{name}.append({own})")
            self.emit(f"{own}[-1] {self.growth(Real())}")
        self.emit(f"{self.row(name)}[0] = 0.3 * {own}[0] + {self.leaf().text}")

    def write_row_element(self) -> None:
        place = self.row_element().text
        self.emit(f"{place} {self.growth(Real())}" if self.chance(0.4) else f"{place} = {self.real(2)}")

    def loop_over_rows(self) -> None:
        """A loop over all inner lists, which reads and writes them, and sometimes extends them afterwards."""
        if "line8" in self.reserved or "line8" in self.variables or self.iterations > 16:
            return self.write_row_element()
        name = self.pick(self.rows())
        targets = [known for known in self.reals() if self.variables[known] == Real() and self.bindable(known, Real())]
        self.emit(f"for line8 in {name}:")
        with self.indented():
            if targets:
                self.emit(f"{targets[-1]} = 0.5 * math.sin(sum(line8)) + {self.leaf().text}")
            self.emit(f"line8[{self.pick(('0', '-1'))}] {self.growth(Real())}")
            if name in self.changeable_rows() and self.chance(0.5):
                self.emit(self.pick((f"line8.append({self.real(1)})", f"{self.row(name)}.append(line8[0])")))
        return None
