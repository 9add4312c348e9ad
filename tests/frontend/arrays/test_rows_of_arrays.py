"""Python iterates over few rows of an array; over many a loop of the program does, where there can be one."""

from __future__ import annotations

import numpy as np

import mlirml as ml

LONG = np.random.default_rng(4).normal(size=5000)


def smoothed(x, y):
    state = 0.0
    for one, other in zip(x, y):
        state = 0.9 * state + one * other
    return state


def guarded(x):
    total = 0.0
    for value in x:
        try:
            total += value
        except TypeError:
            total = 0.0
    return total


def test_many_elements_are_a_loop() -> None:
    compiled = ml.compile(smoothed)
    np.testing.assert_allclose(compiled(LONG, LONG[::-1]), smoothed(LONG, LONG[::-1]), rtol=1e-12)
    assert compiled.ir("capture", LONG, LONG).count("scf.for") == 1


def test_few_elements_are_unrolled() -> None:
    assert "scf.for" not in ml.compile(smoothed).ir("capture", LONG[:4], LONG[:4])
    assert "scf.for" not in ml.compile(smoothed, frontend="trace").ir("capture", LONG[:300], LONG[:300])


def test_what_cannot_be_a_loop_is_unrolled() -> None:
    np.testing.assert_allclose(ml.compile(guarded)(LONG[:300]), guarded(LONG[:300]), rtol=1e-12)


def test_comprehensions_alone_are_unrolled() -> None:
    compiled = ml.compile(lambda x: np.stack([2 * value for value in x]))
    np.testing.assert_array_equal(compiled(LONG[:257]), 2 * LONG[:257])
