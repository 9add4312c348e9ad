"""The namespace that replaces `np` in traced code: NumPy itself, but creation functions return traced arrays.

A function is run with a copy of its globals in which the name of the NumPy module is this namespace, so that `y =
np.zeros(n); y[0] = x` stores into a traced array and not into a real one.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.sizes import Size, is_size
from mlirml.errors import ShapeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced, check_device, check_uncopied
from mlirml.frontend.arrays.array_class import Constructor, TypeOf
from mlirml.frontend.arrays.array_class import isinstance as isinstance_of_traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.long_folds import FOLDS, folding
from mlirml.frontend.frames import at_user_line, code_location
from mlirml.frontend.namespace.generator_functions import Generator
from mlirml.frontend.namespace.grids import Grid, dynamic_grid
from mlirml.frontend.namespace.lists import Submodule, taking_lists
from mlirml.frontend.tracing import scipy_functions
from mlirml.frontend.tracing.trace import LOOPS, Trace
from mlirml.frontend.user_objects import is_library
from mlirml.ops.shapes.views import extents

if TYPE_CHECKING:
    from mlirml.ops.registry import OpDef

# Creation functions that are folded by NumPy.
COMPUTED = (
    "arange",
    "eye",
    "identity",
    "linspace",
    "logspace",
    "geomspace",
    "tri",
    "indices",
    "bartlett",
    "blackman",
    "hanning",
    "hamming",
    "kaiser",
)

_SIZED = {
    np.arange: 0,
    np.eye: 0,
    np.identity: 0,
    np.linspace: 2,
    np.tri: 0,
}  # those of a number of elements of the program, from that argument on

_GLOBAL_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_OF_NUMBERS = ("math", "cmath")
_RANDOM: dict[str, Any] = {"np.random": lambda: np.random, "random": lambda: importlib.import_module("random")}


class Namespace:
    """Replaces the `numpy` module in a traced function."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._array_class = Constructor(self.empty)

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if name == "random":
            return _Random("np.random")
        if name in ("c_", "r_"):
            from mlirml.frontend.namespace.joins import Join

            return Join(self._trace, name)
        if name in ("mgrid", "ogrid"):
            return Grid(self._trace, name)
        if name == "ndarray":
            return self._array_class
        if name in COMPUTED:
            return functools.wraps(value)(functools.partial(self._computed, value))
        return self._of_lists(value)

    def _of_lists(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return Submodule(self._trace, value)
        return taking_lists(self._trace, value) if _is_function(value) else value

    def _computed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Traced:
        check_device(kwargs.pop("device", None))
        with at_user_line():
            if any(type(x) is Size for arg in args for x in (arg if isinstance(arg, (tuple, list)) else (arg,))):
                return dynamic_grid(self._trace, function, args, **kwargs)
            if "num" in kwargs and len(args) == 2:
                args = (*args, kwargs.pop("num"))
            sizes = (*args[_SIZED[function] :], kwargs.get("M"), kwargs.get("k")) if function in _SIZED else ()
            if any(map(_is_number_of_program, sizes)):
                return self._trace.handlers.grid_of_size(self._trace, function, args, **kwargs)
            result = function(*args, **kwargs)
            return self._trace.known(result) if isinstance(result, np.ndarray) else result  # else made of traced values

    def known(self, array: np.ndarray) -> Traced:
        """An array that is constant at trace time."""
        return self._trace.known(array)

    def recorded(self, record: OpDef, *args: Any) -> Any:
        """The result of an op record that is no function of NumPy, such as a convolution with channels."""
        bound = record.signature.bind(*args)
        bound.apply_defaults()
        return self._trace._apply(record, bound.args, bound.kwargs)

    def isscalar(self, element: Any) -> bool:
        """`np.isscalar`."""
        return element._scalar if isinstance(element, Traced) else np.isscalar(element)

    def zeros(
        self, shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Traced:
        """`np.zeros`."""
        check_device(device)
        return self._filled(shape, 0, dtype, order)

    def ones(self, shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Traced:
        """`np.ones`."""
        check_device(device)
        return self._filled(shape, 1, dtype, order)

    def empty(
        self, shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Traced:
        """`np.empty`; filled with zeros, so that programs stay deterministic."""
        check_device(device)
        return self._filled(shape, 0, dtype, order)

    def full(
        self, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Traced:
        """`np.full`."""
        check_device(device)
        with at_user_line():
            return self._of_shape(shape, fill_value, dtype, order)

    def full_like(self, a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Traced:
        """`np.full_like`; NumPy itself would only test if `a` is an array of another class."""
        if is_dynamic(a):
            return np.full_like(a, fill_value, *args, **kwargs)
        like = a if isinstance(a, Traced) else np.asarray(a)
        return self._trace.call_function(np.full_like, (like, fill_value, *args), kwargs)

    def _filled(self, shape: Any, value: int, dtype: Any, order: str) -> Traced:
        with at_user_line():
            return self._of_shape(shape, value, float if dtype is None else dtype, order)

    def _of_shape(self, shape: Any, value: Any, dtype: Any, order: str) -> Traced:
        items = shape if isinstance(shape, (tuple, list)) else (shape,)
        if any(map(_is_number_of_program, items)):
            return self._trace.handlers.filled_of_size(self._trace, items, value, dtype)
        array = self._trace.filled(_sizes(shape), value, dtype)
        array._cell.c_order = order == "C"
        return array

    def array(
        self, object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0
    ) -> Traced:
        """`np.array`."""
        with at_user_line():
            result = self._array(object, dtype, copy)
            return result if result.ndim >= ndmin else result.reshape((1,) * (ndmin - result.ndim) + result.shape)

    def asarray(
        self, a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
    ) -> Traced:
        """`np.asarray`."""
        check_device(device)
        with at_user_line():
            return self._array(a, dtype, copy)

    asanyarray = asarray

    def _array(self, data: Any, dtype: Any, copy: Any) -> Traced:
        if is_dynamic(data):
            is_same = not copy and (dtype is None or np.dtype(dtype) == data.dtype)
            return data if is_same else data.copy() if dtype is None else data.astype(dtype)
        if type(data) in (list, tuple) and any(map(is_dynamic, data)):
            stacked: Any = np.stack(data, dtype=dtype)
            return stacked
        result = self._trace.array(data, dtype, copy=bool(copy))
        if copy is False:
            check_uncopied(data, result)
        return result

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: Any = None) -> Traced:
        """`np.from_dlpack`; an array of the program is itself."""
        return self.asarray(x if isinstance(x, Traced) else np.from_dlpack(x), device=device, copy=copy)

    def ascontiguousarray(self, a: Any, dtype: Any = None, *, like: Any = None) -> Traced:
        """`np.ascontiguousarray`; a copy of the argument, or the argument itself, as its strides are."""
        result: Any = self.asarray(a, dtype)
        if is_dynamic(result):
            return result
        result = np.atleast_1d(result)
        if result._cell.c_order and result._cell.strides is None and not result._views:
            return result
        return Traced(self._trace, result._cell, result._views, ambiguous=result._cell.version)


def _is_number_of_program(size: Any) -> bool:
    """True for a number that the data decide: of Python integers among the arguments the value is asked for."""
    return isinstance(size, Traced) and not size.ndim and size._known() is None and not size._sizes()


def _sizes(shape: Any) -> tuple[int, ...]:
    with at_user_line():
        if isinstance(shape, Traced):
            shape = tuple(shape) if shape.ndim else (shape,)
        sizes = extents("shape", "sizes", shape if isinstance(shape, (tuple, list)) else (shape,))
        if any(n < 0 for n in sizes):
            raise ShapeError(f"shape: sizes cannot be negative, got {list(sizes)}")
        return sizes


class _Random:
    """Replaces functions and generators that draw random numbers: those of modules draw from streams of the program.

    Any use of another generator, which would draw when the function is traced, is an error.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = _Random(f"{self._name}.{name}")
        return found if self._function_of(name) is not None else found()

    def _function_of(self, name: str) -> Callable[..., Any] | None:
        """The compiled function of a module."""
        from mlirml.random import generator, global_streams

        if self._name == "np.random" and name in ("default_rng", "RandomState"):
            return generator.default_rng if name == "default_rng" else global_streams.random_state
        streams = {"np.random": global_streams.Functions, "random": global_streams.PythonFunctions}
        if not hasattr(streams.get(self._name), name) or not hasattr(_RANDOM[self._name](), name):
            return None
        return lambda *args, **kwargs: getattr(global_streams.functions_of(self._name), name)(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with at_user_line():
            module, _, name = self._name.rpartition(".")
            function = _Random(module)._function_of(name)
            if function is not None:
                return function(*args, **kwargs)
            raise UnsupportedSyntaxError(
                f"`{self._name}` would draw once, when the function is traced",
                help="draw with `np.random.default_rng(seed)`, or pass the numbers as an argument"
                if self._name.startswith("np.random")
                else "draw outside, and pass the numbers as an argument",
            )


def _random_name(value: Any) -> str | None:
    """The name, in messages, of a module, generator or function that draws random numbers; None for anything else."""
    if isinstance(value, types.ModuleType):
        return {"numpy.random": "np.random", "random": "random"}.get(value.__name__)
    owner = (
        getattr(value, "__self__", value) if isinstance(value, (types.BuiltinFunctionType, types.MethodType)) else value
    )
    for module, holder in _RANDOM.items() if owner is not value else ():
        name = getattr(value, "__name__", "")
        if getattr(holder(), name, None) == value:
            return f"{module}.{name}"
    if any(c.__module__ == "random" or c.__module__.startswith("numpy.random") for c in type(owner).__mro__):
        return str(getattr(value, "__name__", type(value).__name__))
    if callable(value) and str(getattr(value, "__module__", "")).startswith("numpy.random"):
        return str(getattr(value, "__name__", value))
    return None


def _printing(trace: Trace) -> Callable[..., None]:
    """`print` as a traced function sees it."""

    @functools.wraps(builtins.print)
    def show(*args: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
        from mlirml.frontend.tracing.print_calls import show_later

        if trace.done:
            return builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
        show_later(trace, args, sep=sep, end=end, file=file, flush=flush)

    return show


def length(x: Any) -> Any:
    """`len` of an array whose first dimension may be dynamic."""
    return x.shape[0] if isinstance(x, Traced) and x.shape and is_size(x.shape[0]) else len(x)


class Overlay(dict[str, Any]):
    """The globals of a traced function. Reads are live, and noted as guards; `LOAD_GLOBAL` honours `__getitem__`.

    After the trace, when a program calls the function, as one given to `ml.debug.callback`, they are the real ones.
    """

    def __init__(self, real: dict[str, Any], trace: Trace, memo: dict[Any, Any]) -> None:
        known = real.get("__builtins__", builtins)
        known = dict(
            known if isinstance(known, dict) else vars(known),
            __import__=self._import,
            **{value.__name__: make(trace, memo) for value, make in _BUILTINS.items()},
        )
        if LOOPS not in memo:
            known.update({name: folding(name) for name in FOLDS})
            if trace.conditions is not None:
                known["len"] = length
        if LOOPS in memo:
            from mlirml.frontend.source.rewrite import HOOKS

            known[HOOKS] = trace.hooks
        super().__init__(__builtins__=known, __name__=real.get("__name__", "?"))
        self.real, self.trace, self.memo = real, trace, memo

    def _import(
        self, name: str, scope: object = None, names: object = None, fromlist: object = (), level: int = 0
    ) -> Any:
        """`import` inside of the function, and `__import__`."""
        found = builtins.__import__(name, self.real, names, fromlist, level)  # type: ignore[arg-type]
        return found if self.trace.done else _replaced(found, self.trace, self.memo)

    def __getitem__(self, name: str) -> Any:
        value = self.real[name]  # a KeyError sends LOAD_GLOBAL on to the builtins
        if self.trace.done:
            return value
        if not isinstance(value, types.ModuleType):
            self.trace.reached.guard(self.real, name, value)
        return _replaced(value, self.trace, self.memo)


_BUILTINS: dict[Any, Callable[[Trace, dict[Any, Any]], Any]] = {
    isinstance: lambda trace, memo: isinstance_of_traced,
    type: lambda trace, memo: TypeOf(lambda: of_numpy(np.ndarray, trace, memo)),
    print: lambda trace, memo: _printing(trace),
}
"""Python's functions of which a trace has its own, under any name."""


class _Module:
    """Replaces a module of the user's in a traced function."""

    def __init__(self, real: types.ModuleType, trace: Trace, memo: dict[Any, Any]) -> None:
        self.__dict__["__mlirml__"] = real, trace, memo

    def __getattr__(self, name: str) -> Any:
        real, trace, memo = self.__dict__["__mlirml__"]
        value = getattr(real, name)
        if name in vars(real) and not isinstance(value, types.ModuleType):
            trace.reached.guard(vars(real), name, value)
        return _replaced(value, trace, memo)

    def __setattr__(self, name: str, value: Any) -> None:
        module = self.__dict__["__mlirml__"][0].__name__
        with at_user_line():
            raise UnsupportedSyntaxError(
                f"compiled code cannot assign to `{module}.{name}`", help="return the new value"
            )


class _Numbers:
    """Replaces the module `math` or `cmath`; its functions accept dynamic numbers too."""

    def __init__(self, real: types.ModuleType, trace: Trace) -> None:
        self._real, self._trace = real, trace

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not isinstance(value, types.BuiltinFunctionType):
            return value
        return self._trace.handlers.of_numbers(self._trace, value)


class _SciPy:
    """Replaces a module of SciPy."""

    def __init__(self, real: types.ModuleType, trace: Trace, memo: dict[Any, Any]) -> None:
        self._real, self._trace, self._memo = real, trace, memo

    def __getattr__(self, name: str) -> Any:
        return _replaced(getattr(self._real, name), self._trace, self._memo)


def module_for(value: Any, trace: Trace) -> Any:
    """The replacement of a module that is an argument, as `xp` in `f(xp, x)`; any other value is returned as is."""
    return _replaced(value, trace, trace._loops_memo) if isinstance(value, types.ModuleType) else value


def _replaced(value: Any, trace: Trace, memo: dict[Any, Any]) -> Any:
    for builtin, make in _BUILTINS.items():
        if value is builtin:
            return make(trace, memo)
    made = of_numpy(value, trace, memo)
    if made is not None:
        return made
    random = _random_name(value)
    if random is not None:
        return _Random(random)
    if isinstance(value, types.ModuleType):
        if value.__name__ in _OF_NUMBERS:
            return _Numbers(value, trace)
        if value.__name__.partition(".")[0] == "scipy":
            return _SciPy(value, trace, memo)
        return value if is_library(value.__name__) else _Module(value, trace, memo)
    if _is_of_numbers(value):
        return trace.handlers.of_numbers(trace, value)
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return retarget(value, trace, memo)
    if _is_of_uarray(value):
        return scipy_functions.compiled_form(value) or scipy_functions.refused_form(value)
    if type(value).__name__ == "fortran":
        return scipy_functions.compiled_form(value) or value
    distribution = scipy_functions.compiled_distribution(value)
    if distribution is not None:
        return distribution
    trace.reached.add(value)
    if trace.methods is not None:
        trace.methods.add(value)
    return trace.watched(value) if type(value) is np.ndarray else value


def of_numpy(value: Any, trace: Trace, memo: dict[Any, Any]) -> Any:
    """The replacement of the module `numpy` or one of its creation functions; None for anything else."""
    name = _creation_name(value)
    submodule = isinstance(value, types.ModuleType) and value.__name__ == "numpy.linalg"
    if value is not np and name is None and not submodule and not _is_function(value):
        return None
    if "np" not in memo:
        memo["np"] = Namespace(trace)
    if value is np:
        return memo["np"]
    return memo["np"]._of_lists(value) if name is None else getattr(memo["np"], name)


@functools.cache
def _creation() -> dict[Any, str]:
    """NumPy's creation functions, for `from numpy import zeros`."""
    names = [name for name in vars(Namespace) if hasattr(np, name) and not name.startswith("_")]
    return {getattr(np, name): name for name in (*names, *COMPUTED, "ndarray")}


def _is_function(value: Any) -> bool:
    """True for a ufunc, or a function that dispatches on `__array_function__`."""
    return isinstance(value, np.ufunc) or (hasattr(value, "_implementation") and callable(value))


def _creation_name(value: Any) -> str | None:
    return _creation().get(value) if callable(value) and isinstance(value, Hashable) else None


def retarget(function: Callable[..., Any], trace: Trace, memo: dict[Any, Any] | None = None) -> Callable[..., Any]:
    """A copy of the function that reads its globals through an overlay. Anything but a Python function is returned as
    is.
    """
    memo = {} if memo is None else memo
    if isinstance(function, functools.partial):
        return functools.partial(retarget(function.func, trace, memo), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        trace.reached.add(function)
        compiled = scipy_functions.compiled_form(function)
        if compiled is not None:
            return compiled
        return types.MethodType(retarget(function.__func__, trace, memo), function.__self__)
    if isinstance(function, types.FunctionType):
        if isinstance(function.__globals__, Overlay) or is_library(function.__globals__.get("__name__")):
            compiled = scipy_functions.compiled_form(function)
            if compiled is None and str(function.__module__).startswith("scipy."):
                return scipy_functions.refused_form(function)
            return compiled or function  # the overlay: defined in a traced function
        return _retarget_function(function, trace, memo)
    call = next((vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None)
    if isinstance(call, types.FunctionType):
        trace.reached.add(function)
        return types.MethodType(retarget(call, trace, memo), function)
    return function


def _retarget_function(function: types.FunctionType, trace: Trace, memo: dict[Any, Any]) -> Callable[..., Any]:
    known = memo.get(function)
    if known is not None:
        return known
    if LOOPS in memo and inspect.isgeneratorfunction(function):
        found = memo[function] = Generator(function.__name__, functools.partial(_copy, function, trace, memo))
        return found
    return _copy(function, trace, memo)


def _copy(function: types.FunctionType, trace: Trace, memo: dict[Any, Any], stops: bool | None = None) -> Any:
    """The copy of a function; that of a generator calls a function for each item, which may end it if it `stops`."""
    _refuse_global_stores(function)
    overlay = memo.get(id(function.__globals__))
    if overlay is None:
        overlay = memo[id(function.__globals__)] = Overlay(function.__globals__, trace, memo)
    originals = function.__closure__ or ()
    cells = tuple(types.CellType() if _is_replaced(cell) else cell for cell in originals)
    code, closure = function.__code__, cells
    if LOOPS in memo:
        from mlirml.frontend.source.rewrite import loop_code

        named = dict(zip(code.co_freevars, cells))
        code = loop_code(function, bool(stops))
        closure = tuple(named[name] for name in code.co_freevars)
    copy = types.FunctionType(code, overlay, function.__name__, None, closure)
    if stops is None:
        memo[function] = copy  # before the cells are filled: one of them may hold the function itself
    copy.__defaults__ = tuple(_replaced(v, trace, memo) for v in function.__defaults__ or ())
    copy.__kwdefaults__ = {k: _replaced(v, trace, memo) for k, v in (function.__kwdefaults__ or {}).items()}
    for original, cell in zip(originals, cells):
        _guard_cell(original, trace)
        if cell is not original:
            cell.cell_contents = _replaced(original.cell_contents, trace, memo)
    return copy


def users_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function for a copy that `retarget` has made; anything else as it is."""
    if not isinstance(function, types.FunctionType) or not isinstance(function.__globals__, Overlay):
        return function
    made = function.__globals__.memo.items()
    return next((one for one, copy in made if copy is function), function)


def _is_replaced(cell: types.CellType) -> bool:
    try:
        value = cell.cell_contents
    except ValueError:  # not filled yet
        return False
    kinds = (types.FunctionType, types.MethodType, types.ModuleType, functools.partial)
    return (
        isinstance(value, kinds)
        or _is_of_numbers(value)
        or _creation_name(value) is not None
        or _random_name(value) is not None
        or _is_of_uarray(value)
        or scipy_functions.compiled_distribution(value) is not None
    )


def _is_of_numbers(value: Any) -> bool:
    """True for a function of `math` or `cmath`."""
    return isinstance(value, types.BuiltinFunctionType) and value.__module__ in _OF_NUMBERS


def _is_of_uarray(value: Any) -> bool:
    """True for the functions of `scipy.fft`, which are objects of another package."""
    return type(value).__module__ == "uarray"


def _guard_cell(cell: types.CellType, trace: Trace) -> None:
    try:
        value = cell.cell_contents
    except ValueError:
        return
    if not isinstance(value, types.ModuleType):
        trace.reached.guard(cell, None, value)
        trace.reached.add(value)


def _refuse_global_stores(function: types.FunctionType) -> None:
    import dis

    stores = {dis.opmap[name] for name in _GLOBAL_STORES}
    if stores.isdisjoint(function.__code__.co_code[::2]):
        return
    for instruction in dis.get_instructions(function):
        if instruction.opname in _GLOBAL_STORES:
            raise UnsupportedSyntaxError(
                f"`{function.__name__}` assigns to the global `{instruction.argval}`, which compiled code cannot do",
                location=code_location(function.__code__, instruction.offset),
                help="return the new value",
            )
