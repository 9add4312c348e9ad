"""Arrays that no memory holds, or that have more dimensions than arrays have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

A = np.arange(6.0).reshape(2, 3)
HUGE = 1 << 40
TOO_BIG: dict[str, Callable[[Any], Any]] = {
    "tile": lambda a: np.tile(a, (2**31, 2**31)),
    "repeat": lambda a: np.repeat(a, 2**62, axis=0),
    "broadcast_to": lambda a: np.broadcast_to(a[0, 0], (HUGE, HUGE)) + 1,
    "broadcast": lambda a: np.broadcast_to(a[0, 0], (HUGE, 1)) * np.broadcast_to(a[0, 0], (1, HUGE)),
    "outer": lambda a: np.multiply.outer(np.broadcast_to(a[0, 0], (HUGE,)), np.ones(1 << 20)),
    "pad": lambda a: np.pad(a, HUGE),
    "pad beyond int64": lambda a: np.pad(a, 2**62),
    "concatenate": lambda a: np.concatenate([np.broadcast_to(a[0, 0], (2**45,))] * 4),
    "stack": lambda a: np.stack([np.broadcast_to(a[0, 0], (2**62,))] * 8),
    "einsum": lambda a: np.einsum("i,j->ij", *[np.broadcast_to(a[0, 0], (HUGE,))] * 2),
    "kron": lambda a: np.kron(*[np.broadcast_to(a[0, 0], (HUGE,))] * 2),
    "zeros": lambda a: np.zeros((2**31, 2**31)) + a[0, 0],
}


@pytest.mark.parametrize("fn", TOO_BIG.values(), ids=TOO_BIG)
def test_an_array_that_no_memory_holds_is_refused_at_its_line(fn: Callable[[Any], Any]) -> None:
    with pytest.raises(ml.errors.ShapeError, match="is too big") as caught:
        ml.compile(fn)(A)
    assert caught.value.location is not None and caught.value.location.file == __file__


def test_the_error_says_how_large_it_is() -> None:
    with pytest.raises(ml.errors.ShapeError, match=r"f64\[8796093022208,3\] takes 211106232532992 bytes\n") as caught:
        ml.compile(lambda a: np.broadcast_to(a[0], (2**43, 3)) * 2)(A)
    assert "note: a process can address 140737488355328 bytes" in str(caught.value)


@pytest.mark.parametrize(
    "fn, size",
    [
        (lambda a: np.tile(a, (2**40, 1)), 2**40 * 48),  # the result
        (lambda a: np.sum(np.sort(np.broadcast_to(a[0, 0], (2**41,)))), 2**41 * 8),  # the workspace
    ],
)
def test_a_memory_error_says_how_many_bytes(fn: Callable[[Any], Any], size: int) -> None:
    compiled = ml.compile(fn)
    for _ in range(2):
        with pytest.raises(MemoryError, match="bytes, which cannot be allocated") as caught:
            compiled(A)
        (number,) = (int(word) for word in str(caught.value).split() if word.isdigit())
        assert size <= number < 2.01 * size


TOO_MANY: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda a: a.reshape((1,) * 31 + (2, 3)),
    "expand_dims": lambda a: np.expand_dims(a, tuple(range(31))),
    "index": lambda a: a[(None,) * 31],
    "index far beyond": lambda a: a[(None,) * 70],
    "broadcast": lambda a: a + np.ones((1,) * 33),
}


@pytest.mark.parametrize("fn", TOO_MANY.values(), ids=TOO_MANY)
def test_more_than_32_dimensions_are_refused_at_their_line(fn: Callable[[Any], Any]) -> None:
    with pytest.raises(ml.errors.ShapeError, match=r"has \d+ dimensions, and arrays have at most 32") as caught:
        ml.compile(fn)(A)
    assert caught.value.location is not None and caught.value.location.file == __file__


def test_an_argument_of_more_than_32_dimensions_is_refused() -> None:
    with pytest.raises(ml.errors.ShapeError, match="argument `x` has 33 dimensions"):
        ml.compile(lambda x: x + 1)(np.ones((1,) * 33))


WITH_32: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, axis=-1),
    "transpose": lambda x: x.T + 1,
    "matmul": lambda x: x @ np.swapaxes(x, -1, -2),
    "matmul with a matrix": lambda x: x @ np.ones((3, 2)),
    "sort": lambda x: np.sort(x, axis=-1),
    "concatenate": lambda x: np.concatenate([x, x], axis=3),
    "take": lambda x: np.take(x, np.array([1, 0]), axis=-1),
    "tile": lambda x: np.tile(x, 2),
    "argmax": lambda x: np.argmax(x, axis=0),
    "cumsum": lambda x: np.cumsum(x, axis=-1),
    "slice": lambda x: x[..., ::-1] * x,
    "derivative": lambda x: ml.grad(lambda x: np.sum(np.tanh(x) ** 2))(x),
}


@pytest.mark.parametrize("fn", WITH_32.values(), ids=WITH_32)
def test_32_dimensions_are_compiled(fn: Callable[[Any], Any]) -> None:
    x = np.arange(12.0).reshape((2,) + (1,) * 29 + (2, 3))
    result, expected = ml.compile(fn)(x), fn(x)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12)
