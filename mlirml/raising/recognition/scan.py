"""Prefix sums: loops that store a running sum in each iteration stay loops; a remark names them.

    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %s = %s0) -> (f64, tensor<8xf64>) {
      %x = tensor.extract %a[%i]
      %new = arith.addf %sum, %x
      %s1 = tensor.insert %new into %s[%i]
      scf.yield %new, %s1
    }

`np.cumsum` of one row is compiled from this form, too: each sum depends on the previous one. The previous one may also
be read back from the array, as in `s[i] = s[i - 1] + x[i]`.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch


def match_scan(loop: mlir.Operation) -> str:
    """The name of the scan that a loop is; raises `NoMatch`."""
    block = loop.regions[0].blocks[0]
    *body, final = block_ops(block)
    variable, *carried = block.arguments
    for array, yielded in zip(carried, final.operands, strict=True):
        store = defining_op(yielded)
        if store is None or store.name != "tensor.insert" or store.operands[1] != array or store not in body:
            continue
        total = defining_op(store.operands[0])
        combiner = COMBINERS.get(total.name) if total is not None and total in body else None
        if total is None or combiner is None or variable not in list(store.operands)[2:]:
            continue
        for operand in total.operands:
            kept = [n for n, argument in enumerate(carried) if argument == operand]
            if kept and final.operands[kept[0]] == total.results[0]:
                return f"a prefix {combiner.word}"
            if reads_before(operand, array, list(store.operands)[2:], variable):
                return f"a prefix {combiner.word}"
    raise NoMatch("no running sum is stored")


def reads_before(value: mlir.Value, array: mlir.Value, indices: list[mlir.Value], variable: mlir.Value) -> bool:
    """True if a value is the element of the array that the previous iteration stored."""
    read = defining_op(value)
    if read is None or read.name != "tensor.extract" or read.operands[0] != array:
        return False
    for index, before in zip(indices, list(read.operands)[1:], strict=True):
        if index != variable:
            if index != before:
                return False
            continue
        step = defining_op(before)
        if step is None or step.name not in INTEGER_STEPS or step.operands[0] != variable:
            return False
        if constant_of(step.operands[1]) != (1 if step.name == "arith.subi" else -1):
            return False
    return True
