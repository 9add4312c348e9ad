"""Liveness of values within an operation, and what values depend on, separately for each loop-carried value.

A loop-carried value that only its own update reads is used, but not live:

    %r:2 = scf.for ... iter_args(%a = %x, %b = %y) {      of %r#0 only %x is live
      %c = arith.addf %a, %a
      %d = arith.mulf %a, %b
      scf.yield %c, %d
    }
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from mlirml.analysis.traits import BRANCHES, CONTROL
from mlirml.analysis.values import ancestor_in, used_values, walk
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations


def live_values(op: mlir.Operation) -> set[mlir.Value]:
    """All values, inside of an operation and outside, that its results depend on."""
    live: set[mlir.Value] = set(op.results)
    _visit(op, live)
    return live


def _visit(op: mlir.Operation, live: set[mlir.Value]) -> None:
    """Add the values that the live results of an operation, and its effects, depend on."""
    if op.name == "scf.for":
        _loop(op, live)
    elif op.name in BRANCHES:
        _branches(op, live)
    elif op.name == "scf.while":
        _while(op, live)
    elif not op.results or any(r in live for r in op.results):
        live.update(used_values(op))


def _block(ops: Sequence[mlir.Operation], live: set[mlir.Value]) -> None:
    for op in reversed(ops):
        _visit(op, live)


def _loop(op: mlir.Operation, live: set[mlir.Value]) -> None:
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    *body, end = block_ops(block)
    slots = list(zip(op.results, list(block.arguments)[1:], inits, end.operands))
    before = -1
    while True:
        for result, argument, init, passed in slots:
            if result in live or argument in live:
                live.update((result, argument, init, passed))
        if before == len(live):  # the back edge has made nothing else live
            break
        _block(body, live)
        before = len(live)
    if _acts(op, live):
        live.update((lower, upper, step))


def _branches(op: mlir.Operation, live: set[mlir.Value]) -> None:
    for block in (block for region in op.regions for block in region.blocks):
        *body, end = block_ops(block)
        live.update(passed for result, passed in zip(op.results, end.operands) if result in live)
        _block(body, live)
    if _acts(op, live):
        live.add(op.operands[0])


def _while(op: mlir.Operation, live: set[mlir.Value]) -> None:
    """The trip count may depend on any carried value."""
    if any(r in live for r in op.results) or not op.results:
        live.update(used_values(op))


def _acts(op: mlir.Operation, live: set[mlir.Value]) -> bool:
    """True if a loop or branch has a live result or an effect."""
    if any(r in live for r in op.results):
        return True
    return any(not inner.results and not inner.name.endswith(_ENDS) for inner in operations(op) if inner != op)


_ENDS = (".yield", ".condition")


def first_reader(
    sources: Container[mlir.Value], values: Iterable[mlir.Value], first: mlir.Operation
) -> mlir.Operation | None:
    """An operation that reads one of `sources` for one of `values`; None if these depend on their types only.

    `sources` are results of `first` and of operations after it: nothing before it is looked at.
    """

    def parts(value: mlir.Value) -> list[mlir.Value]:
        op = _owner(value)
        around = ancestor_in(op, first.block)
        is_early = around is None or (around != first and around.is_before_in_block(first))
        return [] if is_early else _computed_from(op, value)

    for root in values:
        for value in walk(root, parts):
            if any(part in sources for part in parts(value)):
                return _owner(value)
    return None


def _owner(value: mlir.Value) -> mlir.Operation:
    """The operation that defines a value, or in a block of which it is an argument."""
    op = defining_op(value)
    return mlir.BlockArgument(value).owner.owner.operation if op is None else op


def _computed_from(op: mlir.Operation, value: mlir.Value) -> list[mlir.Value]:
    """The values that a value of this owner depends on."""
    if defining_op(value) is None:
        argument = mlir.BlockArgument(value)
        return _passed(op, argument.owner, argument.arg_number)
    if op.name in ("tensor.dim", "tensor.empty"):
        return []
    if op.name != "linalg.generic" and op.name not in CONTROL:
        return used_values(op)
    number, ends = mlir.OpResult(value).result_number, [block_ops(block)[-1] for block in _blocks(op)]
    if op.name == "scf.while":
        condition, *passed = ends[0].operands
        return [condition, passed[number]]
    bounds = [] if op.name == "linalg.generic" else list(op.operands)[: 3 if op.name == "scf.for" else 1]
    inits = [op.operands[3 + number]] if op.name == "scf.for" else []
    return [*bounds, *inits, *(end.operands[number] for end in ends)]


def _passed(op: mlir.Operation, block: mlir.Block, number: int) -> list[mlir.Value]:
    """The values that an operation passes to an argument of one of its blocks."""
    if op.name == "scf.for":
        return [op.operands[2 + number], block_ops(block)[-1].operands[number - 1]] if number else []
    if op.name == "scf.while":
        before, after = _blocks(op)
        if block == after:
            return [block_ops(before)[-1].operands[1 + number]]
        return [op.operands[number], block_ops(after)[-1].operands[number]]
    return [op.operands[number]] if op.name == "linalg.generic" else list(op.operands)


def _blocks(op: mlir.Operation) -> list[mlir.Block]:
    return [block for region in op.regions for block in region.blocks]
