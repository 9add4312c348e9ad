"""Choose library: of a branch that calls a library and one that does not, take the one that the target supports.

Before:
    %has = arith.constant {mlirml.library = "lapack"} false
    %x = scf.if %has -> (tensor<1x40x40xf64>) {
      %i = "mlirml.inverse"(%a, %init) {kind = "f64"} : ...
      scf.yield %i : tensor<1x40x40xf64>
    } else {
      %l = scf.for ...                            // elimination, column by column
      scf.yield %l : tensor<1x40x40xf64>
    }
After, with `lapack`:
    %x = "mlirml.inverse"(%a, %init) {kind = "f64"} : ...
"""

from __future__ import annotations

from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, replace_op
from mlirml.ir.library_calls import FACTORIZATIONS
from mlirml.ir.text.library_calls import LIBRARY
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.raising.nests.remarks import remark


@register(when=ANY_REQUEST)
class ChooseLibraryPass(Pass):
    """Take the branches that call libraries of the target, or else the branches without library calls."""

    lapack: bool = False

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, FACTORIZATIONS):
            branch = op.parent
            condition = library_condition(branch)
            if self.lapack or condition is None:
                remark(op, f"LAPACK's {FACTORIZATIONS[op.name].routines}", "recognised")
            if condition is None:
                continue
            inline_branch(branch, 0 if self.lapack else 1)
            condition.erase()


def library_condition(branch: mlir.Operation | None) -> mlir.Operation | None:
    """The constant condition of a branch on a library; None for any other operation."""
    if branch is None or branch.name != "scf.if":
        return None
    condition = defining_op(branch.operands[0])
    return condition if condition is not None and LIBRARY in condition.attributes else None


def inline_branch(branch: mlir.Operation, region: int) -> None:
    """Replace an `scf.if` by the operations of one of its regions."""
    *inner, end = block_ops(branch.regions[region].blocks[0])
    for op in inner:
        op.move_before(branch)
    replace_op(branch, *end.operands)
