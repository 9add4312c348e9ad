"""Plan sizes: temporaries of dynamic size become slices of the workspace, at offsets computed from the sizes.

Before:
    func.func @main(%sizes: memref<1xi64>, ..., %workspace: memref<256xi8>) attributes {mlirml.workspace = 256 : i64} {
      %t = memref.alloc(%n) {alignment = 64 : i64} : memref<?x8xf32>
      ...
    }
After:
    func.func @main(%sizes: memref<1xi64>, ..., %workspace: memref<256xi8>)
        attributes {mlirml.workspace = 256 : i64, mlirml.workspace_terms = [array<i64: 32, 0>]} {
      %c256 = arith.constant 256 : index
      %t = memref.view %workspace[%c256][%n] : memref<256xi8> to memref<?x8xf32>
      ...
    }

A slice has the size of its term: the first number of bytes times the sizes of the numbers after it, rounded up to the
alignment. The runtime adds them up with the same formula. Temporaries of one term that do not live at the same time
share a slice. Those with the attribute `mlirml.host` are slices of a second argument, `mlirml.host_workspace`.
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.memref_sizes import factors_of
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import HOST
from mlirml.errors import InternalError, LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, main_function, mlir, named_operations, replace_op, set_function_type
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.plan_buffers import ALIGNMENT, erase_unused, is_in_parallel, spans_of
from mlirml.pipelines.sizes.pass_sizes import load_size, sizes_argument

WORKSPACE, HOST_WORKSPACE = "mlirml.workspace", "mlirml.host_workspace"
TERMS = "_terms"
"""Suffix of the attribute with the terms of a workspace."""
Term = tuple[int, ...]


@register
class PlanSizesPass(Pass):
    """Replace allocations of dynamic size in @main by slices of the workspace, each at a multiple of `alignment` bytes.

    Runs after `mlirml-plan-buffers`, whose workspace arguments are the last ones.
    """

    alignment: int = ALIGNMENT

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        found = [op for op in named_operations(main, ("memref.alloc",)) if op.operands and not erase_unused(op)]
        spans = spans_of(main, found)
        on_host = [HOST in op.attributes for op in found]
        for attribute, alignment in ((WORKSPACE, self.alignment), (HOST_WORKSPACE, ALIGNMENT)):
            own = [n for n, host in enumerate(on_host) if host == (attribute == HOST_WORKSPACE)]
            if own:
                slots = assigned([found[n] for n in own], [spans[n] for n in own])
                use_slots(main, slots, attribute, alignment)


@dataclass
class Slot:
    """A slice of the workspace: its term, the allocations that share it, and the last use so far."""

    term: Term
    allocations: list[mlir.Operation]
    last: int


def assigned(allocations: Sequence[mlir.Operation], spans: Sequence[tuple[int, int]]) -> list[Slot]:
    """The slices of the allocations; those of equal terms share one if their lifetimes are disjoint."""
    slots: list[Slot] = []
    for (first, last), allocation in sorted(zip(spans, allocations), key=lambda pair: pair[0]):
        if is_in_parallel(allocation):
            raise InternalError(f"a buffer is allocated inside a parallel loop: {allocation}")
        term = term_of(allocation)
        free = next((slot for slot in slots if slot.term == term and slot.last < first), None)
        if free is None:
            slots.append(Slot(term, [allocation], last))
        else:
            free.allocations.append(allocation)
            free.last = last
    return slots


def term_of(allocation: mlir.Operation) -> Term:
    """The size of an allocation: bytes, and the numbers of the sizes that they are multiplied by."""
    kind = allocation.results[0].type
    element = kind.element_type
    bits = 64 if isinstance(element, mlir.IndexType) else element.width
    total, numbers = math.prod(n for d, n in enumerate(kind.shape) if not kind.is_dynamic_dim(d)), []
    for operand in allocation.operands:
        factor, values = factors_of(operand)
        total *= factor
        numbers += [number_of(value, allocation) for value in values]
    return (total * max(1, bits // 8), *sorted(numbers))


def number_of(size: mlir.Value, user: mlir.Operation) -> int:
    """The number of a size that was loaded from the table."""
    cast = defining_op(size)
    load = defining_op(cast.operands[0]) if cast is not None and cast.name == "arith.index_cast" else None
    index = defining_op(load.operands[1]) if load is not None and load.name == "memref.load" else None
    if index is None or index.name != "arith.constant":
        location = source_location(user.location)
        raise LoweringError("an array of a size that is computed by the program", location=location)
    return int(mlir.IntegerAttr(index.attributes["value"]).value)


def workspace_of(main: mlir.Operation, attribute: str) -> mlir.Value:
    """The argument of a workspace, which is added if there is none; that of the host is after that of the device."""
    body = main.regions[0].blocks[0]
    arguments = list(body.arguments)
    on_host = bytes_of(main, HOST_WORKSPACE) > 0
    if bytes_of(main, attribute):
        return arguments[-2 if on_host and attribute == WORKSPACE else -1]
    kind = mlir.MemRefType.get([1], mlir.IntegerType.get_signless(8))
    if attribute != WORKSPACE or not on_host:
        return body.add_argument(kind, main.location)
    arguments[-1].replace_all_uses_with(body.add_argument(arguments[-1].type, main.location))
    arguments[-1].set_type(kind)
    return arguments[-1]


def bytes_of(main: mlir.Operation, attribute: str) -> int:
    """The bytes of static size of a workspace."""
    return int(main.attributes[attribute].value) if attribute in main.attributes else 0


def use_slots(main: mlir.Operation, slots: Sequence[Slot], attribute: str, alignment: int) -> None:
    """Replace the allocations by views of a workspace."""
    body, table = main.regions[0].blocks[0], sizes_argument(main)
    static = bytes_of(main, attribute)
    workspace = workspace_of(main, attribute)
    with main.location, mlir.InsertionPoint.at_block_begin(body):
        sizes: dict[int, mlir.Value] = {}
        offset = emit.index(-(-static // alignment) * alignment)
        for position, slot in enumerate(slots):
            for allocation in slot.allocations:
                # The operands may be defined after the start of the function: the sizes are loaded anew.
                given = [loaded(value, allocation, table, sizes) for value in allocation.operands]
                view = emit.value("memref.view", [workspace, offset, *given], allocation.results[0].type)
                replace_op(allocation, view)
            if position + 1 < len(slots):
                offset = emit.same_type("arith.addi", offset, rounded_up(slot.term, table, sizes, alignment))
        terms = [mlir.DenseI64ArrayAttr.get(list(slot.term)) for slot in slots]
        main.attributes[attribute] = emit.i64(static)
        main.attributes[f"{attribute}{TERMS}"] = mlir.ArrayAttr.get(terms)
    set_function_type(main)


def loaded(size: mlir.Value, allocation: mlir.Operation, table: mlir.Value, sizes: dict[int, mlir.Value]) -> mlir.Value:
    """An operand of an allocation, computed from the table."""
    factor, values = factors_of(size)
    parts = [load_size(table, number_of(value, allocation), sizes) for value in values]
    if factor != 1 or not parts:
        parts.append(emit.index(factor))
    total, *rest = parts
    for part in rest:
        total = emit.same_type("arith.muli", total, part)
    return total


def rounded_up(term: Term, table: mlir.Value, sizes: dict[int, mlir.Value], alignment: int) -> mlir.Value:
    """The bytes of a term, rounded up to the alignment."""
    total = emit.index(term[0])
    for number in term[1:]:
        total = emit.same_type("arith.muli", total, load_size(table, number, sizes))
    raised = emit.same_type("arith.addi", total, emit.index(alignment - 1))
    return emit.same_type("arith.andi", raised, emit.index(-alignment))
