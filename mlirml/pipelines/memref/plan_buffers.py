"""Plan buffers: the temporaries of @main become slices of one workspace argument.

Before:
    func.func @main(%x: memref<1024xf32>, %y: memref<1024xf32>) {
      %t = memref.alloc() {alignment = 64 : i64} : memref<1024xf32>
      ...
    }
After:
    func.func @main(%x: memref<1024xf32>, %y: memref<1024xf32>, %workspace: memref<4096xi8>)
        attributes {mlirml.workspace = 4096 : i64} {
      %c0 = arith.constant 0 : index
      %t = memref.view %workspace[%c0][] : memref<4096xi8> to memref<1024xf32>
      ...
    }

A buffer lives from its first to its last use, views of it included. One that is allocated in a loop is the same in each
iteration and lives for a part of the body only; one from outside that a loop uses lives until the loop ends. Buffers
get offsets in order of decreasing size, each the lowest at which it overlaps no buffer that is live at the same time
(greedy by size, Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5.2). With
`slices` those of different sizes start at different offsets, so that an offset tells the size of what begins there.
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mlirml.analysis.memory import users_of
from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.analysis.values import ancestor_in
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import HOST
from mlirml.errors import InternalError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, main_function, mlir, named_operations, replace_op, set_function_type
from mlirml.passes import Pass, register

ALIGNMENT = 64
_PAGE, _BIG, _SPREAD = 4096, 256 << 10, 17 * 64
"""Big buffers at distances of whole pages would compete for the same sets of the first-level cache, and loads would
wait for stores to equal addresses modulo a page."""
SLICES = "mlirml.slices"
"""Attribute of @main: the index of the workspace argument, and the offset and size of each slice."""
_DEALLOCATIONS = ("memref.dealloc",)


@register
class PlanBuffersPass(Pass):
    """Replace allocations in @main by slices of a workspace argument, each at a multiple of `alignment` bytes.

    Those with the attribute `mlirml.host` share a second one, `mlirml.host_workspace`. With `slices`, an attribute
    contains the index of the argument, and the offset and size of each slice. Those of dynamic size are left to
    `mlirml-plan-sizes`.
    """

    alignment: int = ALIGNMENT
    slices: bool = False

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        replace_empty_arguments(main)
        found = [op for op in named_operations(main, ("memref.alloc",)) if not op.operands]
        allocations = [op for op in found if not erase_unused(op)]
        host = [op for op in allocations if HOST in op.attributes]
        plan(main, [op for op in allocations if op not in host], "mlirml.workspace", self.alignment, self.slices)
        if host:
            plan(main, host, "mlirml.host_workspace", ALIGNMENT)


def plan(
    main: mlir.Operation,
    allocations: Sequence[mlir.Operation],
    attribute: str,
    alignment: int,
    note_slices: bool = False,
) -> None:
    """Replace allocations by slices of one argument; its size, and optionally its slices, become attributes."""
    lifetimes = find_lifetimes(main, allocations, alignment)
    if note_slices:
        lifetimes = list(map(spread, lifetimes))
    offsets, size = assign_offsets(lifetimes, alignment if note_slices else 0)
    with main.context:
        main.attributes[attribute] = emit.i64(size)
        if note_slices and len(allocations) > 1 and not starts_with_bytes(allocations, offsets):
            slices = [number for offset, life in zip(offsets, lifetimes) for number in (offset, life.size)]
            number = len(main.regions[0].blocks[0].arguments)
            main.attributes[SLICES] = mlir.DenseI64ArrayAttr.get([number, *slices])
    if size or allocations:
        use_workspace(main, allocations, offsets, max(size, 1))


def starts_with_bytes(allocations: Sequence[mlir.Operation], offsets: Sequence[int]) -> bool:
    """True if the first slice has byte elements: addresses of its elements would look like offsets of slices."""
    element_types = (mlir.MemRefType(op.results[0].type).element_type for op, at in zip(allocations, offsets) if not at)
    return any(isinstance(element_type, mlir.IntegerType) and element_type.width <= 8 for element_type in element_types)


@dataclass(frozen=True)
class Lifetime:
    """The indices of the first and last operation that may use a buffer, and its size in bytes."""

    first: int
    last: int
    size: int


def replace_empty_arguments(main: mlir.Operation) -> None:
    """Replace arguments without elements, which are never read, by types that the bare-pointer convention accepts."""
    body = main.regions[0].blocks[0]
    for argument in body.arguments:
        argument_type = argument.type
        if isinstance(argument_type, mlir.MemRefType) and 0 in argument_type.shape:
            with main.location, mlir.InsertionPoint.at_block_begin(body):
                argument.set_type(mlir.MemRefType.get([1], argument_type.element_type))
                attributes = {"operandSegmentSizes": emit.segments(0, 0)}
                nothing = emit.create("memref.alloca", (), [argument_type], attributes)
            argument.replace_all_uses_with(nothing.results[0])
    set_function_type(main)


def erase_unused(allocation: mlir.Operation) -> bool:
    """Erase an allocation without uses; returns True if it was erased."""
    unused = not any(True for _ in allocation.results[0].uses)
    if unused:
        allocation.erase()
    return unused


def byte_size(memref_type: mlir.Type, alignment: int = ALIGNMENT) -> int:
    """The size of a static memref in bytes, rounded up to the alignment."""
    memref = mlir.MemRefType(memref_type)
    element = memref.element_type
    if isinstance(element, mlir.VectorType):
        vector = mlir.VectorType(element)
        bits = math.prod(vector.shape) * vector.element_type.width
    else:
        bits = 64 if isinstance(element, mlir.IndexType) else element.width
    size = int(math.prod(memref.shape) * max(1, bits // 8))
    return -(-size // alignment) * alignment


def spread(life: Lifetime) -> Lifetime:
    """Extend a big buffer of whole pages by a few lines, so that the next one does not start at a page boundary."""
    return replace(life, size=life.size + _SPREAD) if life.size >= _BIG and not life.size % _PAGE else life


def find_lifetimes(
    main: mlir.Operation, allocations: Sequence[mlir.Operation], alignment: int = ALIGNMENT
) -> list[Lifetime]:
    """The lifetimes of the allocations, in their order."""
    sizes = [byte_size(allocation.results[0].type, alignment) for allocation in allocations]
    return [Lifetime(*span, size) for span, size in zip(spans_of(main, allocations), sizes, strict=True)]


def spans_of(main: mlir.Operation, allocations: Sequence[mlir.Operation]) -> list[tuple[int, int]]:
    """The indices of the first and last operation that may use each allocation."""
    used = [users(allocation) for allocation in allocations]
    spans: dict[mlir.Operation, tuple[int, int]] = {}
    number_operations(main.regions[0].blocks[0], spans, 0)
    found = []
    for allocation, touching in zip(allocations, used, strict=True):
        if is_in_parallel(allocation):
            raise InternalError(f"a buffer is allocated inside a parallel loop: {allocation}")
        if any(is_carried(user, allocation) for user in touching):
            raise InternalError(f"a buffer of one iteration of a loop is carried to the next: {allocation}")
        accesses = [spans[op] for op in ancestors_in_one_block(allocation, touching)]
        first, last = min(start for start, _ in accesses), max(end for _, end in accesses)
        found.append((first, last))
    return found


def number_operations(block: mlir.Block, spans: dict[mlir.Operation, tuple[int, int]], number: int) -> int:
    """Number operations in program order, nested ones after their parent; returns the next number."""
    for op in block_ops(block):
        start = number
        number += 1
        if not op.name.startswith("linalg."):
            for region in op.regions:
                for inner in region.blocks:
                    number = number_operations(inner, spans, number)
        spans[op] = start, number - 1
    return number


def ancestors_in_one_block(allocation: mlir.Operation, touching: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The users of a buffer, or their ancestors, in the innermost block that contains them all."""
    block = allocation.block
    while True:
        ancestors = [ancestor_in(op, block) for op in touching or (allocation,)]
        found = [ancestor for ancestor in ancestors if ancestor is not None]
        if len(found) == len(ancestors):
            return found
        block = block.owner.operation.block


def is_carried(user: mlir.Operation, allocation: mlir.Operation) -> bool:
    """True if an operation yields a buffer from the loop iteration in which it is allocated."""
    if user.name not in ("scf.yield", "scf.condition") or user.parent.operation.name not in SEQUENTIAL_LOOPS:
        return False
    return ancestor_in(allocation, user.block) is not None


def users(op: mlir.Operation) -> list[mlir.Operation]:
    """Every operation that accesses a buffer, also through views; deallocations are erased."""
    found: tuple[list[mlir.Operation], list[mlir.Operation]] = [], []
    for user in users_of(op.results):
        found[user.name in _DEALLOCATIONS].append(user)
    for user in found[True]:
        user.erase()
    return found[False]


def is_in_parallel(op: mlir.Operation) -> bool:
    """True if several threads may run an operation at once."""
    parent = op.parent
    while parent is not None and parent.name != "scf.parallel":
        parent = parent.operation.parent
    return parent is not None


def assign_offsets(lifetimes: Sequence[Lifetime], apart: int = 0) -> tuple[list[int], int]:
    """An offset for each lifetime, and the total size: the largest first, each in the first gap that is big enough.

    If `apart` is not 0, buffers of different sizes have different offsets, at distances of so many bytes.
    """
    sizes, firsts, lasts = (np.array([getattr(life, name) for life in lifetimes]) for name in ("size", "first", "last"))
    offsets = np.zeros(len(lifetimes), np.int64)
    order = np.lexsort((np.arange(len(lifetimes)), -sizes))
    begun: dict[int, int] = {}  # the sizes of buffers by their offsets
    for count, number in enumerate(order):
        placed = order[:count]
        taken = placed[(firsts[placed] <= lasts[number]) & (lasts[placed] >= firsts[number])]
        taken = taken[np.argsort(offsets[taken], kind="stable")]
        ends = np.maximum.accumulate(offsets[taken] + sizes[taken])
        starts = np.concatenate([[0], ends])  # the start of the gap before each of them, and after the last one
        size = int(sizes[number])
        for gap in (*np.flatnonzero(offsets[taken] - starts[:-1] >= size), len(taken)):
            start = first_free(int(starts[gap]), size, begun, apart) if apart else starts[gap]
            if gap == len(taken) or offsets[taken[gap]] - start >= size:
                offsets[number] = start
                break
        begun[int(offsets[number])] = size
    return [int(offset) for offset in offsets], int(max(offsets + sizes, default=0))


def first_free(offset: int, size: int, begun: Mapping[int, int], apart: int) -> int:
    """The first offset, in steps of `apart`, at which no buffer of another size begins."""
    while begun.get(offset, size) != size:
        offset += apart
    return offset


def use_workspace(
    main: mlir.Operation, allocations: Sequence[mlir.Operation], offsets: Sequence[int], size: int
) -> None:
    """Append the workspace argument and replace the allocations by views of it."""
    body = main.regions[0].blocks[0]
    with main.location:
        kind = mlir.MemRefType.get([size], mlir.IntegerType.get_signless(8))
    workspace = body.add_argument(kind, main.location)
    for allocation, offset in zip(allocations, offsets):
        with allocation.location, mlir.InsertionPoint.at_block_begin(body):
            at = emit.index(offset)
            view = emit.value("memref.view", [workspace, at], allocation.results[0].type)
        replace_op(allocation, view)
    set_function_type(main)
