"""Narrow integers: positions of 64 bits become such of 32 bits on devices without 64-bit integers.

Before:
    %table = arith.constant dense<[2, 1, 0]> : tensor<3xi64>
    %y = linalg.generic ... ins(%table : tensor<3xi64>) outs(%e : tensor<3x5xf32>) {
    ^bb0(%i: i64, %out: f32):
      %row = arith.index_castui %i : i64 to index
      %v = tensor.extract %x[%row, %j] : tensor<6x5xf32>
After:
    %table = arith.constant dense<[2, 1, 0]> : tensor<3xi32>
    %y = linalg.generic ... ins(%table : tensor<3xi32>) outs(%e : tensor<3x5xf32>) {
    ^bb0(%i: i32, %out: f32):
      %row = arith.index_castui %i : i32 to index

NumPy's positions have 64 bits: those of `x[np.array([2, 1, 0])]` and of `np.argmax(x, axis=0)`. Values are narrowed
together where they are passed on as they are, by structured operations, selections and views, and where sums of them
are known to have 32 bits. All that make them must be constants of 32 bits, extensions of narrower integers, or indices,
which have 32 bits on such a device; and all that read them must be indices, narrower integers, comparisons, or floats.
"""

from __future__ import annotations

import numpy as np

from mlirml.analysis.ranges import Ranges
from mlirml.analysis.traits import TENSOR_STORES, TENSOR_VIEWS
from mlirml.analysis.values import element_type
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, main_function, mlir, operations
from mlirml.passes import Pass, register
from mlirml.targets.machine import Device

_PASSED_ON = frozenset([
    "arith.select", "arith.maxsi", "arith.minsi", "tensor.concat", "tensor.empty", "tensor.extract",
    "tensor.from_elements", "tensor.splat", *TENSOR_STORES, *TENSOR_VIEWS,
])  # fmt: skip
"""Operations all of whose 64-bit integers have the same values, or some of them."""
_ARITHMETIC = ("arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi", "arith.floordivsi")
_SIGNED = (0, 1, 2, 3, 4, 5)
"""The comparisons of `arith.cmpi` for equality and of signed integers."""
_LEAST, _GREATEST = -(2**31), 2**31 - 1


@register
class NarrowIntegersPass(Pass):
    """Give 64-bit integers that are made of indices, and read as such, 32 bits on devices that have no others."""

    device: Device = Device()

    def run(self, module: mlir.Operation) -> None:
        if not self.device.dtypes or "i64" in self.device.dtypes:
            return
        main = main_function(module)
        groups, ranges = Groups(), Ranges()
        for argument in main.regions[0].blocks[0].arguments:
            groups.keep_wide(argument)
        for op in list(operations(main)):
            separate_uses(op)
        ops = list(operations(main))
        for op in ops:
            group_values(op, groups, ranges)
        for op in ops:
            narrow(op, groups)


class Groups:
    """The values that are narrowed together, if at all."""

    def __init__(self) -> None:
        self._next: dict[mlir.Value, mlir.Value] = {}
        self._wide: set[mlir.Value] = set()

    def first(self, value: mlir.Value) -> mlir.Value:
        """The representative of the group of a value."""
        while value in self._next:
            value = self._next[value]
        return value

    def join(self, *values: mlir.Value) -> None:
        """Put values into one group."""
        one, *others = (self.first(value) for value in values)
        for other in others:
            if other != one:
                self._next[other] = one
                if other in self._wide:
                    self._wide.add(one)

    def keep_wide(self, value: mlir.Value) -> None:
        """Leave a value, and all of its group, at 64 bits."""
        self._wide.add(self.first(value))

    def is_narrow(self, value: mlir.Value) -> bool:
        """True for a 64-bit integer, or an array of some, that becomes narrow."""
        return is_wide(value.type) and self.first(value) not in self._wide


def is_wide(value_type: mlir.Type) -> bool:
    """True for i64 and for tensors of it."""
    dtype = element_type(value_type)
    return isinstance(dtype, mlir.IntegerType) and dtype.width == 64


def made_values(op: mlir.Operation) -> list[mlir.Value]:
    """The results and block arguments of an operation."""
    return [*op.results, *(a for region in op.regions for block in region.blocks for a in block.arguments)]


def separate_uses(op: mlir.Operation) -> None:
    """Clone a constant for each of its uses, so that it joins no groups."""
    if op.name != "arith.constant" or not is_wide(op.results[0].type):
        return
    for user, number in [(use.owner.operation, use.operand_number) for use in op.results[0].uses][1:]:
        with op.location, mlir.InsertionPoint(op):
            user.operands[number] = op.clone().operation.results[0]


def group_values(op: mlir.Operation, groups: Groups, ranges: Ranges) -> None:
    """Join the values that an operation passes on, and keep those wide that it needs so."""
    values = [value for value in (*op.operands, *made_values(op)) if is_wide(value.type)]
    if not values or makes_narrow(op, ranges) or reads_narrow(op):
        return
    if op.name in ("linalg.generic", "linalg.fill"):
        body = op.regions[0].blocks[0]
        inputs = len(op.operands) - len(op.results)
        for operand, argument in zip(op.operands, body.arguments, strict=True):
            if is_wide(argument.type):
                groups.join(operand, argument)
        for init, result, yielded in zip(list(op.operands)[inputs:], op.results, block_ops(body)[-1].operands):
            if is_wide(result.type):
                groups.join(init, result, yielded)
    elif op.name == "linalg.yield" and op.parent.name in ("linalg.generic", "linalg.fill"):
        return  # joined there: its operands are of several results
    elif passes_on(op, ranges):
        groups.join(*values)
    else:
        for value in values:
            groups.keep_wide(value)


def passes_on(op: mlir.Operation, ranges: Ranges) -> bool:
    """True if an operation computes the same with 32 bits as with 64."""
    if op.name == "arith.cmpi":
        return op.attributes["predicate"].value in _SIGNED
    return op.name in _PASSED_ON or (op.name in _ARITHMETIC and ranges.within(op.results[0], _LEAST, _GREATEST))


def makes_narrow(op: mlir.Operation, ranges: Ranges) -> bool:
    """True if the 64-bit integers that an operation makes fit into 32 bits."""
    if op.name == "arith.constant":
        (made,) = op.results
        found = ranges.of_elements(made) if isinstance(made.type, mlir.RankedTensorType) else ranges.of(made)
        return found is not None and found[0] >= _LEAST and found[1] <= _GREATEST
    if op.name in ("arith.extsi", "arith.extui"):
        width = element_type(op.operands[0].type).width
        return bool(width <= 32 if op.name == "arith.extsi" else width < 32)
    return op.name == "arith.index_cast" and is_wide(op.results[0].type)


def reads_narrow(op: mlir.Operation) -> bool:
    """True if an operation computes the same with narrow operands, of which it makes something else."""
    if op.name == "arith.trunci":
        return bool(element_type(op.results[0].type).width <= 32)
    return op.name in ("arith.index_cast", "arith.index_castui", "arith.sitofp") and is_wide(op.operands[0].type)


def narrow_type(value_type: mlir.Type) -> mlir.Type:
    """The type with 32 bits instead of 64."""
    word = mlir.IntegerType.get_signless(32)
    return mlir.RankedTensorType.get(value_type.shape, word) if isinstance(value_type, mlir.RankedTensorType) else word


def narrow_constant(attribute: mlir.Attribute) -> mlir.Attribute:
    if isinstance(attribute, mlir.IntegerAttr):
        return mlir.IntegerAttr.get(narrow_type(attribute.type), mlir.IntegerAttr(attribute).value)
    kind = narrow_type(attribute.type)
    dense = mlir.DenseElementsAttr(attribute)
    if dense.is_splat:
        return mlir.DenseElementsAttr.get_splat(kind, narrow_constant(dense.get_splat_value()))
    return mlir.DenseElementsAttr.get(np.array(dense).astype(np.int32))


def narrow(op: mlir.Operation, groups: Groups) -> None:
    """Give the results and block arguments of an operation their narrow types."""
    if op.name in ("arith.extsi", "arith.extui", "arith.trunci"):
        (source,), (result,) = op.operands, op.results
        if source.type == (narrow_type(result.type) if groups.is_narrow(result) else result.type):
            result.replace_all_uses_with(source)
            op.erase()
            return
    if op.name == "arith.constant" and groups.is_narrow(op.results[0]):
        with op.location, mlir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(emit.constant(narrow_constant(op.attributes["value"])))
        op.erase()
        return
    for value in list(made_values(op)):
        if groups.is_narrow(value):
            value.set_type(narrow_type(value.type))
