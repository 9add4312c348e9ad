"""Swap buffers: device loops whose iterations end with copies are unrolled by two with swapped buffers, without copies.

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

A buffer that is allocated in an iteration is uninitialized at its start, so the array that the previous iteration has
read can be reused for it. A remainder iteration runs after the loop, with its copies; for a dynamic trip count it runs
in a second loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memory import buffer_of
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.dialects.mlirml import HOST, HOST_INPUTS
from mlirml.ir.bindings import block_ops, clone_with, defining_op, main_function, mlir, named_operations, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.unroll import unroll


@register
class SwapBuffersPass(Pass):
    """Swap the buffers of loops on a device, if the loop then has at most `max_ops` operations."""

    max_ops: int = 800

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        loops = named_operations(main, ("scf.for",))[::-1]  # inner loops first
        for loop, swaps in matched(match_swaps, loops, main):
            if 2 * sum(1 for _ in operations(loop)) <= self.max_ops:
                swap(loop, swaps)


@dataclass(frozen=True)
class Swap:
    """`copy` ends an iteration: `new`, computed in it, is copied to `old`, which is defined outside of the loop."""

    copy: mlir.Operation
    old: mlir.Value
    new: mlir.Value


def match_swaps(loop: mlir.Operation, main: mlir.Operation) -> list[Swap]:
    """The copies at the end of the body that can be removed; raises NoMatch if there are none."""
    block = loop.regions[0].blocks[0]
    *ops, _ = block_ops(block)
    swaps: list[Swap] = []
    while ops and ops[-1].name == "gpu.memcpy":
        old, new = ops[-1].operands
        if is_defined_in(block, old):  # a view of a buffer of the same iteration
            break
        copy, made = ops.pop(), defining_op(new)
        known = [value for swap in swaps for value in (swap.old, swap.new)]
        if made is None or made.name != "memref.alloc" or made.block != block or HOST in made.attributes:
            raise NoMatch("the copied buffer is not allocated in the iteration")
        if old.type != new.type or old in known or new in known or made.operands:
            raise NoMatch("the arrays cannot be swapped")
        swaps.append(Swap(copy, old, new))
    count = trip_count(loop)
    if not swaps or (count is not None and count < 2):
        raise NoMatch("nothing to leave out")
    check_others(loop, main, swaps)
    return swaps


def is_defined_in(block: mlir.Block, value: mlir.Value) -> bool:
    """True if a value is defined in a block: by an operation, or as an argument."""
    owner = defining_op(value)
    return value in list(block.arguments) if owner is None else owner.block == block


def check_others(loop: mlir.Operation, main: mlir.Operation, swaps: Sequence[Swap]) -> None:
    """Raise NoMatch unless each old array is accessed by one value only in the loop, and is in device memory."""
    roots = [buffer_of(swap.old) for swap in swaps]
    if len(set(roots)) < len(roots) or not all(is_on_device(value, main) for value in roots):
        raise NoMatch("arrays share memory, or lie on the host")
    ops = list(operations(loop))
    made = {result for op in ops for result in op.results}
    olds = [swap.old for swap in swaps]
    for op in ops:
        if op.name == "memref.dealloc":
            raise NoMatch("memory is given back in the loop")
        for operand in op.operands:
            if not isinstance(operand.type, mlir.MemRefType) or operand in made or operand in olds:
                continue
            start = buffer_of(operand)
            if start in roots or not is_memory(start, main):
                raise NoMatch("the array may be reached in another way")


def is_on_device(value: mlir.Value, main: mlir.Operation) -> bool:
    """True if a buffer is known to be a separate allocation in device memory."""
    owner = defining_op(value)
    if owner is not None:
        return owner.name == "memref.alloc" and HOST not in owner.attributes
    arguments = list(main.regions[0].blocks[0].arguments)
    hosts = list(main.attributes[HOST_INPUTS]) if HOST_INPUTS in main.attributes else []
    return value in arguments and arguments.index(value) not in hosts


def is_memory(value: mlir.Value, main: mlir.Operation) -> bool:
    """True if a buffer is a separate allocation or argument, not one of several, as the result of a branch."""
    owner = defining_op(value)
    if owner is None:
        return value in list(main.regions[0].blocks[0].arguments)
    return owner.name in ("memref.alloc", "memref.alloca", "memref.get_global")


def swap(loop: mlir.Operation, swaps: Sequence[Swap]) -> None:
    """Unroll a loop by two with swapped buffers; the remainder iteration has its copies."""
    second: dict[mlir.Value, mlir.Value] = {}
    with loop.location, mlir.InsertionPoint(loop):
        for each in swaps:
            clone_with(defining_op(each.new), second)
    swapped = {**{s.new: s.old for s in swaps}, **{s.old: second[s.new] for s in swaps}}
    missing = {defining_op(s.new) for s in swaps}
    copies = {s.copy for s in swaps}
    unroll(loop, 2, lambda n, is_rest: (swapped if n else second, missing if is_rest else missing | copies))
