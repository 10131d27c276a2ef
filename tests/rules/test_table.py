"""The rule table rejects invalid rows."""

from __future__ import annotations

import pytest

from srcdiff.rules import RULES
from srcdiff.rules.table import REAL, RowError, constant, edge, elementwise

# The table already has the row, so that an undetected mistake is reported as a duplicate.
REFUSED = {
    "`sine` is not a primitive": lambda: elementwise("sine(x)", x="1.0"),
    "`sin` takes 1 arguments, not 2": lambda: elementwise("sin(x, y)", x="1.0"),
    "arguments have names, all different": lambda: elementwise("add(x, x)", x="1.0"),
    "an argument has the name of something else": lambda: elementwise("sin(pi)", pi="1.0"),
    "a signature is written": lambda: elementwise("sin", x="1.0"),
    "`cosine` is not a primitive": lambda: elementwise("sin(x)", x="cosine(x)"),
    "`cos` takes 1 arguments, not 0": lambda: elementwise("sin(x)", x="cos()"),
    "`y` is not bound": lambda: elementwise("sin(x)", x="cos(y)"),
    "`cos` is not bound": lambda: elementwise("sin(x)", x="cos * x"),
    "there is no argument `y`": lambda: elementwise("sin(x)", y="1.0"),
    "`'1.0'` is no number": lambda: elementwise("sin(x)", x="'1.0'"),
    "`True` is no number": lambda: elementwise("sin(x)", x="True"),
    "`np.cos(x)` is not in the language": lambda: elementwise("sin(x)", x="np.cos(x)"),
    "`0 < x < 1` is not in the language": lambda: elementwise("sin(x)", x="1.0 if 0 < x < 1 else 2.0"),
    "`cos(x=x)` is not in the language": lambda: elementwise("sin(x)", x="cos(x=x)"),
    "`x @ x` is not in the language": lambda: elementwise("sin(x)", x="x @ x"),
    "invalid syntax": lambda: elementwise("sin(x)", x="cos(x) +"),
    "nothing reads `c`": lambda: elementwise("sin(x)", let="c = cos(x)", x="1.0"),
    "`x` is bound twice": lambda: elementwise("sin(x)", let="x = cos(x)", x="x"),
    "`c` is not bound": lambda: elementwise("sin(x)", let="d = c; c = cos(x)", x="c * d"),
    "`let` is written": lambda: elementwise("sin(x)", let="cos(x)", x="1.0"),
    "an edge gives a value to every argument": lambda: elementwise("add(x, y)", x="1.0", at=[edge(x=0.0, x_bar=1.0)]),
    "an edge is about partials of this row": lambda: elementwise("sin(x)", x="1.0", at=[edge(x=0.0, y_bar=1.0)]),
    "a domain is for an argument of this row": lambda: elementwise("sin(x)", x="1.0", on={"y": REAL}),
    "the second row of this primitive": lambda: constant("sin(x)"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_row_is_refused(reason):
    before = dict(RULES)
    with pytest.raises(RowError) as refusal:
        REFUSED[reason]()
    assert reason in str(refusal.value)
    assert before == RULES
