"""Lower asserts: a `cf.assert` becomes a branch to a block that reports the index of its check to the native runtime.

Before:
    func.func @main(%ok: i1) {
      ...
    ^bb4:
      cf.assert %ok, "index out of bounds" {mlirml.check = 3 : i64}
      ...
After:
    func.func private @mlirml_check_failed(i64)
    func.func @main(%ok: i1) {
      ...
    ^bb4:
      cf.cond_br %ok, ^bb5, ^bb6
    ^bb5:
      ...
    ^bb6:
      %c3 = arith.constant 3 : i64
      func.call @mlirml_check_failed(%c3) : (i64) -> ()
      return
    }

@main returns at once, from loops too, so that nothing is read, written or computed after a failed check. Other
functions continue at ^bb5: `mlirml-collect-checks` has made them safe.

A check about an integer, `arith.cmpi ult, %moved, %limit`, reports that too, in the bits above the index of the check.
The runtime, which raises after the call, stores the code of the first failure in the thread that called the program, so
a check must not be in a loop that other threads run. A check without an index reports -1.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.dialects.checks import Checked, checked_number
from mlirml.dialects.mlirml import CHECK
from mlirml.errors import CHECK_BITS, CHECK_LIMIT
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_op, mlir, named_operations
from mlirml.passes import Pass, register

RUNTIME = "mlirml_check_failed"


@register(when=("cf.assert",))
class LowerAssertsPass(Pass):
    """Lower asserts to guarded calls of the native runtime."""

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, ("cf.assert",)):
            return
        asserts = named_operations(module, ("cf.assert",))
        declare(module, asserts[0])
        for block in dict.fromkeys(op.block for op in asserts):
            branch_all(block)


def declare(module: mlir.Operation, first: mlir.Operation) -> None:
    """Declare the runtime's function, before all others."""
    kind = mlir.FunctionType.get([mlir.IntegerType.get_signless(64)], [])
    attributes = {
        "sym_name": mlir.StringAttr.get(RUNTIME),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(kind),
    }
    with first.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        emit.create("func.func", (), (), attributes, regions=1)


def function_of(op: mlir.Operation) -> mlir.Operation:
    """The function that contains an operation."""
    while op.name != "func.func":
        op = op.parent.operation
    return op


def function_name(op: mlir.Operation) -> str:
    """The name of the function that contains an operation."""
    return str(mlir.StringAttr(function_of(op).attributes["sym_name"]).value)


def returns_at_once(function: mlir.Operation) -> bool:
    """True if a function may return when a check fails: it is @main, and has no results."""
    if function_name(function) != "main":
        return False
    return not mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value).results


def number_of(op: mlir.Operation) -> int:
    """The index of a check in the table of checks; -1 if it has none."""
    return int(mlir.IntegerAttr(op.attributes[CHECK]).value) if CHECK in op.attributes else -1


def report(op: mlir.Operation) -> None:
    """Call the runtime with the index of a check, and the integer that it is about."""
    argument = emit.constant(emit.i64(number_of(op)))
    checked = checked_number(op)
    if checked is not None:
        argument = with_number(argument, checked)
    emit.create("func.call", [argument], (), {"callee": mlir.FlatSymbolRefAttr.get(RUNTIME)})


def with_number(argument: mlir.Value, checked: Checked) -> mlir.Value:
    """The code of a failed check with its integer, which `CheckFailed` decodes."""
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


def branch_all(block: mlir.Block) -> None:
    """Lower the asserts of a block, last first, so that each operation is moved once."""
    later: list[mlir.Operation] = []
    for op in reversed(block_ops(block)):
        if op.name == "cf.assert":
            later = [branch(op, later)]
        else:
            later.append(op)


def branch(op: mlir.Operation, later: Sequence[mlir.Operation]) -> mlir.Operation:
    """Replace an assert by a branch to a block that reports it; `later` are the operations after it, last first."""
    rest = op.block.create_after()
    for moved in reversed(later):
        rest.append(moved)
    failed = rest.create_after()
    with op.location:
        with mlir.InsertionPoint(failed):
            report(op)
            if returns_at_once(function_of(op)):
                emit.create("func.return")
            else:
                mlir.Operation.create("cf.br", successors=[rest])
        with mlir.InsertionPoint(op):
            sizes = {"operandSegmentSizes": emit.segments(1, 0, 0)}
            both, condition = [rest, failed], op.operands[0]
            end = mlir.Operation.create("cf.cond_br", operands=[condition], attributes=sizes, successors=both)
    op.erase()
    return end.operation
