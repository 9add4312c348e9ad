"""Dicts come back in the order of the user's dict, from functions, transforms and loops; equal keys fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlirml as ml
from mlirml.core.tree import flatten
from tests.fuzz.oracle import TARGETS

P: dict[str, Any] = {"w": np.arange(3.0), "b": 2.0, "a": {"z": np.ones(2), "k": 1.0}}


def loss(p: Any) -> Any:
    return np.sum(p["w"] ** 2) * p["b"] + np.sum(p["a"]["z"]) * p["a"]["k"]


def orders(tree: Any) -> Any:
    return [(key, orders(value)) for key, value in tree.items()] if isinstance(tree, dict) else None


@pytest.mark.parametrize("target", TARGETS)
def test_results_and_arguments(target: str) -> None:
    compiled = ml.compile(lambda p: {"out": p, "first": p["b"]}, target)
    for _ in range(2):
        assert orders(compiled(P)) == orders({"out": P, "first": 0})


@pytest.mark.parametrize(
    "call",
    [
        lambda p: ml.grad(loss)(p),
        lambda p: ml.value_and_grad(loss)(p)[1],
        lambda p: ml.jvp(lambda q: q, (p,), (p,))[1],
        lambda p: ml.compile(lambda q: ml.vjp(loss, q)[1](1.0)[0])(p),
        lambda p: ml.jacrev(loss)(p),
        lambda p: ml.jacfwd(loss)(p),
        lambda p: ml.scan(lambda c, x: (c, c), p, np.ones(2))[0],
        lambda p: ml.scan(lambda c, x: (c, c), p, np.ones(2))[1],
        lambda p: ml.compile(lambda q: ml.scan(lambda c, x: (c, c), q, np.ones(2)))(p)[0],
        lambda p: ml.compile(lambda q: ml.fori_loop(0, 3, lambda i, c: c, q))(p),
        lambda p: ml.compile(lambda q: ml.cond(q["b"] > 1, lambda r: r, lambda r: r, q))(p),
        lambda p: ml.compile(lambda q: ml.stop_gradient(q))(p),
        lambda p: ml.compile(lambda q: ml.checkpoint(lambda r: r)(q))(p),
    ],
)
def test_transforms_and_loops(call: Callable[[Any], Any]) -> None:
    assert orders(call(P)) == orders(P)


def test_vmap() -> None:
    p = {"w": np.ones((4, 3)), "b": np.ones(4)}
    assert list(ml.vmap(lambda q: {"y": q, "x": q["b"]})(p)) == ["y", "x"]
    assert list(ml.vmap(lambda q: q)(p)) == ["w", "b"]


def test_pairs_of_parameters_and_gradients() -> None:
    grads = ml.grad(loss)({"w": np.arange(3.0), "b": 2.0, "a": {"z": np.ones(2), "k": 1.0}})
    for (name, value), grad in zip(P.items(), grads.values()):
        if name != "a":
            assert np.shape(value) == np.shape(grad)


def test_a_function_sees_the_order_of_each_call() -> None:
    compiled = ml.compile(lambda p: next(iter(p.values())))
    for _ in range(2):
        assert compiled({"a": 1.0, "b": 2.0}) == 1.0
        assert compiled({"b": 2.0, "a": 1.0}) == 2.0
    assert "the keys of a dict come in another order" in compiled.explain()


def test_arguments_by_name() -> None:
    ordered = ml.compile(lambda **named: next(iter(named.values())))
    assert (ordered(a=1.0, b=2.0), ordered(b=2.0, a=1.0)) == (1.0, 2.0)
    named = ml.compile(lambda a, b: a - b)
    assert (named(a=1.0, b=2.0), named(b=2.0, a=1.0)) == (-1.0, -1.0)
    assert len(named._builds) == 1


def test_equal_keys_in_another_order_fit_together() -> None:
    turned = {"b": 1.0, "w": np.ones(3), "a": {"k": 1.0, "z": np.ones(2)}}
    value, change = ml.jvp(lambda p: p, (P,), (turned,))
    assert orders(value) == orders(P)
    np.testing.assert_array_equal(change["w"], np.ones(3))
    carry = ml.compile(lambda p: ml.fori_loop(0, 1, lambda i, c: {"b": c["b"] + 1, "a": c["a"]}, p))
    assert carry({"a": 1.0, "b": 2.0}) == {"a": 1.0, "b": 3.0}


_KEYS = st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=6)


@given(_KEYS, st.randoms(use_true_random=False))
def test_any_order_comes_back(keys: list[str], random: Any) -> None:
    tree = {key: dict.fromkeys(reversed(keys), index) for index, key in enumerate(keys)}
    leaves, structure = flatten(tree)
    assert orders(structure.unflatten(leaves)) == orders(tree)
    other = list(keys)
    random.shuffle(other)
    assert flatten({key: dict.fromkeys(other, 0) for key in other})[1] == structure
