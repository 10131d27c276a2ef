"""Coordinates of threads are values of the IR. Only the reader and the CUDA backend know Numba's names for them."""

import runpy

import numpy as np
import pytest
from numba import cuda

from srcdiff.analyses.structure import structure_of
from srcdiff.backends.cuda.cuda_spelling import CUDA
from srcdiff.frontend.read import read
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.nodes import Apply, Coordinate, CoordinateKind, walk
from srcdiff.ir.print import show
from srcdiff.signature.keys import describe_argument


def corners(x):
    i, j, k = cuda.grid(3)
    n, m, o = cuda.gridsize(3)
    x[0] = i + j + k + n + m + o
    x[1] = cuda.threadIdx.x + cuda.threadIdx.y + cuda.threadIdx.z + cuda.blockDim.x + cuda.blockDim.y + cuda.blockDim.z
    x[2] = cuda.blockIdx.x + cuda.blockIdx.y + cuda.blockIdx.z + cuda.gridDim.x + cuda.gridDim.y + cuda.gridDim.z


def program(kernel):
    captured = capture(kernel)
    return read(captured, {"x": describe_argument(np.zeros(3), "x", None)}, kernel=True).program.main


def test_every_coordinate_is_read_with_its_kind_and_axis():
    found = {(o.kind, o.axis) for o in walk(program(corners).body) if isinstance(o, Coordinate)}
    assert {(kind, axis) for kind in CoordinateKind for axis in range(3)} == found


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("kind", CoordinateKind, ids=str)
def test_spelling_is_read_as_the_same_coordinate(kind, axis, tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text(f"from numba import cuda\n\n\ndef kernel(x):\n    x[0] = {CUDA.coordinates[kind][axis]}\n")
    written = runpy.run_path(str(file))["kernel"]
    stored = structure_of(program(written))
    (cast,) = [o for o in stored.start if isinstance(o, Apply)]
    coordinate = stored.definition[cast.args[0]]
    assert (kind, axis) == (coordinate.kind, coordinate.axis)


def test_printed_program_names_kind_and_axis():
    lines = show(program(corners)).splitlines()
    assert any("coordinate kind=global_index" in line and "axis" not in line for line in lines)
    assert any("coordinate kind=block_size axis=2" in line for line in lines)


def test_sizes_are_those_that_all_threads_see():
    assert ["block_size", "grid_size", "global_size"] == [str(kind) for kind in CoordinateKind if kind.is_extent]
