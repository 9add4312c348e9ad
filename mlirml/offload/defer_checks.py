"""Defer checks: the operand of a check stays on the device, and is compared when the host next waits for the device.

Before:
    %n = memref.load %t[] : memref<i32>                       // written by a kernel
    %ok = arith.cmpi ult, %n, %c10 : i32
    cf.assert %ok, "..." {mlirml.check = 0 : i64, mlirml.check_base = 5 : i64}
After:
    func.func @main(..., %checks: memref<8xi8>)
        attributes {mlirml.deferred_checks = [{base = 5 : i64, bits = 32 : i64, check = 0 : i64, limit = 10 : i64}]} {
      %slot = memref.view %checks[%c0][] : memref<8xi8> to memref<i32>
      memref.copy %t, %slot

The host does not wait for the value before it goes on. The program stays memory-safe if the check is about an index
(which has a base), as capture clamps the indices that it asserts. Checks in loops and branches, checks of values that
are in host memory, and checks about anything else are not deferred.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import CHECK, CHECK_BASE, DEFERRED_CHECKS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, set_function_type
from mlirml.passes import Pass, register

SLOT_BYTES = 8
_BELOW = 6  # `ult`


@dataclass(frozen=True)
class DeferrableCheck:
    """An assert that can be deferred: the comparison, the load of its operand, and the constant upper limit."""

    op: mlir.Operation
    comparison: mlir.Operation
    load: mlir.Operation
    limit: int


@register
class DeferChecksPass(Pass):
    """Defer checks of integers that kernels compute to the end of the call."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        start = main.regions[0].blocks[0]
        ops = [op for op in block_ops(start) if op.name == "cf.assert"]
        ops = [op for op in ops if CHECK in op.attributes and CHECK_BASE in op.attributes]
        found = [match for op in ops if (match := match_check(op)) is not None]
        if not found:
            return
        byte = mlir.IntegerType.get_signless(8)
        slots = start.add_argument(mlir.MemRefType.get([SLOT_BYTES * len(found)], byte), main.location)
        set_function_type(main)
        entries = [defer(match, slots, SLOT_BYTES * number) for number, match in enumerate(found)]
        main.attributes[DEFERRED_CHECKS] = mlir.ArrayAttr.get(entries)


def match_check(op: mlir.Operation) -> DeferrableCheck | None:
    """Match an assert that an integer in device memory is below a constant."""
    comparison = defining_op(op.operands[0])
    if comparison is None or comparison.name != "arith.cmpi" or not has_one_use(comparison.results[0]):
        return None
    if mlir.IntegerAttr(comparison.attributes["predicate"]).value != _BELOW:
        return None
    load, limit = defining_op(comparison.operands[0]), constant_of(comparison.operands[1])
    if load is None or load.name != "memref.load" or not has_one_use(load.results[0]) or len(load.operands) != 1:
        return None
    if limit is None or defining_op(load.operands[0]) is None:
        return None
    if load.block != op.block or str(load.results[0].type) not in ("i32", "i64"):
        return None
    return DeferrableCheck(op, comparison, load, limit)


def defer(match: DeferrableCheck, slots: mlir.Value, offset: int) -> mlir.DictAttr:
    """Copy the checked integer to its slot at byte `offset` and erase the assert; returns the entry of the table."""
    number = match.load.operands[0]
    entry = {
        "check": match.op.attributes[CHECK],
        "limit": emit.i64(match.limit),
        "bits": emit.i64(match.load.results[0].type.width),
        "base": match.op.attributes[CHECK_BASE],
    }
    with match.load.location, mlir.InsertionPoint(match.load):
        slot = emit.value("memref.view", [slots, emit.index(offset)], number.type)
        emit.create("memref.copy", [number, slot])
    for op in (match.op, match.comparison, match.load):
        op.erase()
    return mlir.DictAttr.get(entry)
