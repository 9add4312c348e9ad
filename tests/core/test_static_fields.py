"""Static fields of dataclasses: a part of the structure, in compiled functions, derivatives, loops and batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten, map_leaves, store_leaves


@dataclass
class Strided:
    weight: Any
    stride: int = ml.static_field(default=2)
    shift: float = field(default=0.5, metadata={"static": True})  # as JAX has it

    def __call__(self, x: Any) -> Any:
        return np.sum(x[:: self.stride]) * self.weight + self.shift


X = np.arange(6.0)


def test_a_static_field_is_no_leaf() -> None:
    leaves, structure = flatten([Strided(1.0, 3)])
    assert leaves == [1.0] and structure.paths("t") == ["t[0].weight"]
    assert structure.unflatten([5.0]) == [Strided(5.0, 3)]
    assert structure.without_constants() == structure and structure.constants() == {}


def test_structures_differ_by_the_values_of_static_fields() -> None:
    given = [Strided(1.0, 1), Strided(1.0, 2), Strided(1.0, 1, 0.0), Strided(1.0, 1, -0.0), Strided(1.0, True)]
    assert len({flatten(one)[1] for one in given}) == len(given)
    assert flatten(Strided(1.0))[1] == flatten(Strided(2.0))[1]
    with pytest.raises(ValueError, match="differ in structure"):
        map_leaves(lambda x, y: x, Strided(1.0, 1), Strided(1.0, 2))


def test_leaves_are_stored_past_static_fields() -> None:
    tree = [Strided(1.0), 2.0]
    store_leaves(tree, {0: 3.0, 1: 4.0})
    assert tree == [Strided(3.0), 4.0]


def test_a_value_without_hash_is_an_error_that_names_the_field() -> None:
    with pytest.raises(ml.ArgumentError, match="static field `stride` of a Strided holds a list") as error:
        ml.compile(lambda model: model.weight)(Strided(np.ones(3), [1, 2]))  # type: ignore[arg-type]
    assert error.value.help is not None and "tuple" in error.value.help


def test_a_compiled_function_has_the_python_number() -> None:
    @ml.compile
    def f(model: Strided, x: Any) -> Any:
        return model(x) if (type(model.stride), type(model.shift)) == (int, float) else 0.0

    for _ in range(3):  # known calls too
        for stride, shift in ((1, 0.5), (2, 0.5), (2, 1.5)):
            model = Strided(np.array(3.0), stride, shift)
            assert f(model, X) == model(X) > 0
    assert "3 signature(s)" in f.explain()


def doubled(model: Strided) -> Strided:
    return replace(model, weight=2 * model.weight)


@pytest.mark.parametrize(
    "function",
    [doubled, lambda m: ml.fori_loop(0, 1, lambda i, one: doubled(one), m),
     lambda m: ml.cond(m.weight > 0, doubled, doubled, m), lambda m: ml.jvp(doubled, (m,), (m,))[1]],
)  # fmt: skip
def test_a_result_has_its_static_fields(function: Callable[[Strided], Strided]) -> None:
    for stride in (1, 3):
        found = ml.compile(function)(Strided(np.array(3.0), stride))
        assert found == Strided(np.array(6.0), stride) and type(found.stride) is int and type(found.shift) is float


@dataclass
class Outer:
    parts: list[Strided]
    scale: Any
    name: str = ml.static_field(default="outer")

    def __call__(self, x: Any) -> Any:
        return self.scale * sum(part(x) for part in self.parts)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_by_the_other_fields(compiled: bool) -> None:
    gradient = ml.grad(lambda model, x: model(x))
    model = Outer([Strided(np.array(3.0), 1), Strided(np.array(5.0), 3)], np.array(2.0), "two")
    found = (ml.compile(gradient) if compiled else gradient)(model, X)
    assert found == Outer([Strided(30.0, 1), Strided(6.0, 3)], 45.0 + 15.0 + 1.0, "two")
    assert [type(part.stride) for part in found.parts] == [int, int]


def test_a_batch_shares_the_static_fields() -> None:
    model = Strided(np.array([1.0, 2.0]), 3)
    assert ml.vmap(lambda m, x: m(x), in_axes=(0, None))(model, X).tolist() == [3.5, 6.5]


def test_an_object_of_one_program_is_compiled_anew_for_another_value() -> None:
    model = Strided(np.array(3.0), 1)
    f = ml.compile(lambda x: model(x))
    assert f(X) == 45.5
    model.stride = 3
    assert f(X) == 9.5
