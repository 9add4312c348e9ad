"""An index that may not be reached is checked when it is, not when the program is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check


def search(a: Any, k: Any) -> Any:
    while k < 0 and a[..., k]:
        k += 1
    return k


def guarded(a: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        if i < a.shape[0] and a[i] > 0:
            total += 1
        total += a[i] if i < len(a) else 7
        if n > 100:
            total += a[9] + a[9, ...]
            a[9] = 3
            a[9] += 2
    return total, a


def rows(a: Any, n: Any) -> Any:
    total = 0.0
    for _ in range(n):
        total += a[7]
    return total


FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], int, int]] = {
    "while": (search, 3, -2),
    "if": (guarded, 3, 101),
    "for": (rows, 0, 2),
    "cond": (lambda a, k: ml.cond(k < 0, lambda: a[0] + a[[7, 8]][1], lambda: 0.5), 1, -1),
    "fori_loop": (lambda a, n: ml.fori_loop(0, n, lambda i, x: x + a[i] + a[..., 7], 0.0), 0, 1),
    "stores of scan": (lambda a, n: ml.cond(n < 1, lambda v: stored(v), lambda v: v, a), 3, -2),
}


def stored(a: Any) -> Any:
    a = a.copy()
    a[7] = 1
    a[[8, 9]] = 2
    return a


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_indices_out_of_bounds(name: str, size: int) -> None:
    function, leaves_out, reaches = FUNCTIONS[name]
    check(function, np.ones(size), leaves_out)
    if size == 0 or name != "while":
        with pytest.raises(IndexError):
            function(np.ones(size), reaches)
        for target in ("cpu", "reference"):
            with pytest.raises(ml.IndexOutOfBoundsError, match=r"out of bounds for axis 0 with size \d") as caught:
                ml.compile(function, target)(np.ones(size), reaches)
            assert caught.value.location is not None


def test_derivatives_and_batches() -> None:
    def f(x: Any, a: Any) -> Any:
        return ml.cond(np.sum(x) < 0, lambda: x * a[0], lambda: x * 3.0)

    a, xs = np.zeros(0), np.array([1.0, 2.0])
    assert ml.compile(ml.grad(f))(2.0, a) == 3.0
    assert np.array_equal(ml.compile(ml.vmap(f, in_axes=(0, None)))(xs, a), xs * 3)


def test_what_is_reached_is_refused_when_the_program_is_compiled() -> None:
    with pytest.raises(ml.IndexOutOfBoundsError, match="index 7 is out of bounds for axis 0 with size 3"):
        ml.trace(lambda a: a[7], np.zeros(3))
