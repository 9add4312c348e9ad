"""Tracing loops and branches: bodies run once, loops stay loops, and values are written where they may be used."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(3.0)


def both(function: Any, *arguments: Any) -> None:
    """Compiled code gives what Python gives."""
    for target in ("cpu", "reference"):
        np.testing.assert_allclose(ml.compile(function, target=target)(*arguments), function(*arguments))


def test_a_body_is_traced_once_and_stays_a_loop() -> None:
    calls = []

    def body(i: Any, c: Any) -> Any:
        calls.append("body")
        return np.sin(c) + i

    texts = [ml.trace(lambda x, n=n: ml.fori_loop(0, n, body, x), X).as_text() for n in (10, 100000)]
    assert len(calls) == 2
    assert texts[0].count("scf.for") == 1 and texts[0].count("math.sin") == 1
    assert len(texts[1]) - len(texts[0]) == 4


def test_a_number_that_becomes_an_array_is_traced_again() -> None:
    calls = []

    def body(c: Any, x: Any) -> Any:
        calls.append(c.dtype)
        return c + x, None

    text = ml.trace(lambda xs: ml.scan(body, 0, xs), X.astype(np.float32)).as_text()
    assert [d.name for d in calls] == ["int64", "float32"]
    assert text.count("scf.for") == 1 and "sitofp" not in text


def test_a_condition_that_is_known_is_no_branch() -> None:
    text = ml.trace(lambda x: ml.cond(len(x) > 2, np.sin, np.cos, x), X).as_text()
    assert "scf.if" not in text and "math.sin" in text and "math.cos" not in text
    text = ml.trace(lambda x: ml.switch(np.argmax(np.arange(2)), [np.sin, np.cos], x), X).as_text()
    assert "index_switch" not in text and "math.cos" in text


def test_known_arrays_are_folded_in_a_body() -> None:
    text = ml.trace(lambda x: ml.fori_loop(0, 9, lambda i, c: c + (np.arange(3) * 2 + 1), x), X).as_text()
    assert text.count("arith.muli") == 0 and text.count("dense<") == 1


def test_known_arrays_are_used_inside_and_after() -> None:
    def f(x: Any) -> Any:
        table = np.arange(3) ** 2.0
        inside = ml.fori_loop(0, 2, lambda i, c: c * table + table[1:].sum(), x)
        return ml.cond(x[0] > 0, lambda: table, lambda: inside) + table + inside

    both(f, X)
    both(f, X + 1)


def test_known_arrays_made_inside_are_used_outside() -> None:
    def f(x: Any) -> Any:
        kept = []

        def body(i: Any, c: Any) -> Any:
            kept.append(np.ones(3))
            return c * kept[0]

        y = ml.fori_loop(0, 2, body, x)
        kept[0][1] = 5
        return y + kept[0]

    np.testing.assert_allclose(ml.compile(f)(X), X + np.array([1, 5, 1]))


def test_views_are_used_inside_and_after() -> None:
    def f(x: Any) -> Any:
        m = np.outer(x, x + 1)
        turned, row = m.T, m[1]
        inside = ml.fori_loop(0, 2, lambda i, c: turned @ c + row, x)
        return turned @ inside + row, ml.cond(x[0] > 0, lambda: turned, lambda: m)

    for x in (X, X + 1):
        for got, wanted in zip(ml.compile(f)(x), f(x)):
            np.testing.assert_allclose(got, wanted)


def test_stores_before_and_after_a_loop_are_in_order() -> None:
    def f(x: Any) -> Any:
        buffer = np.zeros(3)
        buffer[0] = x[1]
        a = ml.fori_loop(0, 2, lambda i, c: c + buffer, x)
        buffer[1] = 7
        b = ml.fori_loop(0, 2, lambda i, c: c + buffer, x)
        return a + 10 * b + buffer

    both(f, X)


def test_a_mistake_that_is_caught_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(ml.ShapeError):
            ml.fori_loop(0, 2, lambda i, c: np.stack([c, c]), x)
        with pytest.raises(ml.ShapeError):
            ml.cond(x[0] > 0, lambda: x, lambda: x[0])
        return ml.fori_loop(0, 2, lambda i, c: c + 1, x)

    assert "stack" not in ml.trace(f, X).as_text()
    np.testing.assert_array_equal(ml.compile(f)(X), X + 2)


class Model:
    scale = 2.0

    def step(self, c: Any, x: Any) -> Any:
        return c * self.scale + x, c


def test_methods_partials_ufuncs_and_compiled_functions_are_bodies() -> None:
    @ml.compile
    def inner(i: Any, c: Any) -> Any:
        return c + np.ones(3)

    def scaled(factor: Any, i: Any, c: Any) -> Any:
        return c * factor + np.zeros(3)

    def f(x: Any) -> Any:
        a = ml.fori_loop(0, 3, inner, x)
        b = ml.fori_loop(0, 3, functools.partial(scaled, 1.5), a)
        last, rows = ml.scan(Model().step, 0.0, b)
        return ml.cond(last > 0, np.negative, np.sin, rows)

    both(f, X)


def test_every_operation_keeps_its_line() -> None:
    def body(i: Any, c: Any) -> Any:
        c = np.sin(c)
        return c * 2

    first = body.__code__.co_firstlineno
    text = ml.trace(lambda x: ml.fori_loop(0, 3, body, x), X).text
    places = {line.split("loc(")[-1].rstrip(")") for line in text.splitlines() if "math.sin" in line or "mulf" in line}
    lines = [line for line in text.splitlines() if line.split(" =")[0] in places]
    assert sorted(int(line.split('.py":')[1].split(":")[0]) for line in lines) == [first + 1, first + 2]


def test_positions_that_are_known_at_run_time() -> None:
    def prefix(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            c[i] = c[i - 1] + x[i]
            return c

        return ml.fori_loop(1, 3, body, np.array([x[0], 0, 0]))

    both(prefix, X + 1)


def test_uncompiled_carries_share_no_memory() -> None:
    x = np.zeros(3)

    def body(c: Any, row: Any) -> Any:
        a, b = c
        a[0] += 1
        row[0] += 5
        return (b, a), a

    (a, b), rows = ml.scan(body, (x, x), np.zeros((3, 2)))
    assert x.sum() == 0
    compiled = ml.compile(lambda x, xs: ml.scan(body, (x, x), xs))
    for got, wanted in zip((*compiled(x, np.zeros((3, 2)))[0], compiled(x, np.zeros((3, 2)))[1]), (a, b, rows)):
        np.testing.assert_array_equal(got, wanted)


def test_a_store_into_a_view_of_what_may_be_an_array_or_a_number_is_refused() -> None:
    def store(x: Any) -> Any:
        either = ml.cond(x > 1, lambda v: v, lambda v: v + v, np.asarray(x))  # NumPy adds 0-d arrays to a scalar
        row = either[None]
        row[0] = 7
        return either

    def read(x: Any) -> Any:
        either = ml.fori_loop(0, 2, lambda _, v: v * 2, np.asarray(x))
        return either[None] + either

    with pytest.raises(ml.errors.CaptureError, match="NumPy may or may not have made a copy"):
        ml.compile(store)(np.float64(2))
    both(read, np.float64(2))
