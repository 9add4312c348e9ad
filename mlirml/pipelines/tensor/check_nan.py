"""Check NaN: an operation that computes a NaN from operands without one fails the call (`config.check_nan`).

Before:
    %y = math.log %x : tensor<4xf64>                    // or any other operation on floats or tensors of them
After:
    %y = math.log %x : tensor<4xf64>
    %made = ...                                         // True if an element of %y is a NaN: a reduction
    %had = ...                                          // the same for %x, computed once
    %ok = arith.ori (not %made), %had
    cf.assert %ok, "..." {mlirml.check = 301234 : i64}  // the index of the location

The pass runs after differentiation, so it checks derivatives too, whose locations are those of the differentiated
operations. The scalar operations of a structured operation are checked together, by its results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.analysis.values import captured_values
from mlirml.dialects.mlirml import CHECK
from mlirml.errors import SourceLocation, nan_check
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations, operations
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register

_COMPUTES = ("arith.", "math.", "linalg.", *LIBRARY_CALLS)
_MOVES = ("arith.constant", "arith.select", "linalg.yield", "linalg.index", "linalg.transpose", "linalg.broadcast")
_MESSAGE = "a NaN is made of numbers that are none"


@register
class CheckNanPass(Pass):
    """Assert that no operation computes a NaN."""

    def run(self, module: mlir.Operation) -> None:
        for function in named_operations(module, ("func.func",)):
            for region in function.regions:
                for block in region.blocks:
                    check_block(block, {})


def check_block(block: mlir.Block, known: dict[mlir.Value, mlir.Value]) -> None:
    """Check the operations of a block and its nested blocks. `known` maps values to their NaN flags."""
    for op in block_ops(block):
        if op.name.startswith(_COMPUTES):
            if op.name not in _MOVES:
                check(op, known)
            continue
        for region in op.regions:
            for inner in region.blocks:
                check_block(inner, dict(known))


def check(op: mlir.Operation, known: dict[mlir.Value, mlir.Value]) -> None:
    """Assert that an operation does not compute a NaN."""
    made = [result for result in op.results if is_float(result.type)]
    location = location_of(op)
    if not made or location is None or has_nan_of_its_own(op):
        return
    operands = list(dict.fromkeys(read_by(op)))
    with op.location, mlir.InsertionPoint.after(op):
        truth = mlir.IntegerType.get_signless(1)
        found, had = emit.number(truth, 0), emit.number(truth, 0)
        for value in made:
            known[value] = has_nan(value)
            found = emit.same_type("arith.ori", found, known[value])
        for value in operands:
            if value not in known:
                known[value] = has_nan(value)
            had = emit.same_type("arith.ori", had, known[value])
        fine = emit.same_type("arith.ori", emit.same_type("arith.xori", found, emit.number(truth, 1)), had)
        code = emit.i64(nan_check(location.line, location.column or 0))
        attributes = {"msg": mlir.StringAttr.get(_MESSAGE), CHECK: code}
        emit.create("cf.assert", [fine], (), attributes)


def location_of(op: mlir.Operation) -> SourceLocation | None:
    """The user's location of an operation; for a raised loop, that of the computation in it."""
    whole = source_location(op.location)
    locations = [source_location(inner.location) for inner in operations(op)]
    others = [location for location in locations if location is not None and location != whole]
    return others[-1] if others else whole


def has_nan_of_its_own(op: mlir.Operation) -> bool:
    """True if an operation has a NaN constant that the user wrote."""
    constants = [inner.attributes["value"] for inner in operations(op) if inner.name == "arith.constant"]
    return any(isinstance(value, mlir.FloatAttr) and math.isnan(value.value) for value in constants)


def read_by(op: mlir.Operation) -> Iterator[mlir.Value]:
    """The float values that an operation reads; inits that it only overwrites are arbitrary and left out."""
    operands = list(op.operands)
    if op.name in LIBRARY_CALLS or op.name in COMPACTIONS:
        operands.pop()
    if op.name.startswith("linalg.") and len(op.regions):
        body = op.regions[0].blocks[0]
        first = len(operands) - len(block_ops(body)[-1].operands)
        used = [any(True for _ in argument.uses) for argument in list(body.arguments)[first:]]
        operands = [*operands[:first], *(x for x, is_used in zip(operands[first:], used) if is_used)]
        operands += captured_values(op)
    yield from (value for value in operands if is_float(value.type))


def is_float(value_type: mlir.Type) -> bool:
    """True if a type is a float, or a tensor of floats."""
    element = value_type.element_type if isinstance(value_type, mlir.RankedTensorType) else value_type
    return isinstance(element, mlir.FloatType)


def has_nan(value: mlir.Value) -> mlir.Value:
    """True if a float, or an element of a tensor, is a NaN."""
    if not isinstance(value.type, mlir.RankedTensorType):
        return emit.compare("uno", value, value)
    rank, truth = len(value.type.shape), mlir.IntegerType.get_signless(1)
    start = emit.fill(emit.number(truth, 0), emit.empty(mlir.RankedTensorType.get([], truth))).results[0]
    maps = [mlir.AffineMap.get_identity(rank), mlir.AffineMap.get(rank, 0, [])]
    found = emit.generic(
        [value],
        [start],
        maps,
        ["reduction"] * rank,
        lambda xs: [emit.same_type("arith.ori", xs[1], emit.compare("uno", xs[0], xs[0]))],
    )
    return emit.value("tensor.extract", [found.results[0]], truth)
