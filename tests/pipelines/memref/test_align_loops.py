"""Loops that store into arrays of the caller, which start anywhere in a line, and may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

N = 4200


def scaled(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * 1.5 - 1


def normalized(x: Any, gain: Any, bias: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        mean = np.float32(0)
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean /= np.float32(x.shape[1])
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * gain[j] + bias[j]


def part(x: Any, out: Any) -> None:
    for i in range(3, out.shape[0] - 5):
        out[i] = (x[i + 2] - x[i - 3]) / 2


def misaligned(x: np.ndarray, offset: int) -> np.ndarray:
    """A copy of an array that starts `offset` bytes after the start of a line."""
    memory = np.zeros(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def check(function: Any, arguments: tuple[np.ndarray, ...], offsets: tuple[int, ...]) -> None:
    compiled = ml.compile(function)
    for offset in offsets:
        given = [misaligned(x, offset) for x in arguments]
        expected = [x.copy() for x in arguments]
        compiled(*given)
        function(*expected)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_each_start_in_a_line(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    check(part, (np.arange(N).astype(dtype) % 97, np.zeros(N, dtype)), tuple(range(0, 64, size)))
    if np.dtype(dtype).kind == "f":
        check(scaled, (np.arange(N).astype(dtype) % 97,), tuple(range(0, 64, size)))


def test_starts_between_elements() -> None:
    check(part, (np.arange(N) % 97.0, np.zeros(N)), (4, 20))  # NumPy's arrays need no alignment


@pytest.mark.parametrize("columns", [1024, 1037])
def test_rows_that_are_normalized(columns: int) -> None:
    random = np.random.default_rng(0)
    shapes = ((6, columns), (columns,), (columns,), (6, columns))
    check(normalized, tuple(random.standard_normal(s).astype(np.float32) for s in shapes), (0, 4, 16, 36, 60))


def test_an_array_that_is_stored_into_while_it_is_read() -> None:
    x = np.random.default_rng(1).standard_normal(N).astype(np.float32)
    compiled = ml.compile(part)
    for shift in (0, 1, 5, 16):
        found, expected = misaligned(x, 16), x.copy()
        compiled(found[: N - shift], found[shift:])
        part(expected[: N - shift], expected[shift:])
        np.testing.assert_array_equal(found, expected)


def test_what_a_loop_of_the_processor_avx512_becomes() -> None:
    with ml.config.override(processor="avx512"):
        text = ml.compile(scaled).ir("schedule", np.ones(N, np.float32))
    assert "predicateEnable = true" in text
    with ml.config.override(processor="avx2"):
        text = ml.compile(scaled).ir("schedule", np.ones(N, np.float32))
    assert "predicateEnable = true" not in text
