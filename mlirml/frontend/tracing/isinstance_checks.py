"""`isinstance` in traced functions: a traced array has the class of the array that it will be at run time."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from mlirml.frontend.namespace.grids import real_classes
from mlirml.frontend.tracing.array import Traced

_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def isinstance(value: Any, classes: Any, /) -> bool:
    """As the builtin: traced arrays are `np.ndarray`, scalars are of NumPy's types or of Python's."""
    classes = real_classes(classes)
    if builtins.isinstance(value, classes):
        return True
    return builtins.isinstance(value, Traced) and issubclass(_runtime_class(value), classes)


def _runtime_class(value: Traced) -> type:
    if not value._scalar:
        return np.ndarray
    return _PYTHON[value.dtype.kind] if value._is_weak() else value.dtype.type
