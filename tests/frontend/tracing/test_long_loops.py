"""Loops of array code that would be long when unrolled stay loops: compile time does not grow with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend import helper_module

RNG = np.random.default_rng(0)
X, A, Y = RNG.random(40), RNG.random((50, 4)), RNG.random(50)


def filtered(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        s = 0.9 * s + 0.1 * x[i % len(x)]
    return s


def sines(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        s = np.sin(s) + x[i % len(x)]
    return s


def exchanged(x: Any, n: int) -> Any:
    a, b = x[0], x[1]
    for i in range(n):
        a, b = b, (a + b * x[i % len(x)]) % 7.0 * 0.1
    return a


def descent(x: Any, n: int) -> Any:
    w = x[:4] * 0
    for _ in range(n):
        w = w - 0.01 * (A.T @ (A @ w - Y)) / len(Y)
    return w


def wave(x: Any, n: int) -> Any:
    u, v = x, x * 0.5
    for _ in range(n):
        u, v = 2 * u - v + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u), u
    return u


def bodies(x: Any, n: int) -> Any:
    p = x[:30].reshape(10, 3)
    v = p * 0
    for _ in range(n):
        d = p[None] - p[:, None]
        q = (d**2).sum(-1) + 0.1
        v = v + 0.001 * (d / q[..., None] ** 1.5).sum(1)
        p = p + 0.001 * v
    return p


def means(x: Any, n: int) -> Any:
    points = x.reshape(20, 2)
    c = points[:3]
    for _ in range(n):
        nearest = np.argmin(((points[:, None] - c[None]) ** 2).sum(-1), 1)
        m = (nearest[:, None] == np.arange(len(c))).astype(float)
        c = (m.T @ points) / (m.sum(0)[:, None] + 1e-9)
    return c


def helped(x: Any, n: int) -> Any:
    return filtered(x, n) + sines(x, n)


LOOPS: list[Callable[[Any, int], Any]] = [filtered, sines, exchanged, descent, wave, bodies, means, helped]


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_the_program_is_as_long_for_any_number_of_rounds(function: Any) -> None:
    lengths = set()
    for n in (2500, 5000):
        found = ml.compile(lambda x, n=n: function(x, n))
        np.testing.assert_allclose(found(X), function(X, n), rtol=1e-6)
        lengths.add(len(found.ir("capture", X).splitlines()))
    assert len(lengths) == 1 and max(lengths) < 500


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n, stays", [(20, False), (70, True)])
def test_more_than_64_copies_stay_a_loop(function: Any, n: int, stays: bool) -> None:
    found = ml.compile(lambda x: function(x, n))
    np.testing.assert_allclose(found(X), function(X, n), rtol=1e-6)
    assert ("scf.for" in found.ir("capture", X)) == stays


class Sweeps:
    """A program that has its number of iterations in an attribute."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def run(self, a: Any, b: Any) -> None:
        for _ in range(self.steps):
            b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
            a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


def shortest_paths(p: Any, unused: Any) -> None:
    for k in range(p.shape[0]):
        p[:] = np.minimum(p[:], np.add.outer(p[:, k], p[k, :]))


@pytest.mark.parametrize(
    "function, stays",
    [(Sweeps(4).run, False), (Sweeps(5).run, True), (Sweeps(40).run, True), (shortest_paths, True)],
    ids=["4 steps", "5 steps", "40 steps", "shortest paths"],
)
def test_more_than_four_stores_into_slices_stay_a_loop(function: Any, stays: bool) -> None:
    theirs = RNG.random((20, 20)), RNG.random((20, 20))
    ours = tuple(x.copy() for x in theirs)
    program = ml.compile(function)
    program(*ours)
    function(*theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other)
    assert ("scf.for" in program.ir("capture", *ours)) == stays


def test_copies_of_nested_loops_are_counted() -> None:
    def nest(x: Any, m: int, n: int) -> Any:
        for _ in range(m):
            x = x + 1
            for _ in range(n):
                x = np.sin(x) * 2
        return x

    assert "scf.for" not in ml.compile(nest, static_argnums=(1, 2)).ir("capture", X, 8, 8)
    assert "scf.for" in ml.compile(nest, static_argnums=(1, 2)).ir("capture", X, 8, 9)


def test_copies_in_a_helper_are_those_of_the_loop_around_the_call() -> None:
    def halved(x: Any) -> Any:
        return x / 2 + 1

    def called(x: Any, n: int) -> Any:
        for _ in range(n):
            x = halved(x)
        return x

    program = ml.compile(called, static_argnums=1)
    assert "scf.for" not in program.ir("capture", X, 64)
    assert "scf.for" in program.ir("capture", X, 65)
    np.testing.assert_allclose(program(X, 65), called(X, 65))
    program(X, 5)
    line = called.__code__.co_firstlineno + 1
    assert f"test_long_loops.py:{line}: unrolled: 5 copies of its body" in program.explain()


def test_a_loop_around_the_call_of_the_program_does_not_count() -> None:
    program = ml.compile(descent, static_argnums=1)
    for n in range(3, 6):
        program(X, n)
    assert [f"{n} copies" in program.explain() for n in range(2, 7)] == [False, True, True, True, False]


def test_operations_of_one_line_are_one_copy() -> None:
    def spread(x: Any) -> Any:
        for _ in range(40):
            x = np.std(x * 2) * x
        return x

    assert "scf.for" not in ml.compile(spread).ir("capture", X)


def test_rows_of_an_array() -> None:
    def rows(a: Any) -> Any:
        s = a[0] * 0
        for row in a:
            s = np.tanh(s + row)
        return s

    for n in (60, 70):
        a = RNG.random((n, 4))
        found = ml.compile(rows)
        np.testing.assert_allclose(found(a), rows(a), rtol=1e-12)
        assert ("scf.for" in found.ir("capture", a)) == (n == 70)


def test_what_cannot_be_a_loop_is_unrolled_and_explained() -> None:
    def growing(x: Any) -> Any:
        for i in range(100):
            x = np.concatenate([x, x[-1:] * 0.5 + i])
        return x

    found = ml.compile(growing)
    np.testing.assert_array_equal(found(X), growing(X))
    line = growing.__code__.co_firstlineno + 1
    assert f":{line}:9: cannot stay a loop: `x` changes its shape" in found.explain()
    assert f":{line}: unrolled: 100 copies of its body" in found.explain()


def test_the_loop_front_end_tells_what_it_unrolls() -> None:
    def layers(weights: Any, x: Any) -> Any:
        s = 0.0
        for w in weights:
            for i in range(x.shape[0]):
                s += x[i] * w[i]
        return s

    found = ml.compile(layers, frontend="loops")
    found([X, X * 2], X)
    line = layers.__code__.co_firstlineno + 2
    assert f":{line}:9: unrolled: iterates over a list" in found.explain()
    assert f":{line + 1}:13: raised" in found.explain()


def test_loops_of_functions_of_other_modules_are_not_unrolled() -> None:
    x = np.random.default_rng(0).random(30)
    compiled = ml.compile(lambda x: helper_module.relaxed(x, 40) + 1)
    np.testing.assert_allclose(compiled(x), helper_module.relaxed(x, 40) + 1, rtol=1e-12)
    assert "unrolled" not in str(compiled.explain())


class Grid:
    """An object whose method has a loop."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def relaxed(self, x: Any) -> Any:
        return helper_module.relaxed(x, self.steps)


def test_loops_of_methods_of_arguments_are_not_unrolled() -> None:
    x = np.random.default_rng(1).random(30)
    compiled = ml.compile(lambda grid, x: grid.relaxed(x))
    np.testing.assert_allclose(compiled(Grid(40), x), helper_module.relaxed(x, 40), rtol=1e-12)
    assert "unrolled" not in str(compiled.explain())
