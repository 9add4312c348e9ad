"""Liveness of values within an operation, separately for each loop-carried value.

A loop-carried value that only its own update reads is used, but not live:

    %r:2 = scf.for ... iter_args(%a = %x, %b = %y) {      of %r#0 only %x is live
      %c = arith.addf %a, %a
      %d = arith.mulf %a, %b
      scf.yield %c, %d
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.traits import BRANCHES
from mlirml.analysis.values import used_values
from mlirml.ir.bindings import block_ops, mlir, operations


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
