"""Batches of loops and branches that each example goes its own way through; what runs for others must do no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(5.0)


def read(i: Any) -> Any:
    return np.asarray(X)[i]


def backwards(n: Any) -> Any:
    return ml.fori_loop(0, n, lambda i, c: c + read(n - 1 - i), 0.0)


def guarded(i: Any) -> Any:
    return ml.cond(i < 5, lambda: read(i), lambda: ml.fori_loop(0, i - 5, lambda j, c: c + read(i - 5), 1.0))


def switched(i: Any) -> Any:
    return ml.switch(i, [lambda: read(i + 4), lambda: read(i + 3) * 2, lambda: read(2 + i) * 3])


def until(n: Any) -> Any:
    return ml.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + read(c[0])), (0, 0.0))[1]


def settled(x: Any) -> Any:
    """Its condition alone reads what came before, which the body thus does not get."""

    def going(c: Any) -> Any:
        return np.max(np.abs(c[0] - c[1])) > 1e-12

    start = x * np.ones(3)
    return ml.while_loop(going, lambda c: (np.cos(c[0]) * x / 5 + 1, c[0]), (start, start * 0))[0]


def endless_elsewhere(n: Any) -> Any:
    def loop() -> Any:
        return ml.while_loop(lambda c: c[0] != n, lambda c: (c[0] + 1, c[1] + read(c[0])), (0, 0.0))[1]

    return ml.cond(n > 0, loop, lambda: 3.0)


def stored(n: Any) -> Any:
    def put(i: Any, y: Any) -> Any:
        y[n - 1 - i] = i + 1.0
        return y

    return np.sum(ml.fori_loop(0, n, put, np.zeros(5)) * X)


def stored_parts(n: Any) -> Any:
    def put(i: Any, y: Any) -> Any:
        y[n - 1 - i] = y[n - i] * 0.5 + np.asarray(X)[:3]
        return y

    return np.sum(ml.fori_loop(0, n, put, np.ones((6, 3))) * X[:, None].repeat(3, 1)[[0, 1, 2, 3, 4, 0]])


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (backwards, [2, 0, 5, 1]),
        (guarded, [2, 7, 4, 9]),
        (switched, [0, 2, 1, 1]),
        (until, [2, 0, 5, 1]),
        (settled, [3, 0, -4, 1]),
        (endless_elsewhere, [2, -1, 5, -7]),
        (stored, [2, 0, 5, 1]),
        (stored_parts, [2, 0, 5, 1]),
    ],
)
def test_each_example_goes_its_own_way(function: Callable[[Any], Any], numbers: list[int]) -> None:
    one = ml.compile(function)
    expected = [one(n) for n in numbers]
    np.testing.assert_allclose(ml.vmap(function)(np.array(numbers)), expected)
    pairs = np.array(numbers).reshape(2, 2)
    np.testing.assert_allclose(ml.vmap(ml.vmap(function))(pairs), np.reshape(expected, (2, 2, *np.shape(expected[0]))))


def test_the_derivative_of_a_fixed_point() -> None:
    """By the theorem of implicit functions, whose equation is solved by a loop that is batched too."""

    def step(x: Any, y: Any) -> Any:
        return np.cos(y) * x / 5 + 1

    @ml.custom_vjp
    def fixed(x: Any) -> Any:
        return settled(x)

    def backward(kept: Any, cotangent: Any) -> Any:
        x, y = kept
        by_y = ml.vjp(lambda y: step(x, y), y)[1]

        def going(c: Any) -> Any:
            return np.max(np.abs(c[0] - c[1])) > 1e-12

        start = cotangent, cotangent * 0
        solved = ml.while_loop(going, lambda c: (cotangent + by_y(c[0])[0], c[0]), start)[0]
        return ml.vjp(lambda x: step(x, y), x)[1](solved)

    def forward(x: Any) -> Any:
        y = fixed(x)
        return y, (x, y)

    fixed.defvjp(forward, backward)
    x = np.array([3.0, 0.5, -4.0])
    y = np.array([settled(each)[0] for each in x])
    expected = np.cos(y) / 5 / (1 + np.sin(y) * x / 5)
    np.testing.assert_allclose(ml.vmap(ml.jacrev(fixed))(x), np.repeat(expected[:, None], 3, 1), rtol=1e-9)
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(ml.vmap(fixed)(x)))(x), 3 * expected, rtol=1e-9)


def test_a_failing_check_is_reported_where_an_example_meets_it() -> None:
    with pytest.raises(ml.IndexOutOfBoundsError):
        ml.vmap(guarded)(np.array([2, -9]))


def test_gradients_of_loops_of_different_lengths() -> None:
    def walk(x: Any, n: Any) -> Any:
        return np.sum(ml.fori_loop(0, n, lambda i, c: np.sin(c) * (i + 1) + x, x))

    x = np.linspace(0, 1, 3)
    gradient = ml.compile(ml.grad(walk))
    many, rounds = np.stack([x, -x, 2 * x]), np.array([2, 0, 5])
    singles = [gradient(y, n) for y, n in zip(many, rounds)]
    np.testing.assert_allclose(ml.vmap(ml.grad(walk))(many, rounds), singles, rtol=1e-12)
    batches = ml.vmap(ml.vmap(ml.grad(walk)))(np.stack([many, many[::-1]]), np.stack([rounds, rounds[::-1]]))
    np.testing.assert_allclose(batches, [singles, singles[::-1]], rtol=1e-12)
    outside = ml.grad(lambda many: np.sum(ml.vmap(walk)(many, rounds)))(many)
    np.testing.assert_allclose(outside, singles, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        np.linalg.inv,
        lambda x: np.abs(np.fft.fft(x)),
        lambda x: np.roll(x, 1),
        lambda x: ml.cond(x[0, 0] > 0, lambda: x, lambda: -x),
        lambda x: ml.while_loop(lambda c: np.sum(c) < 3, lambda c: c + x[1], x),
        lambda x: ml.vmap(np.convolve, in_axes=(0, None))(x, x[0])[:, :2],
    ],
)
def test_a_batch_of_no_lanes_has_no_elements(function: Callable[[Any], Any]) -> None:
    def energy(x: Any) -> Any:
        return np.sum(function(x) * scale[0])

    none, scale = np.zeros((0, 2, 2)), np.array([3.0])
    assert ml.vmap(function)(none).shape == ml.vmap(ml.grad(energy))(none).shape == (0, 2, 2)
    assert ml.vmap(ml.vmap(function))(np.zeros((3, 0, 2, 2))).shape == (3, 0, 2, 2)
    total, gradient = ml.value_and_grad(lambda x: np.sum(ml.vmap(energy)(x)))(none)
    assert total == 0 and gradient.shape == (0, 2, 2)


def test_what_no_lane_is_differentiated_by_has_the_gradient_zero() -> None:
    many = ml.vmap(lambda x, y: (np.sum(x * y), y * 2), in_axes=(0, None), out_axes=(0, None))
    gradient, twice = ml.grad(lambda y: (np.sum(many(np.zeros((0, 2)), y)[0]), y * 2), has_aux=True)(np.ones(2))
    np.testing.assert_array_equal(gradient, [0, 0])
    np.testing.assert_array_equal(twice, [2, 2])
    np.testing.assert_array_equal(many(np.zeros((0, 2)), np.ones(2))[1], [2, 2])
    with pytest.raises(ml.NoBatchingError, match="depends on the example"):
        ml.vmap(lambda x: np.roll(x, 1), out_axes=None)(np.zeros((0, 2)))


def total_of_row(w: Any, places: Any, n: Any) -> Any:
    s, c = 0.0, 0
    while n > 1 and np.sum(w[places[1]]) > 0 and c < 3:
        c += 1
        s = s * 0.5 + w[places[0], c] ** 2
    return s


def test_gradients_of_a_condition_of_which_all_lanes_share_a_part() -> None:
    w, places = np.arange(24.0).reshape(2, 3, 4), np.array([[0, 1], [2, 0]])
    expected = np.zeros((2, 3, 4))
    for lane, place in enumerate(places[:, 0]):
        expected[lane, place, 1:] = 2 * w[lane, place, 1:] * [0.25, 0.5, 1]
    for n in (3, 0):
        found = ml.vmap(ml.grad(total_of_row), in_axes=(0, 0, None))(w, places, n)
        np.testing.assert_allclose(found, expected * (n > 1))
