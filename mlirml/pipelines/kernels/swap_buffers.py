"""Swap buffers: loops on a device whose rounds end with copies run two rounds at a time, which need none.

Before:
    scf.for %i = %c0 to %c100 step %c1 {
      %new = memref.alloc() : memref<8xf32>
      gpu.launch_func @kernels::@k0 ... args(%x, %new)
      gpu.memcpy %x, %new : memref<8xf32>, memref<8xf32>
    }
After:
    %new = memref.alloc() : memref<8xf32>
    scf.for %i = %c0 to %c100 step %c2 {
      gpu.launch_func @kernels::@k0 ... args(%x, %new)
      gpu.launch_func @kernels::@k0 ... args(%new, %x)
    }

What is allocated in a round holds nothing at its start, so that the array that the round before has read can take its
place. A round that is left over runs behind the loop, with its copies; where the number of rounds is known at run time
only it runs in a second loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memory import buffer_of
from mlirml.analysis.trip_counts import round_count
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import HOST, HOST_INPUTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, main_function, mlir, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.tensor.rotate_buffers import after, number_of_whole, times, times_value


@register
@dataclass(frozen=True)
class SwapBuffersPass(Pass):
    """Let arrays of loops on a device change places, where that gives up to `max_ops` operations."""

    name = "mlirml-swap-buffers"
    max_ops: int = 800

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        for loop in [op for op in operations(main) if op.name == "scf.for"][::-1]:  # inner loops first
            try:
                swaps = match_swaps(loop, main)
            except NoMatch:
                continue
            if 2 * sum(1 for _ in operations(loop)) <= self.max_ops:
                unroll(loop, swaps)


@dataclass(frozen=True)
class Swap:
    """`copy` ends a round: what was computed in `new` goes to `old`, which is defined outside of the loop."""

    copy: mlir.Operation
    old: mlir.Value
    new: mlir.Value


def match_swaps(loop: mlir.Operation, main: mlir.Operation) -> list[Swap]:
    """The copies at the end of each round that can be left out; NoMatch where there is none."""
    block = loop.regions[0].blocks[0]
    *ops, _ = block_ops(block)
    swaps: list[Swap] = []
    while ops and ops[-1].name == "gpu.memcpy":
        old, new = ops[-1].operands
        if is_of(block, old):  # a view of what is made in the same round
            break
        copy, made = ops.pop(), defining_op(new)
        known = [value for swap in swaps for value in (swap.old, swap.new)]
        if made is None or made.name != "memref.alloc" or made.block != block or HOST in made.attributes:
            raise NoMatch("what is copied was not made in the round")
        if old.type != new.type or old in known or new in known or made.operands:
            raise NoMatch("the arrays cannot change places")
        swaps.append(Swap(copy, old, new))
    count = round_count(loop)
    if not swaps or (count is not None and count < 2):
        raise NoMatch("nothing to leave out")
    check_others(loop, main, swaps)
    return swaps


def is_of(block: mlir.Block, value: mlir.Value) -> bool:
    """True if a value is defined in a block: by an operation, or as an argument."""
    owner = defining_op(value)
    return value in list(block.arguments) if owner is None else owner.block == block


def check_others(loop: mlir.Operation, main: mlir.Operation, swaps: Sequence[Swap]) -> None:
    """Raise NoMatch unless the loop reaches each old array by one name alone, and it lies on the device."""
    roots = [buffer_of(swap.old) for swap in swaps]
    if len(set(roots)) < len(roots) or not all(is_on_device(value, main) for value in roots):
        raise NoMatch("arrays share memory, or lie on the host")
    inside = list(operations(loop))
    made = {result for op in inside for result in op.results}
    olds = [swap.old for swap in swaps]
    for op in inside:
        if op.name == "memref.dealloc":
            raise NoMatch("memory is given back in the loop")
        for operand in op.operands:
            if not isinstance(operand.type, mlir.MemRefType) or operand in made or operand in olds:
                continue
            start = buffer_of(operand)
            if start in roots or not is_memory(start, main):
                raise NoMatch("the array may be reached in another way")


def entry_of(main: mlir.Operation) -> mlir.Block:
    block: mlir.Block = main.regions[0].blocks[0]
    return block


def is_on_device(value: mlir.Value, main: mlir.Operation) -> bool:
    """True if a buffer is surely memory of its own on the device."""
    owner = defining_op(value)
    if owner is not None:
        return owner.name == "memref.alloc" and HOST not in owner.attributes
    arguments = list(entry_of(main).arguments)
    hosts = list(main.attributes[HOST_INPUTS]) if HOST_INPUTS in main.attributes else []
    return value in arguments and arguments.index(value) not in hosts


def is_memory(value: mlir.Value, main: mlir.Operation) -> bool:
    """True if a buffer is memory of its own: not one of several, as what a branch gives."""
    owner = defining_op(value)
    if owner is None:
        return value in list(entry_of(main).arguments)
    return owner.name in ("memref.alloc", "memref.alloca", "memref.get_global")


def unroll(loop: mlir.Operation, swaps: Sequence[Swap]) -> None:
    """Replace a loop by one of two rounds a step, and the round that may be left."""
    block = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    count = round_count(loop)
    with loop.location, mlir.InsertionPoint(loop):
        there: dict[mlir.Value, mlir.Value] = {}
        for swap in swaps:
            clone_with(defining_op(swap.new), there)
        swapped = {**{swap.new: swap.old for swap in swaps}, **{swap.old: there[swap.new] for swap in swaps}}
        middle = upper
        if count is None or count % 2:
            middle = emit.same_type("arith.addi", lower, times_value(number_of_whole(loop, count, 2), step))
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        kinds = [value.type for value in inits]
        both = emit.create("scf.for", [lower, middle, times(step, 2), *inits], kinds, attributes, regions=1)
        inner = emit.block(both, [argument.type for argument in block.arguments])
        with mlir.InsertionPoint(inner):
            variable, *values = inner.arguments
            values = round_of(block, variable, values, there, swaps)
            values = round_of(block, after(variable, step, 1), values, swapped, swaps)
            emit.create("scf.yield", values)
        results = list(both.results)
        if count is None:
            loop.operands[0] = middle
            for position, result in enumerate(results):
                loop.operands[3 + position] = result
            return
        if count % 2:
            results = round_of(block, middle, results, there, ())
    for before, now in zip(loop.results, results, strict=True):
        before.replace_all_uses_with(now)
    loop.erase()


def round_of(
    block: mlir.Block,
    variable: mlir.Value,
    values: Sequence[mlir.Value],
    buffers: dict[mlir.Value, mlir.Value],
    swaps: Sequence[Swap],
) -> list[mlir.Value]:
    """Clone a round here, without these copies, on these buffers; what it carries on."""
    known = {**dict(zip(block.arguments, [variable, *values], strict=True)), **buffers}
    *ops, final = block_ops(block)
    for op in ops:
        if op.name == "memref.alloc" and op.results[0] in buffers:
            continue
        if all(op != swap.copy for swap in swaps):
            clone_with(op, known)
    return [known.get(value, value) for value in final.operands]
