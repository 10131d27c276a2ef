"""Data in chunks, of which one is in memory at a time: rows of arrays and files, Parquet, and data made on the fly.

A source has a length, and `source[k]` is the chunk `k`: a tuple of arrays. A list of tuples is a source, too.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Chunk = tuple[Any, ...]


class Rows:
    """Rows of arrays with the same length: see `rows`."""

    is_sent_whole = True  # workers read their chunks from files, or get all that is there

    def __init__(self, arrays: Sequence[Any], size: int) -> None:
        if not arrays:
            raise ValueError("`rows` needs an array")
        if size < 1:
            raise ValueError(f"`size` must be a positive number of rows, not {size!r}")
        self.arrays = [_OnDisk.of(a) if isinstance(a, np.memmap) else a for a in arrays]
        lengths = [int(a.shape[0]) if a.shape else 0 for a in self.arrays]
        if any(n != lengths[0] for n in lengths):
            raise ValueError(f"the arrays have different numbers of rows: {', '.join(map(str, lengths))}")
        self.size, self.length = size, lengths[0]
        self.is_sent_whole = not any(isinstance(a, np.ndarray) for a in self.arrays)

    def __len__(self) -> int:
        return -(-self.length // self.size)

    def __getitem__(self, k: int) -> Chunk:
        if not 0 <= k < len(self):
            raise IndexError(f"there is no chunk {k}: there are {len(self)}")
        start, stop = k * self.size, min((k + 1) * self.size, self.length)
        return tuple([np.asarray(a[start:stop]) for a in self.arrays])

    def __repr__(self) -> str:
        return f"<{self.length} rows of {len(self.arrays)} arrays, in {len(self)} chunks>"


def rows(*arrays: Any, size: int) -> Rows:
    """Chunks of `size` rows of arrays that have the same number of rows.

    Arrays may be of NumPy, memory maps (`np.load(path, mmap_mode="r")`), arrays of Zarr, datasets of HDF5, and all
    that has a shape and gives rows by slices. Memory maps are read by chunks from their files and are not mapped, so
    that the memory stays small.

    >>> source = rows(np.arange(5.0), size=2)
    >>> len(source), source[2]
    (3, (array([4.]),))
    """
    return Rows(arrays, size)


class _OnDisk:
    """An array in a file of NumPy, by the place of its numbers."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> None:
        self.path, self.dtype, self.shape, self.offset = path, dtype, shape, offset

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> Any:
        """The array of a memory map; the map itself if it is a part of the file, or in another order."""
        is_whole = array.base is None or not isinstance(array.base, np.memmap)
        if not array.flags.c_contiguous or not is_whole or array.filename is None:
            return array
        return cls(str(array.filename), array.dtype, array.shape, array.offset)

    def __getitem__(self, part: slice) -> np.ndarray[Any, Any]:
        row = int(np.prod(self.shape[1:], dtype=np.int64))
        count, start = (part.stop - part.start) * row, self.offset + part.start * row * self.dtype.itemsize
        found = np.fromfile(self.path, self.dtype, count, offset=start)
        if found.size != count:
            raise ValueError(f"{self.path} has become shorter: it had {self.shape[0]} rows")
        return found.reshape(-1, *self.shape[1:])


class Parquet:
    """Row groups of files of Parquet: see `parquet`."""

    is_sent_whole = True

    def __init__(self, paths: Sequence[str], columns: Sequence[Any]) -> None:
        from pyarrow import parquet as pq

        self.paths, self.columns = list(paths), list(columns)
        self.groups = []
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                known = set(file.schema_arrow.names)
                for name in (n for c in self.columns for n in ([c] if isinstance(c, str) else c)):
                    if name not in known:
                        raise KeyError(f"{path} has no column {name!r}")
                self.groups += [(path, k) for k in range(file.num_row_groups)]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, k: int) -> Chunk:
        from pyarrow import parquet as pq

        path, group = self.groups[k]
        names = [n for c in self.columns for n in ([c] if isinstance(c, str) else c)]
        with pq.ParquetFile(path) as file:
            table = file.read_row_group(group, columns=names)
        for name in names:
            if table.column(name).null_count:
                raise ValueError(f"the column {name!r} of {path} has missing values in its row group {group}")
        found = {name: table.column(name).to_numpy() for name in names}
        return tuple(
            [found[c] if isinstance(c, str) else np.stack([found[n] for n in c], axis=1) for c in self.columns]
        )

    def __repr__(self) -> str:
        return f"<{len(self)} row groups of {len(self.paths)} files of Parquet>"


def parquet(path: Any, columns: Sequence[str | Sequence[str]]) -> Parquet:
    """The row groups of a file of Parquet, or of all files in a folder, as chunks. Needs pyarrow.

    Args:
        path: A file, or a folder with files named `*.parquet`, which are taken in the order of their names.
        columns: For each argument of the loss the name of a column, or a list of names for a matrix.
    """
    given = pathlib.Path(path)
    paths = sorted(given.glob("*.parquet")) if given.is_dir() else [given]
    if not paths:
        raise FileNotFoundError(f"{path} has no files named *.parquet")
    return Parquet([str(p) for p in paths], columns)


class Blocks:
    """Chunks of arrays of Dask, as they lie on the workers. Dask forgets data of arrays that nobody keeps."""

    def __init__(self, arrays: Sequence[Any], chunks: Sequence[Any]) -> None:
        self.arrays, self.chunks = arrays, chunks

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, k: int) -> Any:
        return self.chunks[k]


class Made:
    """Chunks made on the fly: see `made`."""

    is_sent_whole = True

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self.count, self.make = count, make

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, k: int) -> Chunk:
        chunk = self.make(k)
        return chunk if isinstance(chunk, tuple) else (chunk,)


def made(count: int, make: Callable[[int], Any]) -> Made:
    """`count` chunks made by a function of their number, which returns an array or a tuple of arrays.

    Each evaluation makes them again, so the function must return the same numbers for the same chunk.
    """
    return Made(count, make)


def chosen(source: Any, which: Sequence[int]) -> Any:
    """Some of the chunks of a source."""
    return _Chosen(source, which)


class _Chosen:
    def __init__(self, source: Any, which: Sequence[int]) -> None:
        self.source, self.which = source, which
        self.is_sent_whole = getattr(source, "is_sent_whole", False)

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, k: int) -> Any:
        return self.source[self.which[k]]
