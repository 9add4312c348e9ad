"""Shorten recurrences: what the round before has stored is added last, so that the rest of a sum need not wait for it.

Before:
    scf.for %j = %c1 to %n step %c1 {
      %before = memref.load %x[%j - 1]       // stored one round ago
      %0 = arith.addf %a, %before : f32
      %1 = arith.addf %0, %b : f32
      %2 = arith.addf %1, %c : f32
      memref.store %2, %x[%j]
    }
After:
    scf.for %j = %c1 to %n step %c1 {
      %before = memref.load %x[%j - 1]
      %0 = arith.addf %a, %b : f32
      %1 = arith.addf %0, %c : f32
      %2 = arith.addf %1, %before : f32
      memref.store %2, %x[%j]
    }

A round of such a loop takes as long as the operations between the element that it reads and the one that it stores.
Sums of floats are added up in another order, as those of arrays are. Of two products that are added, LLVM makes the
first one a part of a fused multiply-add: where only the other one is computed of what the loop carries, the flag
`contract` of the first is taken off, as the sum waits for the other one.
"""

from __future__ import annotations

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.ir import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.rounds import constant_of


@register
@dataclass(frozen=True)
class ShortenRecurrencesPass(Pass):
    """Reorder sums of floats in innermost loops, and fuse the products that the loop waits for."""

    name = "mlirml-shorten-recurrences"

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            for product in early_products(loop):
                product.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<none>", module.context)
            try:
                terms, sums, last = match_sum(loop)
            except NoMatch:
                continue
            reorder(terms, sums, last)


def early_products(loop: mlir.Operation) -> list[mlir.Operation]:
    """The products that do not depend on carried values, each added to one that does and used by nothing else."""
    block = loop.regions[0].blocks[0]
    ops = block_ops(block)
    if any(op.regions for op in ops):
        return []
    late = {argument for argument in list(block.arguments)[1:] if isinstance(argument.type, mlir.FloatType)}
    found = []
    for op in ops if late else ():
        if any(operand in late for operand in op.operands):
            late.update(op.results)
        if op.name in ("arith.addf", "arith.subf"):
            first, second = (defining_op(operand) for operand in op.operands)
            if first is None or second is None or op.operands[0] in late or op.operands[1] not in late:
                continue
            if all(is_fusible(product) and product.block == block for product in (first, second)):
                found.append(first)
    return found


def is_fusible(op: mlir.Operation) -> bool:
    """Whether an operation is a product that may be fused with the one addition that uses it."""
    alone = len(list(op.results[0].uses)) == 1
    return op.name == "arith.mulf" and alone and str(op.attributes["fastmath"]) == "#arith.fastmath<contract>"


def match_sum(loop: mlir.Operation) -> tuple[list[mlir.Value], list[mlir.Operation], mlir.Value]:
    """The terms of a sum, the additions of it, the last one first, and the term that the round before has stored."""
    block = loop.regions[0].blocks[0]
    ops = block_ops(block)
    stores = [op for op in ops if op.name == "memref.store"]
    if len(stores) != 1 or any(op.regions for op in ops):
        raise NoMatch("not an innermost loop with one store")
    recent = [op.results[0] for op in ops if is_recent(op, stores[0], loop)]
    for op in reversed(ops):
        if op.name == "arith.addf" and not is_part(op):
            terms, sums = terms_of(op, block)
            last = [term for term in terms if term in recent]
            if len(last) == 1 and len(terms) > 2 and last[0] not in list(op.operands):
                return terms, sums, last[0]
    raise NoMatch("no sum with an element of the round before in it")


def is_recent(op: mlir.Operation, store: mlir.Operation, loop: mlir.Operation) -> bool:
    """Whether an operation loads what `store` stored one round ago."""
    if op.name != "memref.load" or op.operands[0] != store.operands[1]:
        return False
    variable, step = loop.regions[0].blocks[0].arguments[0], constant_of(loop.operands[2])
    pairs = list(zip(list(op.operands)[1:], list(store.operands)[2:], strict=True))
    different = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
    return len(different) == 1 and different[0][1] == variable and is_before(different[0][0], variable, step)


def is_before(index: mlir.Value, variable: mlir.Value, step: int | None) -> bool:
    """Whether an index is the loop variable of the round before."""
    op = defining_op(index)
    if op is None or step is None or op.name not in ("arith.addi", "arith.subi") or op.operands[0] != variable:
        return False
    return constant_of(op.operands[1]) == (step if op.name == "arith.subi" else -step)


def is_part(op: mlir.Operation) -> bool:
    """Whether an addition is a term of another one only."""
    users = [use.owner.operation for use in op.results[0].uses]
    return len(users) == 1 and users[0].name == "arith.addf" and users[0].block == op.block


def terms_of(root: mlir.Operation, block: mlir.Block) -> tuple[list[mlir.Value], list[mlir.Operation]]:
    """What a tree of additions adds up, from left to right, and the additions from the root on."""
    terms: list[mlir.Value] = []
    sums = [root]
    todo = list(root.operands)[::-1]
    while todo:
        value = todo.pop()
        op = defining_op(value)
        if op is not None and op.name == "arith.addf" and op.block == block and is_part(op):
            sums.append(op)
            todo += list(op.operands)[::-1]
        else:
            terms.append(value)
    return terms, sums


def reorder(terms: list[mlir.Value], sums: list[mlir.Operation], last: mlir.Value) -> None:
    """Build the sum again in front of its last addition."""
    root = sums[0]
    attributes = {name: root.attributes[name] for name in root.attributes}
    first, *rest = [term for term in terms if term != last]
    with root.location, mlir.InsertionPoint(root):
        total = first
        for term in (*rest, last):
            total = emit.value("arith.addf", [total, term], total.type, **attributes)
    root.results[0].replace_all_uses_with(total)
    for op in sums:
        op.erase()
