"""Reverse mode through loops whose trip count the data decide: one loop counts, another one is reversed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([0.3, 0.5, 1.0])


def grown(x: Any) -> Any:
    while np.sum(x * x) < 50:
        x = x * 1.3 + 0.2 + 0.1 * np.sin(x)
    return np.sum(x**2)


def nested(x: Any) -> Any:
    """A loop in a loop, with a number and an array that are carried and a break."""
    total, steps = 0.0, 0
    while True:
        y = x
        while np.max(y) < 3:
            y = y * y + x + 0.4
        total = total + np.sum(np.sin(y))
        x, steps = 0.8 * x + 0.1 * y, steps + 1
        if total > 2 or steps == 7:
            break
    return total * np.sum(x)


def root(x: Any) -> Any:
    """The square root by Newton's method."""
    guess = 1.0 + 0 * x
    while abs(guess * guess - x) > 1e-13 * x:
        guess = 0.5 * (guess + x / guess)
    return guess


def differences(function: Any, x: np.ndarray) -> np.ndarray:
    step = 1e-6
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("function", [grown, nested])
def test_gradient_is_that_of_differences(function: Any, target: str) -> None:
    gradient = ml.compile(ml.grad(function), target)(X)
    np.testing.assert_allclose(gradient, differences(function, X), rtol=1e-7)
    np.testing.assert_allclose(gradient, ml.compile(ml.jacfwd(function))(X), rtol=1e-12)


def test_second_derivatives_and_batches() -> None:
    expected = differences(lambda x: ml.grad(grown)(x) @ np.array([1.0, 2.0, 3.0]), X)
    np.testing.assert_allclose(ml.hvp(grown, (X,), (np.array([1.0, 2.0, 3.0]),)), expected, rtol=1e-6)
    np.testing.assert_allclose(ml.compile(ml.jacrev(ml.grad(grown)))(X), ml.compile(ml.hessian(grown))(X), rtol=1e-12)
    lanes = np.stack([X, 0.1 * X, 40 * X])  # of different trip counts, none of the last one
    expected = np.stack([ml.grad(grown)(x) for x in lanes])
    np.testing.assert_allclose(ml.compile(ml.vmap(ml.grad(grown)))(lanes), expected, rtol=1e-12)
    summed = ml.compile(ml.grad(lambda x: np.sum(ml.vmap(grown)(x))))(lanes)
    np.testing.assert_allclose(summed, expected, rtol=1e-12)
    np.testing.assert_allclose(expected[2], 80 * X)


def test_newtons_method_has_the_derivative_of_the_root() -> None:
    assert ml.compile(ml.grad(root))(2.0) == pytest.approx(0.5 / np.sqrt(2), rel=1e-9)
    assert ml.compile(ml.grad(ml.grad(root)))(2.0) == pytest.approx(-0.25 * 2**-1.5, rel=1e-6)


def test_outer_values_and_results_of_the_condition() -> None:
    def function(a: Any, b: Any) -> Any:
        last, count = ml.while_loop(lambda c: np.sum(c[0]) < 10 * b, lambda c: (c[0] * a + b, c[1] + 1), (a, 0))
        return np.sum(last) * count

    for number in range(2):
        found = ml.compile(ml.grad(function, number))(X + 1, 2.0)
        along = ml.compile(lambda a, b, number=number: ml.jacfwd(function, number)(a, b))(X + 1, 2.0)
        np.testing.assert_allclose(found, along, rtol=1e-12)


def test_a_gradient_in_a_loop_that_is_differentiated() -> None:
    """The motion of a particle until it falls to the axis, by the gradient of a potential; GradBench's `particle`."""

    def miss(w: Any) -> Any:
        charges = np.stack([np.stack([10.0, 10 - w]), np.array([10.0, 0.0])])

        def potential(x: Any) -> Any:
            return np.sum(1 / np.sqrt(np.sum((x - charges) ** 2, axis=1)))

        x, velocity = np.array([0.0, 8.0]), np.array([0.75, 0.0])
        while True:
            new = x + 0.1 * velocity
            if new[1] <= 0:
                break
            velocity = velocity - 0.1 * ml.grad(potential)(x)
            x = new
        return (x[0] - x[1] / velocity[1] * velocity[0]) ** 2

    value, slope = ml.compile(ml.value_and_grad(miss))(0.1)
    assert slope == pytest.approx((miss(0.1 + 1e-6) - miss(0.1 - 1e-6)) / 2e-6, rel=1e-6)
    assert value == pytest.approx(miss(0.1), rel=1e-12)


def relaxed(p: Any, y: Any, least: Any) -> Any:
    """Until the relative change is small, which is infinite at first and which only the condition reads."""
    change = 1.0
    while change > least:
        before = p.copy()
        p = 0.5 * (before + y)
        change = np.sum(np.abs(p - before)) / np.sum(np.abs(before))
    return np.sum(p * p)


def coupled(x: Any, v: Any) -> Any:
    n = 0
    while n < 30 and x < 100:
        if x > 0.5:
            v = v * 0.9 + x * 0.05
        x = x + 0.1 * v
        n += 1
    return x


def test_values_that_only_the_condition_reads_have_no_cotangents() -> None:
    p, y = np.zeros(3), np.array([0.5, 1.0, 2.0])
    gradient = ml.grad(relaxed, argnums=1)(p, y, 1e-2)
    with np.errstate(all="ignore"):
        numeric = [(relaxed(p, y + d, 1e-2) - relaxed(p, y - d, 1e-2)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


def test_values_that_results_depend_on_later_have_cotangents() -> None:
    found = ml.grad(coupled, argnums=(0, 1))(1.0, 0.5)
    h = 1e-6
    numeric = [
        (coupled(1 + h, 0.5) - coupled(1 - h, 0.5)) / (2 * h),
        (coupled(1, 0.5 + h) - coupled(1, 0.5 - h)) / (2 * h),
    ]
    np.testing.assert_allclose(found, numeric, rtol=1e-6)


def overwritten(x: Any) -> Any:
    u, v = x.copy(), np.zeros(len(x))
    s, n = 0.0, 0
    while np.sum(u[:3]) > x[0] and n < 2:
        n += 1
        for _ in range(len(x)):
            u[:] = v * 0.9
            s = s * 0.5 + u[1] * x[2] + x[3]
    return s + np.sum(u)


def test_cotangents_of_an_array_that_each_iteration_overwrites() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    numeric = [(overwritten(x + d) - overwritten(x - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(ml.grad(overwritten)(x), numeric, rtol=1e-6, atol=1e-9)
