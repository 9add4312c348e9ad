"""Exit loops: a loop whose body does nothing once a flag is set is ended by the flag.

Before:
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stop = %false, %x = %init) -> (i1, f64) {
      %s:2 = scf.if %stop -> (i1, f64) {
        scf.yield %true, %x : i1, f64
      } else {
        ...
        scf.yield %found, %y : i1, f64
      }
      scf.yield %s#0, %s#1 : i1, f64
    }
After:
    %r:3 = scf.while (%i = %c0, %stop = %false, %x = %init) : (index, i1, f64) -> (index, i1, f64) {
      %more = arith.cmpi slt, %i, %n : index
      %go = arith.select %stop, %false, %more : i1
      scf.condition(%go) %i, %stop, %x : index, i1, f64
    } do {
    ^bb0(%i: index, %stop: i1, %x: f64):
      ...
      scf.yield %next, %found, %y : index, i1, f64
    }

A `for` loop with a `break` is captured with a flag if it has inner loops, since those can be raised, and a loop of
known trip count can be differentiated.
"""

from __future__ import annotations

from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP, every


@register(when=every(PROGRAM_LOOP, ("scf.if",)), optional=True)
class ExitLoopsPass(Pass):
    """End loops when a flag is set that makes the remaining iterations do nothing."""

    def run(self, module: mlir.Operation) -> None:
        inner_first = named_operations(module, ("scf.for",))[::-1]
        for loop, (branch, flag) in matched(match_exit, inner_first):
            build_while(loop, branch, flag)


def match_exit(loop: mlir.Operation) -> tuple[mlir.Operation, int]:
    """The branch that skips the body of a loop if a flag is set, and the index of the flag; raises NoMatch."""
    block = loop.regions[0].blocks[0]
    *ops, final = block_ops(block)
    branches = [op for op in ops if op.name == "scf.if"]
    if len(branches) != 1 or any(op.name != "arith.constant" for op in ops if op not in branches):
        raise NoMatch("more than a branch is in it")
    branch, carried = branches[0], list(block.arguments)[1:]
    condition = branch.operands[0]
    if condition not in carried or not all(len(region.blocks) for region in branch.regions):
        raise NoMatch("no flag tells whether an iteration does anything")
    flag = carried.index(condition)
    then = branch.regions[0].blocks[0]
    *others, kept = block_ops(then)
    if any(op.name != "arith.constant" for op in others):
        raise NoMatch("an iteration does something where the flag is set")
    results = list(branch.results)
    for number, (value, before) in enumerate(zip(final.operands, carried)):
        stays = kept.operands[results.index(value)] if value in results else value
        if stays != before and not (number == flag and is_true(stays)):
            raise NoMatch("a value changes where the flag is set")
    return branch, flag


def is_true(value: mlir.Value) -> bool:
    """True if a value is the constant `true`."""
    op = defining_op(value)
    return op is not None and op.name == "arith.constant" and op.attributes["value"] == mlir.BoolAttr.get(True)


def build_while(loop: mlir.Operation, branch: mlir.Operation, flag: int) -> None:
    """Replace a loop by a `scf.while` that ends when its flag is set."""
    block = loop.regions[0].blocks[0]
    final = block_ops(block)[-1]
    lower, upper, step, *starts = loop.operands
    types = [value.type for value in (lower, *starts)]
    with loop.location, mlir.InsertionPoint(loop):
        new = emit.create("scf.while", [lower, *starts], types, regions=2)
    with loop.location, mlir.InsertionPoint(emit.block(new, types)):
        before = new.regions[0].blocks[0]
        number, *passed = before.arguments
        more = emit.compare("slt", number, upper)
        go_on = emit.same_type("arith.select", passed[flag], emit.number(more.type, 0), more)
        emit.create("scf.condition", [go_on, *before.arguments])
    block.append_to(new.regions[1])
    ends = list(final.operands)
    otherwise = branch.regions[1].blocks[0]
    *ops, yielded = block_ops(otherwise)
    for op in ops:
        op.move_before(branch)
    results = list(branch.results)
    values = [yielded.operands[results.index(value)] if value in results else value for value in ends]
    with final.location, mlir.InsertionPoint(final):
        following = emit.same_type("arith.addi", block.arguments[0], step)
        emit.create("scf.yield", [following, *values])
    final.erase()
    branch.erase()
    replace_op(loop, *list(new.results)[1:])
