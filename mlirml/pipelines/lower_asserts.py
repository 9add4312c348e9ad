"""Lower asserts: a `cf.assert` reports the number of its check to the native runtime, which raises after the call.

Before:
    func.func @main(%ok: i1, %oks: memref<8xi1>) {
      cf.assert %ok, "index out of bounds" {mlirml.check = 3 : i64}
      scf.for %i = ... {
        %each = memref.load %oks[%i] : memref<8xi1>
        cf.assert %each, "index out of bounds" {mlirml.check = 4 : i64}
      }
      return
    }
After:
    func.func private @mlirml_check_failed(i64)
    func.func @main(%ok: i1, %oks: memref<8xi1>) {
      cf.cond_br %ok, ^bb1, ^bb2
    ^bb1:
      scf.for %i = ... {
        %each = memref.load %oks[%i] : memref<8xi1>
        %true = arith.constant true
        %failed = arith.xori %each, %true : i1
        scf.if %failed {
          %c4 = arith.constant 4 : i64
          func.call @mlirml_check_failed(%c4) : (i64) -> ()
        }
      }
      return
    ^bb2:
      %c3 = arith.constant 3 : i64
      func.call @mlirml_check_failed(%c3) : (i64) -> ()
      return
    }

@main returns when a check of its own fails. Elsewhere the program goes on, so that it must be safe without the check:
capture clamps the indices that it asserts. What it computes then is wrong, and a `while` might never end: each one in a
function with such checks ends once one of them has failed.

    %going = memref.alloca() : memref<i1>           // false from the first failure on
    scf.while : () -> () {
      ...
      %not_failed = memref.load %going[] : memref<i1>
      %both = arith.andi %proceed, %not_failed : i1
      scf.condition(%both)
    } do { ... }

A check about a number, `arith.cmpi ult, %moved, %limit`, reports that too, above the bits for the number of the check.

The runtime keeps the number of the first failure for the thread that called
the program, so that no check may stand in a loop that other threads run. A check without a number reports -1.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.dialects.checks import Checked, checked_number
from mlirml.dialects.mlirml import CHECK, parallel_grain
from mlirml.errors import CHECK_BITS, CHECK_LIMIT, InternalError
from mlirml.ir import block_ops, has_op, mlir, operations
from mlirml.passes import Pass, register

RUNTIME = "mlirml_check_failed"


@register
@dataclass(frozen=True)
class LowerAssertsPass(Pass):
    """Turn asserts into guarded calls of the native runtime."""

    name = "mlirml-lower-asserts"

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, ("cf.assert",)):
            return
        found = list(operations(module))
        asserts = [op for op in found if op.name == "cf.assert"]
        parallel = {str(op.attributes["callee"]) for op in found if parallel_grain(op) is not None}
        declare(module, asserts[0])
        flags = going_flags(found, asserts)
        for op in reversed(asserts):
            if f"@{function_name(op)}" in parallel or is_in_parallel(op):
                raise InternalError(f"a check would run on several threads: {op.location}")
            if is_top_level(op):
                return_early(op)
            else:
                lower(op, flags.get(function_of(op)))


def declare(module: mlir.Operation, first: mlir.Operation) -> None:
    """The runtime's function, in front of all others."""
    kind = mlir.FunctionType.get([mlir.IntegerType.get_signless(64)], [])
    attributes = {
        "sym_name": mlir.StringAttr.get(RUNTIME),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(kind),
    }
    with first.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        emit.create("func.func", (), (), attributes, regions=1)


def function_of(op: mlir.Operation) -> mlir.Operation:
    """The function around an operation."""
    while op.name != "func.func":
        op = op.parent.operation
    return op


def function_name(op: mlir.Operation) -> str:
    """The name of the function around an operation."""
    return str(mlir.StringAttr(function_of(op).attributes["sym_name"]).value)


def going_flags(ops: Sequence[mlir.Operation], asserts: Sequence[mlir.Operation]) -> dict[mlir.Operation, mlir.Value]:
    """For functions with a `while` and checks after which they go on: what tells that none has failed yet.

    Each `while` of them reads it before a round.
    """
    going = {function_of(op) for op in asserts if not is_top_level(op)}
    flags: dict[mlir.Operation, mlir.Value] = {}
    for op in ops:
        if op.name != "scf.while" or function_of(op) not in going:
            continue
        function = function_of(op)
        bit = mlir.IntegerType.get_signless(1)
        if function not in flags:
            kind = mlir.MemRefType.get([], bit)
            with op.location, mlir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                flag = emit.value("memref.alloca", (), kind, operandSegmentSizes=emit.segments(0, 0))
                emit.create("memref.store", [emit.number(bit, 1), flag])
            flags[function] = flag
        condition = block_ops(op.regions[0].blocks[0])[-1]
        with condition.location, mlir.InsertionPoint(condition):
            going_on = emit.value("memref.load", [flags[function]], bit)
            condition.operands[0] = emit.same_type("arith.andi", condition.operands[0], going_on)
    return flags


def is_top_level(op: mlir.Operation) -> bool:
    """Whether an assert stands in @main itself, which returns nothing."""
    function = op.parent.operation
    if function.name != "func.func" or function_name(op) != "main":
        return False
    return not mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value).results


def is_in_parallel(op: mlir.Operation) -> bool:
    """Whether an operation stands in a parallel loop."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in ("scf.parallel", "scf.forall"):
            return True
    return False


def number_of(op: mlir.Operation) -> int:
    """The number of a check."""
    return int(mlir.IntegerAttr(op.attributes[CHECK]).value) if CHECK in op.attributes else -1


def report(op: mlir.Operation) -> None:
    """Call the runtime with the number of a check, and the number that it is about."""
    argument = emit.constant(emit.i64(number_of(op)))
    checked = checked_number(op)
    if checked is not None:
        argument = with_number(argument, checked)
    emit.create("func.call", [argument], (), {"callee": mlir.FlatSymbolRefAttr.get(RUNTIME)})


def with_number(argument: mlir.Value, checked: Checked) -> mlir.Value:
    """The code that `CheckFailed` takes apart."""
    long, number = mlir.IntegerType.get_signless(64), checked.moved
    if isinstance(number.type, mlir.IndexType):
        number = emit.value("arith.index_cast", [number], long)
    if checked.base:
        number = emit.same_type("arith.subi", number, emit.number(number.type, checked.base))
    if number.type != long:
        number = emit.value("arith.extsi" if checked.base else "arith.extui", [number], long)
    limit = emit.number(long, CHECK_LIMIT)
    if checked.base:
        number = emit.same_type("arith.maxsi", number, emit.number(long, -CHECK_LIMIT))
        number = emit.same_type("arith.minsi", number, limit)
    else:
        number = emit.same_type("arith.minui", number, limit)
    number = emit.same_type("arith.muli", number, emit.number(long, 1 << CHECK_BITS))
    mark = emit.number(long, 1 << CHECK_BITS - 1)
    return emit.same_type("arith.ori", emit.same_type("arith.ori", number, mark), argument)


def return_early(op: mlir.Operation) -> None:
    """Replace an assert of a function without results by a branch to a block that reports it and returns."""
    block = op.block
    rest = block.create_after()
    following = block_ops(block)
    for later in following[following.index(op) + 1 :]:
        rest.append(later)
    failed = rest.create_after()
    with op.location:
        with mlir.InsertionPoint(failed):
            report(op)
            emit.create("func.return")
        with mlir.InsertionPoint(op):
            branch = {"operandSegmentSizes": emit.segments(1, 0, 0)}
            mlir.Operation.create("cf.cond_br", operands=[op.operands[0]], attributes=branch, successors=[rest, failed])
    op.erase()


def lower(op: mlir.Operation, flag: mlir.Value | None) -> None:
    """Replace one assert by a guarded report, which also tells the loops of the function that there was a failure."""
    with op.location, mlir.InsertionPoint(op):
        bit = mlir.IntegerType.get_signless(1)
        failed = emit.same_type("arith.xori", op.operands[0], emit.number(bit, 1))
        guard = emit.create("scf.if", [failed], (), regions=2)
        with mlir.InsertionPoint(emit.block(guard, [])):
            report(op)
            if flag is not None:
                emit.create("memref.store", [emit.number(bit, 0), flag])
            emit.create("scf.yield")
    op.erase()
