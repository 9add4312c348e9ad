"""The properties of an argument that a program is compiled for: shape, dtype, and whether it was a Python number."""

from __future__ import annotations

import operator
import types
from enum import Enum
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Dim, Size, same_shape
from mlirml.errors import ArgumentError, DTypeError, ShapeError, SourceLocation
from mlirml.frontend.advice import STATIC
from mlirml.frontend.user_objects import attributes_of, is_random
from mlirml.ir.text.dtypes import check_rank, describe, is_supported
from mlirml.runtime.array import Array


@dataclass(frozen=True)
class TensorSpec:
    """Shape and dtype of an array, which `trace`, `lower` and `Compiled.ir` take in the place of the array.

    `weak` marks a Python bool, int, float or complex, which gives way in promotion; `scalar` a NumPy scalar, which,
    unlike an array of no dimension, cannot be stored into. A size may be a `Dim`, or derived from some. Raises
    `DTypeError` for a dtype that is not compiled.

    >>> import numpy as np, mlirml as ml
    >>> str(ml.TensorSpec((4, 8), np.float32))
    'f32[4,8]'
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False
    scalar: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(extent(n) for n in self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        _check_dtype(self.dtype, "TensorSpec")

    def __eq__(self, other: object) -> bool:
        if type(other) is not TensorSpec:
            return NotImplemented
        # Sizes are compared as polynomials: equal ones are equal for all values.
        flags = (self.dtype, self.weak, self.scalar) == (other.dtype, other.weak, other.scalar)
        return flags and same_shape(self.shape, other.shape)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak, self.scalar))

    def restored(self, result: np.ndarray) -> Any:
        """An output of a program as the Python object that this spec describes."""
        return result.item() if self.weak else result[()] if self.scalar else result

    def __str__(self) -> str:
        if self.scalar:
            return f"NumPy {self.dtype.name}"
        return f"Python {self.dtype.name.rstrip('0123456789')}" if self.weak else describe(self.shape, self.dtype)


def extent(size: Any) -> Any:
    """The size of a dimension: an integer or a dynamic size."""
    if isinstance(size, (Dim, Size)):
        return size.size if isinstance(size, Dim) else size
    try:
        number = operator.index(size)
    except TypeError:
        number = -1
    if number < 0:
        raise ShapeError(f"TensorSpec: a size is an integer of at least 0, got {size!r}")
    return number


def spec_of(leaf: Any, path: str) -> TensorSpec:
    """The spec of one argument leaf; an error names the argument by `path`."""
    if isinstance(leaf, TensorSpec):
        return leaf
    if isinstance(leaf, Array):
        return TensorSpec(leaf.shape, leaf.dtype)
    if type(leaf) in (bool, int, float, complex):
        return TensorSpec((), np.dtype(type(leaf)), weak=True)
    array = as_array(leaf, path)
    check_rank(array.shape, f"argument `{path}`")
    return TensorSpec(array.shape, array.dtype, scalar=isinstance(leaf, np.generic))


def is_static(leaf: Any) -> bool:
    """True if an argument leaf is neither an array nor a number: a name, a function, a dtype, an object or the like.

    Such a leaf belongs to the structure of the call: the function is traced once for each value of it.
    """
    if isinstance(leaf, (str, bytes, np.dtype, Enum)) or leaf is Ellipsis:
        return True
    if isinstance(leaf, (type, types.ModuleType)):
        return True
    if isinstance(leaf, np.ndarray) or hasattr(leaf, "__array__") or hasattr(leaf, "__array_interface__"):
        return False
    if callable(leaf):
        return True
    return attributes_of(leaf) is not None and not _has_buffer(leaf)


def refuse_random(value: Any, path: str, location: SourceLocation | None = None) -> None:
    """Refuse an argument that draws random numbers: it would draw them once, when the function is traced."""
    if is_random(value):
        raise ArgumentError(
            f"argument `{path}` is a {type(value).__name__}, whose numbers would be drawn once, when it is traced",
            location=location,
            help="draw outside, and pass the numbers as an argument",
        )


def as_array(leaf: Any, path: str) -> np.ndarray:
    """An argument leaf as a NumPy array without copying; refuses values that no array represents exactly."""
    if has_own_arithmetic(leaf):
        raise ArgumentError(
            f"argument `{path}` is a {type(leaf).__name__}, whose arithmetic differs from plain arrays",
            help="pass `np.asarray(x)`, for a masked array `x.filled(value)` and the mask",
        )
    refuse_random(leaf, path)
    arrayish = isinstance(leaf, (np.ndarray, np.generic, memoryview, bytearray)) or hasattr(leaf, "__array__")
    if not arrayish and not hasattr(leaf, "__array_interface__") and not _has_buffer(leaf):
        raise ArgumentError(
            f"argument `{path}` is a {type(leaf).__name__}, not an array, a number or a container of them",
            help=f"pass an array, or {STATIC}",
        )
    array = np.asarray(leaf)
    _check_dtype(array.dtype, f"argument `{path}`")
    return array


def has_own_arithmetic(x: Any) -> bool:
    """True if x is a masked array or a matrix. Naming their classes would import `numpy.ma`, which takes 30 ms."""
    return isinstance(x, np.ndarray) and any(
        c.__name__ in ("MaskedArray", "matrix") and c.__module__.startswith("numpy") for c in type(x).__mro__
    )


def _has_buffer(leaf: Any) -> bool:
    if isinstance(leaf, (str, bytes)):
        return False
    try:
        memoryview(leaf).release()
    except (TypeError, BufferError):
        return False
    return True


def _check_dtype(dtype: np.dtype, what: str) -> None:
    if is_supported(dtype):
        return
    if not dtype.isnative:
        raise DTypeError(
            f"{what} has byte-swapped dtype {dtype.str!r}", help="convert it with `x.astype(x.dtype.newbyteorder('='))`"
        )
    advice = {
        "O": "object arrays hold Python objects; convert to a numeric dtype with `x.astype(float)`",
        "g": "use float64: `x.astype(np.float64)`",
        "G": "use complex128: `x.astype(np.complex128)`",
        "M": "use integers: `x.astype('int64')`",
        "m": "use integers: `x.astype('int64')`",
        "V": "pass the fields of a structured array one by one: `x['field']`",
    }
    raise DTypeError(
        f"{what} has dtype {dtype}, which mlirml does not compile",
        help=advice.get(
            dtype.char if dtype.char in "gG" else dtype.kind, "use a bool, integer, float or complex dtype"
        ),
    )
