"""NumPy's operators, methods and protocols for `Array`: each use is gathered as an operation."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlirml.core.tracebacks import shorten, without_own_frames
from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.arrays.operators import BINARY, ONE_WAY
from mlirml.frontend.frames import user_location
from mlirml.lazy import calls, indexing
from mlirml.lazy.gather import (
    NUMBERS,
    call_with_template,
    copied,
    gathered,
    immutable,
    on_device,
    on_host,
)
from mlirml.lazy.inference import NotCompiledError, number_key
from mlirml.runtime.array import Array
from mlirml.runtime.node import NEXT_SERIAL, ArrayType, Node

_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj",
    "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "transpose", "var",
)  # fmt: skip
_STORES = ("fill", "itemset", "partition", "put", "resize", "setfield", "sort")
_OF_HOST = ("tobytes", "tolist")
_OPERATORS = {*BINARY.values(), *ONE_WAY.values()}
_UFUNCS: dict[np.ufunc, calls.Call] = {}
_PRIORITY = 100


def install() -> None:
    """Give `Array` its interface."""
    calls.Call.evaluator = staticmethod(_evaluate)
    for name, ufunc in BINARY.items():
        call = calls.operator_call(ufunc)
        setattr(Array, f"__{name}__", _binary(call, ufunc))
        setattr(Array, f"__r{name}__", _reflected(call, ufunc))
    for name, ufunc in ONE_WAY.items():
        call = calls.operator_call(ufunc)
        of_one = ufunc.nin == 1
        setattr(Array, f"__{name}__", _unary(call, ufunc) if of_one else _binary(call, ufunc))
    for name in _METHODS:
        setattr(Array, name, _method(name))
    for name in _STORES:
        setattr(Array, name, _store)
    for name in _OF_HOST:
        setattr(Array, name, _of_host(name))
    for name in ("T", "mT", "real", "imag"):
        setattr(Array, name, property(_attribute(name), doc=f"`numpy.ndarray.{name}`."))
    for name, value in _OWN.items():
        setattr(Array, name, value)


def _evaluate(nodes: list[Node]) -> None:
    from mlirml.lazy.evaluation import evaluate

    evaluate(nodes)


def _binary(call: calls.Call, ufunc: np.ufunc) -> Callable[[Array, Any], Any]:
    results, new, next_serial = call.results, Array.__new__, NEXT_SERIAL

    def operate(self: Array, other: Any) -> Any:
        node = self._node
        if type(other) is Array:
            operand = other._node
            found = results.get((node.type, operand.type))
        else:
            operand = other
            kind = type(other)
            found = results.get((node.type, float if kind is float else number_key(other, False)))
        try:
            if type(found) is ArrayType:
                array = new(Array)
                array._node = Node(call, (node, operand), found, next_serial())
                return array
            return _operated(call, ufunc, self, other, False)
        except Exception as error:
            shorten(error)
            raise

    operate.__name__ = operate.__qualname__ = ufunc.__name__
    return operate


def _reflected(call: calls.Call, ufunc: np.ufunc) -> Callable[[Array, Any], Any]:
    results, new, next_serial = call.results, Array.__new__, NEXT_SERIAL

    def operate(self: Array, other: Any) -> Any:
        node = self._node
        found = results.get((number_key(other, False), node.type))
        try:
            if type(found) is ArrayType:
                array = new(Array)
                array._node = Node(call, (other, node), found, next_serial())
                return array
            return _operated(call, ufunc, self, other, True)
        except Exception as error:
            shorten(error)
            raise

    return operate


def _unary(call: calls.Call, ufunc: np.ufunc) -> Callable[[Array], Any]:
    def operate(self: Array) -> Any:
        try:
            return gathered(call, (self._node,))
        except NotCompiledError:
            return on_device(ufunc(self.numpy()), self)
        except Exception as error:
            shorten(error)
            raise

    return operate


def _operated(call: calls.Call, ufunc: np.ufunc, array: Array, other: Any, reflected: bool) -> Any:
    """An operator on operands of types that it has not seen yet, or of NumPy."""
    operand = _operand(array, other)
    if operand is None:
        return NotImplemented
    operands = (operand, array._node) if reflected else (array._node, operand)
    try:
        return gathered(call, operands)
    except NotCompiledError:
        values = (on_host(other), array.numpy()) if reflected else (array.numpy(), on_host(other))
        return on_device(ufunc(*values), array)


def _operand(array: Array, other: Any) -> Any:
    """A node or a number; None for an object with operators of its own, or of no use."""
    if type(other) is Array:
        return other._node
    if type(other) in NUMBERS or isinstance(other, np.generic):
        return other
    if _outranks(type(other)) or getattr(other, "__array_ufunc__", 0) is None:
        return None
    if isinstance(other, (np.ndarray, list, tuple)):
        from mlirml.lazy.creation import asarray

        return copied(other, array) if isinstance(other, np.ndarray) else asarray(other, target=array.type.target)._node
    return None


def _outranks(class_: type) -> bool:
    """True for the class of objects whose own operators take arrays, such as traced arrays."""
    priority = getattr(class_, "__array_priority__", 0)
    return isinstance(priority, (int, float)) and priority > _PRIORITY


def _method(name: str) -> Callable[..., Any]:
    plain = calls.method_call(name, calls_template((), {}))

    @without_own_frames
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            try:
                return gathered(plain, (self._node,))
            except NotCompiledError:
                return on_device(getattr(self.numpy(), name)(), self)
        out = _checked_out(kwargs)
        result = call_with_template(
            self,
            (args, kwargs),
            lambda template: calls.method_call(name, template),
            lambda: getattr(self.numpy(), name)(*on_host(args), **on_host(kwargs)),
            (self._node,),
        )
        return result if out is None else _stored_out(out, result)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.ndarray.{name}`."
    return method


def calls_template(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The template of arguments without arrays."""
    from mlirml.lazy.templates import taken_apart

    return taken_apart((args, kwargs), [], lambda x: None)


def _attribute(name: str) -> Callable[[Array], Any]:
    call = calls.attribute_call(name)

    @without_own_frames
    def attribute(self: Array) -> Any:
        return gathered(call, (self._node,))

    return attribute


def _of_host(name: str) -> Callable[..., Any]:
    def method(self: Array, *args: Any) -> Any:
        return getattr(self.numpy(), name)(*args)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.ndarray.{name}`, which waits for the elements."
    return method


@without_own_frames
def _store(self: Array, *args: Any, **kwargs: Any) -> Any:
    """An error: arrays do not change."""
    raise immutable()


# NumPy's protocols.


@without_own_frames
def _array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method == "__call__" and not kwargs and (operands := _plain_operands(inputs)) is not None:
        return _of_ufunc(ufunc, self, inputs, operands)
    out = _checked_out(kwargs)
    if any(_outranks(type(x)) for x in inputs):
        return NotImplemented
    first = next((x for x in inputs if type(x) is Array), self)
    if method == "at" and type(inputs[0]) is Array:
        raise immutable()
    result = call_with_template(
        first,
        (inputs, kwargs),
        lambda template: calls.ufunc_call(ufunc, method, template),
        lambda: getattr(ufunc, method)(*on_host(inputs), **on_host(kwargs)),
        changes=method == "at",
    )
    return result if out is None else _stored_out(out, result)


def _plain_operands(inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Arrays as nodes, and numbers; None where there is anything else."""
    operands = []
    for x in inputs:
        if type(x) is Array:
            operands.append(x._node)
        elif type(x) in NUMBERS or isinstance(x, np.generic):
            operands.append(x)
        else:
            return None
    return tuple(operands)


def _of_ufunc(ufunc: np.ufunc, like: Array, inputs: tuple[Any, ...], operands: tuple[Any, ...]) -> Any:
    """A ufunc of arrays and numbers; those that are operators share their programs."""
    call = _UFUNCS.get(ufunc)
    if call is None:
        is_operator = ufunc in _OPERATORS and ufunc is not np.power  # which squares bools as an operator
        call = calls.operator_call(ufunc) if is_operator else calls.plain_ufunc_call(ufunc)
        _UFUNCS[ufunc] = call
    try:
        return gathered(call, operands)
    except NotCompiledError:
        return on_device(ufunc(*map(on_host, inputs)), like)


@without_own_frames
def _array_function(self: Array, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    if any(map(_outranks, types)):
        return NotImplemented
    if function in (np.array2string, np.array_repr, np.array_str):
        return function(*on_host(tuple(args)), **on_host(kwargs))
    kwargs = dict(kwargs)
    out = _checked_out(kwargs)
    result = call_with_template(
        self,
        (tuple(args), kwargs),
        lambda template: calls.function_call(function, template),
        lambda: function(*on_host(tuple(args)), **on_host(kwargs)),
        changes=bool(args) and isinstance(args[0], np.ndarray),
    )
    return result if out is None else _stored_out(out, result)


def _checked_out(kwargs: dict[str, Any]) -> Any:
    """The argument `out`, taken out of the keyword arguments; raises the error of a store for an `Array`."""
    out = kwargs.pop("out", None)
    if any(type(x) is Array for x in (out if isinstance(out, tuple) else (out,))):
        raise immutable()
    return out


def _stored_out(out: Any, result: Any) -> Any:
    """A result stored into arrays of NumPy, which are returned."""
    outs = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(outs, results):
        if target is not None:
            np.copyto(target, np.asarray(value), casting="same_kind")
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


# Indexing and iteration.


@without_own_frames
def _getitem(self: Array, index: Any) -> Any:
    return indexing.elements(self, index)


@without_own_frames
def _setitem(self: Array, index: Any, value: Any) -> None:
    raise immutable()


@without_own_frames
def _iter(self: Array) -> Iterator[Array]:
    if not self.shape:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(self.shape[0]))


def _at(self: Array) -> indexing.At:
    """`x.at[index].set(values)`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max`, `get`: a new array."""
    return indexing.At(self)


def _contains(self: Array, value: Any) -> bool:
    return bool(np.any(self == value))


# The array API standard.


def _array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The module `mlirml.numpy`; ValueError for a later standard."""
    from mlirml.frontend.arrays.array import STANDARDS

    if api_version not in (None, *STANDARDS):
        message = f"the array API standard {api_version!r} is none of {', '.join(STANDARDS)}"
        raise ShapeError(message, location=user_location(1))
    return importlib.import_module("mlirml.numpy")


def _to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """The array on another device, as `to`."""
    return self.to(device)


def _round(self: Array, digits: int | None = None) -> Any:
    return round(self.item(), digits)


def _complex(self: Array) -> complex:
    return complex(self.item())


def _format(self: Array, specification: str) -> str:
    return format(self.numpy()[()] if not self.shape else self.numpy(), specification) if specification else str(self)


def _str(self: Array) -> str:
    return str(self.numpy())


class Flat:
    """`x.flat`: the elements of an array in C order, as an iterator with indices."""

    def __init__(self, array: Array) -> None:
        self._elements: Any = array.ravel()

    def __getitem__(self, key: Any) -> Any:
        return self._elements[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._elements[key] = value

    def __len__(self) -> int:
        return int(self._elements.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self._elements.numpy(), dtype)

    def copy(self) -> Any:
        """The elements as an array."""
        return self._elements


def _set_flat(self: Array, value: Any) -> None:
    self.ravel()[...] = value


def _itself(self: Array, memo: Any = None) -> Array:
    """The array itself: it does not change."""
    return self


def _unordered(self: Array) -> int:
    raise TypeError("unhashable type: 'mlirml.Array'")


def _view(self: Array, *args: Any) -> Any:
    raise ArgumentError(
        "the bytes of an `ml.Array` cannot be read as another dtype",
        location=user_location(1),
        help="convert with `x.astype(...)`",
    )


_OWN: dict[str, Any] = {
    "__array_priority__": _PRIORITY,
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "__array_namespace__": _array_namespace,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__delitem__": _setitem,
    "__iter__": _iter,
    "__contains__": _contains,
    "__round__": _round,
    "__complex__": _complex,
    "__format__": _format,
    "__str__": _str,
    "__copy__": _itself,
    "__deepcopy__": _itself,
    "__hash__": _unordered,
    "__divmod__": lambda self, other: (self // other, self % other),
    "__rdivmod__": lambda self, other: (other // self, other % self),
    "at": property(_at),
    "to_device": _to_device,
    "view": _view,
    "itemsize": property(operator.attrgetter("dtype.itemsize"), doc="Bytes of one element."),
    "flat": property(Flat, _set_flat, doc="The elements in C order, which indices select."),
}
