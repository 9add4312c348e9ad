"""Results in the memory of arguments that are donated."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

W, G = np.linspace(0, 1, 12).reshape(3, 4), np.ones((3, 4))


def step(params: Any, gradients: Any, rate: Any = 0.5) -> Any:
    new = {name: params[name] - rate * gradients[name] for name in params}
    return np.sum(new["w"]), new


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_parameters_stay_where_they_are(target: str) -> None:
    update = ml.compile(step, target, donate_argnums=0)
    for _ in range(3):
        params = {"w": W.copy(), "b": np.arange(4.0)}
        old = dict(params)
        expected = step({"w": W, "b": np.arange(4.0)}, {"w": G, "b": np.ones(4)})
        total, new = update(params, {"w": G, "b": np.ones(4)})
        np.testing.assert_allclose(total, expected[0], atol=1e-15)
        for name in old:
            assert np.shares_memory(new[name], old[name]) or target == "reference"
            np.testing.assert_array_equal(new[name], expected[1][name])


def test_results_that_are_views_of_donated_arguments() -> None:
    @ml.compile(donate_argnums=(0, 1))
    def f(x: Any, y: Any) -> Any:
        return x[::-1], x[0], y + 1, np.sum(x), x.T

    x, y = W.copy(), G.copy()
    flipped, row, more, total, turned = f(x, y)
    np.testing.assert_array_equal(flipped, W[::-1])
    np.testing.assert_array_equal(row, W[0])
    np.testing.assert_array_equal(more, G + 1)
    np.testing.assert_array_equal(turned, W.T)
    assert total == W.sum()
    assert np.shares_memory(flipped, x)
    assert np.shares_memory(more, y)


def test_what_cannot_be_donated_is_left_alone() -> None:
    double = ml.compile(lambda x, y: (x * 2.0, y + x), donate_argnums=[0])
    x = W.copy()
    for result, expected in zip(double(x, x), (W * 2, W + W)):  # two arguments that share memory
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(x, W)
    np.testing.assert_array_equal(double(W.astype(np.float32), W)[0], W.astype(np.float32) * 2)
    np.testing.assert_array_equal(double(3.0, W)[1], W + 3)


def test_arguments_that_are_stored_into_and_slices() -> None:
    @ml.compile(donate_argnums=0)
    def f(x: Any, y: Any) -> Any:
        y[...] = x
        return x + 1

    x, y = np.arange(24.0).reshape(6, 4), np.zeros((3, 4))
    result = f(x[::2], y)
    np.testing.assert_array_equal(y, np.arange(24.0).reshape(6, 4)[::2])
    np.testing.assert_array_equal(result, y + 1)


def test_loops_methods_and_pickles() -> None:
    def f(x: Any, n: int) -> Any:
        y = np.zeros(5)
        for i in range(n):
            y[i] = x[i] * 2
        return y

    x = np.arange(5.0)
    result = ml.compile(f, frontend="loops", donate_argnums=0)(x, 5)
    assert np.shares_memory(result, x)
    np.testing.assert_array_equal(result, np.arange(5.0) * 2)
    again = pickle.loads(pickle.dumps(ml.compile(step, donate_argnums=0)))
    assert again.donate_argnums == (0,)


def test_errors() -> None:
    check_error(
        lambda: ml.compile(step, donate_argnums=3),
        """
        mlirml.ArgumentError: donate_argnums: `step` has no positional argument 3
          --> test_donation.py:17 (step)
            |
         17 | def step(params: Any, gradients: Any, rate: Any = 0.5) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: positions count from 0
        """,
    )
    with pytest.raises(ml.ArgumentError, match="argument 1 is in static_argnums and in donate_argnums"):
        ml.compile(step, static_argnums=1, donate_argnums=(0, 1))
    x = W.copy()
    with pytest.raises(ml.ArgumentError, match="`out` is given for results that go into donated arguments"):
        ml.compile(lambda x: x + 1, donate_argnums=0)(x, out=np.empty((3, 4)))
