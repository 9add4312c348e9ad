"""Gradients against finite differences, forward mode against reverse mode, batches against loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.programs import PROGRAMS, TWICE


def differences(function: Callable[[Any], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a function with one float."""
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += step
        behind[place] -= step
        result[place] = (function(ahead) - function(behind)) / (2 * step)
    return result


def close(given: Any, expected: Any, tolerance: float) -> None:
    assert np.shape(given) == np.shape(expected)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(given, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_agree_with_finite_differences(name: str) -> None:
    program = PROGRAMS[name]
    x, direction = program.argument(), program.argument(2)
    value, gradient = ml.value_and_grad(program.function)(x)
    compiled = ml.compile(program.function)
    close(value, compiled(x), 1e-12)
    # f32 on the way: its own rounding is what differences see
    loose = 1e-6 if name != "casts" else 1e-1
    close(gradient, differences(compiled, x), loose)
    result, change = ml.jvp(program.function, (x,), (direction,))
    close(result, value, 1e-12)
    close(change, np.sum(gradient * direction), 1e-6 if name == "casts" else 1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_agree_with_loops(name: str) -> None:
    program = PROGRAMS[name]
    xs = np.stack([program.argument(seed) for seed in (1, 2, 3)])
    both = ml.value_and_grad(program.function)
    values, gradients = ml.vmap(both)(xs)
    singles = [both(x) for x in xs]
    close(values, [value for value, _ in singles], 1e-10)
    close(gradients, [gradient for _, gradient in singles], 1e-10)
    outside = ml.grad(lambda xs: np.sum(ml.vmap(program.function)(xs)))(xs)
    close(outside, gradients, 1e-10)


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name: str) -> None:
    program = PROGRAMS[name]
    x, direction = program.argument(), program.argument(2)
    gradient = ml.grad(program.function)
    along = ml.hvp(program.function, (x,), (direction,))
    step = 1e-6
    close(along, (gradient(x + step * direction) - gradient(x - step * direction)) / (2 * step), 1e-5)
    reverse = ml.grad(lambda x: np.sum(ml.grad(program.function)(x) * direction))(x)
    close(reverse, along, 1e-9)


def test_derivatives_on_the_reference_target() -> None:
    for name in ("softmax", "scan", "stores"):
        program = PROGRAMS[name]
        gradient = ml.compile(ml.grad(program.function), "reference")(program.argument())
        close(gradient, ml.grad(program.function)(program.argument()), 1e-10)
