"""Derivatives at points where formulae of smooth functions change branches: at 0, and where operands are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

LOG2 = np.log(2.0)
# Name: the function, its first and its second derivative at 0.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "logaddexp": (lambda t: np.logaddexp(0, t), 0.5, 0.25),
    "logaddexp, first operand": (lambda t: np.logaddexp(t, 0), 0.5, 0.25),
    "logaddexp2": (lambda t: np.logaddexp2(0, t), 0.5, LOG2 / 4),
    "softplus": (F.softplus, 0.5, 0.25),
    "log_sigmoid": (F.log_sigmoid, 0.5, -0.25),
    "sigmoid": (F.sigmoid, 0.25, 0.0),
    "silu": (F.silu, 0.5, 0.5),
    "mish": (F.mish, 0.6, 0.64),
    "gelu": (F.gelu, 0.5, np.sqrt(2 / np.pi)),
    "elu": (F.elu, 1.0, 1.0),
    "hypot, one side 0": (lambda t: np.hypot(t, 2.0), 0.0, 0.5),
    "hypot, equal sides": (lambda t: np.hypot(t + 1, 1.0), 0.5**0.5, 0.5**1.5),
    "hypot, opposite sides": (lambda t: np.hypot(1.0, t - 1), -(0.5**0.5), 0.5**1.5),
    "power 1.5": (lambda t: t**1.5, 0.0, np.inf),
    "power 2.5": (lambda t: t**2.5, 0.0, 0.0),
    "sinc": (np.sinc, 0.0, -(np.pi**2) / 3),
    "logsumexp": (lambda t: F.logsumexp(t * np.array([1.0, 0.0])), 0.5, 0.25),
    "log_softmax": (lambda t: F.log_softmax(t * np.array([1.0, 0.0]))[0], 0.5, -0.25),
    "cross_entropy": (lambda t: F.cross_entropy(t * np.array([1.0, 0.0]), 0), -0.5, 0.25),
}


def _reverse(f: Callable[[Any], Any], t: Any) -> Any:
    return ml.grad(f)(t)


def _forward(f: Callable[[Any], Any], t: Any) -> Any:
    return ml.jvp(f, (t,), (t * 0 + 1,))[1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_derivatives_are_right_in_all_modes(name: str) -> None:
    f, first, second = FUNCTIONS[name]

    @ml.compile
    def derivatives(t: Any) -> Any:
        modes = (_reverse, _forward)
        once = [mode(f, t) for mode in modes]
        twice = [outer(lambda s, inner=inner: inner(f, s), t) for outer in modes for inner in modes]
        return once, twice

    once, twice = derivatives(0.0)
    np.testing.assert_allclose(once, first, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(twice, second, rtol=1e-12, atol=1e-14)


def test_a_zero_cotangent_has_a_derivative_of_its_own() -> None:
    # The gradient of x * g(x) at 0 sends a cotangent of zero through g, whose own derivative the second one needs.
    def f(x: Any) -> Any:
        return x * np.where(x < 1, np.exp(x), 0)

    assert ml.grad(ml.grad(f))(0.0) == 2
    assert ml.grad(ml.grad(ml.grad(f)))(0.0) == 3


def test_dead_branches_stay_out_of_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), x * x))

    x = np.array([-1.0, 0.0, 4.0])
    np.testing.assert_allclose(ml.grad(f)(x), [-2.0, 0.0, 0.25])
    np.testing.assert_allclose(np.diag(ml.hessian(f)(x)), [2.0, 2.0, -1 / 32])
    np.testing.assert_allclose(ml.grad(lambda y: np.sum(ml.grad(f)(y)))(x), [2.0, 2.0, -1 / 32])


def test_second_derivatives_of_products_with_two_zeros() -> None:
    expected = np.zeros((4, 4))
    expected[1, 2] = expected[2, 1] = 6
    np.testing.assert_array_equal(ml.hessian(np.prod)(np.array([2.0, 0.0, 0.0, 3.0])), expected)

    def f(x: Any) -> Any:
        return np.sum(np.prod(x, axis=(0, 2), keepdims=True, where=x != 5, initial=2.0))

    x = np.arange(12.0).reshape(2, 3, 2)
    x[0, 0] = 0
    row = np.zeros((2, 3, 2))
    row[0, 0, 1] = 2 * 6 * 7
    np.testing.assert_array_equal(ml.hessian(f)(x)[0, 0, 0], row)


def test_products_of_complex_numbers() -> None:
    z = np.array([1 + 1j, 2 - 1j, 0.5j])
    np.testing.assert_allclose(ml.jvp(np.prod, (z,), (np.array([1, 0, 0j]),))[1], z[1] * z[2])
    np.testing.assert_allclose(ml.vjp(np.prod, z)[1](1 + 0j)[0], np.prod(z) / z)


def test_the_distance_to_the_next_float_is_constant() -> None:
    assert ml.grad(np.spacing)(1.5) == 0


def test_the_magnitude_of_complex_numbers_at_0() -> None:
    gradient = ml.grad(lambda z: np.sum(np.abs(z)))(np.array([0j, 3 + 4j]))
    np.testing.assert_allclose(gradient, [0, 0.6 - 0.8j], rtol=1e-15)
    assert ml.jvp(np.abs, (0j,), (1 + 0j,))[1] == 0


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2, np.hypot])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_at_the_ends_of_the_range_are_numpys(function: Any, dtype: Any) -> None:
    large = np.finfo(dtype).max / 4
    points = np.array([-np.inf, -large, -20, -1e-3, -0.0, 0, 1e-3, 1, 20, large, np.inf, np.nan], dtype)
    a, b = np.meshgrid(points, points)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(ml.compile(function)(a, b), function(a, b), rtol=8 * np.finfo(dtype).eps)


def test_sinc_is_exact_where_its_formulae_meet() -> None:
    x = np.concatenate([np.linspace(-0.04, 0.04, 401), np.logspace(-20, 0, 200)])
    np.testing.assert_allclose(ml.compile(np.sinc)(x), np.sinc(x), rtol=4e-16)
    slope = ml.grad(lambda v: np.sum(np.sinc(v)))(x)
    y = np.pi * x
    series = np.pi * (-y / 3 + y**3 / 30 - y**5 / 840 + y**7 / 45360)
    near = np.abs(y) < 0.1
    np.testing.assert_allclose(slope[near], series[near], rtol=1e-14)


@pytest.mark.parametrize("place", [0.0, 2.0, -2.0])
@pytest.mark.parametrize("function", [lambda x: x % 1.0, lambda x: np.fmod(x, 2.0), lambda x: np.modf(x)[0]])
def test_remainders_of_multiples_change_as_their_dividend(function: Callable[[Any], Any], place: float) -> None:
    assert ml.grad(function)(place) == 1
    assert ml.jvp(function, (place,), (1.0,))[1] == 1


def test_remainders_by_divisors() -> None:
    # 0.7 / 0.1 is rounded to 7, and the remainder is 0.0999..: the quotient is 6.
    assert ml.grad(lambda y: np.fmod(0.7, y))(0.1) == -6
    assert ml.grad(lambda y: np.mod(6.0, y))(3.0) == -2
    assert ml.grad(lambda y: np.mod(-7.0, y))(3.0) == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_remainders_of_zero_keep_the_sign_of_the_divisor(dtype: Any) -> None:
    points = np.array([6, -6, 0, -0.0, 7, -7, np.inf, -np.inf, np.nan], dtype)
    x, y = np.meshgrid(points, points)
    with np.errstate(invalid="ignore"):
        found, expected = ml.compile(np.mod)(x, y), np.mod(x, y)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


# Name: the function, the point, and the gradient there.
CORNERS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "relu": (lambda x: np.sum(F.relu(x)), [-1, 0, 2], [0, 0.5, 1]),
    "clip": (lambda x: np.sum(np.clip(x, -1, 1)), [-1, 0, 1, 2], [0.5, 1, 0.5, 0]),
    "running maximum": (lambda x: np.sum(np.maximum.accumulate(x) * np.arange(1.0, 4)), [1, 1, 0], [3.5, 2.5, 0]),
    "sort": (lambda x: np.sort(x) @ np.arange(1.0, 4), [2, 1, 2], [2, 1, 3]),
    "zeroth power": (lambda x: np.sum(x ** (x * 0)), [0, 2], [0, 0]),
    "first power": (lambda x: np.sum(np.power(x, np.ones(2))), [0, 2], [1, 1]),
    "hypot": (lambda x: np.hypot(x[0], x[1]), [0, 0], [0, 0]),
    "norm": (np.linalg.norm, [0, 0], [np.nan, np.nan]),
    "deviation": (np.std, [1, 1], [np.nan, np.nan]),
    "angle": (lambda x: np.arctan2(x[0], x[1]), [0, 0], [np.nan, np.nan]),
    "NaN that is not chosen": (lambda x: np.sum(np.where(x > 0, x, np.nan)), [0, 1], [0, 1]),
}


@pytest.mark.parametrize("name", CORNERS)
def test_gradients_at_corners(name: str) -> None:
    function, point, expected = CORNERS[name]
    x = np.array(point, dtype=float)
    np.testing.assert_array_equal(ml.grad(function)(x), expected)
    changes = [ml.jvp(function, (x,), (unit,))[1] for unit in np.eye(len(x))]
    if not np.isnan(expected).any():
        np.testing.assert_array_equal(changes, expected)
