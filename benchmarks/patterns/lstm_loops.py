"""Many arrays in one loop: the cells of an LSTM, element by element."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "time steps"
SIZES = (6, 200)
WRT = ("main", "out_scale", "out_bias")


def arguments(size):
    random = np.random.default_rng(30)
    width = 64 if size > 50 else 3
    main = 0.5 * random.standard_normal((8, width))
    return main, random.standard_normal(width), random.standard_normal(width), random.standard_normal((size, width))


def primal(main, out_scale, out_bias, sequence):
    steps, width = sequence.shape
    hidden = np.zeros(width)
    cell = np.zeros(width)
    total = 0.0
    for t in range(steps - 1):
        dot = 0.0
        norm = 0.0
        for k in range(width):
            forget = 1.0 / (1.0 + math.exp(-(sequence[t, k] * main[0, k] + main[4, k])))
            into = 1.0 / (1.0 + math.exp(-(hidden[k] * main[1, k] + main[5, k])))
            outof = 1.0 / (1.0 + math.exp(-(sequence[t, k] * main[2, k] + main[6, k])))
            change = math.tanh(hidden[k] * main[3, k] + main[7, k])
            cell[k] = cell[k] * forget + into * change
            hidden[k] = outof * math.tanh(cell[k])
            guess = hidden[k] * out_scale[k] + out_bias[k]
            dot += guess * sequence[t + 1, k]
            norm += math.exp(guess)
        total += dot - math.log(norm)
    return -total / steps


@compiled
def sigmoid(x, scale, offset, out):
    for k in range(len(out)):
        out[k] = 1.0 / (1.0 + math.exp(-(x[k] * scale[k] + offset[k])))


@compiled
def accumulate(out_bar, x, scale_bar, offset_bar):
    for k in range(len(out_bar)):
        scale_bar[k] += out_bar[k] * x[k]
        offset_bar[k] += out_bar[k]


@compiled
def hand(main, out_scale, out_bias, sequence):
    steps, width = sequence.shape
    gates = np.empty((steps, 4, width))  # forget, into, outof, change
    cells = np.zeros((steps, width))
    squashed = np.empty((steps, width))
    hiddens = np.zeros((steps, width))
    powers = np.empty((steps, width))
    norms = np.empty(steps)
    total = 0.0
    for t in range(steps - 1):
        x, following, hidden, cell = sequence[t], sequence[t + 1], hiddens[t], cells[t]
        forget, into, outof, change = gates[t, 0], gates[t, 1], gates[t, 2], gates[t, 3]
        sigmoid(x, main[0], main[4], forget)
        sigmoid(hidden, main[1], main[5], into)
        sigmoid(x, main[2], main[6], outof)
        scale, offset = main[3], main[7]
        for k in range(width):
            change[k] = math.tanh(hidden[k] * scale[k] + offset[k])
        new = cells[t + 1]
        for k in range(width):
            new[k] = cell[k] * forget[k] + into[k] * change[k]
        flat, new_hidden = squashed[t], hiddens[t + 1]
        for k in range(width):
            flat[k] = math.tanh(new[k])
        for k in range(width):
            new_hidden[k] = outof[k] * flat[k]
        dot = norm = 0.0
        power = powers[t]
        for k in range(width):
            guess = new_hidden[k] * out_scale[k] + out_bias[k]
            dot += guess * following[k]
            power[k] = math.exp(guess)
            norm += power[k]
        norms[t] = norm
        total += dot - math.log(norm)
    seed = -1.0 / steps
    main_bar = np.zeros_like(main)
    out_scale_bar, out_bias_bar = np.zeros(width), np.zeros(width)
    hidden_bar, cell_bar = np.zeros(width), np.zeros(width)
    guess_bar = np.empty(width)
    gate_bars = np.empty((4, width))
    forget_bar, into_bar, outof_bar, change_bar = gate_bars[0], gate_bars[1], gate_bars[2], gate_bars[3]
    for t in range(steps - 2, -1, -1):
        x, following, hidden, cell, power, flat = (
            sequence[t],
            sequence[t + 1],
            hiddens[t],
            cells[t],
            powers[t],
            squashed[t],
        )
        forget, into, outof, change = gates[t, 0], gates[t, 1], gates[t, 2], gates[t, 3]
        inverse = 1.0 / norms[t]
        for k in range(width):
            guess_bar[k] = seed * (following[k] - power[k] * inverse)
        accumulate(guess_bar, hiddens[t + 1], out_scale_bar, out_bias_bar)
        for k in range(width):
            hidden_bar[k] += guess_bar[k] * out_scale[k]
        for k in range(width):
            outof_bar[k] = hidden_bar[k] * flat[k] * outof[k] * (1.0 - outof[k])
        for k in range(width):
            cell_bar[k] += hidden_bar[k] * outof[k] * (1.0 - flat[k] * flat[k])
        for k in range(width):
            forget_bar[k] = cell_bar[k] * cell[k] * forget[k] * (1.0 - forget[k])
        for k in range(width):
            into_bar[k] = cell_bar[k] * change[k] * into[k] * (1.0 - into[k])
        for k in range(width):
            change_bar[k] = cell_bar[k] * into[k] * (1.0 - change[k] * change[k])
        for k in range(width):
            cell_bar[k] *= forget[k]
        accumulate(forget_bar, x, main_bar[0], main_bar[4])
        accumulate(into_bar, hidden, main_bar[1], main_bar[5])
        accumulate(outof_bar, x, main_bar[2], main_bar[6])
        accumulate(change_bar, hidden, main_bar[3], main_bar[7])
        scale_into, scale_change = main[1], main[3]
        for k in range(width):
            hidden_bar[k] = into_bar[k] * scale_into[k] + change_bar[k] * scale_change[k]
    return -total / steps, (main_bar, out_scale_bar, out_bias_bar)


def in_jax(main, out_scale, out_bias, sequence):
    import jax
    import jax.numpy as jnp

    def step(state, given):
        hidden, cell = state
        x, following = given
        forget = jax.nn.sigmoid(x * main[0] + main[4])
        into = jax.nn.sigmoid(hidden * main[1] + main[5])
        outof = jax.nn.sigmoid(x * main[2] + main[6])
        change = jnp.tanh(hidden * main[3] + main[7])
        cell = cell * forget + into * change
        hidden = outof * jnp.tanh(cell)
        guess = hidden * out_scale + out_bias
        return (hidden, cell), jnp.sum(guess * following) - jnp.log(jnp.sum(jnp.exp(guess)))

    zeros = jnp.zeros(sequence.shape[1])
    _, losses = jax.lax.scan(step, (zeros, zeros), (sequence[:-1], sequence[1:]))
    return -jnp.sum(losses) / sequence.shape[0]
