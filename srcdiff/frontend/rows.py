"""All modules that add rows to the tables of the interpreter."""

from srcdiff.frontend.handlers import (
    array_functions,
    builtin_functions,
    complex_numbers,
    declared_derivatives,
    external_functions,
    implicit_functions,
    intrinsics,
    introspection,
    iterators,
    kernel_language,
    nested_derivatives,
    numba_decorators,
    random_numbers,
    records,
    special_methods,
)
from srcdiff.frontend.interpreter import (
    arithmetic,
    array_conversion,
    assignments,
    attributes,
    augmented,
    branches_loops,
    calls,
    comprehensions,
    conditions,
    contexts,
    declared_functions,
    exceptions,
    generators,
    indexing,
    lists,
    names,
    statements,
    strings,
    structured_arrays,
)

ROWS = (
    *(array_conversion, assignments, attributes, augmented, branches_loops, calls, comprehensions, conditions, lists),
    *(arithmetic, names, statements, strings, indexing, structured_arrays, declared_functions, exceptions),
    *(generators, contexts),
    *(array_functions, builtin_functions, intrinsics, iterators, kernel_language, nested_derivatives, records),
    *(special_methods, introspection, implicit_functions, external_functions, declared_derivatives, complex_numbers),
    *(numba_decorators, random_numbers),
)
