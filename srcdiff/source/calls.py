"""Calls: primitives, the builtins and array functions the language has, and the user's own functions, inlined."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.diagnostics import Refusal
from srcdiff.ir.nodes import Block, Custom, Grow, Index, Pop, Print, Push, Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, Stack, is_float, is_supported_dtype
from srcdiff.source.abstract import (
    Abstract,
    Choice,
    Closure,
    Description,
    Enumerate,
    Items,
    Iteration,
    List,
    Method,
    Poison,
    Range,
    Reversed,
    Static,
    Stored,
    Tuple,
    Zip,
    describe,
    join,
    leaf_types,
    loosened,
)
from srcdiff.source.capture import Captured, capture, plain_function
from srcdiff.source.environment import Frame, list_key
from srcdiff.source.expressions import Expressions
from srcdiff.source.scopes import assigned_names, nonlocal_names

_MODULES: dict[str, Any] = {"math": math, "np": np, "builtins": builtins}


@functools.cache
def _primitive_objects() -> dict[Any, str]:
    """The functions users call, by object: `math.sin` and `np.sin` are both `sin`."""
    found: dict[Any, str] = {}
    for primitive in PRIMITIVES.values():
        for name in primitive.names:
            module, _, attribute = name.partition(".")
            function = getattr(_MODULES[module], attribute, None)
            if function is not None:
                found.setdefault(function, primitive.name)
    return found


class RecursionFound(Exception):  # noqa: N818 -- a signal, not an error
    """A function that is being inlined calls itself: it must become a function of its own."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class Calls(Expressions):
    """Reads calls."""

    def __init__(self) -> None:
        super().__init__()
        self.active_calls: list[Any] = []
        self.recursive: set[Any] = set()

    def run_body(self, node: ast.FunctionDef | ast.Lambda) -> Abstract:
        raise NotImplementedError

    def call_recursive(self, captured: Captured, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def call(self, node: ast.Call) -> Abstract:
        function = self.expr(node.func)
        if isinstance(function, Static) and function.value is builtins.print:
            return self.print_call(node)
        generator = self.generator_call(function, node)
        if generator is not None:
            return generator
        args = list(self.elements(node.args))
        keywords: dict[str, Abstract] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse("SD102", node, "`**` in a call is outside the language", help_="write the arguments out")
            keywords[keyword.arg] = self.expr(keyword.value)
        return self.call_with(function, args, keywords, node)

    def call_value(self, function: Abstract, args: list[Abstract], node: ast.AST) -> Abstract:
        return self.call_with(function, args, {}, node)

    def call_with(
        self, function: Abstract, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        if isinstance(function, Closure):
            return self.call_closure(function, args, keywords, node)
        if isinstance(function, Choice):
            return self.call_choice(function, args, keywords, node)
        if isinstance(function, Method):
            return self.call_method(function, args, keywords, node)
        if not isinstance(function, Static):
            self.refuse("SD203", node, f"{self.said(function)} cannot be called")
        target = function.value
        if isinstance(target, type) and issubclass(target, tuple) and hasattr(target, "_fields"):
            return self.make_namedtuple(target, args, keywords, node)
        handler = self.handler(target)
        if handler is not None:
            try:
                inspect.signature(handler).bind(node, *args, **keywords)
            except TypeError as error:
                name = getattr(target, "__name__", str(target))
                self.refuse("SD304", node, f"`{name}` does not take these arguments: {error}")
            return handler(node, *args, **keywords)
        primitive = _primitive_objects().get(target) if _hashable(target) else None
        if primitive is not None:
            return self.call_primitive(primitive, args, keywords, node)
        rule = getattr(target, "__srcdiff_rule__", None)
        if rule is not None:
            return self.call_custom(rule, args, keywords, node)
        plain = plain_function(target)
        if plain is not None:
            return self.call_plain(plain, args, keywords, node)
        return self.no_source(target, args, node)

    def call_choice(
        self, function: Choice, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        key = (self.frame.number, "%choice")

        def side(chosen: Abstract) -> None:
            self.names[key] = self.call_with(chosen, args, keywords, node)

        def among(k: int) -> None:
            if k + 1 == len(function.options):
                side(function.options[k])
                return
            is_it = self.apply("equal", function.number, self.const(k))
            self.branch_on(is_it, lambda: side(function.options[k]), lambda: among(k + 1))

        among(0)
        return self.checked(self.chosen(key), "the result", node)

    def no_source(self, target: Any, args: list[Abstract], node: ast.AST) -> Abstract:
        if hasattr(target, "specialisations"):
            self.refuse("SD404", node, "a derivative is called inside of what is differentiated")
        name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or repr(target)
        module = getattr(target, "__module__", "") or ""
        if module.startswith("numpy.random") or "numpy.random" in str(type(getattr(target, "__self__", None))):
            self.refuse("SD302", node, f"`{name}` draws random numbers", help_="draw them outside and pass them in")
        if module.startswith("numpy") or isinstance(target, np.ufunc):
            if any(isinstance(a, Value) and isinstance(a.type, Array) for a in args):
                self.refuse("SD303", node, f"`np.{name}` on whole arrays is not differentiated yet")
            self.refuse("SD301", node, f"`np.{name}` has no derivative rule")
        self.refuse("SD302", node, f"`{name}` has no source that srcdiff can read, and no rule")

    def call_primitive(
        self, primitive: str, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        row = PRIMITIVES[primitive]
        if keywords:
            self.refuse("SD304", node, f"`{primitive}` takes no keyword arguments here")
        if primitive == "power" and len(args) == 3:
            self.refuse("SD304", node, "`pow` with a modulus is outside the language")
        if len(args) != row.arity:
            if primitive == "log" and len(args) == 2:
                top, bottom = (self.call_primitive("log", [a], {}, node) for a in args)
                return self.binary(ast.Div, top, bottom, node)
            if primitive == "hypot" and len(args) > 2:
                first = self.call_primitive("hypot", args[:2], {}, node)
                return self.call_primitive("hypot", [first, *args[2:]], {}, node)
            self.refuse("SD304", node, f"`{primitive}` takes {row.arity} arguments, {len(args)} are given")
        if primitive == "power":
            return self.binary(ast.Pow, args[0], args[1], node)
        values = [self.number(a, node) for a in args]
        if row.result == "float":
            values = [self.cast(v, FLOAT) if not is_float(v.type) else v for v in values]
        if row.result != "bool" and primitive != "bool":
            values = [self.plain_number(v) for v in values]
        if primitive in ("int", "float", "bool"):
            return self.cast(values[0], {"int": INT, "float": FLOAT, "bool": BOOL}[primitive])
        return self.apply(primitive, *values)

    # -- the user's functions ----------------------------------------------------------------------------------------

    def call_plain(self, plain: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        try:
            captured = capture(plain)
        except Refusal as refusal:
            problem = refusal.problem
            assert problem is not None
            self.refuse("SD302", node, problem.message)
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(plain, follow_wrapped=False).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        lifted = {n: self.lift_default(d, n, node) for n, d in defaults.items()}
        if defaults:
            self.guards.append((_Defaults(plain), "", plain.__defaults__))
        bound = self.bind(captured.node, args, keywords, lifted, captured.name, node)
        frame = Frame(captured, captured.node, captured.file, captured.name, None, *_scopes(captured.node))
        return self.enter(captured.function, frame, bound, node, captured)

    def lift_default(self, default: Any, name: str, node: ast.AST) -> Abstract:
        if isinstance(default, tuple):
            kind = type(default) if hasattr(default, "_fields") else None
            return Tuple(tuple(self.lift_default(d, name, node) for d in default), kind)
        if isinstance(default, np.generic):
            default = default.item()
        if isinstance(default, np.ndarray):
            return self.lift(default, {name: default}, name, (), node)
        return Static(default)

    def call_closure(
        self, closure: Closure, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        name = getattr(closure.node, "name", "lambda")
        bound = self.bind(closure.node, args, keywords, closure.defaults, name, node)
        frame = Frame(None, closure.node, closure.frame.file, name, closure.frame, *_scopes(closure.node))
        return self.enter(closure, frame, bound, node, None)

    def enter(
        self, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST, captured: Captured | None
    ) -> Abstract:
        """Read the function's body in its own frame; what it returns is the value of the call."""
        identity = (identity, tuple(loosened(describe(x)) for x in bound.values()))
        if captured is not None and identity in self.recursive:
            return self.call_recursive(captured, bound, node)
        if identity in self.active_calls:
            if captured is None:
                self.refuse("SD305", node, "a nested function calls itself", help_="define it outside of the function")
            raise RecursionFound(identity)
        if len(self.active_calls) > 60:
            self.refuse("SD305", node, "calls are nested too deeply")
        before, length, problems = dict(self.names), len(self.operations), len(self.problems)
        try:
            return self.read_inline(identity, frame, bound, node)
        except RecursionFound as found:
            if found.identity != identity or captured is None:
                raise
        self.names = before
        del self.operations[length:], self.problems[problems:]
        self.recursive.add(identity)
        return self.call_recursive(captured, bound, node)

    def read_inline(self, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        outer, span, path = self.frame, self.span, self.path
        self.active_calls.append(identity)
        self.frame, self.path = frame, (*path, id(node))
        for name, x in bound.items():
            self.names[(frame.number, name)] = x
        try:
            result = self.run_body(frame.node)
        finally:
            self.frame, self.span, self.path = outer, span, path
            self.active_calls.pop()
            if not any(
                isinstance(n, ast.Lambda | ast.FunctionDef) and n is not frame.node for n in ast.walk(frame.node)
            ):
                self.names = {k: v for k, v in self.names.items() if k[0] != frame.number}
        return self.checked(result, f"the result of {frame.name}", node) if isinstance(result, Poison) else result

    def bind(
        self,
        function: ast.FunctionDef | ast.Lambda,
        args: list[Abstract],
        keywords: dict[str, Abstract],
        defaults: dict[str, Abstract],
        name: str,
        node: ast.AST,
    ) -> dict[str, Abstract]:
        """Arguments to parameters, as Python does it."""
        arguments = function.args
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        bound: dict[str, Abstract] = dict(zip(positional, args, strict=False))
        extra = args[len(positional) :]
        if arguments.vararg is not None:
            bound[arguments.vararg.arg] = Tuple(tuple(extra))
        elif extra:
            self.refuse("SD304", node, f"`{name}` takes {len(positional)} arguments, {len(args)} are given")
        names = {*positional, *(a.arg for a in arguments.kwonlyargs)} - {a.arg for a in arguments.posonlyargs}
        for keyword, x in keywords.items():
            if keyword not in names or keyword in bound:
                self.refuse("SD304", node, f"`{name}` does not take the keyword `{keyword}` here")
            bound[keyword] = x
        for parameter in (*positional, *(a.arg for a in arguments.kwonlyargs)):
            if parameter not in bound:
                if parameter not in defaults:
                    self.refuse("SD304", node, f"`{name}` needs an argument for `{parameter}`")
                bound[parameter] = defaults[parameter]
        if arguments.kwarg is not None:
            self.refuse("SD102", node, f"`{name}` takes `**{arguments.kwarg.arg}`, which is outside the language")
        return bound

    def make_namedtuple(
        self, kind: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        bound = {**dict(zip(fields, args, strict=False)), **keywords}
        for name, default in getattr(kind, "_field_defaults", {}).items():
            bound.setdefault(name, Static(default))
        if set(bound) != set(fields):
            self.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
        return Tuple(tuple(bound[f] for f in fields), kind)

    def call_custom(self, rule: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        """A function whose derivative the user declared: its body is read, but not differentiated."""
        if keywords:
            self.refuse("SD304", node, "a function with a custom rule takes positional arguments")
        descriptions = [loosened(describe(a)) for a in args]
        if any(not all(isinstance(t, Scalar) for t in leaf_types(d) or ()) or d.kind == "other" for d in descriptions):
            self.refuse(
                "SD304", node, "a function with a custom rule takes numbers", help_="pass the elements one by one"
            )
        values = [v for a, d in zip(args, descriptions, strict=True) for v in self.leaves(a, d)]
        params: list[Value] = []
        inner: list[Abstract] = []
        for k, d in enumerate(descriptions):
            abstract, fresh = self.fresh(d, f"a{k}")
            inner.append(abstract)
            params += fresh
        before = dict(self.names)
        with self.block() as operations:
            result = self.call_plain(rule.function, inner, {}, node)
            description = loosened(describe(result))
            yields = self.leaves(result, description)
        self.names = before
        types = leaf_types(description)
        if types is None or not all(isinstance(t, Scalar) for t in types):
            self.refuse("SD304", node, "a function with a custom rule returns a number or a tuple of numbers")
        out, outs = self.fresh(description, "out")
        body = Block(tuple(operations), tuple(yields))
        self.add(Custom(tuple(outs), tuple(values), tuple(params), body, rule, span=self.span))
        return out

    # -- printing ----------------------------------------------------------------------------------------------------

    def print_call(self, node: ast.Call) -> Abstract:
        parts: list[str | Value] = []
        for k, argument in enumerate(node.args):
            parts += [" "] if k else []
            parts += self.text_of(self.expr(argument), node)
        self.add(Print(tuple(parts), span=self.span))
        return Static(None)

    # -- builtins and array functions --------------------------------------------------------------------------------

    def handler(self, target: Any) -> Callable[..., Abstract] | None:
        name = _HANDLERS.get(target) if _hashable(target) else None
        if name is None and getattr(target, "__srcdiff_stop_gradient__", False):
            name = "stop_gradient"
        return None if name is None else getattr(self, f"call_{name}")

    def call_stop_gradient(self, node: ast.AST, x: Abstract) -> Abstract:
        if isinstance(x, Static):
            return x
        if isinstance(x, Tuple):
            return Tuple(tuple(self.call_stop_gradient(node, i) for i in x.items), x.kind)
        if isinstance(x, Value) and isinstance(x.type, Array):
            self.refuse("SD303", node, "`stop_gradient` of a whole array is not supported yet")
        return self.apply("stop_gradient", self.number(x, node))

    def call_range(self, node: ast.AST, *args: Abstract) -> Abstract:
        if not 1 <= len(args) <= 3:
            self.refuse("SD304", node, "`range` takes one to three arguments")
        for a in args:
            if not isinstance(a, Static):
                self.integer(a, node)
            elif not isinstance(a.value, int):
                self.refuse("SD203", node, "`range` needs integers", help_="convert with `int(...)`")
        start, stop, step = (Static(0), args[0], Static(1)) if len(args) == 1 else (*args, Static(1))[:3]
        if isinstance(step, Static) and step.value == 0:
            self.refuse("SD203", node, "the step of `range` is zero")
        return Range(start, stop, step)

    def call_len(self, node: ast.AST, x: Abstract) -> Abstract:
        match x:
            case Value(type=Array()):
                return self.dim(x, 0)
            case Static():
                return Static(len(x.value))
        found = self.iteration(x, node)
        return found.length if isinstance(found, Iteration) else Static(len(found))

    def call_enumerate(self, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:  # noqa: B008
        return Enumerate(of, start)

    def call_zip(self, node: ast.AST, *of: Abstract, strict: Abstract = Static(False)) -> Abstract:  # noqa: B008
        return Zip(of)

    def call_reversed(self, node: ast.AST, of: Abstract) -> Abstract:
        return Reversed(of)

    def call_tuple(self, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:  # noqa: B008
        return Tuple(self.unpacked(of, node))

    def call_list(self, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:  # noqa: B008
        found = self.iteration(of, node)
        if not isinstance(found, Iteration):
            return self.new_list(found)
        if isinstance(found.length, Static) and found.length.value <= 16:
            return self.new_list(tuple(found.element(Static(k)) for k in range(found.length.value)))
        handle = self.new_list(())
        self.for_each(node, found, lambda item: self.append(handle, item, node))
        return handle

    def for_each(self, node: ast.AST, found: Iteration, body: Callable[[Abstract], None]) -> None:
        """A loop over all elements."""

        def turn(index: Value | None) -> None:
            assert index is not None
            body(found.element(index))

        bounds = (self.const(0), self.value(found.length), self.const(1))
        self.loop(node, frozenset(), bounds, None, turn)

    def fold(
        self, node: ast.AST, of: Abstract, start: Abstract | None, step: Callable[[Abstract, Abstract], Abstract]
    ) -> Abstract:
        """`step(...step(step(start, x0), x1)..., xn)` over the elements."""
        found = self.iteration(of, node)
        if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 8:
            found = tuple(found.element(Static(k)) for k in range(found.length.value))
        if not isinstance(found, Iteration):
            items = list(found) if start is None else [start, *found]
            if not items:
                self.refuse("SD203", node, "the sequence is empty")
            result = items[0]
            for item in items[1:]:
                result = step(result, item)
            return result
        key = (self.frame.number, f"%fold{id(node)}")
        first = start
        if first is None:
            empty = self.apply("less_equal", self.value(found.length), self.const(0))
            self.raise_if(empty, ValueError, "the sequence is empty")
            first = found.element(Static(0))
        self.names[key] = first

        def turn(item: Abstract) -> None:
            self.names[key] = step(self.names[key], item)

        self.for_each(node, found, turn)
        return self.checked(self.chosen(key), "the result", node)

    def call_sum(self, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:  # noqa: B008
        return self.fold(node, of, start, lambda a, b: self.binary(ast.Add, a, b, node))

    def call_prod(self, node: ast.AST, of: Abstract, *, start: Abstract = Static(1)) -> Abstract:  # noqa: B008
        return self.fold(node, of, start, lambda a, b: self.binary(ast.Mult, a, b, node))

    def call_fsum(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.call_sum(node, of, Static(0.0))

    def smallest(self, node: ast.AST, args: tuple[Abstract, ...], op: ast.cmpop) -> Abstract:
        def better(a: Abstract, b: Abstract) -> Abstract:
            test = self.compare(op, b, a, node)
            if isinstance(test, Static):
                return b if test.value else a
            return self.apply("where", self.value(test), self.number(b, node), self.number(a, node))

        return self.fold(node, args[0] if len(args) == 1 else Tuple(args), None, better)

    def call_max(self, node: ast.AST, *args: Abstract) -> Abstract:
        return self.smallest(node, args, ast.Gt())

    def call_min(self, node: ast.AST, *args: Abstract) -> Abstract:
        return self.smallest(node, args, ast.Lt())

    def call_any(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.fold(node, of, Static(False), lambda a, b: self.logical("logical_or", a, b, node))

    def call_all(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.fold(node, of, Static(True), lambda a, b: self.logical("logical_and", a, b, node))

    def logical(self, primitive: str, a: Abstract, b: Abstract, node: ast.AST) -> Abstract:
        return self.apply(primitive, self.value(self.truth(a, node)), self.value(self.truth(b, node)))

    def call_round(self, node: ast.AST, x: Abstract, ndigits: Abstract = Static(None)) -> Abstract:  # noqa: B008
        if isinstance(ndigits, Static) and ndigits.value is None:
            return self.cast(self.apply("rint", self.cast(self.number(x, node), FLOAT)), INT)
        return self.apply("round", self.cast(self.number(x, node), FLOAT), self.integer(ndigits, node))

    def call_floor(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.apply("floor", self.cast(self.number(x, node), FLOAT)), INT)

    def call_ceil(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.apply("ceil", self.cast(self.number(x, node), FLOAT)), INT)

    def call_float32(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.number(x, node), Scalar("float32"))

    def call_float64(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.number(x, node), FLOAT)

    def call_int64(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.number(x, node), INT)

    def call_bool_(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.number(x, node), BOOL)

    def call_isinstance(self, node: ast.AST, x: Abstract, kinds: Abstract) -> Abstract:
        kinds_ = (
            tuple(k.value for k in kinds.items if isinstance(k, Static))
            if isinstance(kinds, Tuple)
            else ((kinds.value,) if isinstance(kinds, Static) else ())
        )
        if isinstance(x, Static):
            return Static(isinstance(x.value, kinds_))
        is_kind: dict[str, type] = {"float64": float, "float32": np.float32, "int64": int, "bool": bool}
        if isinstance(x, Tuple):
            return Static(any(issubclass(x.kind or tuple, k) for k in kinds_))
        if isinstance(x, List):
            return Static(list in kinds_)
        if isinstance(x, Value):
            if not isinstance(x.type, Array) and any(k.__module__ == "numpy" for k in kinds_):
                self.refuse("SD205", node, "whether a number is Python's or NumPy's is not known here")
            mine = np.ndarray if isinstance(x.type, Array) else is_kind[x.scalar.dtype]
            return Static(issubclass(mine, kinds_))
        self.refuse("SD102", node, "`isinstance` of this is outside the language")

    # arrays

    def dtype_of(self, dtype: Abstract, node: ast.AST) -> str:
        if isinstance(dtype, Static):
            try:
                found = np.dtype(dtype.value)
            except TypeError:
                self.refuse("SD203", node, f"`{dtype.value}` is not a dtype")
            if is_supported_dtype(found):
                return str(found.name)
        self.refuse("SD201", node, "arrays hold floats of 4 or 8 bytes, integers or booleans")

    def new_array(
        self, node: ast.AST, shape: Abstract, fill: Abstract | None, dtype: Abstract, like: Value | None = None
    ) -> Abstract:
        name = self.dtype_of(dtype, node)
        extents = shape.items if isinstance(shape, Tuple) else (shape,)
        sizes = tuple(self.integer(e, node) for e in extents)
        value = None
        if fill is not None:
            number = self.number(fill, node)
            element = Scalar(name) if name in ("float64", "float32", "bool") else INT
            value = self.cast(number, element if name != "float32" else FLOAT)
        return self.alloc(name, sizes, value, like=like)

    def call_zeros(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, Static(0.0), dtype)

    def call_ones(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, Static(1.0), dtype)

    def call_empty(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, None, dtype)

    def call_full(
        self,
        node: ast.AST,
        shape: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        if isinstance(dtype, Static) and dtype.value is None:
            dtype = Static(self.number(fill_value, node).scalar.dtype)
        return self.new_array(node, shape, fill_value, dtype)

    def like(self, node: ast.AST, x: Abstract, fill: Abstract | None, dtype: Abstract) -> Abstract:
        if not (isinstance(x, Value) and isinstance(x.type, Array)):
            self.refuse("SD203", node, f"{self.said(x)} stands where an array is needed")
        same = isinstance(dtype, Static) and dtype.value is None
        kind = Static(x.type.dtype) if same else dtype
        return self.new_array(node, Tuple(self.shape(x)), fill, kind, x if same else None)

    def call_zeros_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, Static(0.0), dtype)

    def call_ones_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, Static(1.0), dtype)

    def call_empty_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, None, dtype)

    def call_full_like(
        self,
        node: ast.AST,
        a: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, fill_value, dtype)

    def call_copy(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, Value) and isinstance(a.type, Array):
            return self.copy(a)
        if isinstance(a, List):
            contents = self.names[list_key(a)]
            if isinstance(contents, Items):
                return self.new_list(contents.items)
            stored = self.stored(a)
            if any(isinstance(x.type, Stack) for x in stored.arrays):
                self.refuse("SD102", node, "a copy of a list of arrays is outside the language")
            copies = tuple(self.copy(x) for x in stored.arrays)
            return self.new_list(Stored(stored.element, copies, stored.length))
        self.refuse("SD203", node, f"{self.said(a)} stands where an array is needed")

    def call_shape(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, Value) and isinstance(a.type, Array):
            return Tuple(self.shape(a))
        self.refuse("SD203", node, f"{self.said(a)} has no shape")

    def call_transpose(self, node: ast.AST, a: Abstract, axes: Abstract = Static(None)) -> Abstract:  # noqa: B008
        if not (isinstance(a, Value) and isinstance(a.type, Array)):
            self.refuse("SD203", node, f"{self.said(a)} cannot be transposed")
        rank = a.type.rank
        if isinstance(axes, Static) and axes.value is None:
            return self.transposed(a, tuple(reversed(range(rank))))
        order = tuple(x.value for x in axes.items if isinstance(x, Static)) if isinstance(axes, Tuple) else ()
        if sorted(o % rank for o in order) != list(range(rank)):
            self.refuse("SD205", node, "the axes must be known when the function is compiled")
        return self.transposed(a, tuple(o % rank for o in order))

    def call_array(self, node: ast.AST, of: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        """`np.array` of numbers in (nested) lists or tuples."""
        if isinstance(of, Value) and isinstance(of.type, Array) and isinstance(dtype, Static) and dtype.value is None:
            return self.copy(of)
        rows = self.nested(of, node)
        extents: list[int] = []
        level = rows
        while isinstance(level, tuple):
            extents.append(len(level))
            level = level[0] if level else Static(0.0)
        leaves = list(_flat(rows))
        values = [self.number(x, node) for x in leaves]
        if len(values) != math.prod(extents):
            self.refuse("SD203", node, "the rows have different lengths")
        if isinstance(dtype, Static) and dtype.value is None:
            kinds = {v.scalar.dtype for v in values}
            dtype = Static("float64" if len(kinds) != 1 else kinds.pop())
        shape = Tuple(tuple(Static(e) for e in extents))
        array = self.new_array(node, shape, None, dtype)
        assert isinstance(array, Value)
        for position, value in zip(np.ndindex(*extents), values, strict=True):
            self.write_element(array, tuple(self.const(p) for p in position), value)
        return array

    def call_asarray(self, node: ast.AST, of: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        same = isinstance(dtype, Static) and dtype.value is None
        return of if isinstance(of, Value) and isinstance(of.type, Array) and same else self.call_array(node, of, dtype)

    def call_divmod(self, node: ast.AST, a: Abstract, b: Abstract) -> Abstract:
        return Tuple((self.binary(ast.FloorDiv, a, b, node), self.binary(ast.Mod, a, b, node)))

    def nested(self, x: Abstract, node: ast.AST) -> Any:
        if isinstance(x, List):
            contents = self.names[list_key(x)]
            if not isinstance(contents, Items):
                self.refuse("SD303", node, "an array of a list that grows at run time is not supported yet")
            return tuple(self.nested(i, node) for i in contents.items)
        if isinstance(x, Tuple):
            return tuple(self.nested(i, node) for i in x.items)
        return x

    def write_element(self, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
        """Store with the conversion that NumPy makes."""
        if not is_float(array.type):
            value = self.cast(value, BOOL if array.array.dtype == "bool" else INT)
        elif not is_float(value.type):
            value = self.cast(value, FLOAT)
        self.store(array, indices, value, adds)

    # methods

    def call_method(
        self, method: Method, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        owner = method.of
        if isinstance(owner, List):
            kind = "list"
        elif isinstance(owner, Value) and isinstance(owner.type, Array):
            kind = "array"
        elif isinstance(owner, Tuple):
            kind = "tuple"
        else:
            self.refuse("SD203", node, f"{self.said(owner)} has no method `{method.name}` that srcdiff reads")
        function = getattr(self, f"{kind}_{method.name}", None)
        if function is None:
            code = "SD303" if kind == "array" else "SD102"
            self.refuse(code, node, f"the {kind} method `{method.name}` is not differentiated yet")
        try:
            inspect.signature(function).bind(node, owner, *args, **keywords)
        except TypeError as error:
            self.refuse("SD304", node, f"`{method.name}` does not take these arguments: {error}")
        result: Abstract = function(node, owner, *args, **keywords)
        return result

    def array_copy(self, node: ast.AST, array: Value) -> Abstract:
        return self.copy(array)

    def array_transpose(self, node: ast.AST, array: Value, *axes: Abstract) -> Abstract:
        return self.call_transpose(node, array, Tuple(axes) if axes else Static(None))

    def array_item(self, node: ast.AST, array: Value, *where: Abstract) -> Abstract:
        if len(where) != array.array.rank:
            self.refuse("SD203", node, "`item` needs one index for each axis")
        return self.load(array, tuple(self.integer(w, node) for w in where))

    def tuple__replace(self, node: ast.AST, owner: Tuple, **fields: Abstract) -> Abstract:
        assert owner.kind is not None
        names: tuple[str, ...] = owner.kind._fields  # type: ignore[attr-defined]
        return Tuple(tuple(fields.get(n, x) for n, x in zip(names, owner.items, strict=True)), owner.kind)

    def list_append(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        self.append(owner, item, node)
        return Static(None)

    def append(self, handle: List, item: Abstract, node: ast.AST) -> None:
        contents = self.names[list_key(handle)]
        if isinstance(contents, Items):
            self.names[list_key(handle)] = Items((*contents.items, item))
            return
        contents = self.stored(handle)
        element = join(contents.element, loosened(describe(item)))
        if element != contents.element:
            contents = self.restored(contents, element, node)
        arrays = []
        for array, leaf in zip(contents.arrays, self.leaves(item, element), strict=True):
            if isinstance(array.type, Stack):
                self.add(Push(array, leaf, span=self.span))
                arrays.append(array)
                continue
            grown = Value(array.type, array.name)
            self.add(Grow(grown, array, contents.length, span=self.span))
            self.store(grown, (contents.length,), leaf)
            arrays.append(grown)
        length = self.apply("add", contents.length, self.const(1))
        self.names[list_key(handle)] = Stored(element, tuple(arrays), length)

    def restored(self, contents: Stored, element: Description, node: ast.AST) -> Stored:
        """The list with elements of a wider type; in a loop the list starts with that type the next time it is read."""
        types = leaf_types(Description("stored", None, (element,)))
        if types is None or len(types) - 1 != len(contents.arrays):
            self.refuse("SD202", node, "the list holds elements of another type")
        arrays = []
        for array, type_ in zip(contents.arrays, types[:-1], strict=True):
            assert isinstance(type_, Array)
            if array.type == type_:
                arrays.append(array)
                continue
            wider = self.alloc(type_.dtype, (self.dim(array, 0),), None)
            self.for_each(
                node,
                Iteration(contents.length, lambda k: k),
                lambda k, wider=wider, array=array: self.write_element(  # type: ignore[misc]
                    wider, (self.value(k),), self.load(array, (self.value(k),))
                ),
            )
            arrays.append(wider)
        return Stored(element, tuple(arrays), contents.length)

    def list_extend(self, node: ast.AST, owner: List, items: Abstract) -> Abstract:
        found = self.iteration(items, node)
        if isinstance(found, Iteration):
            self.for_each(node, found, lambda item: self.append(owner, item, node))
        else:
            for item in found:
                self.append(owner, item, node)
        return Static(None)

    def list_pop(self, node: ast.AST, owner: List, where: Abstract = Static(-1)) -> Abstract:  # noqa: B008
        contents = self.names[list_key(owner)]
        if isinstance(contents, Items) and isinstance(where, Static) and contents.items:
            items = list(contents.items)
            if not -len(items) <= where.value < len(items):
                self.raise_always(IndexError, "pop index out of range")
            popped = items.pop(where.value)
            self.names[list_key(owner)] = Items(tuple(items))
            return popped
        contents = self.stored(owner)
        empty = self.apply("less_equal", contents.length, self.const(0))
        self.raise_if(empty, IndexError, "pop from empty list")
        last = self.apply("subtract", contents.length, self.const(1))
        at_end = isinstance(where, Static) and where.value == -1
        position = last if at_end else self.list_position(contents, self.integer(where, node))
        if not at_end and any(isinstance(a.type, Stack) for a in contents.arrays):
            self.refuse("SD102", node, "`pop` from the middle of a list of arrays is outside the language")
        values = [self.taken_off(array, position) for array in contents.arrays]
        if not at_end:
            self.shift_down(contents, position, last, node)
        self.names[list_key(owner)] = Stored(contents.element, contents.arrays, last)
        return self.reassembled(contents, values)

    def taken_off(self, storage: Value, position: Value) -> Value:
        if not isinstance(storage.type, Stack):
            return self.load(storage, (position,))
        out = Value(storage.type.element)
        self.add(Pop(out, storage, span=self.span))
        return out

    def shift_down(self, contents: Stored, position: Value, last: Value, node: ast.AST) -> None:
        """Move the elements behind the position one place to the front."""

        def turn(index: Value | None) -> None:
            assert index is not None
            following = self.apply("add", index, self.const(1))
            for array in contents.arrays:
                self.store(array, (index,), self.load(array, (following,)))

        self.loop(node, frozenset(), (position, last, self.const(1)), None, turn)

    def list_clear(self, node: ast.AST, owner: List) -> Abstract:
        contents = self.names[list_key(owner)]
        if isinstance(contents, Stored):
            self.names[list_key(owner)] = Stored(contents.element, contents.arrays, self.const(0))
        else:
            self.names[list_key(owner)] = Items(())
        return Static(None)

    def list_copy(self, node: ast.AST, owner: List) -> Abstract:
        return self.call_copy(node, owner)

    # -- going through things ----------------------------------------------------------------------------------------

    def iteration(self, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        """How to go through it: element by element at run time, or one by one if the elements are known."""
        match x:
            case Tuple():
                return x.items
            case Static(value=str()):
                return tuple(Static(c) for c in x.value)
            case Range():
                return self.range_iteration(x)
            case List():
                contents = self.names[list_key(x)]
                if isinstance(contents, Items) and (not contents.items or not self.of_numbers(contents)):
                    return contents.items
                stored = self.stored(x)
                return Iteration(
                    stored.length,
                    lambda k: self.reassembled(stored, [self.element_of(a, self.value(k)) for a in stored.arrays]),
                )
            case Value(type=Array()):
                return Iteration(self.dim(x, 0), lambda k: self.row(x, k))
            case Enumerate():
                inner = self.iteration(x.of, node)
                if not isinstance(inner, Iteration):
                    numbers = [self.binary(ast.Add, Static(k), x.start, node) for k in range(len(inner))]
                    return tuple(Tuple((n, i)) for n, i in zip(numbers, inner, strict=True))
                found = inner
                return Iteration(
                    found.length, lambda k: Tuple((self.binary(ast.Add, k, x.start, node), found.element(k)))
                )
            case Zip():
                return self.zip_iteration(x, node)
            case Reversed():
                inner = self.iteration(x.of, node)
                if not isinstance(inner, Iteration):
                    return tuple(reversed(inner))
                forward = inner
                last = self.binary(ast.Sub, forward.length, Static(1), node)
                return Iteration(forward.length, lambda k: forward.element(self.binary(ast.Sub, last, k, node)))
        self.refuse("SD203", node, f"{self.said(x)} cannot be iterated")

    def of_numbers(self, contents: Items) -> bool:
        types = leaf_types(self.common(contents))
        return types is not None and all(isinstance(t, Scalar) for t in types)

    def common(self, contents: Items) -> Description:
        joined = loosened(describe(contents.items[0]))
        for item in contents.items[1:]:
            joined = join(joined, loosened(describe(item)))
        return joined

    def row(self, array: Value, k: Abstract) -> Abstract:
        position = self.value(k)
        if array.array.rank == 1:
            return self.load(array, (position,))
        return self.view(array, (Index(position),))

    def range_iteration(self, x: Range) -> Iteration:
        if isinstance(x.start, Static) and isinstance(x.stop, Static) and isinstance(x.step, Static):
            length: Abstract = Static(len(range(x.start.value, x.stop.value, x.step.value)))
        elif isinstance(x.start, Static) and x.start.value == 0 and isinstance(x.step, Static) and x.step.value == 1:
            stop = self.value(x.stop)
            length = self.apply("where", self.apply("greater", stop, self.const(0)), stop, self.const(0))
        else:
            length = self.apply("range_length", self.value(x.start), self.value(x.stop), self.value(x.step))

        def element(k: Abstract) -> Abstract:
            if isinstance(k, Static) and isinstance(x.start, Static) and isinstance(x.step, Static):
                return Static(x.start.value + k.value * x.step.value)
            scaled = self.apply("multiply", self.value(k), self.value(x.step))
            return self.apply("add", self.value(x.start), scaled)

        return Iteration(length, element)

    def zip_iteration(self, x: Zip, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        inner = [self.iteration(i, node) for i in x.of]
        if any(not isinstance(i, Iteration) for i in inner):
            limit = min(len(i) for i in inner if not isinstance(i, Iteration))
            columns = [
                tuple(i.element(Static(k)) for k in range(limit)) if isinstance(i, Iteration) else i[:limit]
                for i in inner
            ]
            if any(isinstance(i, Iteration) for i in inner):
                self.refuse("SD205", node, "`zip` of a tuple with something of unknown length")
            return tuple(Tuple(row) for row in zip(*columns, strict=True))
        parts = [i for i in inner if isinstance(i, Iteration)]
        if not parts:
            return ()
        lengths = [i.length for i in parts]
        length = lengths[0]
        for other in lengths[1:]:
            if isinstance(length, Static) and isinstance(other, Static):
                length = Static(min(length.value, other.value))
            elif length is not other:
                a, b = self.value(length), self.value(other)
                length = self.apply("where", self.apply("less", b, a), b, a)
        return Iteration(length, lambda k: Tuple(tuple(i.element(k) for i in parts)))

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def first_that(self, node: ast.GeneratorExp, wanted: bool) -> Abstract:
        raise NotImplementedError

    def generator_call(self, function: Abstract, node: ast.Call) -> Abstract | None:
        """`sum(... for ...)` and its like become a list first; `any` and `all` stop where they are decided."""
        if isinstance(function, Static) and function.value in (any, all) and len(node.args) == 1:
            generator = node.args[0]
            if isinstance(generator, ast.GeneratorExp):
                return self.first_that(generator, function.value is any)
        if len(node.args) >= 1 and isinstance(node.args[0], ast.GeneratorExp):
            rest = list(self.elements(node.args[1:]))
            return self.call_with(function, [self.comprehension(node.args[0]), *rest], {}, node)
        return None


class _Defaults(dict[str, Any]):
    """The defaults that a function has now, as something to look up."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def __getitem__(self, name: str) -> Any:
        return self.function.__defaults__


def _flat(rows: Any) -> list[Abstract]:
    if isinstance(rows, tuple):
        return [x for row in rows for x in _flat(row)]
    return [rows]


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _scopes(node: ast.FunctionDef | ast.Lambda) -> tuple[frozenset[str], frozenset[str]]:
    return assigned_names(node), nonlocal_names(node)


_HANDLERS: dict[Any, str] = {
    range: "range",
    len: "len",
    enumerate: "enumerate",
    zip: "zip",
    reversed: "reversed",
    tuple: "tuple",
    list: "list",
    sum: "sum",
    max: "max",
    min: "min",
    any: "any",
    all: "all",
    round: "round",
    isinstance: "isinstance",
    math.floor: "floor",
    math.ceil: "ceil",
    math.prod: "prod",
    math.fsum: "fsum",
    np.float32: "float32",
    np.float64: "float64",
    np.int64: "int64",
    np.int32: "int64",
    np.bool_: "bool_",
    np.zeros: "zeros",
    np.ones: "ones",
    np.empty: "empty",
    np.full: "full",
    np.zeros_like: "zeros_like",
    np.ones_like: "ones_like",
    np.empty_like: "empty_like",
    np.full_like: "full_like",
    np.copy: "copy",
    np.shape: "shape",
    np.transpose: "transpose",
    np.array: "array",
    np.asarray: "asarray",
    divmod: "divmod",
}
