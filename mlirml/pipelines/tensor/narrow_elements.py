"""Narrow elements: 64-bit integers are kept as 32 bits in tensors that are read one by one, where their ranges fit.

Before:
    %bins = linalg.generic ... ins(%x : tensor<80000xf64>) outs(%empty : tensor<80000xi64>) {
      ...
      %bin = arith.fptosi %1 : f64 to i64          // from 0 to 7
      linalg.yield %bin : i64
    } -> tensor<80000xi64>
    %counts = scf.for %i = ... {
      %bin = tensor.extract %bins[%i] : tensor<80000xi64>
      ...
After:
    %bins = linalg.generic ... ins(%x : tensor<80000xf64>) outs(%empty : tensor<80000xi32>) {
      ...
      %bin = arith.fptosi %1 : f64 to i64
      %short = arith.trunci %bin : i64 to i32
      linalg.yield %short : i32
    } -> tensor<80000xi32>
    %counts = scf.for %i = ... {
      %short = tensor.extract %bins[%i] : tensor<80000xi32>
      %bin = arith.extsi %short : i32 to i64
      ...

Such a tensor takes half of the cache, and half of the time to store and to load. One that fits into the first-level
cache stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod

from mlirml.analysis.ranges import Ranges
from mlirml.analysis.structured import is_parallel
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_LEAST, _GREATEST = -(1 << 31), (1 << 31) - 1


@register(when=LOOP_OR_REQUEST, optional=True)
class NarrowElementsPass(Pass):
    """Store integers that fit into 32 bits as such, in tensors of at least `least` bytes that loops read one by one."""

    least: int = 1 << 15

    def run(self, module: mlir.Operation) -> None:
        ranges = Ranges()
        for generic in named_operations(module, ("linalg.generic",)):
            with suppress(NoMatch):
                match(generic, ranges, self.least)
                narrow(generic)


def match(generic: mlir.Operation, ranges: Ranges, least: int) -> None:
    """Raises `NoMatch` for anything but a pointwise operation with one large result that is only extracted from."""
    if len(generic.results) != 1 or not isinstance(generic.results[0].type, mlir.RankedTensorType):
        raise NoMatch("not one tensor")
    kind = mlir.RankedTensorType(generic.results[0].type)
    if str(kind.element_type) != "i64" or not kind.has_static_shape or 8 * prod(kind.shape) < least:
        raise NoMatch("not a large tensor of 64-bit integers")
    *_, end = block_ops(generic.regions[0].blocks[0])
    init = defining_op(generic.operands[len(generic.operands) - 1])
    arguments = list(generic.regions[0].blocks[0].arguments)
    if not is_parallel(generic) or init is None or init.name != "tensor.empty" or list(arguments[-1].uses):
        raise NoMatch("an init that is read")
    if not all(use.owner.operation.name == "tensor.extract" for use in generic.results[0].uses):
        raise NoMatch("read as a whole")
    if not ranges.within(end.operands[0], _LEAST, _GREATEST):
        raise NoMatch("numbers of more than 32 bits, or of unknown size")


def narrow(generic: mlir.Operation) -> None:
    """Change the result of an operation, what it yields, and what reads it."""
    block = generic.regions[0].blocks[0]
    *_, end = block_ops(block)
    result, short = generic.results[0], mlir.IntegerType.get_signless(32)
    long = mlir.RankedTensorType(result.type).element_type
    kind = mlir.RankedTensorType.get(mlir.RankedTensorType(result.type).shape, short)
    with generic.location, mlir.InsertionPoint(generic):
        generic.operands[len(generic.operands) - 1] = emit.value("tensor.empty", (), kind)
    with end.location, mlir.InsertionPoint(end):
        end.operands[0] = emit.value("arith.trunci", [end.operands[0]], short)
    block.arguments[len(block.arguments) - 1].set_type(short)
    result.set_type(kind)
    for use in list(result.uses):
        extract = use.owner.operation
        with extract.location, mlir.InsertionPoint(extract):
            loaded = emit.value("tensor.extract", list(extract.operands), short)
            extract.results[0].replace_all_uses_with(emit.value("arith.extsi", [loaded], long))
        extract.erase()
