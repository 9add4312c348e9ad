"""Element types: the NumPy dtype, its MLIR type and its short name in messages."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from mlirml.core.sizes import Extent, is_dynamic_shape, same
from mlirml.errors import DTypeError, IntegerRangeError, ShapeError

_NAMES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
# A complex number is a pair of floats; no MLIR type represents it.
_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}
MAX_RANK = 32
"""Dimensions of an array, at most, as in NumPy 1: some of NumPy 2's own functions take no more of its 64."""
MAX_BYTES = 1 << 47
"""The memory that a process can address."""
_SHORT = {"bool": "bool", "int": "i", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c"}


@cache
def bfloat16() -> np.dtype:
    """The bfloat16 dtype of ml_dtypes, imported on first use."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


@lru_cache(maxsize=64)  # NumPy makes the name of a dtype anew each time
def is_supported(dtype: np.dtype) -> bool:
    """True for a dtype that has an MLIR type here (native byte order only)."""
    return (dtype.name in _NAMES or dtype.name in _PARTS) and dtype.isnative


@lru_cache(maxsize=64)
def mlir_name(dtype: np.dtype) -> str:
    """`f32` for float32, `i8` for both int8 and uint8: MLIR integers carry no sign."""
    if dtype.name in _PARTS:
        raise DTypeError("this is not compiled for complex numbers", help="compute real and imaginary parts apart")
    return _NAMES[dtype.name]


@lru_cache(maxsize=64)
def short_name(dtype: np.dtype) -> str:
    """The name in messages: `f32`, `u8`, `bool`; NumPy's own name for a dtype that is not supported."""
    if dtype.name not in _NAMES and dtype.name not in _PARTS:
        return str(dtype)
    name: str = dtype.name
    letters = name.rstrip("0123456789")
    return _SHORT[letters] + name[len(letters) :]


def as_dtype(given: object) -> np.dtype:
    """`np.dtype(given)`, or a `DTypeError` for what names no dtype."""
    try:
        return np.dtype(given)  # type: ignore[call-overload]
    except TypeError:
        raise DTypeError(f"{given!r} is no dtype", help="use one such as `np.float32`, or its name") from None


def check_integer(what: str, number: int, dtype: np.dtype) -> None:
    """Refuse a Python integer that does not fit an integer dtype, as NumPy 2 does."""
    if dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise IntegerRangeError(
            f"{what}: Python integer {number} is out of bounds for {short_name(dtype)}",
            notes=(f"{short_name(dtype)} holds the integers from {limits.min} to {limits.max}",),
            help=_wider(number, dtype),
        )


def _wider(number: int, dtype: np.dtype) -> str:
    """Advice on an integer that does not fit a dtype."""
    if dtype.itemsize < 8:
        return "convert the array to a wider dtype with `x.astype(...)`"
    if 0 <= number < 2**64:
        return "compute with unsigned integers, `np.uint64(...)`, or with a float"
    return "no integer dtype holds it: compute with a float"


def from_short_name(name: str) -> np.dtype:
    """The inverse of `short_name`."""
    for full in (*_NAMES, *_PARTS):
        dtype = bfloat16() if full == "bfloat16" else np.dtype(full)
        if short_name(dtype) == name:
            return dtype
    raise KeyError(name)


@lru_cache(maxsize=64)
def is_float(dtype: np.dtype) -> bool:
    """True for f16, bf16, f32 and f64."""
    return dtype.name in ("float16", "bfloat16", "float32", "float64")


@lru_cache(maxsize=64)
def is_complex(dtype: np.dtype) -> bool:
    """True for c64 and c128."""
    return dtype.name in _PARTS


def part_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real and imaginary parts of a complex dtype; of a real dtype it is the dtype itself."""
    part: np.dtype = _PARTS.get(dtype.name, dtype)  # type: ignore[assignment]
    return part


@lru_cache(maxsize=1024)
def tensor_type(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """The text of a tensor type, `tensor<4x8xf32>`; a complex array in memory has a last dimension of 2."""
    if dtype.name in _PARTS:
        shape, dtype = (*shape, 2), part_dtype(dtype)
    if not is_dynamic_shape(shape) and not 0 < math.prod(shape) <= MAX_BYTES // 16:
        check_bytes(shape, dtype)
    return "tensor<" + "".join(f"{marked(n)}x" for n in shape) + mlir_name(dtype) + ">"


def marked(size: Extent) -> int:
    """The number in a type for a size: that of a dynamic one is its mark."""
    return size if type(size) is int else size.mark()  # type: ignore[union-attr]


def check_bytes(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an array that no memory holds; an empty one, too, where an index along its other dimensions would not."""
    size = math.prod(n or 1 for n in shape) * dtype.itemsize
    if size > MAX_BYTES:
        raise ShapeError(
            f"the array is too big: {describe(shape, dtype)} takes {size} bytes",
            notes=(f"a process can address {MAX_BYTES} bytes",),
        )


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast shape, however large; raises `ValueError` where the shapes do not broadcast."""
    result = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for place, size in enumerate(shape, len(result) - len(shape)):
            # A dynamic size that is 1 when the program runs broadcasts as any other.
            if not same(size, 1):
                if not same(result[place], 1) and not same(result[place], size) and result[place] != size:
                    raise ValueError("the shapes do not broadcast")
                result[place] = size
    return tuple(result)


def check_rank(shape: tuple[int, ...], what: str) -> None:
    """Refuse an array of too many dimensions."""
    if len(shape) > MAX_RANK:
        raise ShapeError(f"{what} has {len(shape)} dimensions, and arrays have at most {MAX_RANK}")


def describe(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """An array's dtype and shape as messages show them: `f32[4,8]`."""
    return f"{short_name(dtype)}[{','.join(map(str, shape))}]"
