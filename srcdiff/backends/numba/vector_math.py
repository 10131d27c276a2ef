"""Vectorised `exp`, `log`, `sin`, ... in loops of compiled code, by glibc's libmvec.

Numba calls a mathematical function once for each number, also when LLVM vectorises the loop around it:

    call double @llvm.exp.f64(double %x)

The same call with an attribute that names functions of two and of four numbers

    call double @llvm.exp.f64(double %x) "vector-function-abi-variant"="..._ZGVbN2v_exp...,..._ZGVdN4v_exp..."

becomes a call of one of them where LLVM vectorises the loop, and is unchanged everywhere else. So the attribute is
added to every call in generated functions whose function libmvec also has: there is no list of functions here, the
library is searched by name. For calls in branches, it names functions with a mask, which are defined here. Numba's own
functions (such as `np.logaddexp` and `np.sinc`) and those of users are not changed.

The functions of libmvec have the same NaN, infinities, zeros and denormal numbers as those of libm. The largest errors
seen, in units in the last place, over a million random numbers in each of several ranges of each function (glibc 2.36,
SSE and AVX2; AVX-512 has not been measured):

    float64    3.5 cos   3.4 acosh, sin   3.3 tan   3.0 asin   2.9 exp, expm1   2.6 atan2   all others 2.4 or less
    float32    3.9 log   3.7 tan   3.6 atan2   3.2 acosh   3.0 asin   2.8 exp   all others 2.6 or less
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import config

_LIBRARY = "libmvec.so.1"
_BITS = {"double": 64, "float": 32}
_REGISTERS = (("b", 128, ""), ("d", 256, "+avx2"), ("e", 512, "+avx512f"))
"""The letter in names of functions, the bits, and the required processor feature, by the x86-64 vector ABI."""

_HARMLESS = 0.5
"""An argument for any of the functions but `acosh`, which has it plus one."""

_PURE = ("memory(none)", "nounwind", "willreturn")

_ALIGNED = '"stackrealign"'
"""Of functions that call vector functions, which leave no vector register as it was: all that a loop holds in them goes
to the stack and back. LLVM aligns the stack to 16 bytes unless it is told before it assigns registers; a vector of 64
bytes then lies in two cache lines, in some processes and not in others, and a loop takes up to twice as long."""


@functools.cache
def ensure_loaded() -> ctypes.CDLL | None:
    """The library, where compiled code finds its functions by their names from now on; None where there is none."""
    try:
        llvm.load_library_permanently(_LIBRARY)
        return ctypes.CDLL(_LIBRARY)
    except (OSError, RuntimeError):
        return None


def are_used() -> bool:
    """Whether to add vector functions to calls: not without the library, and not if Numba uses Intel's."""
    return ensure_loaded() is not None and not getattr(config, "USING_SVML", False)


def vector_functions(name: str, bits: int, arity: int, features: Sequence[str]) -> dict[int, str]:
    """The vector functions for a function of libm, by how many numbers they take at once."""
    names = {
        width // bits: f"_ZGV{letter}N{width // bits}{'v' * arity}_{name}"
        for letter, width, needed in _REGISTERS
        if not needed or needed in features
    }
    library = ensure_loaded()
    return {lanes: vector for lanes, vector in names.items() if hasattr(library, vector)}


def name_vector_functions(module: ir.Module, features: Sequence[str]) -> None:
    """Tell of every call of a mathematical function in the module which vector functions do the same."""
    named: dict[ir.Function, str] = {}
    used: dict[ir.Function, None] = {}
    for function in [f for f in module.functions if f.is_declaration]:
        variants = _variants(module, function, features)
        if variants:
            used |= dict.fromkeys(variants)
            named[function] = ",".join(f"{mangled}({f.name})" for f, mangled in variants.items())
    if not used:
        return
    # LLVM removes unused functions, and then does not find those that the attribute names.
    kept = ir.ArrayType(ir.PointerType(), len(used))
    variable = ir.GlobalVariable(module, kept, "llvm.compiler.used")
    variable.linkage, variable.section = "appending", "llvm.metadata"
    variable.initializer = ir.Constant(kept, list(used))
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, ir.CallInstr) and instruction.callee in named:
                    attribute = f'"vector-function-abi-variant"="{named[instruction.callee]}"'
                    _give(instruction.attributes, (*_PURE, attribute))
                    _give(function.attributes, (_ALIGNED,))


def _variants(module: ir.Module, function: ir.Function, features: Sequence[str]) -> dict[ir.Function, str]:
    """The vector functions for a declared function, with and without a mask, and how the attribute describes them."""
    types = {str(t) for t in (function.ftype.return_type, *function.ftype.args)}
    if len(types) != 1 or not types <= _BITS.keys():
        return {}
    bits = _BITS[types.pop()]
    name = scalar = function.name
    intrinsic = re.fullmatch(r"llvm\.(\w+)(\.f\d+)?", scalar)
    if intrinsic:
        name = intrinsic[1] + ("f" if bits == 32 else "")
        scalar = f"llvm.{intrinsic[1]}.f{bits}"  # Numba leaves the ending out of some
    arity = len(function.ftype.args)
    variants = {}
    for lanes, vector_name in vector_functions(name, bits, arity, features).items():
        vector = ir.VectorType(function.ftype.return_type, lanes)
        whole = _function(module, ir.FunctionType(vector, [vector] * arity), vector_name)
        if name == "tanh":  # for float32, it is `tanhf`
            exponential = vector_functions("exp", bits, 1, features)[lanes]
            whole = _tanh(module, _function(module, whole.ftype, exponential))
        variants[whole] = f"_ZGV_LLVM_N{lanes}{'v' * arity}_{scalar}"
        variants[_masked(module, whole)] = f"_ZGV_LLVM_M{lanes}{'v' * arity}_{scalar}"
    return variants


# S. L. Moshier, Cephes, tanh.c: (tanh(x) - x) / x**3 is the first polynomial in x**2 over the second one.
_ABOVE = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_BELOW = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)
_NEAR = 0.625


def _tanh(module: ir.Module, exponential: ir.Function) -> ir.Function:
    """For doubles, in two thirds of the time of the library: by a quotient near zero, otherwise by `exp`."""
    vector = exponential.ftype.return_type
    function = _function(module, exponential.ftype, f"srcdiff.tanh.{exponential.name}")
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        builder, (x,) = ir.IRBuilder(function.append_basic_block()), function.args

        def all_of(number: float) -> ir.Constant:
            return vector([number] * vector.count)

        def plus_product(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
            return builder.fadd(a, builder.fmul(b, c, flags=("contract",)), flags=("contract",))

        square = builder.fmul(x, x)
        above, below = (
            functools.reduce(lambda total, c: plus_product(all_of(c), total, square), rest, all_of(first))
            for first, *rest in (_ABOVE, _BELOW)
        )
        near = plus_product(x, builder.fmul(x, square), builder.fdiv(above, below))
        grown = builder.fadd(builder.call(exponential, [builder.fadd(x, x)]), all_of(1.0))
        far = builder.fsub(all_of(1.0), builder.fdiv(all_of(2.0), grown))
        found = builder.select(builder.fcmp_ordered("<", square, all_of(_NEAR**2)), near, far)
        copysign = _function(module, ir.FunctionType(vector, [vector] * 2), f"llvm.copysign.v{vector.count}f64")
        builder.ret(builder.call(copysign, [found, x]))  # also for minus zero
    return function


def _masked(module: ir.Module, whole: ir.Function) -> ir.Function:
    """The masked function for branches: it does not call the vector function if the mask is empty.

    The unselected numbers are often those that the branch excludes, as in `log(x) if x > 0.0 else 0.0`. The vector
    function is slow outside its domain, so they are replaced by another number.
    """
    vector = whole.ftype.return_type
    with_mask = ir.FunctionType(vector, [*whole.ftype.args, ir.VectorType(ir.IntType(1), vector.count)])
    function = _function(module, with_mask, f"srcdiff.masked.{whole.name}")
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        *arguments, mask = function.args
        bits = ir.IntType(vector.count)
        builder = ir.IRBuilder(function.append_basic_block())
        with builder.if_then(builder.icmp_unsigned("==", builder.bitcast(mask, bits), bits(0)), likely=False):
            builder.ret(vector(None))
        harmless = vector([_HARMLESS + ("acosh" in whole.name)] * vector.count)
        builder.ret(builder.call(whole, [builder.select(mask, x, harmless) for x in arguments]))
    return function


def _function(module: ir.Module, type_: ir.FunctionType, name: str) -> ir.Function:
    """The function of this name, declared if it is not there yet."""
    function = module.globals.get(name) or ir.Function(module, type_, name)
    _give(function.attributes, _PURE)
    return function


def _give(attributes: set[str], more: Sequence[str]) -> None:
    """Add attributes, also those that llvmlite does not know and would refuse."""
    attributes.discard("readonly")  # LLVM accepts only one memory attribute
    set.update(attributes, more)
