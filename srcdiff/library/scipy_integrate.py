"""`scipy.integrate` inside differentiated functions: differential equations by the methods of odes.py, and integrals.

`rtol` and `atol` mean the same as in SciPy: the root mean square of the error of a step is relative to `atol + rtol *
abs(y)`. The steps differ from SciPy's, because the methods differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library import quadrature, solvers
from srcdiff.library.complex_parts import from_parts, has_complex_type, in_parts, rows_from_parts
from srcdiff.library.language import as_tuple, derivatives_first, event_settings, is_array, structural, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.odes import (
    as_state,
    integrated,
    like_state,
    parts_like_state,
)
from srcdiff.library.runge_kutta import (
    dense_row,
    fill_rosenbrock_stages,
    fill_stages,
    stage_solver,
    stages_of,
    tables_of,
)
from srcdiff.library.scipy_optimize import bracketed


@dataclass(frozen=True)
class Solution:
    """The attributes of the result of `solve_ivp` that programs may read."""

    t: Any
    y: Any
    sol: Any
    t_events: Any
    y_events: Any
    status: Any
    success: Any


METHODS = {
    "RK45": "dopri5",
    "RK23": "dopri5",
    "DOP853": "dop853",
    "Radau": "rodas5p",
    "BDF": "rodas5p",
    "LSODA": "rodas5p",
}
"""The methods of SciPy that are implemented here."""


@structural
def method_for(name: Any) -> str:
    if name not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}")
    return METHODS[name]


@derivatives_first("jacobian", "jvp")
def solve_ivp(
    jacobian: Any,
    jvp: Any,
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: Any = False,
    events: Any = None,
    vectorized: Any = False,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    max_step: Any = np.inf,
    first_step: Any = None,
    jac: Any = None,
    jac_sparsity: Any = None,
    lband: Any = None,
    uband: Any = None,
    min_step: Any = 0.0,
) -> Any:
    if isinstance(y0, tuple | list):
        y0 = np.asarray(y0)
    if has_complex_type(y0):
        if vectorized or lband is not None or uband is not None:
            unsupported("`solve_ivp` of complex states with `vectorized`, `lband` or `uband`")
        if method == "Radau" or method == "LSODA":
            raise ValueError("`y0` is complex, but the chosen solver does not support integration in a complex domain.")

        def of_parts(time: Any, y: Any, *others: Any) -> Any:
            return parts_like_state(fun(time, from_parts(y, y0), *others), y)

        def seen(y: Any) -> Any:
            return from_parts(y, y0)

        found = solution(
            *(jacobian, jvp, of_parts, t_span, in_parts(y0), method, t_eval, dense_output, events, seen, False),
            *(args, rtol, atol, max_step, None, None),
        )

        def complex_sol(t: Any) -> Any:
            if not is_array(t):
                return from_parts(found.sol(t), y0)
            return np.asarray(rows_from_parts(np.asarray(found.sol(t).T)).T)

        return Solution(
            found.t,
            np.asarray(rows_from_parts(np.asarray(found.y.T)).T),
            complex_sol if dense_output else None,
            found.t_events,
            None if events is None else tuple([rows_from_parts(rows) for rows in found.y_events]),
            found.status,
            True,
        )

    def as_it_is(y: Any) -> Any:
        return y

    return solution(
        *(jacobian, jvp, fun, t_span, y0, method, t_eval, dense_output, events, as_it_is, vectorized),
        *(args, rtol, atol, max_step, lband, uband),
    )


def solution(
    jacobian: Any,
    jvp: Any,
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any,
    t_eval: Any,
    dense_output: Any,
    events: Any,
    seen: Any,
    vectorized: Any,
    args: Any,
    rtol: Any,
    atol: Any,
    max_step: Any,
    lband: Any,
    uband: Any,
) -> Any:
    """The solution for a state of real numbers. Events are functions of the time and of `seen(y)`."""
    begin, end = t_span
    start = as_state(y0)
    own = method_for(method)
    tolerated = floats(np.asarray(atol)) if isinstance(atol, tuple | list) else atol
    others = () if args is None else as_tuple(args)
    inner = np.empty(0) if t_eval is None else floats(np.asarray(t_eval))
    times = np.empty(len(inner) + 2)
    times[0], times[len(inner) + 1] = begin, end
    times[1 : len(inner) + 1] = inner
    watched = () if events is None else functions_in(events)

    def slope(time: Any, y: Any) -> Any:
        if vectorized:
            return like_state(fun(time, np.asarray(y[:, None]), *others), y)
        return like_state(fun(time, y, *others), y)

    def is_over(s: Any, y: Any, following: Any, new: Any, counts: Any) -> Any:
        """Whether an event has happened for the last time; it counts the events."""
        found = False
        for k, event in enumerate(watched):
            last = event_settings(event)[0]
            if last > 0 and crosses(event, value_of(event, s, y), value_of(event, following, new)):
                counts[k] += 1
                if counts[k] >= last:
                    found = True
        return found

    def value_of(event: Any, s: Any, y: Any) -> Any:
        return number(event(begin + s * (end - begin), seen(y), *others))

    linear = stage_solver(jacobian, jvp, bands_of(lband, uband))
    rows, states, at, _ = integrated(
        *(linear, jvp, slope, start, times, own, rtol, tolerated, 1000000),
        longest=max_step,
        is_over=is_over if any_ends(watched) else None,
        watched=len(watched),
    )

    def inside(s: Any, step: Any) -> Any:
        """The solution at a time inside a step."""
        return between_states(linear, jvp, slope, begin, end, own, states, at, step, s)

    def sol(t: Any) -> Any:
        if not is_array(t):
            s = (t - begin) / (end - begin)
            return inside(s, step_at(at, s))
        found = np.empty((len(start), len(t)))
        for i in range(len(t)):
            s = (t[i] - begin) / (end - begin)
            y = inside(s, step_at(at, s))
            for m in range(len(start)):
                found[m, i] = y[m]
        return found

    def places_of(event: Any) -> Any:
        """The times of an event, in order, and the steps that contain them."""
        after = value_of(event, at[0], states[0])
        count, steps, heights = 0, np.empty(len(at), np.int64), np.empty((len(at), 2))
        for step in range(len(at) - 1):
            before, after = after, value_of(event, at[step + 1], states[step + 1])
            if crosses(event, before, after):
                steps[count], heights[count, 0], heights[count, 1] = step, before, after
                count += 1
        places = np.empty(count)
        for i in range(count):
            step = steps[i]

            def height(s: Any, step: Any = step) -> Any:
                return value_of(event, s, inside(s, step))

            places[i] = crossing(jacobian, jvp, height, at[step], heights[i, 0], at[step + 1], heights[i, 1])
        return places, steps

    last = len(at) - 2
    place, has_ended = 1.0, False
    happened = tuple([places_of(event) for event in watched])
    for event, (places, _) in zip(watched, happened, strict=True):
        needed = event_settings(event)[0]
        if needed > 0 and len(places) >= needed and (not has_ended or places[needed - 1] < place):
            place, has_ended = places[needed - 1], True
    t_end = begin + place * (end - begin) if has_ended else end
    y_end = inside(place, last) if has_ended else np.copy(states[last + 1])
    if t_eval is None:
        t = begin + at * (end - begin)
        t[last + 1] = t_end
        y = np.copy(states.T)
        y[:, last + 1] = y_end
    else:
        count = 0
        while count < len(inner) and (inner[count] - t_end) * (end - begin) <= 0.0:
            count += 1
        t, y = np.copy(inner[:count]), np.copy(rows[1 : count + 1].T)

    def times_until(places: Any) -> Any:
        return np.asarray(begin + places[: number_until(places, place)] * (end - begin))

    def states_until(places: Any, steps: Any) -> Any:
        count = number_until(places, place)
        found = np.empty((count, len(start)))
        for i in range(count):
            found[i] = inside(places[i], steps[i])
        return found

    return Solution(
        t,
        y,
        sol if dense_output else None,
        None if events is None else tuple([times_until(places) for places, _ in happened]),
        None if events is None else tuple([states_until(places, steps) for places, steps in happened]),
        1 if has_ended else 0,
        True,
    )


@structural
def bands_of(below: Any, above: Any) -> Any:
    """The numbers of diagonals beside the main one, if one of them is given."""
    return None if below is None and above is None else (below or 0, above or 0)


def number_until(places: Any, last: Any) -> Any:
    """The number of times that are not after the last one."""
    count = 0
    while count < len(places) and places[count] <= last:
        count += 1
    return count


def any_ends(watched: Any) -> Any:
    """Whether an event ends the integration."""
    found = False
    for event in watched:
        if event_settings(event)[0] > 0:
            found = True
    return found


def number(x: Any) -> Any:
    return np.sum(x) if is_array(x) else x


def functions_in(events: Any) -> Any:
    return tuple(events) if isinstance(events, tuple | list) else (events,)


def crosses(event: Any, before: Any, after: Any) -> Any:
    """Whether the event happens between two states."""
    direction = event_settings(event)[1]
    up, down = before <= 0.0 and after >= 0.0, before >= 0.0 and after <= 0.0
    return (up and direction >= 0.0) or (down and direction <= 0.0)


def crossing(jacobian: Any, jvp: Any, height: Any, low: Any, low_height: Any, high: Any, high_height: Any) -> Any:
    """The time between two times at which the height is zero, with derivatives by the implicit function theorem."""

    def solver(height: Any, start: Any) -> Any:
        return bracketed(height, low, low_height, high, high_height, 1e-14, 4e-15, 200)

    return solvers.solved_number(jvp, solver, height, low)


def step_at(at: Any, s: Any) -> Any:
    """The step that contains a time. Outside, it is the first or the last one."""
    low, high = 0, len(at) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if at[middle] <= s:
            low = middle
        else:
            high = middle
    return low


def between_states(
    linear: Any, jvp: Any, f: Any, begin: Any, end: Any, method: Any, states: Any, at: Any, step: Any, s: Any
) -> Any:
    def slope(s: Any, y: Any) -> Any:
        return (end - begin) * f(begin + s * (end - begin), y)

    y, ds = np.copy(states[step]), at[step + 1] - at[step]
    table = tables_of(method)
    k = np.zeros((stages_of(method), len(y)))
    if method == "rodas5p":
        fill_rosenbrock_stages(linear, jvp, slope, table, at[step], ds, y, k, 8)
    else:
        fill_stages(slope, table, at[step], ds, y, k, 0, stages_of(method))
    return dense_row(y, k, table[3], stages_of(method), ds, (s - at[step]) / ds)


@derivatives_first("jacobian", "jvp")
def odeint(
    jacobian: Any,
    jvp: Any,
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,  # noqa: N803 (SciPy's name)
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: Any = False,
) -> Any:
    """By the method for stiff equations."""
    if full_output:
        unsupported("`full_output`")

    def slope(time: Any, y: Any) -> Any:
        if tfirst:
            return like_state(func(time, y, *as_tuple(args)), y)
        return like_state(func(y, time, *as_tuple(args)), y)

    relative, absolute = 1.49012e-8 if rtol is None else rtol, 1.49012e-8 if atol is None else atol
    times = np.copy(floats(np.asarray(t)))
    steps = mxstep if mxstep > 0 else 1000000
    linear = stage_solver(jacobian, jvp, bands_of(ml, mu))
    found = integrated(linear, jvp, slope, as_state(y0), times, "rodas5p", relative, absolute, steps)
    return np.copy(found[0])


FUNCTIONS: dict[str, Any] = {
    "solve_ivp": solve_ivp,
    "odeint": odeint,
    **{
        function.__name__: function
        for function in (
            *(quadrature.quad, quadrature.fixed_quad, quadrature.trapezoid),
            *(quadrature.simpson, quadrature.cumulative_trapezoid),
        )
    },
}
"""By the name in `scipy.integrate`."""

TAKES_COMPLEX = frozenset((solve_ivp,))
"""The functions that support complex numbers."""
