"""Tracing loops and branches: bodies run once, loops stay loops, and values are written where they may be used."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

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


@dataclasses.dataclass
class Layer:
    weights: Any
    activation: Any
    name: Any = None

    def __call__(self, x: Any) -> Any:
        return self.activation(x @ self.weights)


def doubled(layer: Layer) -> Layer:
    return dataclasses.replace(layer, weights=layer.weights * 2)


def carried_through(layer: Layer, x: Any) -> Any:
    layer = ml.fori_loop(0, 2, lambda i, one: doubled(one), layer)
    layer = ml.while_loop(lambda one: np.sum(one.weights) < 20, doubled, layer)
    layer = ml.cond(x[0] > 0, doubled, lambda one: one, layer)
    (layer, total), outputs = ml.scan(lambda c, row: ((c[0], c[1] + c[0](row)), c[0](row)), (layer, x), x[None] * ROWS)
    return np.sum(total) + np.sum(outputs * layer.weights[0])


ROWS = np.array([[0.1], [-0.2], [0.3]])
ACTIVATIONS = [np.tanh, np.sin, F.relu, F.gelu, functools.partial(np.clip, a_min=-1, a_max=0.3)]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_functions_and_names_in_a_carry_are_static(activation: Any) -> None:
    layer = Layer(np.array([[0.3, -0.1, 0.2], [0.5, 0.2, 0.1], [-0.3, 0.4, 0.6]]), activation, "first")
    both(carried_through, layer, X + 0.5)


def test_derivatives_and_batches_with_functions_in_a_carry() -> None:
    def loss(layer: Layer, x: Any) -> Any:
        (_, total), _ = ml.scan(lambda c, row: ((c[0], c[1] + c[0](row)), None), (layer, np.zeros(3)), x[None] * ROWS)
        return np.sum(total**2)

    def plain(weights: Any, x: Any) -> Any:
        return np.sum(np.sum(np.tanh(x * ROWS @ weights), axis=0) ** 2)

    layer = Layer(np.arange(9.0).reshape(3, 3) / 9, np.tanh)
    for grad in (ml.grad(loss), ml.compile(ml.grad(loss))):
        gradient = grad(layer, X)
        assert gradient.activation is np.tanh
        np.testing.assert_allclose(gradient.weights, ml.grad(plain)(layer.weights, X), rtol=1e-12)
    batch = np.stack([X, -X, X + 1])
    expected = [plain(layer.weights, x) for x in batch]
    np.testing.assert_allclose(ml.vmap(loss, in_axes=(None, 0))(layer, batch), expected, rtol=1e-12)


def test_functions_among_the_rows_and_results_of_a_scan() -> None:
    layers = Layer(np.stack([np.eye(3), np.eye(3) * 2]), np.tanh)

    def f(x: Any, layers: Layer) -> Any:
        x, seen = ml.scan(lambda x, layer: (layer(x), layer), x, layers)
        assert seen.activation == np.tanh
        return x + np.sum(seen.weights)

    both(f, X, layers)
    last, seen = ml.scan(lambda c, layer: (c, layer), np.tanh, Layer(np.zeros((0, 3, 3)), np.sin))
    assert last is np.tanh and seen.activation is np.sin and seen.weights.shape == (0, 3, 3)


def test_a_function_that_is_named_in_the_body_is_the_same() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            return {"act": np.tanh, "join": np.concatenate, "x": carry["join"]([carry["act"](carry["x"]), x])[:3]}

        return ml.fori_loop(0, 3, body, {"act": np.tanh, "join": np.concatenate, "x": x})["x"]

    both(f, X)


def test_functions_in_results_are_those_of_numpy() -> None:
    made = ml.compile(lambda x: Layer(np.concatenate([x, x]), np.tanh, np.stack))(X)
    assert made.activation is np.tanh and made.name is np.stack
