"""Results stored past the cache: the same numbers as without, wherever arrays begin and rows end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.pipelines.memref import stream_stores
from mlirml.pipelines.memref.nontemporal import build, match

RNG = np.random.default_rng(11)
Streams = list[Sequence[match.Stream]]


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Streams]:
    """Arrays of any size are stored past the cache; the list has those that were."""
    found: Streams = []

    def any_size(array: Any, least_bytes: int) -> match.Stream:
        return match.match_stream(array, 0)

    def noted(streams: Sequence[match.Stream]) -> None:
        found.append(streams)
        build.build_streams(streams)

    monkeypatch.setattr(stream_stores, "match_stream", any_size)
    monkeypatch.setattr(stream_stores, "build_streams", noted)
    with ml.config.override(cache=False):
        yield found


def chain(x: Any) -> Any:
    return np.tanh(x) * x + 1


def two_results(x: Any) -> Any:
    return x * 2, (x - 1).astype(np.float64)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (RNG.standard_normal(shape) * 4).astype(dtype)


@pytest.mark.parametrize("function", [chain, two_results, layer_norm, softmax])
@pytest.mark.parametrize("shape", [(70001,), (37, 1013), (3, 40, 2048), (9, 257)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results(streamed: Streams, function: Callable[..., Any], shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    expected, got = (r if isinstance(r, tuple) else (r,) for r in (function(x), ml.compile(function)(x)))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-5 if dtype == "f4" else 1e-12, atol=1e-6)
    assert streamed or function is softmax


@pytest.mark.parametrize("first", range(17))
def test_arrays_that_begin_anywhere(streamed: Streams, first: int) -> None:
    """The caller's array: its first elements and its last ones lie in lines that are not whole, and others' stay."""

    def double(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = 2 * x[i, j]

    memory = np.full(3000 + 33, 7.0, np.float32)
    out = memory[first : first + 3000].reshape(6, 500)
    x = numbers((6, 500), "f4")
    ml.compile(double)(x, out)
    np.testing.assert_array_equal(out, 2 * x)
    assert (memory[:first] == 7).all() and (memory[first + 3000 :] == 7).all()
    assert len(streamed) == 1


def test_interior_of_rows(streamed: Streams) -> None:
    """Rows that begin and end inside of those of the array; what is around them stays."""

    def inner(x: Any, out: Any) -> None:
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                out[i, j] = x[i, j - 1] + x[i, j + 1]

    x, out = numbers((12, 601), "f8"), np.full((12, 601), 5.0)
    expected = out.copy()
    expected[1:-1, 1:-1] = x[1:-1, :-2] + x[1:-1, 2:]
    ml.compile(inner)(x, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_other_threads_read_it_next(threads: int) -> None:
    """Big results, without help, on more than one thread, each read by the program that comes next."""
    x = np.arange(3 << 20, dtype=np.float32)
    with ml.config.override(threads=threads):
        add, total = ml.compile(lambda x: x + 1), ml.compile(lambda x: np.sum(x, dtype=np.int64))
        as_numbers = ml.compile(lambda x: x.astype(np.int64))
        for _ in range(5):
            assert int(total(as_numbers(add(x)))) == sum(range(1, x.size + 1))


def test_only_big_results() -> None:
    add = ml.compile(lambda x: x + 1)
    big, small = np.zeros(16 << 20, np.float32), np.zeros(1 << 18, np.float32)
    assert "nontemporal" in add.ir("schedule", big)
    assert "nontemporal" not in add.ir("schedule", small)
