"""Derivatives of functions that loop over elements, as people write them: their loops stay loops of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def filtered(x: Any) -> Any:
    y, b = np.zeros_like(x), np.array([0.5, 0.25, -1.0])
    for n in range(len(x)):
        for k in range(len(b)):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
    return np.sum(y * y)


def scaled(x: Any) -> Any:
    low = high = x[0]
    for value in x[1:]:
        low = min(low, value)
        if value > high:
            high = value
    total = 0.0
    for i in range(len(x)):
        total += ((x[i] - low) / (high - low)) ** 2
    return total


def interpolated(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        weight = 2.0
        for j in range(len(x)):
            if j != i:
                weight *= (0.7 - j) / (i - j)
        total += x[i] * weight
    return total


def positive_product(x: Any) -> Any:
    product = x[0]
    for i in range(1, len(x)):
        if x[i] > 0:
            product *= x[i]
    return product


def until_large(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 2:
            break
        total += x[i] ** 3
    return total


def counted(x: Any) -> Any:
    total, i = 0.0, 0
    while i < len(x):
        total += x[i] ** 2 * i
        i += 1
    return total


def checked(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        weight = 1.0
        while weight < abs(x[i]) + 0.1:
            if x[i] > 0:
                if x[i] > 90:
                    raise ValueError("large")
                total += x[i] * weight
            weight *= 2
    return total


XS = np.array([[1.0, 1.5, -0.5, 2.5, 0.25], [-2.0, -0.25, 1.75, 0.5, 3.0]])
D = np.array([1.0, -2, 3, 0.5, 2])


@pytest.mark.parametrize("f", [filtered, scaled, interpolated, positive_product, until_large, counted, checked])
def test_both_modes_and_batches(f: Callable[[Any], Any]) -> None:
    gradients = [ml.grad(f)(x) for x in XS]
    for x, gradient in zip(XS, gradients):
        difference = (f(x + 1e-6 * D) - f(x - 1e-6 * D)) / 2e-6
        change = ml.jvp(f, (x,), (D,))[1]
        np.testing.assert_allclose([gradient @ D, change], [difference] * 2, rtol=1e-6)
    np.testing.assert_allclose(ml.vmap(ml.grad(f))(XS), np.stack(gradients))


def test_checks_in_branches_fail_for_lanes_that_take_them() -> None:
    batched = ml.compile(ml.vmap(ml.grad(checked)))
    for large, fails in ((100.0, True), (-100.0, False)):
        xs = XS.copy()
        xs[1, 2] = large
        if fails:
            with pytest.raises(ValueError, match="large"):
                batched(xs)
        else:
            np.testing.assert_allclose(batched(xs), np.stack([ml.grad(checked)(x) for x in xs]))


def test_loops_stay_loops_inside_of_transforms() -> None:
    def gradient(x: Any) -> Any:
        return ml.grad(filtered)(x)

    for function in (gradient, ml.grad(filtered), ml.vmap(ml.grad(filtered))):
        x = np.ones((2, 300)) if function.__name__.startswith("vmap") else np.ones(300)
        assert len(ml.compile(function).ir("capture", x).splitlines()) < 100
    unrolled = ml.compile(ml.grad(filtered), frontend="trace")
    assert "scf.for" not in unrolled.ir("capture", np.ones(3))


@pytest.mark.parametrize("x", [[1.0, 0.0, 3.0], [2.0, 4.0, -1.0], [0.0, 0.0, 2.0]])
def test_what_a_product_starts_from_is_one_of_its_factors(x: list[float]) -> None:
    given = np.array(x)

    def f(x: Any) -> Any:
        return np.prod(x, initial=2.0)

    expected = [2 * np.prod(np.delete(given, i)) for i in range(3)]
    np.testing.assert_allclose(ml.grad(f)(given), expected)
    np.testing.assert_allclose(ml.jacfwd(f)(given), expected)


def test_what_an_extremum_starts_from() -> None:
    def largest(x: Any) -> Any:
        found = x[0]
        for i in range(1, len(x)):
            found = max(found, x[i])
        return found

    for x in ([5.0, 2.0, 3.0], [2.0, 5.0, 3.0]):
        expected = (np.array(x) == 5).astype(float)
        np.testing.assert_array_equal(ml.grad(largest)(np.array(x)), expected)
        np.testing.assert_array_equal(ml.jacfwd(largest)(np.array(x)), expected)
