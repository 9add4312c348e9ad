"""The class `np.ndarray` in traced functions: its constructor, and `isinstance`, by which a traced array is one."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.tracer import Tracer
from mlirml.frontend.frames import at_user_line

_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class Constructor:
    """Replaces the class `np.ndarray`: a call creates an array of the program, by `empty`."""

    def __init__(self, empty: Callable[[Any, Any, str], Any]) -> None:
        self._empty = empty

    def __call__(
        self,
        shape: Any,
        dtype: Any = float,
        buffer: None = None,
        offset: int = 0,
        strides: None = None,
        order: Any = None,
    ) -> Any:
        if buffer is not None or offset or strides is not None:
            with at_user_line():
                raise UnsupportedSyntaxError(
                    "`np.ndarray` of a buffer, or with strides, is not compiled", help="slice or reshape the array"
                )
        return self._empty(shape, dtype, order or "C")

    def __getattr__(self, name: str) -> Any:
        found = getattr(np.ndarray, name)
        if not builtins.isinstance(found, types.MethodDescriptorType):
            return found

        def method(array: Any, /, *args: Any, **kwargs: Any) -> Any:
            known = builtins.isinstance(array, (Tracer, np.ndarray))
            return (getattr(array, name) if known else partial(found, array))(*args, **kwargs)

        return method


class TypeOf:
    """Replaces `type`: values of the program are of NumPy's types or of Python's; `array` gives that of arrays."""

    def __init__(self, array: Callable[[], Any]) -> None:
        self._array = array

    def __call__(self, value: Any, *parts: Any, **options: Any) -> Any:
        if parts or options:
            return builtins.type(value, *parts, **options)
        found = _runtime_class(value) if builtins.isinstance(value, Tracer) else value.__class__
        return self._array() if found is np.ndarray else found

    def __getattr__(self, name: str) -> Any:
        return getattr(builtins.type, name)


def real_classes(classes: Any) -> Any:
    """The second argument of `isinstance`, with the real classes for those that are replaced."""
    if builtins.isinstance(classes, tuple):
        return tuple(map(real_classes, classes))
    if builtins.isinstance(classes, TypeOf):
        return builtins.type
    return np.ndarray if builtins.isinstance(classes, Constructor) else classes


def isinstance(value: Any, classes: Any, /) -> bool:
    """As the builtin: traced arrays are `np.ndarray`, scalars are of NumPy's types or of Python's."""
    classes = real_classes(classes)
    if builtins.isinstance(value, classes):
        return True
    return builtins.isinstance(value, Tracer) and issubclass(_runtime_class(value), classes)


def _runtime_class(value: Tracer) -> type:
    if not value._scalar:
        return np.ndarray
    return _PYTHON[value.dtype.kind] if value._is_weak() else value.dtype.type
