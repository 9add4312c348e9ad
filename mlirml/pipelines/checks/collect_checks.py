"""Collect checks: in functions that cannot return early, loops continue after a failed check, which fails at their end.

Before:
    func.func private @main.part0(%keys: memref<8xi64>) {
      scf.for %i = ... {
        %key = memref.load %keys[%i] : memref<8xi64>
        %inside = arith.cmpi ult, %key, %c5 : i64
        cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
      }
      return
    }
After:
    func.func private @main.part0(%keys: memref<8xi64>) {
      %largest = memref.alloca() : memref<i64>       // which LLVM keeps in a register
      memref.store %c0, %largest[] : memref<i64>
      scf.for %i = ... {
        %key = memref.load %keys[%i] : memref<8xi64>
        %old = memref.load %largest[] : memref<i64>
        %new = arith.maxui %old, %key : i64
        memref.store %new, %largest[] : memref<i64>
      }
      %found = memref.load %largest[] : memref<i64>
      %inside = arith.cmpi ult, %found, %c5 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
      return
    }

Such a program must be memory-safe without the check: capture clamps the indices that it asserts. After a failure its
results are wrong, and a `while` might never end: each one ends once a check of its function has failed.

    scf.while : () -> () {
      ...
      %largest_so_far = memref.load %largest[] : memref<i64>
      %inside = arith.cmpi ult, %largest_so_far, %c5 : i64
      %both = arith.andi %proceed, %inside : i1
      scf.condition(%both)
    } do { ... }

The cell of a check that is not about an integer records if it has failed. A check outside of all loops and branches
needs no cell, unless its function has a `while`. @main returns at once if a check fails (`mlirml-lower-asserts`), and
is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import PARALLEL_LOOPS
from mlirml.core.dataclass import dataclass
from mlirml.dialects.checks import checked_number
from mlirml.dialects.mlirml import CHECK, CHECK_BASE, parallel_grain
from mlirml.errors import InternalError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, defining_op, has_op, mlir, operations
from mlirml.passes import Pass, register
from mlirml.pipelines.checks.lower_asserts import function_name, function_of, returns_at_once


@register(when=("cf.assert",), optional=True)
class CollectChecksPass(Pass):
    """Record the failures of checks in functions that cannot return early, and assert them after loops and branches."""

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, ("cf.assert",)):
            return
        found = list(operations(module))
        asserts = [op for op in found if op.name == "cf.assert"]
        parallel = {callee_of(op) for op in found if parallel_grain(op) is not None}
        for op in asserts:
            if function_name(op) in parallel or is_in_parallel(op):
                raise InternalError(f"a check would run on several threads: {op.location}")
        going = [op for op in asserts if not returns_at_once(function_of(op))]
        collect(going, [op for op in found if op.name == "scf.while"])


def is_in_parallel(op: mlir.Operation) -> bool:
    """True if an operation is in a parallel loop."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in PARALLEL_LOOPS:
            return True
    return False


@dataclass(frozen=True, eq=False)
class Cell:
    """Memory for the state of a check: the largest checked integer so far, or whether the check has failed."""

    memory: mlir.Value
    limit: int

    def passed(self) -> mlir.Value:
        """True if the check has not failed so far."""
        element_type = self.memory.type.element_type
        state = emit.value("memref.load", [self.memory], element_type)
        return emit.compare("ult", state, emit.number(element_type, self.limit))

    def record(self, number: mlir.Value) -> None:
        """Keep the maximum of an integer and the recorded ones."""
        old = emit.value("memref.load", [self.memory], number.type)
        emit.create("memref.store", [emit.same_type("arith.maxui", old, number), self.memory])


def collect(asserts: Sequence[mlir.Operation], whiles: Sequence[mlir.Operation]) -> None:
    """Record checks in cells, end `while`s after a failure, and assert after the loop or branch that had the check."""
    cells: dict[mlir.Operation, list[Cell]] = {}
    last: dict[mlir.Operation, mlir.Operation] = {}
    asked: set[tuple[mlir.Block, mlir.Value]] = set()
    ending = {function_of(loop) for loop in whiles}
    for op in asserts:
        if (op.block, op.operands[0]) not in asked:
            asked.add((op.block, op.operands[0]))
            statement = statement_of(op)
            if statement == op and function_of(op) not in ending:
                continue  # runs at most once, and no `while` depends on it
            cell = record_check(op)
            cells.setdefault(function_of(op), []).append(cell)
            with op.location, mlir.InsertionPoint.after(last.get(statement, statement)):
                kept = {name: op.attributes[name] for name in (CHECK, CHECK_BASE) if name in op.attributes}
                last[statement] = emit.create("cf.assert", [cell.passed()], (), {"msg": op.attributes["msg"], **kept})
        op.erase()
    for loop in whiles:
        end_after_failure(loop, cells.get(function_of(loop), ()))


def record_check(op: mlir.Operation) -> Cell:
    """Record a check in a new cell, which is returned."""
    checked, comparison = checked_number(op), defining_op(op.operands[0])
    limit = constant_of(comparison.operands[1]) if checked is not None and comparison is not None else None
    with op.location:
        if checked is None or limit is None:
            cell = new_cell(op, op.operands[0].type, 1)
            with mlir.InsertionPoint(op):
                cell.record(emit.same_type("arith.xori", op.operands[0], emit.number(op.operands[0].type, 1)))
            if CHECK_BASE in op.attributes:
                del op.attributes[CHECK_BASE]
            return cell
        cell = new_cell(op, checked.moved.type, limit)
        with mlir.InsertionPoint(op):
            cell.record(checked.moved)
        return cell


def new_cell(op: mlir.Operation, element_type: mlir.Type, limit: int) -> Cell:
    """A cell, allocated at the start of the function around `op`."""
    with mlir.InsertionPoint.at_block_begin(function_of(op).regions[0].blocks[0]):
        none = emit.segments(0, 0)
        memory = emit.value("memref.alloca", (), mlir.MemRefType.get([], element_type), operandSegmentSizes=none)
        emit.create("memref.store", [emit.number(element_type, 0), memory])
    return Cell(memory, limit)


def end_after_failure(loop: mlir.Operation, cells: Sequence[Cell]) -> None:
    """End a `while` once the check of one of these cells has failed."""
    condition = block_ops(loop.regions[0].blocks[0])[-1]
    with condition.location, mlir.InsertionPoint(condition):
        for cell in cells:
            condition.operands[0] = emit.same_type("arith.andi", condition.operands[0], cell.passed())


def statement_of(op: mlir.Operation) -> mlir.Operation:
    """The ancestor of an operation in its function's entry block, or the operation itself."""
    while op.parent.name != "func.func":
        op = op.parent.operation
    return op
