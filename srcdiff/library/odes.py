"""Ordinary differential equations: adaptive Runge-Kutta methods and a Rosenbrock method, with both adjoints.

Places in time are numbers from 0 to 1, between the first and the last time. Slopes are with respect to these numbers,
so that derivatives with respect to the times follow from those of the slopes.

    integration    s = 0 ... 1      state, error = step(s, ds, state); ds from the error      kept: places, states
    adjoint        s = 1 ... 0      bar, p_bar += derivative of the step at its state         the places are constants

`jacobian` and `jvp` are passed in, because the library does not import the modules that use it. `linear` solves the
linear systems of implicit stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.complex_parts import from_parts, has_complex_type, in_parts, rows_from_parts
from srcdiff.library.language import (
    agree,
    as_tuple,
    each,
    is_array,
    leaves,
    rebuilt,
    require_alike,
    structural,
    unsupported,
    with_derivative,
)
from srcdiff.library.linear_algebra import floats
from srcdiff.library.runge_kutta import (
    METHODS,
    assign_row,
    dense_row,
    fill_rosenbrock_stages,
    fill_stages,
    first_step,
    more_rows,
    norm_of_errors,
    order_of,
    stage_solver,
    stages_of,
    stages_of_step,
    tables_of,
    twice,
    weighted_sum,
)

# --------------------------------------------------------------------------------------------------------------- public


def odeint(
    jacobian: Any,
    jvp: Any,
    f: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    method: Any = "tsit5",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    adjoint: Any = "discrete",
    max_steps: Any = 100000,
    bands: Any = None,
    backend: Any = None,
) -> Any:
    known_method(method)
    if is_structure(y0):
        return of_structure(jacobian, jvp, f, y0, t, args, method, rtol, atol, adjoint, max_steps, bands)
    if has_complex_type(y0):
        if bands is not None:
            unsupported("`bands` for complex states")

        def of_parts(y: Any, time: Any, *others: Any) -> Any:
            return parts_like_state(f(from_parts(y, y0), time, *others), y)

        both = odeint(
            *(jacobian, jvp, of_parts, in_parts(y0), t, args),
            method=method,
            rtol=rtol,
            atol=atol,
            adjoint=adjoint,
            max_steps=max_steps,
        )
        return np.reshape(rows_from_parts(both), (len(both), *np.shape(y0)))
    start = as_state(y0)
    times = np.copy(floats(np.asarray(t)))

    def slope(time: Any, y: Any) -> Any:
        return like_state(f(shaped(y, y0), time, *as_tuple(args)), y)

    linear = stage_solver(jacobian, jvp, bands)
    if known_adjoint(adjoint) == "discrete":
        rows, _, _, _ = integrated(linear, jvp, slope, start, times, method, rtol, atol, max_steps)
    else:
        rows = through(
            linear, stage_solver(jacobian, jvp, None), jvp, slope, start, times, method, rtol, atol, max_steps
        )
    return np.reshape(rows, (len(times), *np.shape(y0)))


def as_state(y0: Any) -> Any:
    """The start as a vector in new memory."""
    if not is_array(y0):
        return np.full(1, y0 * 1.0)
    y = floats(np.asarray(y0))
    return np.copy(y if y.ndim == 1 else np.reshape(y, y.size))


def shaped(y: Any, y0: Any) -> Any:
    return np.reshape(y, np.shape(y0)) if is_array(y0) else y[0]


def parts_like_state(change: Any, y: Any) -> Any:
    found = in_parts(change)
    agree(found.size, y.size, "the equation does not return as many numbers as the state has")
    return found


def like_state(slope: Any, y: Any) -> Any:
    found = floats(np.asarray(slope))
    agree(found.size, y.size, "the equation does not return as many numbers as the state has")
    return found if found.ndim == 1 else np.reshape(found, found.size)


# ---------------------------------------------------------------------------------------------------------- structures


def is_structure(y0: Any) -> Any:
    """Whether the state is a dictionary, or a tuple with arrays or tuples in it; one of numbers is an array."""
    if not isinstance(y0, tuple | dict):
        return False
    found = isinstance(y0, dict)
    for item in parts_of(y0):
        if is_array(item):
            found = True
    return found


def of_structure(
    jacobian: Any,
    jvp: Any,
    f: Any,
    y0: Any,
    t: Any,
    args: Any,
    method: Any,
    rtol: Any,
    atol: Any,
    adjoint: Any,
    max_steps: Any,
    bands: Any,
) -> Any:
    """The solution with all numbers of the state in one vector."""
    parts = parts_of(y0)
    items = tuple([floats(np.asarray(x)) if is_array(x) else x * 1.0 for x in leaves(parts)])
    start = np.empty(number_in(items))
    put(start, 0, items)

    def slope(y: Any, time: Any, *others: Any) -> Any:
        state = like_structure(y0, rebuilt(parts, taken_from(items, y, 0)))
        changes = parts_like(y0, f(state, time, *others))
        require_alike(parts, changes, "the equation does not return the structure that the state has")
        found = leaves(changes)
        for item, part in zip(items, found, strict=True):
            for n, m in zip(np.shape(part), np.shape(item), strict=True):
                agree(n, m, "the equation does not return arrays of the shapes that the state has")
        change = np.empty(len(y))
        put(change, 0, found)
        return change

    rows = odeint(
        *(jacobian, jvp, slope, start, t, args),
        method=method,
        rtol=rtol,
        atol=atol,
        adjoint=adjoint,
        max_steps=max_steps,
        bands=bands,
    )
    return like_structure(y0, rebuilt(parts, columns_of(items, rows)))


def columns_of(items: Any, rows: Any) -> Any:
    """For each number or array of the state, its values at all times."""
    found = []
    start = 0
    for item in items:
        size = size_of(item)
        found.append(np.reshape(np.copy(rows[:, start : start + size]), (len(rows), *np.shape(item))))
        start += size
    return tuple(found)


def parts_of(y0: Any) -> Any:
    return tuple(y0.values()) if isinstance(y0, dict) else y0


def parts_like(y0: Any, found: Any) -> Any:
    """The parts of what the equation returns, in the order of the state's."""
    return tuple([found[key] for key in y0]) if isinstance(y0, dict) else found


def like_structure(y0: Any, parts: Any) -> Any:
    return dict(zip(y0.keys(), parts, strict=True)) if isinstance(y0, dict) else parts


@structural
def known_method(method: Any) -> None:
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}")


@structural
def known_adjoint(adjoint: Any) -> Any:
    if adjoint not in ("discrete", "continuous"):
        raise ValueError("`adjoint` must be 'discrete' or 'continuous'")
    return adjoint


# ------------------------------------------------------------------------------------------------------- many steps


def attempted(
    linear: Any, jvp: Any, slope: Any, table: Any, method: Any, s: Any, ds: Any, y: Any, k: Any, rtol: Any, atol: Any
) -> Any:
    """The state after a step, and its error relative to the tolerance. `k[0]` is the slope at the state."""
    if method == "rodas5p":
        fill_rosenbrock_stages(linear, jvp, slope, table, s, ds, y, k, 8)
    else:
        fill_stages(slope, table, s, ds, y, k, 1, stages_of_step(method) + 1)
    new = weighted_sum(y, k, table[2], 0, stages_of_step(method), ds)
    return new, norm_of_errors(y, new, k, table, method, ds, rtol, atol)


def next_step(ds: Any, error: Any, method: Any, has_failed: Any) -> Any:
    """The step size whose error would be slightly below the tolerance."""
    factor = 0.9 * max(error, 1e-10) ** (-1.0 / order_of(method)) if error < np.inf else 0.2
    return ds * min(1.0 if has_failed else 10.0, max(0.2, factor))


def check_step(s: Any, ds: Any, tried: Any, max_steps: Any) -> None:
    if tried > max_steps:
        raise RuntimeError("the integration takes more steps than max_steps")
    if s + 0.1 * ds == s:
        raise RuntimeError("the step became too small: the solution may have a singularity")


def final_state(
    linear: Any, jvp: Any, slope: Any, start: Any, ds: Any, method: Any, rtol: Any, atol: Any, max_steps: Any
) -> Any:
    """The state at time 1, and the last step. Nothing is stored."""
    table = tables_of(method)
    k = np.zeros((stages_of(method), len(start)))
    y, s, tried = np.copy(start), 0.0, 0
    assign_row(k, 0, slope(0.0, np.copy(y)))
    if ds <= 0.0:
        ds = first_step(y, k[0], rtol, atol)
    has_failed = False
    while s < 1.0:
        tried += 1
        is_last = s + 1.001 * ds >= 1.0
        tried_step = 1.0 - s if is_last else ds
        check_step(s, tried_step, tried, max_steps)
        new, error = attempted(linear, jvp, slope, table, method, s, tried_step, y, k, rtol, atol)
        if error <= 1.0:
            y[:] = new
            s = 1.0 if is_last else s + tried_step
            if method != "rodas5p":
                k[0] = k[stages_of_step(method)]
        if not (error <= 1.0 and is_last and tried_step < ds):
            ds = next_step(tried_step, error, method, has_failed)
        has_failed = not error <= 1.0
    return y, ds


# ------------------------------------------------------------------------------------------- with the discrete adjoint


def integrated(
    linear: Any,
    jvp: Any,
    f: Any,
    start: Any,
    times: Any,
    method: Any,
    rtol: Any,
    atol: Any,
    max_steps: Any,
    keeps: Any = True,
    longest: Any = np.inf,
    is_over: Any = None,
    watched: Any = 0,
) -> Any:
    """The solution at the times; and for each step its state, its place, and the number of times passed until then.

    The steps are as large as the tolerance allows, but not longer than `longest`. Polynomials give the
    solution inside of them. If `is_over` is given, it is called after each step: if it is true, the integration ends.
    """
    n, count = len(start), len(times)
    duration = duration_of(times)
    table = tables_of(method)

    def slope(s: Any, y: Any) -> Any:
        return duration * f(times[0] + s * duration, y)

    def theta(row: Any, s: Any, ds: Any) -> Any:
        return (times[row] - times[0] - s * duration) / (ds * duration)

    def run(start: Any) -> Any:
        states, at, passed = np.empty((17, n)), np.zeros(17), np.ones(17, np.int64)
        counts = np.zeros(watched, np.int64)
        rows = np.empty((count, n))
        y, s, row, steps, tried = np.copy(start), 0.0, 1, 0, 0
        states[0], rows[0] = y, y
        k = np.zeros((stages_of(method), n))
        assign_row(k, 0, slope(0.0, np.copy(y)))
        ds = first_step(y, k[0], rtol, atol)
        has_failed, is_done = False, False
        while s < 1.0 and count > 1 and not is_done:
            tried += 1
            if longest < np.inf:
                ds = min(ds, longest / abs(duration))
            is_last = s + 1.001 * ds >= 1.0
            if is_last:
                ds = 1.0 - s
            check_step(s, ds, tried, max_steps)
            new, error = attempted(linear, jvp, slope, table, method, s, ds, y, k, rtol, atol)
            if error <= 1.0:
                following = 1.0 if is_last else s + ds
                before = row
                while row < count and (is_last or (times[row] - times[0]) / duration <= following):
                    if row == before and stages_of(method) > stages_of_step(method) + 1:
                        fill_stages(slope, table, s, ds, y, k, stages_of_step(method) + 1, stages_of(method))
                    rows[row] = dense_row(y, k, table[3], stages_of(method), ds, theta(row, s, ds))
                    row += 1
                if is_over is not None:
                    is_done = is_over(s, y, following, new, counts)
                steps += 1
                if steps == len(at):
                    states, at, passed = more_rows(states, n), twice(at), twice(passed)
                y[:] = new
                s = following
                states[steps], at[steps], passed[steps] = y, s, row
                if method != "rodas5p":
                    k[0] = k[stages_of_step(method)]
            ds = next_step(ds, error, method, has_failed)
            has_failed = not error <= 1.0
        return rows, np.copy(states[: steps + 1]), np.copy(at[: steps + 1]), np.copy(passed[: steps + 1])

    def step(s: Any, following: Any, first: Any, last: Any, y: Any) -> Any:
        """The state after a step, and the solution at the output times inside of it."""
        ds = following - s
        k = np.zeros((stages_of(method), n))
        if method == "rodas5p":
            fill_rosenbrock_stages(linear, jvp, slope, table, s, ds, y, k, 8)
        else:
            fill_stages(slope, table, s, ds, y, k, 0, stages_of(method) if last > first else stages_of_step(method))
        rows = np.empty((last - first, n))
        for row in range(last - first):
            rows[row] = dense_row(y, k, table[3], stages_of(method), ds, theta(first + row, s, ds))
        return weighted_sum(y, k, table[2], 0, stages_of_step(method), ds), rows

    def backward(pull: Any, zeros: Any, outs: Any, bars: Any) -> Any:
        _, states, at, passed = outs
        return swept_back(pull, zeros, states, at, passed, bars[0], bars[1])

    def forward(push: Any, outs: Any, start_dot: Any) -> Any:
        rows, states, at, passed = outs
        rows_dot, states_dot = swept_forward(push, states, at, passed, rows, start_dot)
        return rows_dot, states_dot, np.zeros(at.shape), np.zeros(passed.shape, np.int64)

    if keeps:
        return with_derivative(EQUATION, run, step, backward, forward, start, (0.0, 1.0, 0, 1), table)

    # stores only the last state, and repeats the steps for the derivatives

    def run_to_end(start: Any) -> Any:
        return final_state(linear, jvp, slope, start, 0.0, method, rtol, atol, max_steps)[0], np.copy(start)

    def backward_again(pull: Any, zeros: Any, outs: Any, bars: Any) -> Any:
        rows, states, at, passed = run(outs[1])
        rows_bar, states_bar = np.zeros(rows.shape), np.zeros(states.shape)
        states_bar[len(at) - 1] = bars[0]
        start_bar, total = swept_back(pull, zeros, states, at, passed, rows_bar, states_bar)
        return np.asarray(start_bar + bars[1]), total

    def forward_again(push: Any, outs: Any, start_dot: Any) -> Any:
        rows, states, at, passed = run(outs[1])
        _, states_dot = swept_forward(push, states, at, passed, rows, start_dot)
        return np.copy(states_dot[len(at) - 1]), np.copy(start_dot)

    return with_derivative(EQUATION, run_to_end, step, backward_again, forward_again, start, (0.0, 1.0, 0, 1), table)[0]


EQUATION = "the right-hand side of a differential equation"


def swept_back(pull: Any, zeros: Any, states: Any, at: Any, passed: Any, rows_bar: Any, states_bar: Any) -> Any:
    """The adjoints of the start, and of the values that the steps read from their surroundings."""
    total = zeros
    y_bar = np.copy(states_bar[len(at) - 1])
    for i in range(len(at) - 1):
        m = len(at) - 2 - i
        first, last = passed[m], passed[m + 1]
        parts = pull((at[m], at[m + 1], first, last), states[m], (y_bar, rows_bar[first:last]))
        total = added(total, rest_of(parts))
        y_bar = np.asarray(parts[0] + states_bar[m])
    return np.asarray(y_bar + rows_bar[0]), total


def swept_forward(push: Any, states: Any, at: Any, passed: Any, rows: Any, start_dot: Any) -> Any:
    """The tangents of the solution at the times, and after each step."""
    rows_dot, states_dot = np.zeros(rows.shape), np.zeros(states.shape)
    states_dot[0], rows_dot[0] = start_dot, start_dot
    for m in range(len(at) - 1):
        first, last = passed[m], passed[m + 1]
        _, (y_dot, inner) = push((at[m], at[m + 1], first, last), states[m], np.copy(states_dot[m]))
        states_dot[m + 1] = y_dot
        rows_dot[first:last] = inner
    return rows_dot, states_dot


def duration_of(times: Any) -> Any:
    """The time from the first to the last one. Raises if there is no first one, or if they are not monotone."""
    if len(times) == 0:
        raise ValueError("there are no times: the first one is the time of the state that is given")
    duration = times[len(times) - 1] - times[0]
    if duration == 0.0 and len(times) > 1:
        raise ValueError("the first time and the last one must differ")
    for row in range(len(times) - 1):
        if (times[row + 1] - times[row]) * duration < 0.0:
            raise ValueError("the times must increase, or decrease")
    return duration


@structural
def rest_of(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return items[1:]


def added(totals: Any, parts: Any) -> Any:
    """The sums of numbers and of arrays. The arrays are changed in place."""
    return tuple([plus(total, part) for total, part in zip(totals, parts, strict=True)])


def plus(total: Any, part: Any) -> Any:
    if not is_array(total):
        return total + part
    for place in each(total.shape):
        total[place] += part[place]
    return total


# ----------------------------------------------------------------------------------------- with the continuous adjoint


def through(
    linear: Any, dense: Any, jvp: Any, f: Any, start: Any, times: Any, method: Any, rtol: Any, atol: Any, max_steps: Any
) -> Any:
    """The solution at the times, where steps end. The adjoint is an equation that runs backwards between them.

    y' = f(y, p)        bar' = -J^T bar        p_bar' = -(df/dp)^T bar        J = df/dy at y, which runs backwards too
    """
    n, count = len(start), len(times)
    duration_of(times)

    def slope(part: Any, s: Any, y: Any) -> Any:
        duration = times[part + 1] - times[part]
        return (np.asarray(duration * f(times[part] + s * duration, y)),)

    def run(start: Any) -> Any:
        rows = np.empty((count, n))
        rows[0] = start
        ds = 0.0
        for part in range(count - 1):
            y, ds = next_row(part, rows[part], ds)
            rows[part + 1] = y
            ds = rescaled(ds, times, part)
        return (rows,)

    def next_row(part: Any, y: Any, ds: Any) -> Any:
        def change(s: Any, y: Any) -> Any:
            return slope(part, s, y)[0]

        return final_state(linear, jvp, change, y, ds, method, rtol, atol, max_steps)

    def backward(pull: Any, zeros: Any, outs: Any, bars: Any) -> Any:
        rows, rows_bar = outs[0], bars[0]
        size = 2 * n + number_in(zeros)
        z = np.zeros(size)

        def earlier(part: Any, z: Any) -> Any:
            def together(s: Any, z: Any) -> Any:
                y, bar = np.copy(z[:n]), np.copy(z[n : 2 * n])
                change = np.empty(size)
                change[:n] = -slope(part, 1.0 - s, y)[0]
                put(change, n, pull((part, 1.0 - s), y, (bar,)))
                return change

            return once(dense, jvp, together, z, method, rtol, smallest(atol), max_steps)

        for i in range(count - 1):
            part = count - 2 - i
            z[:n] = rows[part + 1]
            for m in range(n):
                z[n + m] += rows_bar[part + 1, m]
            z = earlier(part, z)
        return np.asarray(z[n : 2 * n] + rows_bar[0]), taken_from(zeros, z, 2 * n)

    def forward(push: Any, outs: Any, start_dot: Any) -> Any:
        rows = outs[0]
        rows_dot = np.zeros(rows.shape)
        rows_dot[0] = start_dot
        z = np.zeros(2 * n)
        z[n:] = start_dot

        def later(part: Any, z: Any) -> Any:
            def together(s: Any, z: Any) -> Any:
                values, tangents = push((part, s), np.copy(z[:n]), np.copy(z[n:]))
                change = np.empty(2 * n)
                change[:n] = values[0]
                change[n:] = tangents[0]
                return change

            return once(dense, jvp, together, z, method, rtol, smallest(atol), max_steps)

        for part in range(count - 1):
            z[:n] = rows[part]
            z = later(part, z)
            rows_dot[part + 1] = z[n:]
        return (rows_dot,)

    return with_derivative(EQUATION, run, slope, backward, forward, start, (0, 0.0))[0]


def once(linear: Any, jvp: Any, slope: Any, start: Any, method: Any, rtol: Any, atol: Any, max_steps: Any) -> Any:
    """The state at time 1. Its derivatives are those of the steps, which are repeated for them."""
    times = np.array([0.0, 1.0])

    def f(s: Any, y: Any) -> Any:
        return slope(s, y)

    return integrated(linear, jvp, f, start, times, method, rtol, atol, max_steps, False)


def rescaled(ds: Any, times: Any, part: Any) -> Any:
    """The step as a part of the next duration."""
    if part + 2 >= len(times) or times[part + 2] == times[part + 1]:
        return 0.0
    return ds * (times[part + 1] - times[part]) / (times[part + 2] - times[part + 1])


def smallest(atol: Any) -> Any:
    return np.min(atol) if is_array(atol) else atol


def size_of(x: Any) -> Any:
    return x.size if is_array(x) else 1


def number_in(items: Any) -> Any:
    """The number of scalars in a tuple of numbers and arrays."""
    total = 0
    for item in items:
        total += size_of(item)
    return total


def put(target: Any, start: Any, items: Any) -> None:
    """Write numbers and arrays into a vector, one after the other."""
    for item in items:
        if is_array(item):
            target[start : start + item.size] = np.reshape(item, item.size)
        else:
            target[start] = item
        start += size_of(item)


def taken_from(like: Any, source: Any, start: Any) -> Any:
    """Read numbers and arrays from a vector, one after the other."""
    found = []
    for item in like:
        if is_array(item):
            found.append(np.asarray(np.reshape(source[start : start + item.size], item.shape).astype(item.dtype)))
        else:
            found.append(source[start])
        start += size_of(item)
    return tuple(found)
