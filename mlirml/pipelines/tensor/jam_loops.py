"""Jam loops: several iterations of a loop that each reduce all of a large array read the array together.

Before:
    %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%out = %out0) -> (tensor<1000xf64>) {
      %limit = ...
      %s = linalg.generic ... iterators = ["reduction"] ins(%limit, %x : tensor<f64>, tensor<400000xf64>) ...
      %e = tensor.extract %s[] : tensor<f64>
      %new = tensor.insert %e into %out[%i] : tensor<1000xf64>
      scf.yield %new : tensor<1000xf64>
    }
After:
    %r = scf.for %i = %c0 to %c1000 step %c4 iter_args(%out = %out0) -> (tensor<1000xf64>) {
      /* the body for %i, %i + 1, %i + 2 and %i + 3 */
    }

`mlirml-fuse` then fuses the four reductions into one, as they have the same extents and read the same array. This is
unroll-and-jam (Callahan, Cocke and Kennedy, Estimating interlock and improving balance for pipelined machines, Journal
of Parallel and Distributed Computing 5, 1988). The remaining iterations follow in a separate loop. The loop may carry
only tensors that each iteration stores into and does not read.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod

from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.analysis.trip_counts import trip_count
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_MOST = 64
"""The maximum number of bytes that an iteration stores at once."""
_PURE = (
    "arith.", "math.", "complex.", "tensor.extract", "tensor.from_elements", "tensor.empty", "tensor.collapse_shape",
    "tensor.expand_shape", "linalg.generic", "linalg.fill", *TENSOR_STORES,
)  # fmt: skip


@register(when=LOOP_OR_REQUEST, optional=True)
class JamLoopsPass(Pass):
    """Unroll loops `factor` times whose iterations reduce the same array of at least `least` bytes.

    Bodies of more than `longest` operations are not unrolled.
    """

    factor: int = 4
    least: int = 1 << 16
    longest: int = 48

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                match(loop, self)
                build(loop, self.factor)


def match(loop: mlir.Operation, options: JamLoopsPass) -> None:
    """Raise `NoMatch` unless the iterations are independent and reduce one large array."""
    count = trip_count(loop)
    if count is None or count < 2 * options.factor or constant_of(loop.operands[2]) != 1:
        raise NoMatch("not a loop of many iterations")
    block = loop.regions[0].blocks[0]
    *body, end = block_ops(block)
    if len(body) > options.longest or not all(op.name.startswith(_PURE) for op in body):
        raise NoMatch("a long body, or one with loops, branches or checks")
    for carried, value in zip(list(block.arguments)[1:], end.operands, strict=True):
        check_stored(carried, value, block)
    if not any(map(reduces_to_one, body)) or not any(reads_invariant(op, block, options.least) for op in body):
        raise NoMatch("no reduction of a large array that is the same in each iteration")


def check_stored(carried: mlir.Value, value: mlir.Value, block: mlir.Block) -> None:
    """Raise `NoMatch` unless the only use of a carried value is stores into it, whose results are used so, too."""
    while value != carried:
        op = defining_op(value)
        if op is None or op.block != block or op.name not in TENSOR_STORES or len(list(value.uses)) != 1:
            raise NoMatch("what the loop carries is read, or is no tensor")
        if bytes_of(op.operands[0].type) > _MOST:
            raise NoMatch("an iteration stores much")
        value = op.operands[1]
    if len(list(carried.uses)) != 1:
        raise NoMatch("what the loop carries is read")


def reads_invariant(op: mlir.Operation, block: mlir.Block, least: int) -> bool:
    """True if a structured operation reads a large loop-invariant tensor."""
    if op.name != "linalg.generic":
        return False
    for operand in list(op.operands)[: len(op.operands) - len(op.results)]:
        owner = defining_op(operand)
        if (owner.block if owner is not None else operand.owner) != block and bytes_of(operand.type) >= least:
            return True
    return False


def reduces_to_one(op: mlir.Operation) -> bool:
    """True if a structured operation reduces to single elements."""
    if op.name != "linalg.generic" or is_parallel(op):
        return False
    return all(result.type.has_static_shape and prod(result.type.shape) == 1 for result in op.results)


def bytes_of(value_type: mlir.Type) -> int:
    """The size of a tensor of static shape in bytes; zero for anything else."""
    if not isinstance(value_type, mlir.RankedTensorType) or not value_type.has_static_shape:
        return 0
    element = value_type.element_type
    width = element.width if isinstance(element, (mlir.IntegerType, mlir.FloatType)) else 64
    return int(prod(value_type.shape)) * width // 8


def build(loop: mlir.Operation, factor: int) -> None:
    """Replace a loop by one that executes `factor` iterations at once, and one for the remaining iterations."""
    lower, upper = (constant_of(value) for value in list(loop.operands)[:2])
    assert lower is not None and upper is not None
    middle = lower + (upper - lower) // factor * factor
    block = loop.regions[0].blocks[0]
    *body, end = block_ops(block)

    def iterations(first: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        for number in range(factor):
            i = first if not number else emit.same_type("arith.addi", first, emit.index(number))
            carried = iteration(i, carried)
        return carried

    def iteration(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(block.arguments, [i, *carried], strict=True))
        for op in body:
            clone_with(op, values)
        return [values.get(value, value) for value in end.operands]

    with loop.location, mlir.InsertionPoint(loop):
        bounds = [emit.index(number) for number in (lower, middle, upper)]
        values = emit.for_loop(bounds[0], bounds[1], emit.index(factor), iterations, list(loop.operands)[3:])
        if middle < upper:
            values = emit.for_loop(bounds[1], bounds[2], emit.index(1), iteration, values)
    replace_op(loop, *values)
