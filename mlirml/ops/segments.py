"""`ufunc.reduceat`: reductions of segments of an axis, which begin at constant indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import IndexOutOfBoundsError, ShapeError
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, BOOL, COMPLEX, INTEGERS, NO_COMPLEX_ORDER, composed
from mlirml.ops.shapes.rearrange import known

_IDENTITIES: dict[np.ufunc, int] = {np.add: 0, np.multiply: 1, np.bitwise_xor: 0}
"""Those of functions for which an element counts as often as it is given."""
_NO_BITS = tuple((dtype, "complex numbers have no operations on bits") for dtype in COMPLEX)
_MOST = 4
"""Elements that are read for each element of the axis, beyond which segments are reduced one by one."""


def _reduced(ufunc: np.ufunc, array: Any, indices: Any, axis: Any, dtype: Any) -> Any:
    name = f"{ufunc.__name__}.reduceat"
    starts = known(name, "indices", indices).astype(np.int64)
    if starts.ndim != 1 or not array.ndim:
        raise ShapeError(f"{name}: takes an array with an axis, and a vector of indices")
    (place,) = normalized_axes(name, array.shape, axis)
    array = np.moveaxis(array, place, 0)
    count = array.shape[0]
    outside = starts[(starts < 0) | (starts >= count)]
    if outside.size:
        raise IndexOutOfBoundsError(f"{name}: index {outside[0]} is out of bounds for {count} elements")
    following = np.append(starts[1:], count)[: len(starts)]
    lengths = np.maximum(following - starts, 1)
    options: dict[str, Any] = {}
    if ufunc in (np.add, np.multiply):
        options["dtype"] = dtype
    elif dtype is not None:
        array = array.astype(dtype)
    return np.moveaxis(_of_segments(ufunc, array, starts, lengths, options), 0, place)


def _of_segments(ufunc: np.ufunc, array: Any, starts: np.ndarray, lengths: np.ndarray, options: dict[str, Any]) -> Any:
    """The reductions of segments of the first axis."""
    longest = int(lengths.max(initial=1))
    if len(starts) * longest > _MOST * array.shape[0] + 64:
        parts = [array[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist())]
        return np.stack([ufunc.reduce(part, axis=0, **options) for part in parts])
    if len(starts) and (lengths == longest).all() and (np.diff(starts) == longest).all():
        last = int(starts[-1]) + longest
        whole = array[int(starts[0]) : last].reshape((len(starts), longest, *array.shape[1:]))
        return ufunc.reduce(whole, axis=1, **options)
    steps = np.arange(longest)
    elements = array[starts[:, None] + np.minimum(steps, lengths[:, None] - 1)]
    if ufunc in _IDENTITIES:
        own = (steps < lengths[:, None]).reshape((len(starts), longest, *[1] * (array.ndim - 1)))
        elements = np.where(own, elements, np.asarray(_IDENTITIES[ufunc], array.dtype))
    return ufunc.reduce(elements, axis=1, **options)


def _define(ufunc: np.ufunc, doc: str, dtypes: tuple[str, ...] = ALL, **options: Any) -> None:
    def build(xp: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
        return _reduced(ufunc, xp.asarray(array), indices, axis, dtype)

    build.__name__, build.__doc__ = f"{ufunc.__name__}_reduceat", doc
    composed("reduction", ufunc.reduceat, dtypes=dtypes, **options)(build)


_define(np.add, "Sums of the segments of an axis that begin at constant indices.", tolerance=8)
_define(np.multiply, "Products of segments.", domain=(0.5, 1.5), tolerance=8)
_define(np.maximum, "The largest elements of segments; NaN wins.", gaps=NO_COMPLEX_ORDER)
_define(np.minimum, "The smallest elements of segments; NaN wins.", gaps=NO_COMPLEX_ORDER)
_define(np.logical_and, "Whether all elements of a segment are true.")
_define(np.logical_or, "Whether an element of a segment is true.")
_define(np.bitwise_and, "The ands of segments.", BOOL + INTEGERS, gaps=_NO_BITS)
_define(np.bitwise_or, "The ors of segments.", BOOL + INTEGERS, gaps=_NO_BITS)
_define(np.bitwise_xor, "The exclusive ors of segments.", BOOL + INTEGERS, gaps=_NO_BITS)
