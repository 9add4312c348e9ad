"""Shorten recurrences: float sums are reassociated so that the loop-carried value is added last.

Before:
    scf.for %j = %c1 to %n step %c1 {
      %before = memref.load %x[%j - 1]       // stored one iteration ago
      %older = memref.load %x[%j - 2]
      %0 = arith.addf %a, %before : f32
      %1 = arith.subf %0, %older : f32
      %2 = arith.addf %1, %c : f32
      memref.store %2, %x[%j]
    }
After:
    scf.for %j = %c1 to %n step %c1 {
      %before = memref.load %x[%j - 1]
      %older = memref.load %x[%j - 2]
      %0 = arith.addf %a, %c : f32
      %1 = arith.subf %0, %older : f32
      %2 = arith.addf %1, %before : f32
      memref.store %2, %x[%j]
    }

The latency of an iteration is that of the operations between the load of a loop-carried element and the store. Terms
may depend on stored elements; those stored the most iterations ago are added first. Float sums are reassociated, as in
array functions. Of two products that are added, LLVM fuses the first one into a multiply-add: if only the second one
depends on loop-carried values, the flag `contract` is removed from the first, as the sum waits for the second.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register

_ADDITIONS = ("arith.addf", "arith.subf")
_NEVER = 1 << 62


@register(when=("scf.for",), optional=True)
class ShortenRecurrencesPass(Pass):
    """Reassociate float sums in innermost loops, and fuse the products on the critical path."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            for product in early_products(loop):
                product.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<none>", module.context)
            with suppress(NoMatch):
                reorder(*match_sum(loop))


@dataclass(frozen=True, eq=False)
class Term:
    """An operand of a sum, added or subtracted."""

    value: mlir.Value
    negative: bool


def early_products(loop: mlir.Operation) -> list[mlir.Operation]:
    """The products that do not depend on loop-carried values, whose only use is an addition to one that does."""
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
    """True if an operation is a product that may be contracted with the one addition that uses it."""
    alone = len(list(op.results[0].uses)) == 1
    return op.name == "arith.mulf" and alone and str(op.attributes["fastmath"]) == "#arith.fastmath<contract>"


def match_sum(loop: mlir.Operation) -> tuple[list[Term], list[mlir.Operation]]:
    """The terms of a sum ordered by when they are available, and its additions, the root first."""
    block = loop.regions[0].blocks[0]
    ops = block_ops(block)
    stores = [op for op in ops if op.name == "memref.store"]
    if len(stores) != 1 or any(op.regions for op in ops):
        raise NoMatch("not an innermost loop with one store")
    lags = lags_of(ops, stores[0], loop)
    for op in reversed(ops) if lags else ():
        if op.name in _ADDITIONS and not is_part(op):
            terms, sums = terms_of(op, block)
            order = sorted(terms, key=lambda term: -lags.get(term.value, _NEVER))
            first, last = order[0].value, order[-1].value
            in_order = order == terms and op.operands[1] == last
            if len(terms) > 2 and not in_order and lags.get(first, _NEVER) > lags.get(last, _NEVER):
                return order, sums
    raise NoMatch("no sum with an element of an iteration before in it")


def lags_of(ops: list[mlir.Operation], store: mlir.Operation, loop: mlir.Operation) -> dict[mlir.Value, int]:
    """For each value that depends on `store`: the least number of iterations since that store."""
    lags: dict[mlir.Value, int] = {}
    for op in ops:
        lag = lag_of(op, store, loop)
        if lag is None:
            lag = min((lags[operand] for operand in op.operands if operand in lags), default=_NEVER)
        if lag < _NEVER:
            lags.update(dict.fromkeys(op.results, lag))
    return lags


def lag_of(op: mlir.Operation, store: mlir.Operation, loop: mlir.Operation) -> int | None:
    """The number of iterations between `store` and the load `op` of its element; None if `op` does not load it."""
    if op.name != "memref.load" or op.operands[0] != store.operands[1]:
        return None
    variable, step = loop.regions[0].blocks[0].arguments[0], constant_of(loop.operands[2])
    pairs = list(zip(list(op.operands)[1:], list(store.operands)[2:], strict=True))
    different = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
    if len(different) != 1 or different[0][1] != variable or not step:
        return None
    index = defining_op(different[0][0])
    if index is None or index.name not in INTEGER_STEPS or index.operands[0] != variable:
        return None
    distance = constant_of(index.operands[1])
    if distance is None:
        return None
    distance = distance if index.name == "arith.subi" else -distance
    return distance // step if distance > 0 and distance % step == 0 else None


def is_part(op: mlir.Operation) -> bool:
    """True if the only use of an addition is as a term of another one."""
    users = [use.owner.operation for use in op.results[0].uses]
    return len(users) == 1 and users[0].name in _ADDITIONS and users[0].block == op.block


def terms_of(root: mlir.Operation, block: mlir.Block) -> tuple[list[Term], list[mlir.Operation]]:
    """The terms of a tree of additions and subtractions, from left to right, and its operations from the root on."""
    terms: list[Term] = []
    sums: list[mlir.Operation] = []
    todo = [Term(root.results[0], negative=False)]
    while todo:
        term = todo.pop()
        op = defining_op(term.value)
        if op is None or not (op == root or (op.name in _ADDITIONS and op.block == block and is_part(op))):
            terms.append(term)
            continue
        first, second = op.operands
        sums.append(op)
        todo += [Term(second, term.negative != (op.name == "arith.subf")), Term(first, term.negative)]
    return terms, sums


def reorder(terms: list[Term], sums: list[mlir.Operation]) -> None:
    """Rebuild a sum from its reordered terms before its last addition."""
    root = sums[0]
    attributes = {name: root.attributes[name] for name in root.attributes}
    first = next((term for term in terms[:-1] if not term.negative), terms[0])
    with root.location, mlir.InsertionPoint(root):
        total = first.value
        if first.negative:
            total = emit.value("arith.negf", [total], total.type, **attributes)
        for term in terms:
            if term is not first:
                name = "arith.subf" if term.negative else "arith.addf"
                total = emit.value(name, [total, term.value], total.type, **attributes)
    root.results[0].replace_all_uses_with(total)
    for op in sums:
        op.erase()
