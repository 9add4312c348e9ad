"""Random programs: gradients against differences and forward mode, derivatives of derivatives, batches against loops.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.random_programs import program, run

COUNT = int(os.environ.get("MLIRML_FUZZ", "0"))
SEEDS = range(int(os.environ.get("MLIRML_FUZZ_SEED", str(time.time_ns() % 10**9))), 10**10)[:COUNT] or range(18)
H = 1e-5


def first_order(f: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The value, the gradient along `d` in both modes, and by differences."""

    def check(x: Any, d: Any) -> Any:
        value, gradient = ml.value_and_grad(f)(x)
        change = ml.jvp(f, (x,), (d,))[1]
        return value, np.sum(gradient * d), change, (f(x + H * d) - f(x - H * d)) / (2 * H)

    return check


def second_order(f: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The gradient, its change along `d` forward over reverse, reverse over both, and by differences."""

    def check(x: Any, d: Any) -> Any:
        gradient = ml.grad(f)
        along = ml.jvp(gradient, (x,), (d,))[1]
        reverse = ml.grad(lambda x: np.sum(gradient(x) * d))(x)
        forward = ml.grad(lambda x: ml.jvp(f, (x,), (d,))[1])(x)
        return gradient(x), along, reverse, forward, (gradient(x + H * d) - gradient(x - H * d)) / (2 * H)

    return check


def agree(values: Any, expected: Any, tolerance: float) -> None:
    scale = 1 + float(np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_and_batches(seed: int) -> None:
    steps, shape = program(seed, 9 if COUNT else 5)
    print(seed, steps, shape)
    rng = np.random.default_rng(seed)
    xs, ds = rng.standard_normal((2, 2, *shape))
    order = second_order if seed % 3 == 0 else first_order
    check = order(lambda x: run(steps, x))
    if seed % 2:
        check = ml.compile(ml.vmap(check))
        found = [[part[i] for part in check(xs, ds)] for i in range(2)]
        one = ml.compile(lambda x: run(steps, x))
        if order is first_order:
            agree([parts[0] for parts in found], [one(x) for x in xs], 1e-9)
    else:
        found = [ml.compile(check)(xs[0], ds[0])]
    for _, first, *others, differences in found:
        for other in others:
            agree(other, first, 1e-8)
        agree(first, differences, 1e-4)


def test_numbers_that_are_read_in_front_of_where_they_were() -> None:
    # The gather from an axis of one element reads the number that the scan reads, too: one read, in front of both.
    steps = [("where", 0, 0, 0), ("scan", 1, 0, 0), ("gathered", 1, 2, 0)]
    _, change, others, differences = ml.compile(first_order(lambda x: run(steps, x)))(np.array([-0.9]), np.ones(1))
    agree(others, change, 1e-12)
    agree(change, differences, 1e-7)
