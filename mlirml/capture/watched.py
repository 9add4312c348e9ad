"""Real arrays as a traced function sees them: what NumPy computes of them while tracing, the program depends on.

An array that only meets traced ones is an argument of the program, which reads it anew at each call. One whose elements
are read while tracing, as in `x * w[0]` or `x + np.sum(w)`, is compared with what it held before each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlirml.capture.array import Traced

# What tells nothing of the elements.
_METADATA = frozenset(
    [
        "shape",
        "dtype",
        "ndim",
        "size",
        "itemsize",
        "nbytes",
        "flags",
        "strides",
        "base",
        "device",
        "T",
        "mT",
        "real",
        "imag",
        "reshape",
        "transpose",
        "squeeze",
        "swapaxes",
        "view",
        "record",
        "plain",
        "store",
        "__class__",
        "__array_priority__",
        "__array_ufunc__",
        "__array_function__",
        "__array_finalize__",
        "__array_wrap__",
        "__array_interface__",
        "__array_struct__",
        "__dict__",
    ]
)
_OF_SHAPES = (np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like, np.may_share_memory)


class Record:
    """An array of the user's, and whether its elements were read."""

    def __init__(self, array: np.ndarray, refuse: Callable[[], Exception]) -> None:
        self.array, self.refuse, self.read = array, refuse, False


class Watched(np.ndarray):
    """A view of an array which notes that elements are read, and refuses stores."""

    record: Record | None

    @classmethod
    def of(cls, array: np.ndarray, refuse: Callable[[], Exception]) -> Watched:
        """A view of a whole array; `refuse` makes the error for stores."""
        made = array.view(cls)
        made.record = Record(array, refuse)
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.record = getattr(source, "record", None)

    def __getattribute__(self, name: str) -> Any:
        if name not in _METADATA:
            record = np.ndarray.__getattribute__(self, "record")
            if record is not None:
                record.read = True
                return getattr(np.ndarray.view(self, np.ndarray), name)
        return np.ndarray.__getattribute__(self, name)

    def plain(self) -> np.ndarray:
        """The array itself, whose elements are read."""
        if self.record is not None:
            self.record.read = True
        return self.view(np.ndarray)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(x, Traced) for x in (*inputs, *(options.get("out") or ()))):
            return NotImplemented
        for out in options.get("out") or ():
            if isinstance(out, Watched) and out.record is not None:
                raise out.record.refuse()
        return getattr(ufunc, method)(*map(_plain, inputs), **{name: _plain(x) for name, x in options.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Traced) for kind in types):
            return NotImplemented
        if function in _OF_SHAPES:
            return function(*(x.view(np.ndarray) if isinstance(x, Watched) else x for x in args), **kwargs)
        return function(*map(_plain, args), **{name: _plain(x) for name, x in kwargs.items()})

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(_plain(index))
        if isinstance(found, Watched) and np.may_share_memory(found.view(np.ndarray), self.view(np.ndarray)):
            return found
        return self.plain()[_plain(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.record is not None and not isinstance(value, Traced):  # which has an error of its own
            raise self.record.refuse()
        super().__setitem__(index, value)

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

    def __deepcopy__(self, memo: Any) -> np.ndarray:
        return np.array(self.plain())


def _plain(value: Any) -> Any:
    if isinstance(value, Watched):
        return value.plain()
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value


def original(value: Any) -> Any:
    """The user's array for one of these; anything else as it is."""
    if not isinstance(value, Watched) or value.record is None:
        return value
    array, part = value.record.array, value.view(np.ndarray)
    same = part.ctypes.data == array.ctypes.data and part.shape == array.shape and part.strides == array.strides
    return array if same and part.dtype == array.dtype else part
