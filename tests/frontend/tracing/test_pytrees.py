"""Containers as arguments and results: the same structure in and out as with NumPy."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import ArgumentError
from tests.fuzz.oracle import check

Pair = namedtuple("Pair", "first second")


class Layer(NamedTuple):
    weight: Any
    bias: Any = None


@dataclass
class Point:
    x: Any
    y: Any


@dataclass(frozen=True)
class Scaled:
    value: Any
    twice: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.value)


X, Y = np.arange(3.0), np.arange(3.0) + 10

ARGUMENTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "tuple": ((X, Y), lambda t: t[0] - t[1]),
    "list": ([X, Y], lambda t: t[0] - t[1]),
    "dict": ({"b": X, "a": Y}, lambda t: t["b"] - t["a"]),
    "dict of integers": ({2: X, 1: Y}, lambda t: t[2] - t[1]),
    "dict of mixed keys": ({"b": X, 1: Y}, lambda t: t["b"] - t[1]),
    "dict of tuples": ({(0, 1): X, (1, 0): Y}, lambda t: t[0, 1] - t[1, 0]),
    "OrderedDict": (OrderedDict(b=X, a=Y), lambda t: t["b"] - t["a"]),
    "namedtuple": (Pair(X, Y), lambda t: t.first - t.second),
    "NamedTuple with None": (Layer(X), lambda t: t.weight if t.bias is None else t.weight + t.bias),
    "dataclass": (Point(X, Y), lambda t: t.x - t.y),
    "frozen dataclass": (Scaled(X), lambda t: t.twice - t.value),
    "nested": ({"a": [X, (Y, None)], "b": Point(Pair(X, 2.0), [])}, lambda t: t["a"][1][0] * t["b"].x.second),
    "None": (None, lambda t: X * 2 if t is None else X),
    "empty": ([(), {}], lambda t: X + len(t)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_containers_as_arguments(name: str) -> None:
    argument, body = ARGUMENTS[name]
    check(lambda t, x: body(t) + x, argument, X)


@pytest.mark.parametrize("name", [n for n in ARGUMENTS if n not in ("dict of mixed keys",)])
def test_containers_come_back_as_they_went_in(name: str) -> None:
    argument, _ = ARGUMENTS[name]
    check(lambda t, x: (t, x + 1), argument, X)


def test_containers_as_results() -> None:
    check(lambda x: {"b": x, "a": [x + 1, (x + 2,)], "c": None}, X)
    check(lambda x: OrderedDict(b=x, a=-x), X)
    check(lambda x: Point(Pair(x, x + 1), Layer(x * 2)), X)
    check(lambda x: None, X)
    check(lambda x: (), X)
    check(lambda x: [x], X)
    check(lambda x: (x, x), X)


def test_order_of_dict_results_is_that_of_the_function() -> None:
    result = ml.compile(lambda x: {"b": x, "a": x})(X)
    assert set(result) == {"a", "b"}
    ordered = ml.compile(lambda x: OrderedDict(b=x, a=x))(X)
    assert list(ordered) == ["b", "a"]


def test_keys_in_another_order_run_the_same_program() -> None:
    compiled = ml.compile(lambda t: t["a"] - 2 * t["b"])
    expected = X - 2 * Y
    for argument in ({"a": X, "b": Y}, {"b": Y, "a": X}) * 2:
        np.testing.assert_array_equal(compiled(argument), expected)
    assert "1 signature(s) compiled" in compiled.explain()


def test_keyword_arguments_and_defaults() -> None:
    def f(x: Any, y: Any = 2.0, *rest: Any, scale: Any = 1.0, **options: Any) -> Any:
        return (x * scale + y + sum(rest), options)

    check(f, X)
    check(f, X, Y)
    check(f, X, Y, X, Y)
    check(f, X, scale=Y)
    check(f, X, y=Y, bias=X, other=3)


def test_an_array_given_twice() -> None:
    x = np.arange(4.0)
    compiled = ml.compile(lambda a, b: (a + b, a))
    for _ in range(2):
        total, same = compiled(x, x)
        np.testing.assert_array_equal(total, 2 * x)
        assert same is not x


def test_structures_of_the_same_leaves_share_a_program() -> None:
    def total(tree: Any) -> Any:
        return sum(tree.values()) if isinstance(tree, dict) else sum(tree)

    compiled = ml.compile(total)
    for tree in ([X, Y], (X, Y), {"a": X, "b": Y}, [X], [X, 1.0], [X, 1]):
        np.testing.assert_array_equal(compiled(tree), total(tree))
    assert "4 signature(s) compiled" in compiled.explain()


def test_items_stored_into_containers_reach_the_caller() -> None:
    def update(state: dict[str, Any], values: list[Any], x: Any) -> None:
        state["mean"] = state["mean"] + x
        values[1] = values[0] * 2

    check(update, {"mean": X, "steps": Y}, [X, Y], X)


CHANGES = [
    lambda t: t.append(t[0]), lambda t: t.pop(), lambda t: t.clear(), lambda t: t.insert(0, t[1] * 2),
    lambda t: t.extend([t[0].sum(), 2.5]), lambda t: t.__delitem__(0), lambda t: t.reverse(),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_lists_get_other_items(change: Any) -> None:
    def f(t: list[Any], nested: Any) -> Any:
        change(t)
        change(nested["of"][0])
        return X

    check(f, [X, Y], {"of": ([Y, X],)})


def test_items_that_stay_are_the_same_objects() -> None:
    compiled = ml.compile(lambda t: t.append(t[0] * 2))
    for _ in range(2):
        given = [X, Y]
        compiled(given)
        assert given[0] is X and given[1] is Y and np.array_equal(given[2], X * 2)


def test_dicts_get_other_items() -> None:
    def update(state: dict[str, Any], x: Any) -> Any:
        state["new"] = state.pop("old") + x
        state["steps"] += 1
        return state.popitem()[1]

    check(update, {"old": X, "steps": 3, "last": Y}, X)


def test_containers_that_do_not_get_other_items() -> None:
    def grow(one: list[Any], other: list[Any]) -> None:
        one.append(1.0)

    def grow_rows(rows: list[Any]) -> None:
        rows.append([1.0])

    def fail(items: list[Any], x: Any) -> None:
        items.append(x)
        if x < 0:
            raise ValueError("negative")

    shared: list[Any] = []
    with pytest.raises(ArgumentError, match="passed twice"):
        ml.compile(grow)(shared, shared)
    with pytest.raises(ml.errors.CaptureError, match="other items after the call than before"):
        ml.compile(grow_rows)([[1.0]])
    with pytest.raises(ValueError, match="negative"):
        ml.compile(fail)(shared, -1.0)
    assert shared == []
    ml.compile(grow)(shared, [])
    assert shared == [1.0]


@pytest.mark.parametrize("leaf", ["a string", b"bytes", {1, 2}, object(), range(3)])
def test_other_leaves_are_refused_by_their_path(leaf: Any) -> None:
    with pytest.raises((ArgumentError, ml.errors.DTypeError), match=r"(argument `t|result)\['a'\]\[1\]"):
        ml.compile(lambda t: t)({"a": [X, leaf]})
