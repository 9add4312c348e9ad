"""No rule gets an operation whose types it was not made for: looked up in one place, it is an error there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.autodiff.batching import batching
from mlirml.autodiff.forward import pushforward
from mlirml.autodiff.reverse import transpose
from mlirml.autodiff.rule_table import RuleTable, find
from mlirml.autodiff.rules.scalars import derivative
from mlirml.ir import emit
from mlirml.ir.bindings import make_context, mlir

TABLES = {"derivative": derivative, "transpose": transpose, "pushforward": pushforward, "batching": batching}
OTHER = ("vector<2xf64>", "memref<2xf64>", "complex<f64>", "tensor<*xf64>", "tensor<2xcomplex<f64>>", "none")
"""Types that no rule is made for."""


def looked_up(table: RuleTable[Any], name: str, *types: str) -> Any:
    """The rule of an operation whose operands and result have types."""
    with make_context(), mlir.Location.file("user.py", 3, 5):
        module = mlir.Module.create()
        with mlir.InsertionPoint(module.body):
            kinds = [mlir.Type.parse(text) for text in types]
            operands = list(emit.create("test.source", (), kinds[:-1]).results)
            return find(emit.create(name, operands, kinds[-1:]), table)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", OTHER)
def test_no_rule_gets_other_types(table: str, kind: str) -> None:
    rules = [name for name in TABLES[table].all() if not name.endswith(".") and TABLES[table].named(name)]
    assert rules
    for name in rules:
        operands = ["i1", kind, kind] if name == "arith.select" else [kind]
        with pytest.raises(ml.InternalError) as caught:
            looked_up(TABLES[table], name, *operands, kind)
        assert f"`{name}`" in str(caught.value) and kind in str(caught.value) and "user.py:3:5" in str(caught.value)


@pytest.mark.parametrize("name", sorted(derivative.all()))
def test_rules_of_scalars_get_no_tensors(name: str) -> None:
    with pytest.raises(ml.InternalError, match="tensor<2xf64>"):
        looked_up(derivative, name, "tensor<2xf64>", "tensor<2xf64>")


@pytest.mark.parametrize("table", TABLES)
def test_a_choice_has_the_rule_of_its_types(table: str) -> None:
    select, scalars = "arith.select", ("i1", "f64", "f64", "f64")
    tensors = ("i1", *["tensor<2xf64>"] * 3)
    if table in ("derivative", "batching"):
        assert looked_up(TABLES[table], select, *scalars)
    if table != "derivative":
        assert looked_up(TABLES[table], select, *tensors)
        with pytest.raises(ml.InternalError):
            looked_up(TABLES[table], select, "tensor<2xi1>", *tensors[1:])


def test_constants_of_tensors_are_no_numbers() -> None:
    with make_context(), mlir.Location.unknown(), pytest.raises(ml.InternalError, match="tensor<2xf64>"):
        emit.number(mlir.Type.parse("tensor<2xf64>"), 0)


def kept(x: Any) -> Any:
    """A loop that goes on with what it has once its first element is large: branches that compute nothing."""

    def body(i: Any, v: Any) -> Any:
        w = v * 2
        return ml.cond(w[0] < 3.0, lambda: w, lambda: v)

    return np.sum(np.sin(ml.fori_loop(0, 3, body, x)))


def until(x: Any) -> Any:
    """The same in a loop with a condition."""

    def body(c: Any) -> Any:
        w = c[1] * 2
        return c[0] + 1, ml.cond(w[0] < 3.0, lambda: w, lambda: c[1])

    return np.sum(np.sin(ml.while_loop(lambda c: c[0] < 3, body, (0, x))[1]))


X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("transform", ["grad", "jacfwd", "jacrev", "hessian", "vmap"])
def test_branches_that_return_what_is_there(transform: str, target: str) -> None:
    gradient, second = 2 * np.cos(2 * X), np.diag(-4 * np.sin(2 * X))
    if transform == "vmap":
        rows = np.stack([X, X / 4])
        found = ml.compile(ml.vmap(ml.grad(kept)), target)(rows)
        assert np.allclose(found, [gradient, 8 * np.cos(2 * X)])
        return
    expected = second if transform == "hessian" else gradient
    assert np.allclose(ml.compile(getattr(ml, transform)(kept), target)(X), expected)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_branches_that_return_what_is_there_in_loops_with_a_condition(target: str) -> None:
    assert np.allclose(ml.compile(ml.jacfwd(until), target)(X), 2 * np.cos(2 * X))
    rows = np.stack([X, X / 4])
    assert np.allclose(ml.compile(ml.vmap(until), target)(rows), [until(row) for row in rows])
