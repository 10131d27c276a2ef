"""Linear algebra in libraries for C: what compiled code calls, as C text that calls BLAS and LAPACK.

Numba reaches BLAS and LAPACK through SciPy, which a program without Python does not have. The C text has the same
functions, and calls the Fortran interface with 32-bit integers, which every BLAS has.
"""

from __future__ import annotations

from collections.abc import Collection

LIBRARIES = (("-lopenblas",), ("-llapack", "-lblas"))
"""What a linker may find: the first that works is taken."""

_ONLY_BEFORE_THE_END = {"numba_gil_ensure", "Py_FatalError", "numba_fatal_error"}
"""What compiled code calls if BLAS says that an argument is wrong, before the process is ended."""

_CALLS = {
    "numba_xxgemm": """\
int numba_xxgemm(char kind, char ta, char tb, ssize_t m, ssize_t n, ssize_t k, void *alpha, void *a, ssize_t lda,
                 void *b, ssize_t ldb, void *beta, void *c, ssize_t ldc) {
    int sizes[] = {(int)m, (int)n, (int)k}, steps[] = {(int)lda, (int)ldb, (int)ldc};
#define CALL(f) f(&ta, &tb, sizes, sizes + 1, sizes + 2, alpha, a, steps, b, steps + 1, beta, c, steps + 2, one, one)
    BY_KIND(gemm)
#undef CALL
    return 0;
}
""",
    "numba_xxgemv": """\
int numba_xxgemv(char kind, char t, ssize_t m, ssize_t n, void *alpha, void *a, ssize_t lda, void *x, void *beta,
                 void *y) {
    int sizes[] = {(int)m, (int)n}, step = (int)lda, unit = 1;
#define CALL(f) f(&t, sizes, sizes + 1, alpha, a, &step, x, &unit, beta, y, &unit, one)
    BY_KIND(gemv)
#undef CALL
    return 0;
}
""",
    "numba_xxdot": """\
int numba_xxdot(char kind, char conjugated, ssize_t n, void *x, void *y, void *result) {
    int size = (int)n, unit = 1;
    double sdot_by_parts = 0.0;
    switch (kind) {
    case 's':
        for (ssize_t k = 0; k < n; k++) sdot_by_parts += (double)((float *)x)[k] * ((float *)y)[k];
        *(float *)result = (float)sdot_by_parts;
        return 0;
    case 'd':
        *(double *)result = ddot_(&size, x, &unit, y, &unit);
        return 0;
    case 'c': {
        float _Complex sum = 0.0f, *a = x, *b = y;
        for (ssize_t k = 0; k < n; k++) sum += (conjugated ? conjf(a[k]) : a[k]) * b[k];
        *(float _Complex *)result = sum;
        return 0;
    }
    case 'z': {
        double _Complex sum = 0.0, *a = x, *b = y;
        for (ssize_t k = 0; k < n; k++) sum += (conjugated ? conj(a[k]) : a[k]) * b[k];
        *(double _Complex *)result = sum;
        return 0;
    }
    }
    return -1;
}
""",
    "numba_xgesv": """\
int numba_xgesv(char kind, ssize_t n, ssize_t nrhs, void *a, ssize_t lda, int *ipiv, void *b, ssize_t ldb) {
    int sizes[] = {(int)n, (int)nrhs}, steps[] = {(int)lda, (int)ldb}, info = 0;
#define CALL(f) f(sizes, sizes + 1, a, steps, ipiv, b, steps + 1, &info)
    BY_KIND(gesv)
#undef CALL
    return info;
}
""",
    "numba_xxgetrf": """\
int numba_xxgetrf(char kind, ssize_t m, ssize_t n, void *a, ssize_t lda, int *ipiv) {
    int sizes[] = {(int)m, (int)n}, step = (int)lda, info = 0;
#define CALL(f) f(sizes, sizes + 1, a, &step, ipiv, &info)
    BY_KIND(getrf)
#undef CALL
    return info;
}
""",
    "numba_ez_xxgetri": """\
int numba_ez_xxgetri(char kind, ssize_t n, void *a, ssize_t lda, int *ipiv) {
    int size = (int)n, step = (int)lda, info = 0, length = size > 0 ? 64 * size : 1;
    void *work = malloc((size_t)length * 16);
    if (!work) abort();
#define CALL(f) f(&size, a, &step, ipiv, work, &length, &info)
    BY_KIND(getri)
#undef CALL
    free(work);
    return info;
}
""",
    "numba_xxpotrf": """\
int numba_xxpotrf(char kind, char uplo, ssize_t n, void *a, ssize_t lda) {
    int size = (int)n, step = (int)lda, info = 0;
#define CALL(f) f(&uplo, &size, a, &step, &info, one)
    BY_KIND(potrf)
#undef CALL
    return info;
}
""",
}

_CALLS |= {
    f"srcdiff_blas_{kind}trsm": f"""\
void srcdiff_blas_{kind}trsm(char *side, char *triangle, char *transposed, char *diagonal, int *m, int *n, void *alpha,
                        void *a, int *lda, void *b, int *ldb) {{
    {kind}trsm_(side, triangle, transposed, diagonal, m, n, alpha, a, lda, b, ldb, one, one, one, one);
}}
"""
    for kind in "sdcz"
}

_START = """\
#include <complex.h>
#include <sys/types.h>

/* Linear algebra: what compiled code calls of Numba, by the Fortran interface of BLAS and LAPACK. */
static const size_t one = 1; /* the length of a character, as compilers of Fortran pass it */
#define BY_KIND(name) \\
    switch (kind) { \\
    case 's': CALL(s##name##_); break; \\
    case 'd': CALL(d##name##_); break; \\
    case 'c': CALL(c##name##_); break; \\
    case 'z': CALL(z##name##_); break; \\
    default: return -1; \\
    }
"""


def is_enough(missing: Collection[str]) -> bool:
    """Whether the C text has all functions that are missing."""
    return any(name in _CALLS for name in missing) and {*missing} <= {*_CALLS} | _ONLY_BEFORE_THE_END


def text_for(missing: Collection[str]) -> str:
    """The C text of the functions that are missing."""
    names = [name for name in _CALLS if name in missing]
    ends = [f"void {name}(void) {{ abort(); }}\n" for name in sorted(_ONLY_BEFORE_THE_END & {*missing})]
    return "".join([_START, *map(_declared, names), *[_CALLS[name] for name in names], *ends])


def has_short_integers() -> bool:
    """Whether Numba passes 32-bit integers to LAPACK, as the C text expects."""
    from numba.np import linalg

    return bool(linalg.F_INT_nptype().itemsize == 4)


def _declared(name: str) -> str:
    if name == "numba_xxdot":
        return "double ddot_(int *, void *, int *, void *, int *);\n"
    if name.startswith("srcdiff_blas_"):
        return f"void {name.removeprefix('srcdiff_blas_')}_({_PARAMETERS['trsm']});\n"
    routine = name.removeprefix("numba_").removeprefix("ez_").lstrip("x")
    return "".join(f"void {kind}{routine}_({_PARAMETERS[routine]});\n" for kind in "sdcz")


_PARAMETERS = {
    "gemm": "char *, char *, int *, int *, int *, void *, void *, int *, void *, int *, void *, void *, int *, "
    "size_t, size_t",
    "gemv": "char *, int *, int *, void *, void *, int *, void *, int *, void *, void *, int *, size_t",
    "gesv": "int *, int *, void *, int *, int *, void *, int *, int *",
    "getrf": "int *, int *, void *, int *, int *, int *",
    "getri": "int *, void *, int *, int *, void *, int *, int *",
    "potrf": "char *, int *, void *, int *, int *, size_t",
    "trsm": "char *, char *, char *, char *, int *, int *, void *, void *, int *, void *, int *, "
    "size_t, size_t, size_t, size_t",
}
