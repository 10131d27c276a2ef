"""All modules that add rows to the tables of the interpreter."""

# ruff: noqa: F401 -- `ROWS` is made of the names that are imported

from types import ModuleType

from srcdiff.frontend.handlers import (
    array_functions,
    builtin_functions,
    cached_functions,
    collections_of_python,
    complex_numbers,
    copying,
    declared_derivatives,
    external_functions,
    implicit_functions,
    intrinsics,
    introspection,
    iterators,
    kernel_language,
    nested_derivatives,
    numba_containers,
    numba_decorators,
    random_numbers,
    records,
    special_methods,
    stencils,
)
from srcdiff.frontend.interpreter import (
    arithmetic,
    array_conversion,
    assignments,
    attributes,
    augmented,
    branches_loops,
    calls,
    comparisons,
    comprehensions,
    conditions,
    contexts,
    declared_functions,
    exceptions,
    generators,
    indexing,
    lists,
    method_calls,
    names,
    statements,
    strings,
    structured_arrays,
)

ROWS = tuple(module for module in tuple(globals().values()) if isinstance(module, ModuleType))
