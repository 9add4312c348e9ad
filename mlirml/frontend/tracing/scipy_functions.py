"""SciPy's ufuncs that equal ufuncs of NumPy: they are compiled as those."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

NUMPY: dict[str, np.ufunc] = {
    "cbrt": np.cbrt, "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "round": np.rint
}  # fmt: skip
"""NumPy's ufunc for each name in `scipy.special`; `sinc` is NumPy's own function there."""


def is_special(ufunc: np.ufunc) -> bool:
    """True for a ufunc of `scipy.special`, without importing that."""
    module = sys.modules.get("scipy.special")
    return module is not None and getattr(module, ufunc.__name__, None) is ufunc


def converted(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Iterator[Any]:
    """The inputs in the dtypes that SciPy computes in: it has no function of float16."""
    for value in inputs:
        known = hasattr(value, "dtype") and value.dtype.kind != "c"
        yield value.astype(ufunc(np.zeros(0, value.dtype)).dtype) if known else value
