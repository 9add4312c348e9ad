"""Find the functions of a module with loops, cheaply for modules without loops."""

from __future__ import annotations

from mlirml.ir.bindings import block_ops, has_op, mlir

LOOPS = ("scf.for", "scf.while", "affine.for", "affine.parallel", "scf.parallel")

RAISED = "mlirml.raised"
"""The attribute of functions that mlirml-raise has changed, until mlirml-recognise has run."""

ORDER = "mlirml.order"
"""The attribute of operations that are lowered to loops: the direction of each, 1 upward, -1 downward, 0 either."""


def loop_functions(module: mlir.Operation) -> list[mlir.Operation]:
    """The functions of a module that contain loops, in the order of the module."""
    if not has_op(module, LOOPS):
        return []
    functions = [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "func.func"]
    return [f for f in functions if f.regions[0].blocks and has_op(f, LOOPS)]


def mark_raised(op: mlir.Operation) -> None:
    """Mark the function around `op` as having generics that were raised from loops."""
    while op.name != "func.func":
        op = op.parent.operation
    op.attributes[RAISED] = mlir.UnitAttr.get(op.context)
