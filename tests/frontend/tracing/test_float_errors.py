"""`config.check_nan` and `np.errstate(...="raise")`: the call fails at the line of the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.targets.drivers import needs_vulkan

X = np.array([1.0, -1.0, 0.0])


def logarithm(x: Any) -> Any:
    y = x * 2
    z = np.log(y)
    return z + 1


def roots(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += np.sqrt(x[i])
    return s


def nested(x: Any) -> Any:
    y = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            y[i, j] = x[i] * j
            y[i, j] = np.sqrt(y[i, j]) + 1
    return y


def until(x: Any) -> Any:
    while x[0] < 10:
        x = x + np.sqrt(x)
    return x


def steps(x: Any) -> Any:
    for _ in range(100):
        x = x * x * 4
        x = x - x
    return x


def line_of(error: ml.MlirmlError) -> str:
    """The line that an error shows."""
    assert error.location is not None
    with open(error.location.file) as file:
        return file.read().splitlines()[error.location.line - 1].strip()


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (logarithm, "z = np.log(y)"),
        (roots, "s += np.sqrt(x[i])"),
        (nested, "y[i, j] = np.sqrt(y[i, j]) + 1"),
        (until, "x = x + np.sqrt(x)"),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_the_line_of_the_first_nan(function: Callable[..., Any], line: str, target: str) -> None:
    with ml.config.override(check_nan=True):
        compiled = ml.compile(function, target=target)
    for _ in range(2):
        with pytest.raises(ml.FloatOperationError, match="an operation makes a NaN") as caught:
            compiled(X)
        assert line_of(caught.value) == line
    np.testing.assert_allclose(compiled(np.abs(X) + 1), function(np.abs(X) + 1))


def test_an_infinity_that_becomes_a_nan() -> None:
    with ml.config.override(check_nan=True):
        compiled = ml.compile(steps)
    with pytest.raises(FloatingPointError) as caught:
        compiled(np.full(3, 1e200))
    assert line_of(caught.value) == "x = x - x"  # type: ignore[arg-type]


def test_gradients() -> None:
    def loss(x: Any) -> Any:
        y = np.sqrt(x * 0)
        return np.sum(y * x)

    with ml.config.override(check_nan=True):
        compiled = ml.compile(ml.grad(loss))
        assert ml.compile(loss)(np.ones(3)) == 0
    with pytest.raises(ml.FloatOperationError) as caught:
        compiled(np.ones(3))
    assert line_of(caught.value) == "y = np.sqrt(x * 0)"


def test_a_nan_of_the_user_passes() -> None:
    def f(x: Any, y: Any) -> Any:
        z = np.where(x > 0, np.nan, x)
        return np.nansum(z), y * 2, np.sum(y)

    y = np.array([1.0, np.nan])
    with ml.config.override(check_nan=True):
        found = ml.compile(f)(X, y)
    for one, expected in zip(found, f(X, y)):
        np.testing.assert_array_equal(one, expected)


@needs_vulkan
def test_a_nan_on_a_device() -> None:
    with ml.config.override(check_nan=True):
        compiled = ml.compile(logarithm, target="vulkan")
    with pytest.raises(ml.FloatOperationError) as caught:
        compiled(X.astype(np.float32))
    assert line_of(caught.value) == "z = np.log(y)"


def raising(x: Any) -> Any:
    with np.errstate(all="raise"):
        y = np.sqrt(x * x)
        z = np.log(np.abs(x))
    return y + z + np.log(x * 0 - 1)


def dividing(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        with np.errstate(divide="raise", invalid="ignore"):
            s += 1 / x[i]
    return s


@pytest.mark.parametrize("frontend", ["trace", "loops"])
def test_error_state(frontend: str) -> None:
    compiled = ml.compile(raising, frontend=frontend)
    with pytest.raises(ml.FloatOperationError, match="divide by zero encountered in log") as caught:
        compiled(X)
    assert line_of(caught.value) == "z = np.log(np.abs(x))"
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(compiled(X + 5), raising(X + 5))  # NaN outside of the block
    assert np.geterr()["divide"] == "warn"


def test_error_state_in_a_loop() -> None:
    compiled = ml.compile(dividing)
    with pytest.raises(ml.FloatOperationError, match="divide by zero encountered in divide"):
        compiled(X)
    np.testing.assert_allclose(compiled(X + 5), dividing(X + 5))


@pytest.mark.parametrize(
    ("kind", "function", "bad", "good", "message"),
    [
        ("over", np.exp, 1000.0, 1.0, "overflow encountered in exp"),
        ("invalid", np.sqrt, -1.0, np.nan, "invalid value encountered in sqrt"),
        ("divide", np.log, 0.0, np.inf, "divide by zero encountered in log"),
        ("invalid", np.sum, np.array([np.inf, -np.inf]), np.array([np.inf, 1]), "invalid value encountered in sum"),
        ("divide", lambda x: 7 // x, np.array([1, 0]), np.array([1, 2]), "divide by zero encountered in floor_divide"),
    ],
)
def test_kinds_of_errors(kind: str, function: Callable[..., Any], bad: Any, good: Any, message: str) -> None:
    def f(x: Any) -> Any:
        with np.errstate(**{kind: "raise"}):
            return function(x)

    compiled = ml.compile(f)
    with pytest.raises(FloatingPointError, match=message):
        compiled(bad)
    np.testing.assert_array_equal(compiled(good), function(good))


def test_the_state_around_the_call_is_not_that_of_the_program() -> None:
    compiled = ml.compile(lambda x: np.log(x) + 0.5)
    with np.errstate(all="raise"):
        assert compiled(np.zeros(1))[0] == -np.inf
