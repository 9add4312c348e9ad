"""A program is compiled anew when something that the function read is another object now; arrays are read each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend import helper_module
from tests.fuzz.oracle import TARGETS

X = np.arange(3.0)
SCALE: Any = 2.0
TABLE = np.ones(3)
SETTINGS: dict[str, Any] = {"rate": 2.0, "nested": {"bias": 1.0}}


def scaled(x: Any) -> Any:
    return x * SCALE


def doubled(x: Any) -> Any:
    return x * 2


def tripled(x: Any) -> Any:
    return x * 3


CURRENT: Callable[[Any], Any] = doubled


def signatures(compiled: Any) -> int:
    """How often a function was compiled."""
    return len(compiled._log)


def agrees(compiled: Any, function: Callable[[Any], Any]) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), function(X))


@pytest.mark.parametrize("target", TARGETS)
def test_a_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    compiled = ml.compile(scaled, target)
    for value in (2.0, 5.0, 5, True, np.float64(7), np.arange(3.0)):
        monkeypatch.setitem(globals(), "SCALE", value)
        agrees(compiled, scaled)
        assert compiled(X).dtype == scaled(X).dtype


def test_an_unchanged_global_compiles_once() -> None:
    compiled = ml.compile(scaled)
    for _ in range(5):
        compiled(X)
    assert signatures(compiled) == 1


def test_a_changed_global_in_a_helper_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return scaled(x) + CURRENT(x)

    compiled = ml.compile(f)
    agrees(compiled, f)
    monkeypatch.setitem(globals(), "SCALE", 11.0)
    agrees(compiled, f)
    monkeypatch.setitem(globals(), "CURRENT", tripled)
    agrees(compiled, f)
    assert signatures(compiled) == 3
    assert "`CURRENT`" in compiled.explain()


def test_a_changed_closure_variable_is_seen() -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return x * scale

    compiled = ml.compile(f)
    agrees(compiled, f)
    scale = 3.0
    agrees(compiled, f)
    assert "`scale`" in compiled.explain()


def test_a_tuple_in_a_closure_is_read_once() -> None:
    scales: Any = (2.0, (3.0, "a"))

    def f(x: Any) -> Any:
        return x * scales[0] + scales[1][0]

    compiled = ml.compile(f)
    agrees(compiled, f)
    agrees(compiled, f)
    assert "this call: runs signature 1" in compiled.explain(X)
    scales = (4.0, (3.0, "a"))
    agrees(compiled, f)
    assert "`scales`" in compiled.explain()


def test_several_arguments_of_a_derivative_are_read_once() -> None:
    gradient = ml.compile(ml.grad(lambda x, y: np.sum(x * y), argnums=(0, 1)))
    gradient(X, X)
    assert "this call: runs signature 1" in gradient.explain(X, X)


def test_a_replaced_array_is_seen_and_a_changed_one_too() -> None:
    table = np.ones(3)

    def f(x: Any) -> Any:
        return x + table

    compiled = ml.compile(f)
    agrees(compiled, f)
    table[1] = 9
    agrees(compiled, f)
    assert signatures(compiled) == 1
    table = np.ones(3, np.float32)
    agrees(compiled, f)
    assert signatures(compiled) == 2


def test_changed_settings_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return x * SETTINGS["rate"] + SETTINGS["nested"]["bias"]

    compiled = ml.compile(f)
    agrees(compiled, f)
    monkeypatch.setitem(SETTINGS, "rate", 3.0)
    agrees(compiled, f)
    monkeypatch.setitem(SETTINGS["nested"], "bias", 4.0)
    agrees(compiled, f)
    monkeypatch.setitem(SETTINGS, "unrelated", 4.0)
    agrees(compiled, f)
    assert signatures(compiled) == 3


def test_changed_attributes_are_seen() -> None:
    class Layer:
        def __init__(self, weight: float) -> None:
            self.weight = weight
            self.table = np.full(3, weight)

        def __call__(self, x: Any) -> Any:
            return x * self.weight + self.table

    class Model:
        def __init__(self) -> None:
            self.scale = 2.0
            self.layers = [Layer(1.0), Layer(2.0)]
            self.named = {"first": self.layers[0]}

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x * self.scale

    model = Model()

    def f(x: Any) -> Any:
        return model.forward(x)

    for compiled, function in [(ml.compile(model.forward), model.forward), (ml.compile(f), f)]:
        agrees(compiled, function)
        model.scale += 1
        agrees(compiled, function)
        model.layers[1].weight += 1
        agrees(compiled, function)
        model.layers[0].table = np.arange(3.0)
        agrees(compiled, function)
        model.layers[0].table[0] += 1
        agrees(compiled, function)
        assert signatures(compiled) == 4
    layer = model.layers[0]
    compiled = ml.compile(layer)
    agrees(compiled, layer)
    layer.weight = 17.0
    agrees(compiled, layer)


def test_changed_names_of_a_module_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return helper_module.biased(x) + helper_module.FACTOR

    compiled = ml.compile(f)
    agrees(compiled, f)
    monkeypatch.setattr(helper_module, "FACTOR", 7.0)
    agrees(compiled, f)
    monkeypatch.setitem(helper_module.OPTIONS, "bias", 8.0)
    agrees(compiled, f)
    monkeypatch.setattr(helper_module, "biased", tripled)
    agrees(compiled, f)
    assert signatures(compiled) == 4


def test_functions_that_change_what_they_read_run_as_python_does() -> None:
    class Counter:
        def __init__(self) -> None:
            self.calls = 0

        def step(self, x: Any) -> Any:
            self.calls += 1
            return x * self.calls

    counter, expected = Counter(), Counter()
    compiled = ml.compile(counter.step)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), expected.step(X))


def test_old_programs_do_not_pile_up() -> None:
    scale = 0.0

    def f(x: Any) -> Any:
        return x * scale

    compiled = ml.compile(f)
    for step in range(4):
        scale = float(step)
        agrees(compiled, f)
        assert compiled.entries <= 1


class Adagrad:
    def __init__(self) -> None:
        self.total: Any = None

    def update(self, w: Any, gradient: Any) -> Any:
        if self.total is None:
            self.total = np.zeros(np.shape(w))
        self.total += gradient**2
        return w - 0.1 * gradient / np.sqrt(self.total + 1e-8)


def test_the_attributes_of_an_object_of_the_program_are_no_state() -> None:
    def trained(w: Any) -> Any:
        optimizer = Adagrad()
        for _ in range(3):
            w = optimizer.update(w, 2 * w)
        return w

    compiled = ml.compile(trained)
    for k in range(4):
        np.testing.assert_allclose(compiled(X + k), trained(X + k), rtol=1e-14)
    assert signatures(compiled) == 1
    assert all(build.changed(compiled.fn) is None for build in compiled._builds.values())


def test_code_and_defaults_that_are_replaced_in_a_function_are_seen() -> None:
    """As IPython's autoreload replaces them."""

    def helper(x: Any, k: float = 2.0, *, n: float = 1.0) -> Any:
        return x * k + n

    def other(x: Any, k: float = 2.0, *, n: float = 1.0) -> Any:
        return x - k - n

    def whole(x: Any) -> Any:
        return helper(x) + 1

    compiled = ml.compile(whole)
    agrees(compiled, whole)
    helper.__defaults__ = (5.0,)
    agrees(compiled, whole)
    helper.__kwdefaults__["n"] = 7.0
    agrees(compiled, whole)
    helper.__code__ = other.__code__
    agrees(compiled, whole)
    assert "`helper` has other code or defaults than when it was compiled" in compiled.explain()


def test_an_attribute_that_hides_one_of_a_base_class_is_seen() -> None:
    class Base:
        rate = 2.0

    class Derived(Base):
        pass

    def f(x: Any) -> Any:
        return x * Derived.rate

    compiled = ml.compile(f)
    agrees(compiled, f)
    Derived.rate = 3.0
    agrees(compiled, f)
    del Derived.rate
    agrees(compiled, f)


def test_class_methods_and_methods_of_objects_with_slots_are_compiled_once() -> None:
    class Slots:
        __slots__ = ("k",)
        rate = 2.0

        @ml.compile
        def scaled(self, x: Any) -> Any:
            return x * self.k  # type: ignore[attr-defined]

        @classmethod
        @ml.compile
        def rated(cls, x: Any) -> Any:
            return x * cls.rate

    class Faster(Slots):
        rate = 5.0

    two = Slots()
    two.k = 4.0  # type: ignore[attr-defined]
    for _ in range(3):
        np.testing.assert_array_equal(two.scaled(X), X * 4)
        np.testing.assert_array_equal(Slots.rated(X), X * 2)
        np.testing.assert_array_equal(Faster.rated(X), X * 5)
    assert two.scaled is two.scaled and signatures(two.scaled) == 1
    assert signatures(Faster.rated) == signatures(Slots.rated) == 1
