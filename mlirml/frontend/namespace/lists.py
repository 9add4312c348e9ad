"""NumPy's functions of lists with traced items, as `np.sum([a, b])`, which NumPy itself would convert to an array."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.function_proxy import FunctionProxy
from mlirml.frontend.arrays.indexing import is_dynamic, with_arrays
from mlirml.frontend.arrays.list_parts import PartedList
from mlirml.frontend.frames import at_user_line
from mlirml.ops import BY_FUNCTION
from mlirml.ops.reductions import normalized_axes

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_METHODS = {"reduce": 1, "accumulate": 1, "reduceat": 1, "outer": 2}
_OPERANDS = frozenset(["a", "a1", "a2", "b", "x", "x1", "x2", "val", "weights"])  # NumPy's names of array parameters


def taking_lists(trace: Trace, function: Any) -> Any:
    """A NumPy function that accepts lists with traced items as arrays; anything else unchanged.

    Functions of sequences of arrays accept them already.
    """
    if function in _OF_SEQUENCES:
        return _OfSequence(function)
    operands = _operands(function) or (_named_operands(function) if function in trace.functions else None)
    return function if operands is None else OfLists(trace, function, *operands)


class _OfSequence(FunctionProxy):
    """A proxy for a NumPy function of a sequence of arrays, which may be a list with its items in parts."""

    def __call__(self, arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(arrays, PartedList):
            return self._function(arrays, *args, **kwargs)
        with at_user_line():
            function = _OF_SEQUENCES[self._function] if arrays.has_rows else self._function
            return function(arrays, *args, **kwargs)


@functools.cache
def _operands(function: Any) -> tuple[frozenset[int], frozenset[str]] | None:
    """The positions and the names of the array parameters of an operation; None for another function."""
    if isinstance(function, np.ufunc):
        return frozenset(range(function.nin)), frozenset()
    if function is np.einsum:
        return frozenset(range(1, 64)), frozenset()
    record = BY_FUNCTION.get(function)
    if record is not None and record.arrays > 0:
        names = list(record.signature.parameters)[: record.arrays]
        return frozenset(range(record.arrays)), frozenset((*names, *record.array_options))
    return None


@functools.cache
def _named_operands(function: Any) -> tuple[frozenset[int], frozenset[str]]:
    """The same for a function that is no operation, by NumPy's names."""
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    return frozenset(i for i, name in enumerate(names) if name in _OPERANDS), _OPERANDS


class OfLists(FunctionProxy):
    """A proxy for a NumPy function, or for a method of a ufunc, inside of a traced function."""

    def __init__(
        self, trace: Trace, function: Callable[..., Any], positions: Container[int], names: Container[str] = ()
    ) -> None:
        super().__init__(function)
        self._trace, self._positions, self._names = trace, positions, names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(with_arrays, args)), {name: with_arrays(x) for name, x in kwargs.items()}
        if self._function is np.einsum and args and isinstance(args[0], str):  # its other lists are subscripts
            args = tuple(np.asarray(x) if type(x) in (list, tuple) and not _has_traced(x) else x for x in args)
        if any(map(_has_traced, (*args, *kwargs.values()))):
            with at_user_line():
                args = tuple(self._array(x) if i in self._positions else x for i, x in enumerate(args))
                kwargs = {name: self._array(x) if name in self._names else x for name, x in kwargs.items()}
        elif self._hides_traced(args, kwargs):
            args = (self._trace.array(args[0], copy=False), *args[1:])
        return self._function(*args, **kwargs)

    def _hides_traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """True where NumPy may not see that an argument is traced: `np.take` and `np.repeat` ask one only."""
        is_operation = self._function in BY_FUNCTION and not isinstance(self._function, np.ufunc)
        if not is_operation or 0 not in self._positions or not args:
            return False
        arrays = (np.ndarray, np.generic, int, float, complex) if self._function is np.repeat else np.ndarray
        return isinstance(args[0], arrays) and any(isinstance(x, Traced) for x in (*args[1:], *kwargs.values()))

    def _array(self, x: Any) -> Any:
        if isinstance(x, PartedList):
            return x.array()
        if not _has_traced(x):
            return x
        return np.stack(x) if any(map(is_dynamic, x)) else self._trace.array(x)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return OfLists(self._trace, value, range(_METHODS[name])) if name in _METHODS else value


class Submodule:
    """A proxy for a module of NumPy's, `np.linalg`, inside of a traced function."""

    def __init__(self, trace: Trace, module: types.ModuleType) -> None:
        self._trace, self._module = trace, module

    def __getattr__(self, name: str) -> Any:
        return taking_lists(self._trace, getattr(self._module, name))


def _has_traced(x: Any) -> bool:
    """True if a list or tuple holds a traced array, however deep."""
    if isinstance(x, PartedList) and x.has_rows:
        return True
    if not isinstance(x, (list, tuple)):
        return False
    return any(isinstance(item, Traced) or is_dynamic(item) or _has_traced(item) for item in x)


def _stacked(items: PartedList, axis: int = 0, **options: Any) -> Any:
    """`np.stack` of a list."""
    found = items.array()
    if options:
        found = found.astype(options.pop("dtype"), casting=options.pop("casting", "same_kind"), **options)
    return np.moveaxis(found, 0, axis) if axis else found


def _concatenated(items: PartedList, axis: int | None = 0, **options: Any) -> Any:
    """`np.concatenate` of a list of arrays."""
    array = items.array()
    if options or array.ndim < 2:
        return np.concatenate(items.items(), axis, **options)
    if axis is None:
        return array.reshape(-1)
    with at_user_line():
        (axis,) = normalized_axes("concatenate", array.shape[1:], axis)
    sizes = list(array.shape[1:])
    sizes[axis] *= array.shape[0]
    return np.moveaxis(array, 0, axis).reshape(sizes)


def _vertical(items: PartedList, **options: Any) -> Any:
    """`np.vstack` of a list."""
    array = items.array()
    if options or array.ndim > 2:
        return _concatenated(items, 0, **options)
    return array if array.ndim == 2 else array[:, None]


def _horizontal(items: PartedList, **options: Any) -> Any:
    """`np.hstack` of a list."""
    array = items.array()
    return array if array.ndim == 1 and not options else _concatenated(items, 0 if array.ndim == 2 else 1, **options)


_OF_SEQUENCES: dict[Any, Callable[..., Any]] = {
    np.stack: _stacked,
    np.concatenate: _concatenated,
    np.vstack: _vertical,
    np.hstack: _horizontal,
}
"""NumPy's functions of lists of arrays, for a list whose items are rows."""
