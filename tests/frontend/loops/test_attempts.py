"""Attempts to trace nested loops and branches: their number grows with the depth of nesting, not as a power of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import CaptureError
from mlirml.frontend.arrays.constructs import Restart, Retrace
from mlirml.frontend.loops.branch import Branch
from mlirml.frontend.loops.while_loop import WhileLoop


def counted(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[int]:
    """A list with one item for each attempt to trace a construct of a type."""
    attempts: list[int] = []
    write = kind.write  # type: ignore[attr-defined]

    def counting(self: Any, *arguments: Any) -> Any:
        attempts.append(1)
        return write(self, *arguments)

    monkeypatch.setattr(kind, "write", counting)
    return attempts


def nested(x: np.ndarray, depth: int) -> np.ndarray:
    """Loops in loops that assign arrays, with a branch in each; `scale` is a new function in every one."""
    scale = lambda y, by=0.25 + depth: y * by  # noqa: E731
    count = 0
    while count < 2:
        if np.sum(x) > 5.0 * depth:
            x = scale(x) + 1
        else:
            x = x + 2
            x[0] += 1
        if depth > 0:
            x = nested(x, depth - 1)
        count += 1 + (np.sum(x) > 100.0)
    return x + count


@pytest.mark.parametrize("kind", [WhileLoop, Branch])
def test_attempts_grow_with_the_depth(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    attempts, x = counted(monkeypatch, kind), np.array([0.5, 1.0])
    numbers = []
    for depth in range(4):
        attempts.clear()
        found = ml.compile(nested, static_argnums=(1,), frontend="loops")(x, depth)
        np.testing.assert_allclose(found, nested(x, depth))
        numbers.append(len(attempts))
    steps = np.diff(numbers)
    assert max(steps) <= 3 * steps[0], numbers


def descent(f: Callable[[Any], Any], x: Any) -> Any:
    gradient = ml.grad(f)
    gx, rate, fx = gradient(x), 0.1, f(x)
    while np.sum(gx * gx) > 1e-6:
        new = x - rate * gx
        if f(new) < fx:
            x = new
            fx = f(x)
            gx = gradient(x)
        else:
            rate /= 2
    return x


def test_a_search_in_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of a minimum by gradients: GradBench's `saddle` in small; functions are made in each attempt."""
    attempts = counted(monkeypatch, WhileLoop)

    def lowest(p: Any, start: Any) -> Any:
        q = descent(lambda q: np.sum((q - p) ** 2) + np.sum(p * p), start)
        return np.sum((q - p) ** 2) + np.sum(p * p) + np.sum(q)

    found = ml.compile(lambda start: descent(lambda p: lowest(p, start), start))(np.array([0.5, -1.0]))
    np.testing.assert_allclose(found, [-0.5, -0.5], atol=2e-3)
    assert len(attempts) <= 30


def test_arrays_that_are_one_and_arrays_that_are_two() -> None:
    """Facts about a branch where two names are one array are not used where they are two."""

    def step(a: np.ndarray, b: np.ndarray, up: Any) -> Any:
        c = a if up > 0 else b
        return np.sum(c * a)

    def function(x: np.ndarray, y: np.ndarray, up: float) -> Any:
        one, two = x * 2, y * 3
        return step(one, one, up), step(one, two, up), step(two, two, up), step(two, one, up)

    x, y = np.arange(3.0), np.arange(3.0) + 5
    for up in (1.0, -1.0):
        np.testing.assert_allclose(ml.compile(function, frontend="loops")(x, y, up), function(x, y, up))


def test_attempts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of which no attempt is the last one is refused."""

    def again(self: Any, *arguments: Any) -> Any:
        raise Retrace(self)

    def doubled(x: Any) -> Any:
        while x < 100:
            x = x * 2
        return x

    monkeypatch.setattr(WhileLoop, "write", again)
    with pytest.raises(CaptureError, match="attempts to trace it") as caught:
        ml.compile(doubled)(np.float64(3.0))
    assert caught.value.location is not None and caught.value.location.function == "doubled"


def test_attempts_to_trace_a_function_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*arguments: Any) -> Any:
        raise Restart

    def stacked(x: Any) -> Any:
        return [x]

    monkeypatch.setattr("mlirml.frontend.capture._captured", again)
    with pytest.raises(CaptureError, match="attempts to trace the function") as caught:
        ml.compile(stacked, frontend="loops")(np.float64(3.0))
    assert caught.value.location is not None and caught.value.location.function == "stacked"
