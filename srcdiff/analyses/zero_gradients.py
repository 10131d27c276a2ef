"""Why a gradient is zero: an argument that is not used, or the statements that cut it off."""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.analyses.activity import activity, varied_values
from srcdiff.analyses.aliasing import points_to
from srcdiff.ir.nodes import Apply, Function, Operation, Value, walk

_SAID = {
    "int": "`int(...)`",
    "rint": "rounding",
    "round": "rounding",
    "floor": "`floor`",
    "ceil": "`ceil`",
    "trunc": "truncation",
    "sign": "`sign`",
    "stop_gradient": "`stop_gradient`",
    "floor_divide": "`//`",
    "bool": "`bool(...)`",
}


def zero_gradient(function: Function, name: str, inputs: Sequence[Value], output: int) -> list[str]:
    """A warning if the argument cannot reach the result, with the lines that cut it off."""
    sites = points_to(function)
    result = function.body.yields[output]
    found = activity(function, inputs, [result], sites)
    if any(v in found for v in inputs) or (result in inputs):
        return []
    varied = varied_values(function, inputs, sites)
    cuts = [o for o in walk(function.body) if isinstance(o, Apply) and o.out not in varied]
    cuts = [o for o in cuts if any(a in varied for a in o.args)]
    if not cuts:
        used = any(v in varied for o in walk(function.body) for v in o.uses() if v in inputs)
        why = "what it changes is not part of the result" if used else "it is not used"
        return [f"the gradient with respect to `{name}` is zero: {why}"]
    lines = list(dict.fromkeys(_line(o) for o in cuts))
    return [f"the gradient with respect to `{name}` is zero: it is cut off by " + "; ".join(lines[:4])]


def _line(operation: Operation) -> str:
    assert isinstance(operation, Apply)
    what = _SAID.get(operation.primitive, "a comparison")
    if operation.span is None:
        return what
    return f"{what} in line {operation.span.line}, `{operation.span.text.strip()}`"
