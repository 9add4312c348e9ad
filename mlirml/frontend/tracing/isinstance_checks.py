"""`isinstance` inside of a traced function: a traced array is what it will be when the program runs."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from mlirml.frontend.namespace.grids import real_kinds
from mlirml.frontend.tracing.array import Traced

_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def isinstance(value: Any, kinds: Any, /) -> bool:
    """As the builtin: traced arrays are `np.ndarray`, scalars are of NumPy's types or of Python's."""
    kinds = real_kinds(kinds)
    if builtins.isinstance(value, kinds):
        return True
    return builtins.isinstance(value, Traced) and issubclass(_kind(value), kinds)


def _kind(value: Traced) -> type:
    if not value._scalar:
        return np.ndarray
    return _PYTHON[value.dtype.kind] if value._is_weak() else value.dtype.type
