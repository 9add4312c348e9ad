"""Copies of arrays from outside of a function, which it stores into, and arrays that it computes of such ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS

W = np.array([1.0, 2.0])
ORDER = np.array([1, 0])
X = np.array([-1.0, 2.0])


def trained(w: Any, rate: Any) -> Any:
    w = w.copy()
    for _ in range(5):
        for i in range(len(w)):
            w[i] -= rate * 2 * w[i]
    return (w * w).sum()


def of_global(rate: Any) -> Any:
    return trained(W, rate)


def test_derivatives() -> None:
    expected = (of_global(0.1 + 1e-6) - of_global(0.1 - 1e-6)) / 2e-6
    for gradient in (ml.grad(of_global), ml.compile(ml.grad(of_global)), ml.grad(lambda rate: trained(W, rate))):
        assert gradient(0.1) == pytest.approx(expected, rel=1e-6)
    value, slope = ml.jvp(of_global, (0.1,), (1.0,))
    assert (value, slope) == pytest.approx((of_global(0.1), expected), rel=1e-6)
    np.testing.assert_allclose(ml.vmap(of_global)(np.array([0.1, 0.2])), [of_global(0.1), of_global(0.2)])


def store_five(w: Any) -> None:
    w[0] = 5.0


def in_a_branch(x: Any, n: Any) -> Any:
    w = W.copy()
    if x[0] > 0:
        w[0] = 5.0
    return w * x


def counted(x: Any, n: Any) -> Any:
    w = W[::-1].copy()
    for _ in range(n):
        w[0] += 1.0
    return w * x


def by_functions(x: Any, n: Any) -> Any:
    v, w = np.copy(W), W.astype(np.float32)
    u = W.copy()
    w = W.flatten()
    if x[0] > 0:
        store_five(u)
    for i in range(n):
        w[i % 2] *= x[1]
    return u * x, v, w


def doubled(x: Any, n: Any) -> Any:
    w = W * 2
    if x[0] > 0:
        w[0] = 5.0
    if x[1] > 0:
        w += 1.0
    return w * x


def without_a_loop(x: Any, n: Any) -> Any:
    w = W.copy()
    w[0] = x[1]
    return w


def read_only(x: Any, n: Any) -> Any:
    order, total = ORDER.copy(), 0.0
    for i in order:
        total += x[i]
    return total + len(np.zeros(int(order[0]) + 3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [in_a_branch, counted, by_functions, doubled, without_a_loop, read_only])
def test_values(function: Any, target: str) -> None:
    compiled = ml.compile(function, target)
    for x, n in ((X, 7), (-X, 0)):
        expected = function(x, n)
        for one, other in zip(compiled(x, n), expected) if type(expected) is tuple else [(compiled(x, n), expected)]:
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def test_the_array_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ml.compile(counted)
    for number in (1.0, 7.0):
        monkeypatch.setitem(globals(), "W", np.array([number, 3.0]))
        np.testing.assert_array_equal(compiled(X, 2), counted(X, 2))


def stored_in_a_branch(x: Any) -> Any:
    w = np.sqrt(W)
    if x[0] > 0:
        w[0] = 5.0
    return w * x


def added_in_a_branch(x: Any) -> Any:
    w = np.sqrt(W)
    if x[0] > 0:
        w += 5.0
    return w * x


def exchanged_in_a_loop(x: Any) -> Any:
    w = np.sqrt(W)
    while x[0] > 0:
        w[0], w[1] = w[1], w[0]
        x[0] -= 1
    return w * x


@pytest.mark.parametrize("function", [stored_in_a_branch, added_in_a_branch, exchanged_in_a_loop])
def test_stores_into_real_arrays_are_refused(function: Any) -> None:
    """Python would make them when the function is traced, whatever the data are."""
    with pytest.raises(ml.errors.CaptureError, match="a real NumPy array, which compiled code cannot fill"):
        ml.compile(function)(X)
