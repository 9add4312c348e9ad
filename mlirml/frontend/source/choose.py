"""Choice of the front end: functions that loop over elements, or array code that happens to have a Python loop.

A loop over `range` whose variable is an index of what its body stores into, sums up or compares is one over elements,
and so is a `while` with a number that it counts up or down. A loop over the layers of a network is none: its variable
indexes a list of arrays.
"""

from __future__ import annotations

import ast
import dis
import functools
import math
import re
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mlirml.errors import (
    ArgumentError,
    CaptureError,
    IntegerRangeError,
    TracedBoolError,
    TracedValueError,
    UnsupportedSyntaxError,
)
from mlirml.frontend.advice import DATA_SIZE, DRAW, INDEX, SLICE, STORE
from mlirml.frontend.frames import function_location
from mlirml.frontend.iteration_limits import LIMITED
from mlirml.frontend.source.functions import source_of
from mlirml.frontend.source.liveness import loaded
from mlirml.frontend.source.unsupported import has_long_lists, has_loops
from mlirml.frontend.user_objects import is_library, is_package

MARK = "__mlirml_loops__"
"""The attribute of a function that `ml.loops` marked: the function itself."""

TRACED_ONLY: ContextVar[bool] = ContextVar("TRACED_ONLY", default=False)
"""True if the user wants functions traced, including those that transforms are given."""

_CALL = re.compile(r"`(?:c?math\.|np\.(?=float|int|uint|complex))?(\w+)\(\)`")
_NUMPY_CALL = re.compile(r"`(?:np|numpy)\.\w+\(\)`")
_CHOICES = frozenset(["combinations", "permutations", "combinations_with_replacement"])
_OF_ITEMS = re.compile(r"`(list|tuple|sum|min|max|any|all|sorted|type\(\w+\))\(\)`")
_NUMBERS = ("`int()`", "`float()`", "`complex()`")
_KINDS = re.compile(r"(float|u?int|complex)\d*")
FRONTENDS = ("auto", "trace", "loops")
_DECIDED: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()
_JUMPS = frozenset([*dis.hasjabs, *dis.hasjrel])
_BACKWARD = frozenset(code for name, code in dis.opmap.items() if "BACKWARD" in name) or _JUMPS
_FOR_ITER, _IS_OP, _MATCH_CLASS = (dis.opmap[name] for name in ("FOR_ITER", "IS_OP", "MATCH_CLASS"))
_PURE = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


def check_frontend(frontend: Any) -> None:
    """Refuse an unknown front end."""
    if frontend not in FRONTENDS:
        words = ", ".join(map(repr, FRONTENDS))
        raise ArgumentError(f"compile: frontend={frontend!r} is not known", help=f"it is one of {words}")


def wants_loops(function: Callable[..., Any], frontend: str) -> bool:
    """True if a function is to be captured with its loops."""
    plain = plain_function(function)
    if frontend == "trace":
        return False
    if frontend == "auto" and not hasattr(function, MARK):
        return plain is not None and has_element_loops(plain)
    if plain is None or source_of(plain) is None:
        raise UnsupportedSyntaxError(
            f"the source of `{getattr(function, '__name__', function)}` cannot be read, which loops are compiled from",
            location=None if plain is None else function_location(plain.__code__),
            help="define the function in a file",
        )
    return True


def keeps_loops(function: Callable[..., Any], frontend: str, within: bool) -> bool:
    """True if a compiled function keeps its loops where it is called: `within` code that keeps its own, "auto" does."""
    return (within and frontend == "auto" and can_turn(function)) or wants_loops(function, frontend)


def takes_lists(function: Callable[..., Any], frontend: str) -> bool:
    """True if a function may get long lists of numbers as arrays, which the loop front end indexes as lists."""
    plain = plain_function(function)
    return frontend != "trace" and plain is not None and source_of(plain) is not None


def turns_on_data(function: Callable[..., Any], frontend: str, error: CaptureError) -> bool:
    """True if tracing a function failed on a construct that the loop front end supports.

    These are a branch on data; a slice with dynamic bounds; a dynamic index into a list or tuple; a loop with a dynamic
    trip count or condition; another use of a number in a function with loops; functions of numbers, as `math.exp(x)`
    and `float(x)`; a store into an array that a method made, whose calls are not seen when it is traced, or a function
    of NumPy's that it calls; and an array whose length depends on data.
    """
    if frontend != "auto":
        return False
    plain = plain_function(function)
    source = None if plain is None else source_of(plain)
    if source is None:
        return False
    if (
        is_of_calls(error)
        or _NUMPY_CALL.fullmatch(error.subject)
        or error.subject in (SLICE, DATA_SIZE, DRAW, "a loop", "`range()`")
    ):
        return True
    if turns_on_number(error) or (error.subject == INDEX and not error.sizes):
        return True
    assert plain is not None
    return isinstance(error, TracedValueError) and _any_loops(plain)


def can_turn(function: Callable[..., Any]) -> bool:
    """True if a function that is traced can be captured with its loops instead."""
    plain = plain_function(function)
    return not TRACED_ONLY.get() and plain is not None and source_of(plain) is not None


def turns_on_number(error: CaptureError) -> bool:
    """True if tracing a function failed on a branch on one number, which the loop front end supports."""
    return isinstance(error, TracedBoolError) and not error.of_array


def _any_loops(function: types.FunctionType, seen: frozenset[types.CodeType] = frozenset()) -> bool:
    """True if there are loops in a function, in one that it calls by name, or in a method of a class that it names."""
    if function.__code__ in seen or is_library(function.__globals__.get("__name__")):
        return False
    source = source_of(function)
    seen |= {function.__code__}
    if source is not None and (has_loops(source.node) or (_iterates(function) and has_long_lists(source.node))):
        return True
    return any(_any_loops(helper, seen) for helper in (*_helpers(function), *_methods(function)))


def _iterates(function: types.FunctionType) -> bool:
    """True if there is a `for` in the code of a function, that of a comprehension included."""
    return any(_FOR_ITER in code.co_code[::2] for code in _codes(function.__code__))


def _methods(function: types.FunctionType) -> Iterator[types.FunctionType]:
    for name in sorted({n for c in _codes(function.__code__) for n in c.co_names}):
        named = function.__globals__.get(name)
        if isinstance(named, type) and not is_library(named.__module__):
            yield from (m for m in vars(named).values() if isinstance(m, types.FunctionType))


def is_of_calls(error: CaptureError) -> bool:
    """True if tracing a function failed on a call that the loop front end replaces, where possible."""
    called = _CALL.fullmatch(error.subject)
    of_numbers = called is not None and bool(
        _KINDS.fullmatch(called[1]) or called[1] == "round" or hasattr(math, called[1])
    )
    in_calls = error.conversion in _NUMBERS and _OF_ITEMS.fullmatch(error.subject) is not None
    return of_numbers or in_calls or error.subject == STORE


def says_more(error: CaptureError, other: CaptureError) -> bool:
    """True if the error of tracing a function says more than that of capturing it with its loops."""
    if isinstance(other, IntegerRangeError) or getattr(other, "final", False):  # tracing ended before it
        return False
    if is_of_calls(error):  # else these calls were replaced, and the other error is of what follows
        return isinstance(other, UnsupportedSyntaxError)
    return error.subject in (SLICE, INDEX) or (isinstance(other, TracedValueError) and not turns_on_number(error))


@contextmanager
def short_loops(function: Callable[..., Any], frontend: str) -> Iterator[None]:
    """Context manager: trace a function only as long as its loops are short; else raise `LongIteration`.

    Functions that transforms are given are captured by the same front end.
    """
    plain = plain_function(function) if frontend == "auto" else None
    token = LIMITED.set(plain is not None and source_of(plain) is not None)
    traced = TRACED_ONLY.set(frontend == "trace")
    try:
        yield
    finally:
        LIMITED.reset(token)
        TRACED_ONLY.reset(traced)


def plain_function(function: Any) -> types.FunctionType | None:
    """The Python function wrapped by transforms, `compile`, partials, methods and callable objects."""
    while (transformed := _transformed(function)) is not None or isinstance(function, functools.partial):
        function = function.func if transformed is None else transformed
    function = getattr(function, MARK, function)
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        function = next((vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None)
    return function if isinstance(function, types.FunctionType) else None


def _transformed(function: Any) -> Any:
    """The function that a transform, such as `grad` or `custom_vjp`, or `compile` was given."""
    is_function = isinstance(function, types.FunctionType)
    module = function.__globals__.get("__name__") if is_function else type(function).__module__
    return getattr(function, "__wrapped__", None) if module in ("mlirml.transforms", "mlirml.api") else None


def has_element_loops(function: types.FunctionType, seen: frozenset[types.CodeType] = frozenset()) -> bool:
    """True if a function, or one that it calls by name, loops over elements."""
    code = function.__code__
    if code in seen or str(function.__globals__.get("__name__", "")).partition(".")[0] in ("mlirml", "numpy"):
        return False
    found = _DECIDED.get(code)
    if found is None:
        found = _DECIDED[code] = _has_own(function) or any(map(_has_own_identity, _methods(function)))
    return found or any(has_element_loops(helper, seen | {code}) for helper in _helpers(function))


def _helpers(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """The functions that a function calls by name, those of the user's modules included."""
    names = {n for c in _codes(function.__code__) for n in c.co_names}
    for name in names:
        value = function.__globals__.get(name)
        found = [value]
        if isinstance(value, types.ModuleType) and not is_package(value.__name__):
            found = [vars(value).get(other) for other in names]
        for helper in found:
            if isinstance(helper, types.FunctionType) and not hasattr(helper, MARK):
                yield helper
    for cell in function.__closure__ or ():
        try:
            helper = cell.cell_contents
        except ValueError:
            continue
        if isinstance(helper, types.FunctionType) and not hasattr(helper, MARK):
            yield helper


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _has_own(function: types.FunctionType) -> bool:
    if any("pow" in code.co_names for code in _codes(function.__code__)) and _has_modular_powers(function):
        return True
    if _has_own_identity(function):
        return True
    if any(not _CHOICES.isdisjoint(code.co_names) for code in _codes(function.__code__)) and source_of(function):
        return True  # functions of C, which take no number of the program
    if not any("range" in c.co_names or _has_while(c) for c in _codes(function.__code__)):
        return False
    source = source_of(function)
    if source is None:
        return False
    return any(_over_elements(node) for node in ast.walk(source.node) if _is_range(node) or isinstance(node, ast.While))


def _has_own_identity(function: types.FunctionType) -> bool:
    """True if a function asks for the identity of True or False by `is`, or for a class by a pattern of `match`.

    Where it is traced, an array of the program is neither True nor a float to Python itself.
    """
    codes = [*_codes(function.__code__)]
    of_classes = any(_MATCH_CLASS in code.co_code[::2] for code in codes)
    if not of_classes and not any(_IS_OP in code.co_code[::2] and _has_boolean(code) for code in codes):
        return False
    source = source_of(function)
    if source is None or of_classes:
        return source is not None
    return any(
        isinstance(op, (ast.Is, ast.IsNot)) and any(_is_boolean(x) for x in (node.left, *node.comparators))
        for node in ast.walk(source.node)
        if isinstance(node, ast.Compare)
        for op in node.ops
    )


def _has_boolean(code: types.CodeType) -> bool:
    return any(type(const) is bool for const in code.co_consts)


def _is_boolean(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is bool


def _has_modular_powers(function: types.FunctionType) -> bool:
    """True if a function calls `pow` with three arguments, the first of which need be no number of the program."""
    source = source_of(function)
    calls = [] if source is None else [node for node in ast.walk(source.node) if isinstance(node, ast.Call)]
    return any(isinstance(one.func, ast.Name) and one.func.id == "pow" and len(one.args) == 3 for one in calls)


def _has_while(code: types.CodeType) -> bool:
    """True if code jumps back to any instruction but the head of a `for`."""
    if _BACKWARD.isdisjoint(code.co_code[::2]):
        return False
    found = {one.offset: one for one in dis.get_instructions(code)}
    back = [one.argval for one in found.values() if one.opcode in _JUMPS and one.argval < one.offset]
    return any(found[target].opname != "FOR_ITER" for target in back)


def _is_range(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.For)
        and isinstance(node.iter, ast.Call)
        and any(isinstance(n, ast.Name) and n.id == "range" for n in ast.walk(node.iter))
    )


def _over_elements(loop: ast.AST) -> bool:
    assert isinstance(loop, (ast.For, ast.While))
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if isinstance(loop, ast.For):
        numbers = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    else:
        numbers = {n for node in inside for n in _counted(node)} | (loaded(loop.test) & _computed(inside))
        inside.append(loop)
    for node in inside:
        if isinstance(node, ast.Assign) and all(isinstance(n, _PURE) for n in ast.walk(node.value)):
            targets = {t.id for t in node.targets if isinstance(t, ast.Name)}
            numbers |= targets if loaded(node.value) & numbers else set()

    if isinstance(loop, ast.While) and not any(
        isinstance(n, ast.Subscript) and _indices(n.slice) & numbers for n in inside
    ):
        return False  # it computes bounds of slices, as array code does

    def picks(root: ast.AST) -> bool:
        return any(isinstance(n, ast.Subscript) and loaded(n.slice) & numbers for n in ast.walk(root))

    for node in inside:
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and loaded(node.slice) & numbers:
            return True
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and picks(node.value):
            return True
        if isinstance(node, ast.Assign) and _sums_up(node) and picks(node.value):
            return True
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and picks(node.test):
            return True
    return False


def _indices(subscript: ast.expr) -> set[str]:
    """The names that a subscript reads outside of slices."""
    parts = subscript.elts if isinstance(subscript, ast.Tuple) else [subscript]
    return {name for part in parts if not isinstance(part, ast.Slice) for name in loaded(part)}


def _counted(node: ast.AST) -> set[str]:
    """The variable that a statement increments or decrements."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        target = node.target
    elif isinstance(node, ast.Assign) and _sums_up(node) and isinstance(node.targets[0], ast.Name):
        target = node.targets[0]
    else:
        return set()
    return {target.id} if all(isinstance(n, _PURE) for n in ast.walk(node.value)) else set()


def _computed(nodes: list[ast.AST]) -> set[str]:
    """The variables that are assigned arithmetic on numbers, as `low = middle + 1`."""
    found = [n for n in nodes if isinstance(n, ast.Assign) and all(isinstance(v, _PURE) for v in ast.walk(n.value))]
    return {t.id for node in found for t in node.targets if isinstance(t, ast.Name)}


def _sums_up(node: ast.Assign) -> bool:
    """`s = s + x`."""
    if not isinstance(node.value, ast.BinOp) or not isinstance(node.targets[0], ast.Name):
        return False
    sides = [side.id for side in (node.value.left, node.value.right) if isinstance(side, ast.Name)]
    return node.targets[0].id in sides
