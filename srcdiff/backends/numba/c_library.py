"""Shared libraries with a function for C, which need neither Python nor Numba when they run.

Numba compiles the function to an object file. What that file calls of Numba is the allocation and the shapes of arrays,
which the C text below has; then a C compiler links both. Arrays that the function reads are data of the C text.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from srcdiff.backends.numba import c_callable, c_linear_algebra, nested_calls
from srcdiff.backends.numba.interrupts import held_back
from srcdiff.diagnostics.garbage import seldom_collected

_SOURCE = """\
/* {title} Written by srcdiff. */
#include "{name}.h"
#include <stdlib.h>
#include <string.h>

/* An array in compiled code, as Numba counts its references. */
struct memory {{
    size_t references;
    void (*destructor)(void *, size_t, void *);
    void *destructor_info, *data;
    size_t size;
    void *allocator;
}};

static void *new_memory(size_t size) {{
    struct memory *made;
    if (size > SIZE_MAX / 2) return NULL;
    if (posix_memalign((void **)&made, 64, 64 + size)) return NULL;
    memset(made, 0, sizeof *made);
    made->references = 1;
    made->size = size;
    made->data = (char *)made + 64;
    return made;
}}

void *srcdiff_new_memory(size_t size) __asm__("srcdiff.new_memory");
void *srcdiff_new_memory(size_t size) {{ return new_memory(size); }}
void *srcdiff_elements(struct memory *of) __asm__("srcdiff.elements");
void *srcdiff_elements(struct memory *of) {{ return of->data; }}
void *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment) {{ return alignment <= 64 ? new_memory(size) : NULL; }}
void *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned alignment) {{
    return NRT_MemInfo_alloc_aligned(size, alignment);
}}
void *NRT_Allocate(size_t size) {{ return malloc(size); }}
void NRT_Free(void *memory) {{ free(memory); }}
void NRT_MemInfo_call_dtor(struct memory *of) {{
    if (of->destructor) of->destructor(of->data, of->size, of->destructor_info);
    free(of);
}}

/* The steps of an array that is read with another shape; 0 if its elements do not lie in memory like that. */
int numba_attempt_nocopy_reshape(intptr_t axes, const intptr_t *shape, const intptr_t *steps, intptr_t new_axes,
                                 const intptr_t *new_shape, intptr_t *new_steps, intptr_t item, int is_fortran) {{
    intptr_t count = 1, new_count = 1, left = 1, step = item, k = axes;
    for (intptr_t j = 0; j < axes; j++) count *= shape[j];
    for (intptr_t j = 0; j < new_axes; j++) new_count *= new_shape[j];
    if (count != new_count || is_fortran) return 0;
    for (intptr_t j = new_axes - 1; j >= 0; j--) {{
        if (count != 0 && left == 1 && new_shape[j] != 1) {{ /* the next axes that are one row of elements in memory */
            while (shape[--k] == 1);
            left = shape[k];
            step = steps[k];
            for (; k > 0 && (shape[k - 1] == 1 || steps[k - 1] == left * step); k--) left *= shape[k - 1];
        }}
        new_steps[j] = step;
        if (count == 0) continue;
        if (left % new_shape[j]) return 0;
        left /= new_shape[j];
        step *= new_shape[j];
    }}
    return 1;
}}

/* Numba builds the message of an exception by these, after the call and in Python only: never here. */
{never_called}void *PyExc_RuntimeError;

/* What the function reads besides its parameters. */
{data}
int {compiled}(int32_t *, void **, int64_t, const double *, double *, double *, void *);

int {name}(int64_t n, const double *x, double *gradient, double *value, void *data) {{
    int32_t code = 0;
    void *exception = NULL;
    return {compiled}(&code, &exception, n, x, gradient, value, data) ? {raised} : code;
}}
"""

_OF_MESSAGES = (
    "PyErr_SetString", "PyErr_Occurred", "PyErr_Clear", "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong",
    "PyLong_FromSsize_t", "PyFloat_FromDouble", "PyBool_FromLong", "PyTuple_Pack", "PyTuple_New", "PyTuple_SetItem",
    "PyUnicode_FromString", "PyUnicode_FromStringAndSize", "Py_IncRef", "Py_DecRef",
)  # fmt: skip
"""What makes Python's objects of the numbers in a message. All other calls of Python need its lock, by a function that
no library for C has."""

_NEEDS_PYTHON = re.compile(r"undefined reference to [`'](\S+?)'")


_KEYWORDS = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
    "constexpr", "continue", "decltype", "default", "delete", "do", "double", "else", "enum", "explicit", "export",
    "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "main", "mutable",
    "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public", "register",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
}  # fmt: skip
"""Names that no function can have in C or in C++, whose programs use the header too."""


class NotLinkedError(Exception):
    """The function cannot be linked without Python. The message says why."""


def is_taken(name: str) -> bool:
    """Whether C or its library has the name: a second function `exp` would be called by all of the program.

    >>> is_taken("exp"), is_taken("double"), is_taken("misfit")
    (True, True, False)
    """
    if name in _KEYWORDS:
        return True
    for library in ("libc.so.6", "libm.so.6"):
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(library), name)
            return True
    return False


def build(
    folder: Path,
    name: str,
    title: str,
    header: str,
    text: str,
    compiled: Any,
    objects: Mapping[str, Any],
    arrays: Sequence[Any],
) -> Path:
    """Write the header, the C text and the object file, and link the library; its path."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotLinkedError("there is no C compiler `cc` or `gcc`")
    addresses = [name for name in objects if name.startswith("address_")]
    linked = {a: _external(f"{name}_{a}", array) for a, array in zip(addresses, arrays, strict=True)}
    machine_code, symbol = _object_file(
        re.sub(r"pointer\((address_\d+)\)", r"\1()", text), compiled, {**objects, **linked}
    )
    data = "".join(_data(f"{name}_{a}", array) for a, array in zip(addresses, arrays, strict=True))
    never = (
        "".join(f"void {function}(void) {{ abort(); }}\n" for function in _OF_MESSAGES) + "void *PyExc_RuntimeError;\n"
    )
    source = _SOURCE.format(
        title=title, name=name, never_called=never, data=data, compiled=symbol, raised=c_callable.RAISED
    )
    texts = {f"{name}.h": header, f"{name}.c": source, f"{name}.map": f"{{ global: {name}; local: *; }};\n"}
    library = f"lib{name}.so"
    link = [f"{name}.c", f"{name}.o", "-o", library, f"-Wl,--version-script={name}.map", "-Wl,--no-undefined"]
    with tempfile.TemporaryDirectory() as work:
        for file, content in texts.items():
            (Path(work) / file).write_text(content, encoding="utf-8")
        (Path(work) / f"{name}.o").write_bytes(machine_code)
        command = [compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", *link, "-lmvec", "-lm"]
        error = _linked(command, work)
        missing = sorted({*_NEEDS_PYTHON.findall(error)})
        if c_linear_algebra.is_enough(missing) and c_linear_algebra.has_short_integers():
            (Path(work) / f"{name}.c").write_text(source + c_linear_algebra.text_for(missing), encoding="utf-8")
            for libraries in c_linear_algebra.LIBRARIES:
                error = _linked([*command, *libraries], work)
                if not error:
                    break
            else:
                raise NotLinkedError(f"it calls linear algebra, and there is no BLAS to link:\n{error}")
        elif error:
            raise NotLinkedError(_reason(missing) if missing else error)
        folder.mkdir(parents=True, exist_ok=True)
        for file in (*texts, f"{name}.o", library):
            shutil.copy(Path(work) / file, folder / file)
    return folder / library


def _linked(command: Sequence[str], folder: str) -> str:
    """Run the compiler: what it says if it fails, or nothing."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr or "the compiler has failed" if done.returncode else ""


def _reason(missing: Sequence[str]) -> str:
    """Why it is not linked, from the names that are in Python's process only."""
    if any(re.match(r"numba_(x|ez|raw_r)", name) for name in missing):
        return f"it calls linear algebra of SciPy ({', '.join(missing)})"
    if any("parallel" in name or "threads" in name for name in missing):
        return f"it runs threads of Numba ({', '.join(missing)})"
    return f"it calls Python, or functions that exist only in its process ({', '.join(missing)})"


def _object_file(text: str, compiled: Any, objects: Mapping[str, Any]) -> tuple[bytes, str]:
    """The machine code of the function, and its name in there."""
    import numba
    from numba import types
    from numba.np.numpy_support import carray

    namespace = {"compiled": compiled, "carray": carray, "np": np, **c_callable.helpers(), **objects}
    exec(text, namespace)
    double = types.CPointer(types.float64)
    signature = types.int32(types.int64, double, double, double, types.voidptr)
    with held_back(), nested_calls.allowed(), seldom_collected():
        njit: Any = numba.njit
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
        function = njit(signature, **options)(namespace["c_function"])
        made = function.overloads[signature.args]
        library = made.library
        machine_code: bytes = library.codegen._tm.emit_object(library._final_module)
    return machine_code, made.fndesc.llvm_func_name


_alive: list[Any] = []


def _external(symbol: str, array: np.ndarray[Any, Any]) -> Any:
    """A function for compiled code that returns the address of data in the C text; in this process, of the array."""
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    _alive.append(array)  # LLVM also loads the code here, and must find all symbols
    llvm.add_symbol(symbol, array.ctypes.data)

    def address(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = builder.module.globals.get(symbol)
            if data is None:
                data = ir.GlobalVariable(builder.module, ir.IntType(8), symbol)
            return builder.bitcast(data, context.get_value_type(types.voidptr))

        return types.voidptr(), generate

    return intrinsic(address)


def _data(name: str, array: np.ndarray[Any, Any]) -> str:
    """The definition of an array in C, by its bytes."""
    padded = array.tobytes() + bytes(-array.nbytes % 8)
    words = np.frombuffer(padded, np.uint64)
    lines = [", ".join(f"{word:#x}" for word in words[k : k + 8].tolist()) for k in range(0, len(words), 8)]
    body = ",\n    ".join(lines or ["0"])
    return f"_Alignas(64) const uint64_t {name}[{max(len(words), 1)}] = {{\n    {body}}};\n"
