"""Combinations of an accumulator with a term: read from a body, also where they take several operations."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis.reductions import Combination, argmaxes_of, combination_of, extreme_of, is_only_use
from mlirml.ir.bindings import block_ops, defining_op, make_context, mlir, named_operations
from mlirml.ir.combiners import COMBINERS


def body(text: str, element: str = "f64") -> tuple[mlir.Block, mlir.Value, mlir.Value, mlir.Module]:
    """A function of the accumulator `%a` and a term `%b`: its block, both arguments, and the module that holds it."""
    module = mlir.Module.parse(f"func.func @f(%a: {element}, %b: {element}) -> {element} {{ {text} }}", make_context())
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    return block, block.arguments[0], block.arguments[1], module


def combined(text: str, element: str = "f64") -> Combination | None:
    block, a, b, _module = body(text, element)
    found = combination_of(block_ops(block)[-1].operands[0], a)
    assert found is None or found.term == b
    return found


@pytest.mark.parametrize("operands", ["%a, %b", "%b, %a"])
def test_each_operation_is_read_with_its_operands_in_either_order(operands: str) -> None:
    for row in COMBINERS.values():
        if row.several is None:
            element = "f64" if row.is_float else "i64"
            found = combined(f"%0 = {row.op} {operands} : {element} return %0 : {element}", element)
            assert found is not None and found.combiner is row


def test_others_are_no_combination() -> None:
    assert combined("%0 = arith.subf %a, %b : f64 return %0 : f64") is None
    assert combined("%0 = arith.mulf %a, %a : f64 return %0 : f64") is None
    assert combined("return %a : f64") is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_operations_are_one_combination(dtype: type) -> None:
    text = ml.compile(lambda x: np.logaddexp2.reduce(x, axis=0)).ir("capture", np.ones((3, 4), dtype))
    module = mlir.Module.parse(text, make_context())
    generics = named_operations(module.operation, ("linalg.generic",))
    (reduction,) = [op for op in generics if "reduction" in str(op.attributes["iterator_types"])]
    block = reduction.regions[0].blocks[0]
    x, accumulator = block.arguments
    (result,) = block_ops(block)[-1].operands
    found = combination_of(result, accumulator)
    assert found is not None and found.combiner is COMBINERS["logaddexp2"]
    assert found.term == x and found.op == defining_op(result) and is_only_use(found, accumulator)
    assert {op.name for op in found.ops} == {op.name for op in block_ops(block)[:-1]} - {"arith.constant"}


def test_another_use_of_the_accumulator_is_seen() -> None:
    text = "%0 = arith.addf %a, %b : f64 %1 = arith.mulf %a, %b : f64 return %0 : f64"
    block, a, _, _module = body(text)
    found = combination_of(block_ops(block)[-1].operands[0], a)
    assert found is not None and not is_only_use(found, a)
    assert is_only_use(found, a, [block_ops(block)[1]])


@pytest.mark.parametrize(
    ("condition", "element", "wanted"),
    [
        ("%0 = arith.cmpf ogt, %b, %a : f64", "f64", "arith.maxnumf"),
        ("%0 = arith.cmpf olt, %a, %b : f64", "f64", "arith.maxnumf"),
        ("%0 = arith.cmpf olt, %b, %a : f64", "f64", "arith.minnumf"),
        ("%0 = arith.cmpi sgt, %b, %a : i64", "i64", "arith.maxsi"),
        ("%0 = arith.cmpi ugt, %a, %b : i64", "i64", "arith.minui"),
        ("%0 = arith.cmpi sge, %b, %a : i64", "i64", None),
        ("%0 = arith.cmpf ogt, %b, %b : f64", "f64", None),
        (
            "%1 = arith.cmpf ogt, %b, %a : f64 %2 = arith.cmpf uno, %b, %b : f64 %3 = arith.cmpf ord, %a, %a : f64 "
            "%4 = arith.andi %2, %3 : i1 %0 = arith.ori %1, %4 : i1",
            "f64",
            "arith.maximumf",
        ),
    ],
)
def test_a_condition_is_read_as_the_extreme_that_it_takes(condition: str, element: str, wanted: str | None) -> None:
    text = f"{condition} %r = arith.select %0, %b, %a : {element} return %r : {element}"
    block, a, b, _module = body(text, element)
    chosen = defining_op(block_ops(block)[-1].operands[0])
    assert chosen is not None
    found = extreme_of(chosen.operands[0], b, a)
    assert (None if found is None else found.op) == wanted


PAIR = """
func.func @f(%x: f64, %place: i64, %best: f64, %at: i64) -> (f64, i64) {{
  %better = arith.cmpf ogt, {compared}, %best : f64
  %value = {value}
  %index = arith.select %better, %place, %at : i64
  return %value, %index : f64, i64
}}
"""


@pytest.mark.parametrize(
    ("compared", "value", "is_argmax"),
    [
        ("%x", "arith.select %better, %x, %best : f64", True),
        ("%x", "arith.select %better, %best, %x : f64", False),
        ("%x", "arith.addf %x, %best : f64", False),
        ("%x", "arith.maxnumf %x, %best : f64", False),  # another value, if the best one is NaN
    ],
)
def test_an_argmax_is_a_pair_selected_by_one_condition(compared: str, value: str, is_argmax: bool) -> None:
    module = mlir.Module.parse(PAIR.format(compared=compared, value=value), make_context())
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    x, place, best, at = block.arguments
    found = list(argmaxes_of(list(block_ops(block)[-1].operands), [best, at], lambda each: each == place))
    assert bool(found) == is_argmax
    if found:
        assert (found[0].value, found[0].index, found[0].term, found[0].position) == (0, 1, x, place)
    assert not list(argmaxes_of(list(block_ops(block)[-1].operands), [best, at], lambda each: each == at))
