"""Split loops: an inner loop is cut at the element that its rounds read over and over, and that one of them stores.

Before:
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%i, %j]
      %b = memref.load %x[%i, %k]
      %c = memref.load %x[%k, %j]
      ...
      memref.store %new, %x[%i, %j]
    }
After:
    scf.if ... {
      %b = memref.load %x[%i, %k]
      scf.for %j = %c0 to %k step %c1 { ... }
    }
    scf.for %j = %k to %k1 step %c1 { ... }         // one round, as it was
    scf.if ... {
      %b = memref.load %x[%i, %k]
      scf.for %j = %k1 to %n step %c1 { ... }
    }

In the parts in front of and behind that element nothing stores into it, so that it is loaded once, and LLVM vectorises
what is left. The bounds of the parts stay within those of the loop. Shortest paths between all pairs are such loops.
"""

from __future__ import annotations

from mlirml.analysis.trip_counts import constant_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register


@register
@dataclass(frozen=True)
class SplitLoopsPass(Pass):
    """Cut innermost loops where a fixed element meets the one that is stored."""

    name = "mlirml-split-loops"

    def run(self, module: mlir.Operation) -> None:
        for loop in [op for op in named_operations(module, ("scf.for",)) if not op.results]:
            try:
                cut = match_cut(loop)
            except NoMatch:
                continue
            build_parts(loop, cut)


@dataclass(frozen=True)
class Cut:
    """Where a loop is cut, and the loads of the element there."""

    place: mlir.Value
    loads: tuple[mlir.Operation, ...]


def match_cut(loop: mlir.Operation) -> Cut:
    """Look for loads of one element of the array that the loop walks along and stores into."""
    block = loop.regions[0].blocks[0]
    variable = block.arguments[0]
    *ops, _ = block_ops(block)
    if constant_of(loop.operands[2]) != 1 or any(op.regions for op in ops):
        raise NoMatch("not an innermost loop of step 1")
    if not all(op.name.startswith(("arith.", "math.", "memref.load", "memref.store")) for op in ops):
        raise NoMatch("something else than arithmetic")
    stores = [op for op in ops if op.name == "memref.store"]
    if len(stores) != 1:
        raise NoMatch("not one store")
    array, *target = list(stores[0].operands)[1:]
    walked = [d for d, index in enumerate(target) if index == variable]
    if len(walked) != 1 or not all(is_fixed(index, block) for d, index in enumerate(target) if d != walked[0]):
        raise NoMatch("the store does not walk along one dimension")
    (along,) = walked
    loads, places = [], []
    for op in ops:
        if op.name != "memref.load" or op.operands[0] != array:
            continue
        indices = list(op.operands)[1:]
        if not all(is_fixed(index, block) for d, index in enumerate(indices) if d != along):
            raise NoMatch("a load moves along another dimension")
        if indices[along] != variable:
            if not is_fixed(indices[along], block):
                raise NoMatch("a load of what an earlier round stored")
            loads.append(op)
            places.append(indices[along])
    if not loads or any(place != places[0] for place in places):
        raise NoMatch("no element, or several")
    if all(list(op.operands)[1:] == target for op in loads):
        raise NoMatch("nothing to gain")
    return Cut(places[0], tuple(loads))


def is_fixed(value: mlir.Value, block: mlir.Block) -> bool:
    """True if a value comes from outside of a loop body."""
    op = defining_op(value)
    return bool((value.owner if op is None else op.block) != block)


def build_parts(loop: mlir.Operation, cut: Cut) -> None:
    """Replace a loop by the three parts of it."""
    lower, upper, step = loop.operands
    with loop.location, mlir.InsertionPoint(loop):
        middle = emit.same_type("arith.minsi", emit.same_type("arith.maxsi", cut.place, lower), upper)
        middle = emit.same_type("arith.maxsi", middle, lower)
        behind = emit.same_type("arith.minsi", emit.same_type("arith.addi", middle, step), upper)
        behind = emit.same_type("arith.maxsi", behind, middle)
        build_part(loop, lower, middle, cut)
        clone_loop(loop, middle, behind, {})
        build_part(loop, behind, upper, cut)
    loop.erase()


def build_part(loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value, cut: Cut) -> None:
    """The rounds from `lower` on, which do not store what `cut.loads` read; nothing is loaded where there are none."""

    def part() -> list[mlir.Value]:
        known = {op.results[0]: clone_with(op, {}).results[0] for op in cut.loads}
        clone_loop(loop, lower, upper, known)
        return []

    emit.conditional(emit.compare("slt", lower, upper), part, list, [])


def clone_loop(loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value, known: dict[mlir.Value, mlir.Value]) -> None:
    """The loop over another range; what `known` holds is not computed again."""
    block = loop.regions[0].blocks[0]

    def body(variable: mlir.Value, _: list[mlir.Value]) -> None:
        values = {**known, block.arguments[0]: variable}
        for op in block_ops(block)[:-1]:
            if not any(result in known for result in op.results):
                clone_with(op, values)

    emit.for_loop(lower, upper, loop.operands[2], body)
