"""Generalized ufuncs: a kernel that writes into its last arguments is called for each part of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import common_shape, each, is_array, stretched


def generalized(kernel: Any, ranks: Any, boxed: Any, sizes: Any, kinds: Any, *args: Any) -> Any:
    """Call `kernel` for each position along the loop axes, after broadcasting them.

    `ranks` are the numbers of core axes of the inputs and the results. Scalars that are `boxed` are passed as arrays of
    one element. `sizes` gives for each core axis of a result the input that has it, and the position of the axis from
    the end.
    """
    count = len(ranks) - len(sizes)
    inputs = tuple([boxed_as(args[k], boxed[k]) for k in range(count)])
    around = tuple([np.shape(inputs[k])[: np.ndim(inputs[k]) - ranks[k] - boxed[k]] for k in range(count)])
    shape = common_shape(*around)
    if len(args) > count:
        results = tuple([boxed_as(args[k], boxed[k]) for k in range(count, len(args))])
    else:
        results = tuple([new_result(inputs, shape, sizes[k], boxed[count + k], kinds[k]) for k in range(len(sizes))])
    if len(shape) == 0:
        kernel(*inputs, *results)
    else:
        for i in each(shape):
            parts = tuple([part(inputs[k], i, shape, around[k]) for k in range(count)])
            kernel(*parts, *tuple([r[i] for r in results]))
    found = tuple([results[k][..., 0] if boxed[count + k] else results[k] for k in range(len(sizes))])
    return found[0] if len(found) == 1 else found


def boxed_as(a: Any, box: Any) -> Any:
    return np.expand_dims(np.asarray(a), -1) if box else a


def new_result(inputs: Any, shape: Any, axes: Any, box: Any, kind: Any) -> Any:
    own = (1,) if box else tuple([np.shape(inputs[k])[np.ndim(inputs[k]) - place] for k, place in axes])
    return np.zeros((*shape, *own), kind)


def part(a: Any, i: Any, shape: Any, own: Any) -> Any:
    return a[stretched(i, shape, own)] if is_array(a) and len(own) > 0 else a
