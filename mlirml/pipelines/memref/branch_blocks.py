"""Branch blocks: a slow side of a select is skipped for blocks of a vectorised loop in which no element selects it.

Before:
    scf.for %i = %c0 to %c4096 step %c1 {
      %x = memref.load %a[%i] : memref<4096xf32>
      %positive = arith.cmpf ogt, %x, %zero : f32
      %e = math.expm1 %x : f32
      %y = arith.select %positive, %x, %e : f32
      memref.store %y, %b[%i] : memref<4096xf32>
    }
After:
    scf.for %start = %c0 to %c4096 step %c256 {
      %middle = arith.addi %start, %c16 : index
      %end = arith.addi %start, %c256 : index
      %early = scf.for %i = %start to %middle step %c1 iter_args(%before = %false) -> (i1) {
        %x = memref.load %a[%i] : memref<4096xf32>
        %positive = arith.cmpf ogt, %x, %zero : f32
        %selects = arith.xori %positive, %true : i1
        %any = arith.ori %before, %selects : i1
        scf.yield %any : i1
      }
      %any = scf.if %early -> (i1) {
        scf.yield %early : i1
      } else {
        // the same from %middle to %end
      }
      scf.if %any {
        // the loop as it was, from %start to %end
      } else {
        scf.for %i = %start to %end step %c1 {
          %x = memref.load %a[%i] : memref<4096xf32>
          memref.store %x, %b[%i] : memref<4096xf32>
        }
      }
    }
    // the loop as it was, for the rest

A vectorised loop computes both sides of its selects for each element. The condition of a block costs a comparison an
element, and where conditions vary its first vector decides. Loops that LLVM does not vectorise are those of
`mlirml-sink-operations`, where each iteration has a branch of its own.
"""

from __future__ import annotations

from mlirml.analysis.affine import Reader
from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import may_overlap
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.memref.sink_operations import Choice, barriers_in, cost, is_serial, likely_side, match_choice

_LOAD, _STORE = "memref.load", "memref.store"


@register(when=("arith.select",), optional=True)
class BranchBlocksPass(Pass):
    """Skip sides of selects that take at least `least` instructions for blocks of `block` iterations."""

    least: int = 12
    block: int = 256
    probe: int = 16

    def run(self, module: mlir.Operation) -> None:
        for _, skipped in matched(match, named_operations(module, ("scf.for",)), self.least, self.block):
            build(skipped, self.block, self.probe)


@dataclass(frozen=True, eq=False)
class Skipped:
    """A loop, selects in it, their side that is slow, and the operations that compute their condition."""

    loop: mlir.Operation
    choice: Choice
    side: bool
    condition_ops: list[mlir.Operation]


def match(loop: mlir.Operation, least: int, block: int) -> Skipped:
    """Raises `NoMatch` for loops without a slow side, or whose conditions cannot be computed for a block at once."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if step != 1 or loop.results or (lower is not None and upper is not None and upper - lower < block):
        raise NoMatch("a short loop, or one with loop-carried values")
    body = loop.regions[0].blocks[0]
    ops = block_ops(body)[:-1]
    if not all(op.name in (_LOAD, _STORE) or op.name.startswith(("arith.", "math.")) for op in ops):
        raise NoMatch("more than elements")
    found = slowest_choice(ops, least)
    if found is None or is_serial(loop):
        raise NoMatch("no slow side, or not vectorised")
    choice, side = found
    needed = slice_of(choice.condition, body)
    if not needed or 4 * sum(map(cost, needed)) > sum(map(cost, choice.sides[not side])):
        raise NoMatch("a condition from outside, or one that takes long, too")
    check_loads(loop, needed, ops)
    return Skipped(loop, choice, side, needed)


def slowest_choice(ops: list[mlir.Operation], least: int) -> tuple[Choice, bool] | None:
    """The selects with the slowest side that only they need, and that side; None if no side is slow."""
    found: list[tuple[int, Choice, bool]] = []
    for op, barrier in zip(ops, barriers_in(ops)):
        choice = match_choice(op, least, barrier) if op.name == "arith.select" else None
        if choice is not None:
            sides = [side for side in (True, False) if side is not likely_side(choice.condition)]
            found += [(sum(map(cost, choice.sides[not side])), choice, side) for side in sides]
    slowest = max(found, key=lambda one: one[0], default=None)
    return slowest[1:] if slowest is not None else None


def slice_of(value: mlir.Value, body: mlir.Block) -> list[mlir.Operation]:
    """The operations of a block that compute a value, in order."""
    needed: set[mlir.Operation] = set()
    pending = [value]
    while pending:
        op = defining_op(pending.pop())
        if op is not None and op.block == body and op not in needed:
            needed.add(op)
            pending += op.operands
    return [op for op in block_ops(body) if op in needed]


def check_loads(loop: mlir.Operation, needed: list[mlir.Operation], ops: list[mlir.Operation]) -> None:
    """Raises `NoMatch` if a condition needs elements that other iterations store."""
    variable = loop.regions[0].blocks[0].arguments[0]
    reader = Reader(lambda _: True)
    stores = [op for op in ops if op.name == _STORE]
    for load in (op for op in needed if op.name == _LOAD):
        for store in stores:
            memory, *indices = list(store.operands)[1:]
            if not may_overlap(load.operands[0], memory):
                continue
            known = [reader.read(index) for index in indices]
            is_own = any(index is not None and index.factor(variable) for index in known)
            if list(load.operands) != [memory, *indices] or not is_own or not load.is_before_in_block(store):
                raise NoMatch("a condition that other iterations change")


def build(skipped: Skipped, block: int, probe: int) -> None:
    """Replace the loop by one over blocks, and the loop for the rest."""
    loop = skipped.loop
    lower, upper = list(loop.operands)[:2]
    with loop.location, mlir.InsertionPoint(loop):
        count = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), emit.index(0))
        whole = emit.same_type("arith.andi", count, emit.index(-block))
        last = emit.same_type("arith.addi", lower, whole)

        def one_block(start: mlir.Value, _: list[mlir.Value]) -> None:
            end = emit.same_type("arith.addi", start, emit.index(block))

            def iterations() -> mlir.Operation:
                copy = clone_with(loop, {})
                copy.operands[0], copy.operands[1] = start, end
                return copy

            def both_sides() -> tuple[()]:
                iterations()
                return ()

            def one_side() -> tuple[()]:
                drop_side(skipped, iterations())
                return ()

            emit.conditional(any_selects(skipped, start, end, probe), both_sides, one_side, [])

        emit.for_loop(lower, last, emit.index(block), one_block)
    loop.operands[0] = last


def any_selects(skipped: Skipped, start: mlir.Value, end: mlir.Value, probe: int) -> mlir.Value:
    """True if an element of a block selects the slow side; the first `probe` elements decide most blocks."""
    variable = skipped.loop.regions[0].blocks[0].arguments[0]
    boolean = skipped.choice.condition.type

    def body(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        values = {variable: i}
        for op in skipped.condition_ops:
            clone_with(op, values)
        selects = values[skipped.choice.condition]
        if not skipped.side:
            selects = emit.same_type("arith.xori", selects, emit.number(boolean, 1))
        return [emit.same_type("arith.ori", carried[0], selects)]

    def any_of(first: mlir.Value, last: mlir.Value) -> list[mlir.Value]:
        return emit.for_loop(first, last, emit.index(1), body, [emit.number(boolean, 0)])

    middle = emit.same_type("arith.addi", start, emit.index(probe))
    (early,) = any_of(start, middle)
    return emit.conditional(early, lambda: [early], lambda: any_of(middle, end), [boolean])[0]


def drop_side(skipped: Skipped, copy: mlir.Operation) -> None:
    """Remove the slow side from a copy of the loop."""
    originals, copies = (block_ops(loop.regions[0].blocks[0]) for loop in (skipped.loop, copy))
    same = dict(zip(originals, copies, strict=True))
    for select in skipped.choice.selects:
        op = same[select]
        replace_op(op, op.operands[2 if skipped.side else 1])
    for op in skipped.choice.sides[not skipped.side][::-1]:
        same[op].erase()
