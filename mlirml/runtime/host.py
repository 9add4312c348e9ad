"""Calls of Python functions by programs: the 64-bit words of a call become arrays, and results are written to memory.

A value is passed as the index of its dtype, its rank, its sizes, and its address or, for rank 0, its bits. The low bits
of a call's number are 0 for a call, and else one more than the index of the requested result.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_NUMPY = {
    "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
    "f16": "f2", "f32": "f4", "f64": "f8", "bf16": "",
}  # fmt: skip
DTYPES = tuple(_NUMPY)
"""The dtypes of values, by index."""
_RESULT_BITS = 8
_RESULT = (1 << _RESULT_BITS) - 1


def call_number(function: int, result: int | None = None) -> int:
    """The number of a call of a function, or of the request for one of its results."""
    return function << _RESULT_BITS | (0 if result is None else result + 1)


class Host:
    """The functions of a program by index. Each gets copies of the arrays, and returns a list of arrays."""

    def __init__(self, functions: Sequence[Callable[..., Sequence[np.ndarray]]]) -> None:
        self.functions = tuple(functions)
        self._results = threading.local()

    def __call__(self, number: int, arguments: list[int]) -> None:
        """Handle a call from the native runtime: call a function, or write one of its results."""
        values = list(_values(arguments))
        if number & _RESULT:
            values[0][...] = self.result(number)
        else:
            self.call(number, [x.copy() for x in values])

    def call(self, number: int, values: Sequence[np.ndarray]) -> None:
        """Call a function, and keep its results for this thread."""
        self._results.last = self.functions[number >> _RESULT_BITS](*values)

    def result(self, number: int) -> np.ndarray:
        """A result of the last call in this thread."""
        return self._results.last[(number & _RESULT) - 1]


def _values(arguments: list[int]) -> Any:
    offset = 0
    while offset < len(arguments):
        dtype, rank = _dtype(arguments[offset]), arguments[offset + 1]
        shape, word = tuple(arguments[offset + 2 : offset + 2 + rank]), arguments[offset + 2 + rank]
        offset += 3 + rank
        if rank:
            size = math.prod(shape) * dtype.itemsize
            memory: Any = (ctypes.c_char * size).from_address(word) if size else b""
            yield np.frombuffer(memory, dtype).reshape(shape)
        else:
            bits = (word & (1 << 64) - 1).to_bytes(8, "little")
            yield np.frombuffer(bits[: dtype.itemsize], dtype).reshape(())


def _dtype(number: int) -> np.dtype:
    kind: Any = _NUMPY[DTYPES[number]]
    if not kind:
        import ml_dtypes

        kind = ml_dtypes.bfloat16
    return np.dtype(kind)
