"""Losses that are sums over data, with their derivatives: by chunks from disk, on Dask, MPI, Ray and process pools."""

from srcdiff.distributed.chunk_sources import Made, Parquet, Rows, made, parquet, rows
from srcdiff.distributed.sums_over_data import SumOver, squares_over, sum_over

__all__ = ["Made", "Parquet", "Rows", "SumOver", "made", "parquet", "rows", "squares_over", "sum_over"]
