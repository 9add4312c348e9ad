"""Gradients of rows that a loop reads one by one: stored as they come, and right wherever that would not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
W, X = RNG.standard_normal((5, 3, 3)), RNG.standard_normal((2, 3))


def layer(h: Any, w: Any) -> Any:
    return np.tanh(h @ w)


def rounds(f: Callable[[Any, Any], Any], first: int = 0, last: int = 5) -> Callable[[Any, Any], Any]:
    """A function with a loop, of the rows and what is carried."""
    return lambda w, x: np.sum(ml.fori_loop(first, last, lambda i, h: layer(h, f(w, i)), x) ** 2)


def difference(f: Callable[[Any, Any], Any], *, target: str = "cpu") -> float:
    """The error of the gradient by the rows, against central differences along a direction."""
    along, step = RNG.standard_normal(W.shape), 1e-6
    expected = (f(W + step * along, X) - f(W - step * along, X)) / (2 * step)
    return float(abs(np.sum(ml.compile(ml.grad(f), target)(W, X) * along) - expected) / max(1.0, abs(expected)))


def zeros(f: Callable[[Any, Any], Any]) -> int:
    """How often the gradient begins with zeros for all rows."""
    text = ml.compile(ml.grad(f)).ir("optimize", W, X)
    return sum("linalg.fill" in line and "tensor<5x3x3xf64>" in line for line in text.splitlines())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_rows_of_a_scan_are_stored_into_memory_that_is_not_cleared(reverse: bool, target: str) -> None:
    def f(w: Any, x: Any) -> Any:
        return np.sum(ml.scan(lambda h, row: (layer(h, row), None), x, w, reverse=reverse)[0] ** 2)

    assert zeros(f) == 0
    assert difference(f, target=target) < 1e-7


def test_rows_that_no_round_reads_have_no_gradient() -> None:
    f = rounds(lambda w, i: w[i], 1, 4)
    assert zeros(f) == 1
    assert difference(f) < 1e-7
    gradient = ml.grad(f)(W, X)
    assert not gradient[[0, 4]].any()
    assert gradient[1:4].all()


@pytest.mark.parametrize(
    "read",
    [
        lambda w, i: w[i] + w[0],
        lambda w, i: w[i] * np.cos(w[i]),
        lambda w, i: w[i] * w[4 - i],
        lambda w, i: w[i] * w[0, 1, 2],
        lambda w, i: w[i] + np.sum(w, 0),
        lambda w, i: w[i, :2, :2].sum() + w[i],
        lambda w, i: w[i, 1] * np.ones((3, 3)),
        lambda w, i: w[i // 2],
        lambda w, i: ml.cond(i > 2, lambda: w[i], lambda: w[0] * 2.0),
        lambda w, i: ml.fori_loop(0, 5, lambda j, s: s + w[j] / (i + 1), np.zeros((3, 3))),
    ],
)
def test_rows_that_are_read_again(read: Callable[[Any, Any], Any]) -> None:
    assert difference(rounds(read)) < 1e-6


def test_rows_that_are_read_outside_of_the_loop() -> None:
    loop = rounds(lambda w, i: w[i])
    assert difference(lambda w, x: loop(w, x) + np.sum(np.sin(w))) < 1e-7
    assert difference(lambda w, x: loop(w, x @ w[2])) < 1e-7
    assert difference(lambda w, x: loop(w, x) * loop(w, x + 1)) < 1e-7


def test_derivatives_of_gradients_of_rows() -> None:
    loop = rounds(lambda w, i: w[i])
    along = RNG.standard_normal(W.shape)
    step = 1e-6
    expected = (ml.grad(loop)(W + step * along, X) - ml.grad(loop)(W - step * along, X)) / (2 * step)
    np.testing.assert_allclose(ml.hvp(lambda w: loop(w, X), (W,), (along,)), expected, rtol=1e-5, atol=1e-6)
    twice = ml.grad(lambda w: np.sum(ml.grad(loop)(w, X) * along))(W)
    np.testing.assert_allclose(twice, expected, rtol=1e-5, atol=1e-6)


def test_gradients_of_rows_for_many_examples() -> None:
    loop = rounds(lambda w, i: w[i])
    ws, xs = np.stack([W, -W, 2 * W]), np.stack([X, X + 1, X * 2])
    every = ml.vmap(ml.grad(loop))(ws, xs)
    np.testing.assert_allclose(every, np.stack([ml.grad(loop)(w, x) for w, x in zip(ws, xs)]), rtol=1e-9, atol=1e-12)
    shared = ml.vmap(ml.grad(loop), in_axes=(None, 0))(W, xs)
    np.testing.assert_allclose(shared, np.stack([ml.grad(loop)(W, x) for x in xs]), rtol=1e-9, atol=1e-12)


def test_rows_that_each_round_makes_begin_with_zeros() -> None:
    # Several loops fill rows of a zero array of their own in each round; the last of them stored over the zeros of all.
    def f(a: Any) -> Any:
        rows = np.zeros(3, int)
        return np.sum(ml.fori_loop(0, 3, lambda i, c: product(c, np.stack([a[rows]] * 3)[i]), a[rows]))

    def both(x: Any) -> Any:
        one = np.ones(1)
        return ml.hvp(f, (x,), (one,)), ml.grad(lambda y: ml.jvp(f, (y,), (one,))[1])(x)

    x = np.array([0.7])
    np.testing.assert_allclose(ml.compile(both)(x), ml.compile(both, "reference")(x), rtol=1e-12)


@ml.custom_jvp
def product(x: Any, y: Any) -> Any:
    return np.sin(x) * y


@product.defjvp
def product_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return product(x, y), np.cos(x) * y * dx + np.sin(x) * dy
