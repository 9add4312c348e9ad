"""Objects of declared classes are containers to the dispatcher, which runs no code of theirs."""

from __future__ import annotations

import dataclasses
import gc
import sys
import timeit
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import plain_fields
from mlirml.runtime import Dispatcher, Program, declare_fields, number_leaves

from .test_dispatch import Missed, dispatcher, miss
from .test_program import copy_program

X, Y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)


@dataclasses.dataclass
class Layer:
    weight: Any
    size: Any = ml.static_field(default=1)


@dataclasses.dataclass(frozen=True)
class Frozen:
    weight: Any


class Other(Layer):
    pass


@pytest.fixture
def program() -> Program:
    for class_ in (Layer, Frozen):
        assert declare_fields(class_, plain_fields(class_) or ())
    return copy_program("f4", (8,))


def test_leaves_are_those_of_the_fields_in_order(program: Program) -> None:
    numbered = number_leaves(([Layer(X, (1, None, 2)), 5.0], Frozen(Layer(Y))), {})
    assert numbered is not None
    (first, five), second = numbered[0]
    assert (first, five) == (Layer(0, (1, None, 2)), 3) and type(second) is Frozen and second.weight == Layer(4, 5)


def test_a_known_call_is_found_by_class_fields_and_static_values(program: Program) -> None:
    call = dispatcher(Layer(X, 3), program=program, order=[0], statics=[1])
    assert np.array_equal(call(Layer(Y, 3)), Y)
    known = Layer(Y, 3)
    known.more = "an attribute that is no field"  # type: ignore[attr-defined]
    assert np.array_equal(call(known), Y)
    del known.weight
    for one in (Layer(Y, 4), Layer(Y, 3.0), Layer(Y, None), Layer([Y], 3), Frozen(Y), Other(Y, 3), [Y, 3], known):
        with pytest.raises(Missed):
            call(one)


def test_references_and_large_trees(program: Program) -> None:
    tree: Any = X
    for _ in range(20):
        tree = Layer(tree)
    call = Dispatcher(miss)
    assert call.add((tree,), {}, program, 0, list(range(1)), list(range(1, 21)))
    before = [sys.getrefcount(x) for x in (X, tree, tree.__dict__, Layer)]
    for _ in range(100):
        call(tree)
        number_leaves((tree,), {})
    gc.collect()
    assert [sys.getrefcount(x) for x in (X, tree, tree.__dict__, Layer)] == before
    deep: Any = X
    for _ in range(100):
        deep = Layer(deep)
    assert number_leaves((deep,), {}) is None
    cycle = Layer(None)
    cycle.weight = cycle
    assert number_leaves((cycle,), {}) is None
    with pytest.raises(Missed):
        call(cycle)


def test_classes_whose_fields_are_elsewhere_are_not_plain() -> None:
    @dataclasses.dataclass
    class Slotted:
        __slots__ = ("weight",)
        weight: Any

    @dataclasses.dataclass
    class Watching:
        weight: Any

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name)

    class Property(Layer):
        @property
        def size(self) -> Any:  # type: ignore[override]
            return 2

        @size.setter
        def size(self, value: Any) -> None:
            pass

    assert plain_fields(Layer) == ("weight", "size") and plain_fields(Other) == ("weight", "size")
    assert [plain_fields(class_) for class_ in (Slotted, Watching, Property)] == [None] * 3
    for class_ in (Slotted, Watching, Property):
        compiled = ml.compile(lambda model, x: model.weight * x)
        for _ in range(3):
            assert np.array_equal(compiled(class_(Y), X), X)


def test_a_compiled_function_knows_calls_with_models() -> None:
    @dataclasses.dataclass
    class Model:
        layers: list[Layer]
        scale: Any
        function: Any = np.negative

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = x * layer.weight * layer.size
            return self.function(x) * self.scale

    compiled = ml.compile(lambda model, x: model(x))
    models = [
        Model([Layer(Y, size), Layer(X, 2)], scale, function)
        for size in (1, 2, 3)
        for scale in (2.0, Y)
        for function in (np.negative, np.square)
    ]
    for _ in range(3):
        for model in models:
            np.testing.assert_array_equal(compiled(model, X), model(X))
    assert compiled.entries == len(models)
    models[0].layers[0].weight = 3 * Y
    np.testing.assert_array_equal(compiled(models[0], X), models[0](X))
    models[0].layers[0].size = 7
    np.testing.assert_array_equal(compiled(models[0], X), models[0](X))
    models[0].layers.append(Layer(Y, 5))
    np.testing.assert_array_equal(compiled(models[0], X), models[0](X))


def test_a_static_argument_that_is_an_object_is_compared_as_a_whole() -> None:
    @dataclasses.dataclass(frozen=True)
    class Options:
        size: int

    compiled = ml.compile(lambda x, options: x * (options.size + getattr(options, "more", 0)), static_argnums=1)
    ml.compile(lambda options: options.size)(Options(3))  # now its class is declared
    for size in (1, 2):
        for _ in range(2):
            assert np.array_equal(compiled(X, Options(size)), X * size)


def test_a_call_with_a_model_takes_microseconds() -> None:
    compiled = ml.compile(lambda layers, x: layers[0].weight + x)
    layers = [Layer(Y) for _ in range(20)]
    for _ in range(3):
        compiled(layers, X)
    assert min(timeit.repeat(lambda: compiled(layers, X), number=100, repeat=5)) / 100 < 50e-6
