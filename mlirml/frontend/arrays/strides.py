"""The strides that NumPy's views would have, computed while tracing: they decide if a reshape is a view or a copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirml.core.sizes import sampled
from mlirml.ir.text.sizes import common_groups
from mlirml.ops.shapes.views import Reshape, ViewOp


def joins_dimensions(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """True if a reshape joins dimensions longer than 1, so that strides decide if it is a view or a copy."""
    groups, long = common_groups(old, new), [n > 1 for n in sampled(old)]
    return groups is None or any(sum(long[i] for i in joined) > 1 for joined, _ in groups)


def strided(base: tuple[int, ...], strides: Sequence[int] | None, views: Sequence[ViewOp]) -> np.ndarray | None:
    """An array with the strides of a view of memory, not to be read; None where NumPy would copy.

    `base` is the shape of the memory, `strides` its strides in elements, None in C order.
    """
    base = sampled(base)
    strides = strides or [int(np.prod(base[i + 1 :], dtype=np.int64)) for i in range(len(base))]
    dummy: np.ndarray | None = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), base, strides)
    for step in views:
        if dummy is not None:
            dummy = _reshape_view(dummy, sampled(step.shape)) if isinstance(step, Reshape) else step.like(dummy)
    return dummy


def _reshape_view(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    view: np.ndarray = array.view()
    try:
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            view = view.reshape(shape, copy=False)
        else:
            view.shape = shape
    except (AttributeError, ValueError):
        return None
    return view
