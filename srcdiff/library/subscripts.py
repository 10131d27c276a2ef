"""The letters of `np.einsum`. All of this runs at compile time."""

from __future__ import annotations

import itertools
from typing import Any

from srcdiff.library.language import structural

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@structural
def subscripts(text: Any, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The letters of each operand and of the result. An ellipsis is replaced by new letters."""
    if not isinstance(text, str):
        raise TypeError("the subscripts of `einsum` must be a string known at compile time")
    given, arrow, result = text.replace(" ", "").partition("->")
    parts = given.split(",")
    if len(parts) != len(ranks):
        raise ValueError(f"the subscripts name {len(parts)} operands, but {len(ranks)} are given")
    hidden = max((r - len(p.replace("...", "")) for p, r in zip(parts, ranks, strict=True) if "..." in p), default=0)
    spare = "".join(itertools.islice((x for x in reversed(_LETTERS) if x not in text), max(hidden, 0)))
    found = []
    for part, rank in zip(parts, ranks, strict=True):
        missing = rank - len(part.replace("...", ""))
        letters = part.replace("...", spare[len(spare) - missing :] if missing > 0 else "")
        if len(letters) != rank or not all(x in _LETTERS for x in letters):
            raise ValueError(f"the subscripts {part!r} do not match an operand with {rank} axes")
        found.append(letters)
    if arrow:
        result = result.replace("...", spare)
    else:
        every = "".join(found)
        result = spare + "".join(x for x in sorted(set(every)) if every.count(x) == 1 and x not in spare)
    if len(set(result)) < len(result) or not set(result) <= set("".join(found)):
        raise ValueError(f"the subscripts of the result are wrong: {text!r}")
    return tuple(found), result


@structural
def tensordot_letters(axes: Any, a_rank: int, b_rank: int) -> tuple[str, str, str]:
    """The letters of both operands and of the result of `np.tensordot`."""
    if isinstance(axes, int):
        pairs = [(a_rank - axes + k, k) for k in range(axes)]
    else:
        first, second = (x if isinstance(x, tuple) else (x,) for x in axes)
        if len(first) != len(second):
            raise ValueError("`axes` of `tensordot` must name as many axes of one operand as of the other")
        pairs = [(i % a_rank, j % b_rank) for i, j in zip(first, second, strict=True)]
    a = list(_LETTERS[:a_rank])
    b = list(_LETTERS[a_rank : a_rank + b_rank])
    for i, j in pairs:
        b[j] = a[i]
    contracted = {i for i, _ in pairs}
    kept = [x for k, x in enumerate(a) if k not in contracted] + [x for x in b if x not in a]
    return "".join(a), "".join(b), "".join(kept)


@structural
def next_pair(letters: tuple[str, ...], result: str) -> tuple[int, int]:
    """The two operands whose product has the fewest axes. Ties go to operands with a common letter."""

    def cost(pair: tuple[int, int]) -> tuple[int, bool]:
        kept = kept_letters(letters, pair, result)
        return len(kept), not set(letters[pair[0]]) & set(letters[pair[1]])

    return min(itertools.combinations(range(len(letters)), 2), key=cost)


@structural
def kept_letters(letters: tuple[str, ...], pair: tuple[int, int], result: str) -> str:
    """The letters of a product of two operands that later products need."""
    rest = "".join(x for k, x in enumerate(letters) if k not in pair) + result
    return "".join(x for x in unique(letters[pair[0]] + letters[pair[1]]) if x in rest)


@structural
def unique(letters: str) -> str:
    return "".join(dict.fromkeys(letters))


@structural
def axes_not_in(letters: str, kept: str) -> tuple[int, ...]:
    return tuple(k for k, x in enumerate(letters) if x not in kept)


@structural
def letters_in(letters: str, kept: str) -> str:
    return "".join(x for x in letters if x in kept)


@structural
def order_of(letters: str, wanted: str) -> tuple[int, ...]:
    """The position of each wanted letter."""
    return tuple(letters.index(x) for x in wanted)


@structural
def place_of(letters: str, distinct: str, place: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index into an operand, from the value of each letter."""
    return tuple(place[distinct.index(x)] for x in letters)


@structural
@structural
def groups(a: str, b: str, result: str) -> tuple[str, str, str, str]:
    """The letters of both operands and the result, of the first and the result, of the second and it; of both alone."""
    together = "".join(x for x in a if x in b and x in result)
    left = "".join(x for x in result if x in a and x not in b)
    right = "".join(x for x in result if x in b and x not in a)
    return together, left, right, "".join(x for x in a if x in b and x not in result)


@structural
def letters_of(operands: tuple[Any, ...]) -> str:
    """The subscripts as text, from the lists of numbers that `einsum` also takes.

    >>> letters_of(((0, 1), "b", (1, 2), (0, 2)))
    'ab,bc->ac'
    """
    lists = operands[::2] + (operands[-1:] if len(operands) % 2 == 0 else ())
    texts = ["".join("..." if k is ... else _LETTERS[k] for k in numbers) for numbers in lists]
    return ",".join(texts) if len(operands) % 2 else ",".join(texts[:-1]) + "->" + texts[-1]


@structural
def operands_beside(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands behind the first one, if lists of numbers follow them."""
    return operands[1 : len(operands) - 1 : 2]
