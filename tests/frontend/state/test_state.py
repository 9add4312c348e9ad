"""What a function changes outside of its arguments is changed after each call, as in Python."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.current import current_trace
from tests.frontend.state.test_recompilation import signatures
from tests.fuzz.oracle import TARGETS

X = np.arange(1.0, 4.0)
COUNTS: dict[str, Any] = {"calls": 0}


class Meter:
    kept: Any = None

    def __init__(self) -> None:
        self.total = 0.0
        self.calls = 0
        self.mean = np.zeros(3)
        self.parts = [0.0, {"low": 0}]
        self.pair = (1.0, np.ones(3))

    def element_loop(self, x: Any) -> Any:
        for i in range(len(x)):
            self.total += x[i]
            if x[i] < 2:
                self.parts[1]["low"] += 1
        return self.total

    def count(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls

    def average(self, x: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * x
        return self.mean

    def items(self, x: Any) -> Any:
        self.parts[0] = self.parts[0] + np.sum(x)
        self.parts[1]["low"] += 2
        return x

    def tuples(self, x: Any) -> Any:
        a, b = self.pair
        self.pair = (a + 1, b * x)
        return x

    def new(self, x: Any) -> Any:
        self.last = x + 1
        self.kept = {"x": x, "twice": (2 * x,)}
        return x

    def python_count(self, x: Any) -> Any:
        self.calls += 1
        return x * 2 if self.calls > 2 else x

    def mode(self, x: Any) -> Any:
        self.name = "second" if getattr(self, "name", "") == "first" else "first"
        return x * len(self.name)

    def lazily(self, x: Any) -> Any:
        if not hasattr(self, "table"):
            self.table = {"scale": [3.0]}
        return x * self.table["scale"][0]


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            same(a, b)
    else:
        np.testing.assert_allclose(one, other, rtol=1e-12) if not isinstance(one, str) else one == other


METHODS = ["element_loop", "count", "average", "items", "tuples", "new", "python_count", "mode", "lazily"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", METHODS)
def test_attributes_and_items(name: str, target: str) -> None:
    compiled_one, expected = Meter(), Meter()
    compiled = ml.compile(getattr(compiled_one, name), target)
    for step in range(5):
        x = X + step
        np.testing.assert_allclose(compiled(x), getattr(expected, name)(x), rtol=1e-12)
        same(vars(compiled_one), vars(expected))
    compiled_one.total = expected.total = 7.5
    np.testing.assert_allclose(compiled(X), getattr(expected, name)(X), rtol=1e-12)
    same(vars(compiled_one), vars(expected))


@pytest.mark.parametrize("name", ["element_loop", "count", "average", "items", "tuples", "lazily"])
def test_numbers_and_arrays_compile_once_for_each_type(name: str) -> None:
    meter = Meter()
    compiled = ml.compile(getattr(meter, name))
    compiled(X)
    compiled(X)
    count = signatures(compiled)
    for _ in range(4):
        compiled(X)
    assert signatures(compiled) == count <= 2


def test_enclosing_variables_and_globals() -> None:
    total: Any = 0.0

    @ml.compile
    def add(x: Any) -> Any:
        nonlocal total
        total = total + np.sum(x)
        COUNTS["calls"] += 1
        return x

    for _ in range(3):
        add(X)
    assert total == 18.0
    assert COUNTS["calls"] == 3
    assert signatures(add) <= 2


def test_methods_of_other_objects() -> None:
    meter = Meter()

    def f(x: Any) -> Any:
        return meter.average(meter.count(x))

    compiled = ml.compile(f)
    other = Meter()
    for _ in range(3):
        np.testing.assert_allclose(compiled(X), other.average(other.count(X)), rtol=1e-12)
    assert (meter.calls, other.calls) == (3, 3)


@pytest.mark.parametrize("stage", ["trace", "lower", "explain"])
def test_stages_change_nothing(stage: str) -> None:
    meter = Meter()
    getattr(ml.compile(meter.element_loop), stage)(X)
    same(vars(meter), vars(Meter()))


def test_a_failing_trace_changes_nothing() -> None:
    meter = Meter()

    def f(x: Any) -> Any:
        meter.total += x[0]
        meter.parts.append("noted")
        return x @ np.ones(7)

    with pytest.raises(ml.ShapeError):
        ml.compile(f)(X)
    same(vars(meter), vars(Meter()))


def test_gradients() -> None:
    meter = Meter()

    def loss(x: Any) -> Any:
        meter.calls += 1
        return np.sum(x * x) * meter.calls

    gradient = ml.grad(loss)
    np.testing.assert_allclose(gradient(X), 2 * X)
    np.testing.assert_allclose(gradient(X), 4 * X)
    assert meter.calls == 2


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda m, x: x * m.layers[0].w, lambda m: m.layers.__setitem__(0, Layer(5.0))),
        (lambda m, x: sum(layer.w for layer in m.layers) * x, lambda m: m.layers.append(Layer(2.0))),
        (lambda m, x: x * m.params["l2"][0], lambda m: m.params["l2"].__setitem__(0, 7.0)),
        (lambda m, x: x * sum(m.params["l2"]), lambda m: m.params["l2"].pop()),
        (lambda m, x: x * m.scale[0], lambda m: m.scale.__setitem__(0, 2.5)),
        (lambda m, x: x * m.scale, lambda m: m.scale.__setitem__(1, 2.5)),
        (lambda m, x: x + np.sum(m.scale**2), lambda m: m.scale.__imul__(2)),
        (lambda m, x: x * m.pair[0][1], lambda m: m.pair[0].__setitem__(1, 4.0)),
        (lambda m, x: x + m.pair[1][0], lambda m: m.pair[1].__setitem__(0, 4.0)),
        (lambda m, x: x * m.factor, lambda m: setattr(m, "factor", 9.0)),
        (lambda m, x: x * m.factor, lambda m: setattr(type(m), "factor", m.factor + 1)),
        (lambda m, x: x * m.doubled(), lambda m: setattr(m, "doubled", lambda: 11.0)),
        (lambda m, x: x * len(m.params), lambda m: m.params.update(new=1.0)),
        (lambda m, x: x * m.nested["a"]["b"][0]["c"], lambda m: m.nested["a"]["b"][0].update(c=3.5)),
        (lambda m, x: x * (2 if 3 in m.chosen else 1), lambda m: m.chosen.add(3)),
        (lambda m, x: x if m.scale[2] > 5 else -x, lambda m: m.scale.__setitem__(2, 6.0)),
        (lambda m, x: x[m.index], lambda m: m.index.__setitem__(0, 2)),
    ],
)
def test_a_change_deep_inside_is_seen(read: Callable[..., Any], change: Callable[[Any], Any]) -> None:
    model = Model()

    def f(x: Any) -> Any:
        return read(model, x)

    compiled = ml.compile(f)
    for _ in range(2):
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), f(X))
        change(model)
    np.testing.assert_array_equal(compiled(X), f(X))


class Layer:
    def __init__(self, w: float) -> None:
        self.w = w


class Model:
    factor = 2.0

    def __init__(self) -> None:
        self.layers = [Layer(1.0), Layer(3.0)]
        self.params: dict[str, Any] = {"l1": [1.0], "l2": [2.0, 3.0, 4.0]}
        self.scale = np.ones(3)
        self.pair = ([1.0, 2.0], np.ones(2))
        self.nested = {"a": {"b": [{"c": 1.5}]}}
        self.chosen = {1}
        self.index = np.array([0, 1])

    def doubled(self) -> float:
        return 2 * self.factor


def test_arrays_that_are_only_combined_compile_once() -> None:
    model = Model()
    compiled = ml.compile(lambda x: x * model.scale + model.pair[1][:1])
    for step in range(3):
        model.scale[step] = 5.0
        np.testing.assert_array_equal(compiled(X), X * model.scale + 1)
    assert signatures(compiled) == 1


def test_collections_wait_until_a_function_is_traced() -> None:
    seen = []

    def callback(phase: str, _: Any) -> None:
        seen.append((phase, current_trace() is not None))

    def f(x: Any) -> Any:
        cycles: list[Any] = []
        for _ in range(50):
            cycles.append(cycles)
            x = np.sin(x) + 1
        return x

    thresholds = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(200)
    try:
        ml.trace(f, np.ones(3))
        ml.compile(f).lower(np.ones(3))
        ml.compile(f).explain(np.ones(3))
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*thresholds)
    assert seen and not any(tracing for _, tracing in seen)
