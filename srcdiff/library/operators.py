"""The functions of `operator`, `itertools` and similar modules, as Python that srcdiff reads."""

from __future__ import annotations

import itertools
import operator
from typing import Any


def add(a: Any, b: Any) -> Any:
    return a + b


def sub(a: Any, b: Any) -> Any:
    return a - b


def mul(a: Any, b: Any) -> Any:
    return a * b


def truediv(a: Any, b: Any) -> Any:
    return a / b


def floordiv(a: Any, b: Any) -> Any:
    return a // b


def mod(a: Any, b: Any) -> Any:
    return a % b


def power(a: Any, b: Any) -> Any:
    return a**b


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def neg(a: Any) -> Any:
    return -a


def pos(a: Any) -> Any:
    return +a


def invert(a: Any) -> Any:
    return ~a


def size(a: Any) -> Any:
    return abs(a)


def bitwise_and(a: Any, b: Any) -> Any:
    return a & b


def bitwise_or(a: Any, b: Any) -> Any:
    return a | b


def bitwise_xor(a: Any, b: Any) -> Any:
    return a ^ b


def less(a: Any, b: Any) -> Any:
    return a < b


def less_equal(a: Any, b: Any) -> Any:
    return a <= b


def greater(a: Any, b: Any) -> Any:
    return a > b


def greater_equal(a: Any, b: Any) -> Any:
    return a >= b


def equal(a: Any, b: Any) -> Any:
    return a == b


def not_equal(a: Any, b: Any) -> Any:
    return a != b


def negated(a: Any) -> Any:
    return not a


def item(a: Any, b: Any) -> Any:
    return a[b]


def item_at(position: Any, a: Any) -> Any:
    """The function that `itemgetter(position)` returns."""
    return a[position]


def items_at(positions: Any, a: Any) -> Any:
    """The function that `itemgetter(*positions)` returns."""
    return tuple([a[position] for position in positions])


def any_of(items: Any) -> Any:
    """Stops at the first true element."""
    for x in items:  # noqa: SIM110 -- that would be `any`
        if x:
            return True
    return False


def first_of(items: Any) -> Any:
    """`next` of a new generator."""
    for x in items:
        return x
    raise StopIteration


def first_or(items: Any, default: Any) -> Any:
    for x in items:
        return x
    return default


def count(start: Any = 0, step: Any = 1) -> Any:
    x = start
    while True:
        yield x
        x = x + step


def islice(items: Any, *limits: Any) -> Any:
    """Elements before a selected one are drawn, those after the last selected one are not."""
    first, last, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    first = 0 if first is None else first
    if first < 0 or (last is not None and last < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if last is None or last > 0:
        k = 0
        for x in items:
            if k >= first and (k - first) % step == 0:
                yield x
            k = k + 1
            if last is not None and k >= last:
                return


def takewhile(predicate: Any, items: Any) -> Any:
    for x in items:
        if not predicate(x):
            return
        yield x


def dropwhile(predicate: Any, items: Any) -> Any:
    waits = True
    for x in items:
        if waits and predicate(x):
            continue
        waits = False
        yield x


def repeat(value: Any, *times: Any) -> Any:
    if len(times) == 0:
        while True:
            yield value
    for _ in range(*times):
        yield value


def all_of(items: Any) -> Any:
    """Stops at the first false element."""
    for x in items:  # noqa: SIM110 -- that would be `all`
        if not x:
            return False
    return True


def pairs(items: Any) -> Any:
    """`itertools.pairwise`."""
    return [(items[k], items[k + 1]) for k in range(len(items) - 1)]


def products(groups: Any) -> Any:
    """`itertools.product` of up to four."""
    if len(groups) == 1:
        return [(a,) for a in groups[0]]
    if len(groups) == 2:
        return [(a, b) for a in groups[0] for b in groups[1]]
    if len(groups) == 3:
        return [(a, b, c) for a in groups[0] for b in groups[1] for c in groups[2]]
    return [(a, b, c, d) for a in groups[0] for b in groups[1] for c in groups[2] for d in groups[3]]


def combinations(items: Any, length: int) -> Any:
    """`itertools.combinations` of up to three."""
    n = len(items)
    if length == 1:
        return [(a,) for a in items]
    if length == 2:
        return [(items[i], items[j]) for i in range(n) for j in range(i + 1, n)]
    return [(items[i], items[j], items[k]) for i in range(n) for j in range(i + 1, n) for k in range(j + 1, n)]


def permutations(items: Any, length: int) -> Any:
    """`itertools.permutations` of up to three."""
    n = len(items)
    if length == 1:
        return [(a,) for a in items]
    if length == 2:
        return [(items[i], items[j]) for i in range(n) for j in range(n) if i != j]
    return [
        (items[i], items[j], items[k])
        for i in range(n)
        for j in range(n)
        for k in range(n)
        if i != j and i != k and j != k
    ]


FUNCTIONS: dict[Any, Any] = {
    operator.add: add,
    operator.sub: sub,
    operator.mul: mul,
    operator.truediv: truediv,
    operator.floordiv: floordiv,
    operator.mod: mod,
    operator.pow: power,
    operator.matmul: matmul,
    operator.neg: neg,
    operator.pos: pos,
    operator.invert: invert,
    operator.abs: size,
    operator.and_: bitwise_and,
    operator.or_: bitwise_or,
    operator.xor: bitwise_xor,
    operator.lt: less,
    operator.le: less_equal,
    operator.gt: greater,
    operator.ge: greater_equal,
    operator.eq: equal,
    operator.ne: not_equal,
    operator.not_: negated,
    operator.getitem: item,
    itertools.count: count,
    itertools.islice: islice,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.repeat: repeat,
}
"""By the function of `operator`, or the class of `itertools`, which becomes a generator here."""
