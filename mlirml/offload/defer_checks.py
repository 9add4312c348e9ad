"""Defer checks: what the device computes for a check stays there, and is looked at when somebody waits for the device.

Before:
    %n = memref.load %t[] : memref<i32>                       // written by a kernel
    %ok = arith.cmpi ult, %n, %c10 : i32
    cf.assert %ok, "..." {mlirml.check = 0 : i64, mlirml.check_base = 5 : i64}
After:
    func.func @main(..., %checks: memref<8xi8>)
        attributes {mlirml.deferred_checks = [{base = 5 : i64, bits = 32 : i64, check = 0 : i64, limit = 10 : i64}]} {
      %slot = memref.view %checks[%c0][] : memref<8xi8> to memref<i32>
      memref.copy %t, %slot

The host does not wait for the number before it goes on. Nothing needs that where the check is about an index, which has
a base: capture clamps the indices that it asserts. Checks in loops and branches, those of numbers that the host has,
and those of other things are made where they stand.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import CHECK, CHECK_BASE, DEFERRED_CHECKS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, set_function_type
from mlirml.passes import Pass, register

SLOT_BYTES = 8
_BELOW = 6  # `ult`


@dataclass(frozen=True)
class Found:
    """An assert that can wait: the comparison, the read of the number, and what it must be below."""

    op: mlir.Operation
    comparison: mlir.Operation
    load: mlir.Operation
    limit: int


@register
@dataclass(frozen=True)
class DeferChecksPass(Pass):
    """Let checks of numbers that kernels compute wait for the end of the call."""

    name = "mlirml-defer-checks"

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        start = main.regions[0].blocks[0]
        ops = [op for op in block_ops(start) if op.name == "cf.assert"]
        ops = [op for op in ops if CHECK in op.attributes and CHECK_BASE in op.attributes]
        found = [match for op in ops if (match := match_check(op)) is not None]
        if not found:
            return
        with module.context:
            byte = mlir.IntegerType.get_signless(8)
            slots = start.add_argument(mlir.MemRefType.get([SLOT_BYTES * len(found)], byte), main.location)
            set_function_type(main)
            entries = [defer(match, slots, SLOT_BYTES * number) for number, match in enumerate(found)]
            main.attributes[DEFERRED_CHECKS] = mlir.ArrayAttr.get(entries)


def match_check(op: mlir.Operation) -> Found | None:
    """An assert that a number which lies on the device is below a constant."""
    comparison = defining_op(op.operands[0])
    if comparison is None or comparison.name != "arith.cmpi" or not is_only_use(comparison):
        return None
    if mlir.IntegerAttr(comparison.attributes["predicate"]).value != _BELOW:
        return None
    load, limit = map(defining_op, comparison.operands)
    if load is None or load.name != "memref.load" or not is_only_use(load) or len(load.operands) != 1:
        return None
    if limit is None or limit.name != "arith.constant" or defining_op(load.operands[0]) is None:
        return None
    if load.block != op.block or str(load.results[0].type) not in ("i32", "i64"):
        return None
    return Found(op, comparison, load, int(mlir.IntegerAttr(limit.attributes["value"]).value))


def is_only_use(op: mlir.Operation) -> bool:
    """True if the result of an operation is read once."""
    return sum(1 for _ in op.results[0].uses) == 1


def defer(match: Found, slots: mlir.Value, place: int) -> mlir.DictAttr:
    """Keep the number of a check in its slot, where it was read; what is to be known of it later."""
    number = match.load.operands[0]
    entry = {
        "check": match.op.attributes[CHECK],
        "limit": emit.i64(match.limit),
        "bits": emit.i64(match.load.results[0].type.width),
        "base": match.op.attributes[CHECK_BASE],
    }
    with match.load.location, mlir.InsertionPoint(match.load):
        slot = emit.value("memref.view", [slots, emit.index(place)], number.type)
        emit.create("memref.copy", [number, slot])
    for op in (match.op, match.comparison, match.load):
        op.erase()
    return mlir.DictAttr.get(entry)
