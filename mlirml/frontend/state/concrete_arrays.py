"""Proxies for real arrays in traced functions, which record if tracing depends on elements.

An array that is combined with traced ones only is an argument of the program, which reads it anew at each call. One
whose elements are read while tracing, as in `x * w[0]` or `x + np.sum(w)`, is compared with its former contents before
each call.

The proxy has no memory of its own, so that no read of elements is unnoticed: code that needs the memory, in Python or
in C, gets the array itself by `__array__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.array_class import real_classes
from mlirml.frontend.arrays.function_proxy import original_function

# Attributes that do not depend on the elements.
_METADATA = frozenset(
    [
        *("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "flags", "strides", "device"),
        *("T", "mT", "real", "imag", "reshape", "transpose", "squeeze", "swapaxes"),
    ]
)
_OF_SHAPES = (np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like, np.may_share_memory)


class Record:
    """An array of the user's, and a flag that is set when its elements are read."""

    def __init__(self, array: np.ndarray, refuse: Callable[[np.ndarray], BaseException]) -> None:
        self.array, self._refuse, self.read = array, refuse, False

    def refuse(self) -> BaseException:
        """The exception to raise for a store into the array."""
        return self._refuse(self.array)


class Watched(NDArrayOperatorsMixin):
    """A proxy for an array or a view of one, which records reads of elements, and refuses stores."""

    __slots__ = ("_array", "record")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 0.0

    def __init__(self, array: np.ndarray, record: Record) -> None:
        self._array, self.record = array, record

    @classmethod
    def of(cls, array: np.ndarray, refuse: Callable[[np.ndarray], BaseException]) -> Watched:
        """The proxy of a whole array; `refuse` makes the exception for stores."""
        return cls(array, Record(array, refuse))

    @property
    def __class__(self) -> Any:
        return np.ndarray

    @__class__.setter
    def __class__(self, class_: Any) -> None:
        raise TypeError("the class of an array stays")

    def __getattr__(self, name: str) -> Any:
        if name in ("__array_interface__", "__array_struct__"):  # have no words for bf16; NumPy asks `__array__` next
            raise AttributeError(name)
        if name not in _METADATA:
            return getattr(self.plain(), name)
        found = getattr(self._array, name)
        if not callable(found):
            return self._part(found)
        return lambda *args, **options: self._part(found(*args, **options))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Watched.__slots__:
            raise self.record.refuse()
        object.__setattr__(self, name, value)

    def _part(self, value: Any) -> Any:
        """A view as a proxy of its own; anything else as it is, with its read recorded."""
        if not isinstance(value, np.ndarray):
            return value
        if not np.may_share_memory(value, self._array):
            self.record.read = True
            return value
        return Watched(value, self.record)

    def plain(self) -> np.ndarray:
        """The array itself, with a read of its elements recorded."""
        self.record.read = True
        return self._array

    def original(self) -> np.ndarray:
        """The user's array, or the view of it, without recording a read."""
        array, part = self.record.array, self._array
        same = part.ctypes.data == array.ctypes.data and part.shape == array.shape and part.strides == array.strides
        return array if same and part.dtype == array.dtype else part

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.plain(), dtype) if copy else np.asarray(self.plain(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(x, Traced) for x in (*inputs, *(options.get("out") or ()))):
            return NotImplemented
        for out in options.get("out") or ():
            if type(out) is Watched:
                raise out.record.refuse()
        return getattr(ufunc, method)(*map(_plain, inputs), **{name: _plain(x) for name, x in options.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(class_, Traced) for class_ in types):
            return NotImplemented
        if function in _OF_SHAPES:
            return function(*map(original, args), **{name: original(x) for name, x in kwargs.items()})
        return function(*map(_plain, args), **{name: _plain(x) for name, x in kwargs.items()})

    def __getitem__(self, index: Any) -> Any:
        trace = _trace_of(index)
        if trace is not None:
            return trace.array(self, copy=False)[index]
        found = self._array[_plain(index)]
        if isinstance(found, np.ndarray) and np.may_share_memory(found, self._array):
            return Watched(found, self.record)
        self.record.read = True
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self.record.refuse()

    def view(self, *classes: Any, **named: Any) -> Any:
        return self._part(self._array.view(*map(real_classes, classes), **named))

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.plain()) if self.ndim < 2 else (self[i] for i in range(len(self)))

    def __float__(self) -> float:
        return float(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    def __complex__(self) -> complex:
        return complex(self.plain())

    def __bool__(self) -> bool:
        return bool(self.plain())

    def __index__(self) -> int:
        return self.plain().__index__()

    def __bytes__(self) -> bytes:
        return bytes(self.plain())

    def __contains__(self, item: Any) -> bool:
        return item in self.plain()

    def __repr__(self) -> str:
        return repr(self.plain())

    def __str__(self) -> str:
        return str(self.plain())

    def __format__(self, form: str) -> str:
        return format(self.plain(), form)

    def __reduce__(self) -> Any:
        return self.plain().__reduce__()

    def __copy__(self) -> np.ndarray:
        return np.array(self.plain())

    def __deepcopy__(self, memo: Any) -> np.ndarray:
        return np.array(self.plain())


def _trace_of(index: Any) -> Any:
    """The trace of the first dynamic number or array in an index; None if there is none."""
    if isinstance(index, Traced):
        return index._trace if index._known() is None else None
    parts = (index.start, index.stop, index.step) if isinstance(index, slice) else index
    if not isinstance(parts, (tuple, list)):
        return None
    return next((trace for part in parts if (trace := _trace_of(part)) is not None), None)


def _plain(value: Any) -> Any:
    if type(value) is Watched:
        return value.plain()
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value


def original(value: Any) -> Any:
    """The user's array or function for a proxy; anything else as it is."""
    return value.original() if type(value) is Watched else original_function(value)
