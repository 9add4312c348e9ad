"""Split loops: an inner loop is split at the element that all of its iterations load and one of them stores.

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
    scf.for %j = %k to %k1 step %c1 { ... }         // one iteration, unchanged
    scf.if ... {
      %b = memref.load %x[%i, %k]
      scf.for %j = %k1 to %n step %c1 { ... }
    }

Before and after that element no iteration stores to it, so that it is loaded once, and LLVM vectorises the loops. The
bounds of the chunks are clamped to those of the loop. All-pairs shortest paths has such loops.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import every


@register(when=every(("scf.for",), ("memref.store",)), optional=True)
class SplitLoopsPass(Pass):
    """Split innermost loops where the stored element is one that all iterations load."""

    def run(self, module: mlir.Operation) -> None:
        for loop, cut in matched(match_cut, [op for op in named_operations(module, ("scf.for",)) if not op.results]):
            build_parts(loop, cut)


@dataclass(frozen=True)
class Cut:
    """The index at which a loop is split, and the loads of the element at it."""

    index: mlir.Value
    loads: tuple[mlir.Operation, ...]


def match_cut(loop: mlir.Operation) -> Cut:
    """Match loads of one fixed element of the array row that the loop iterates over and stores to."""
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
        raise NoMatch("the store does not move along one dimension")
    (along,) = walked
    loads, fixed_indices = [], []
    for op in ops:
        if op.name != "memref.load" or op.operands[0] != array:
            continue
        indices = list(op.operands)[1:]
        if not all(is_fixed(index, block) for d, index in enumerate(indices) if d != along):
            raise NoMatch("a load moves along another dimension")
        if indices[along] != variable:
            if not is_fixed(indices[along], block):
                raise NoMatch("a load of an element that an earlier iteration stored")
            loads.append(op)
            fixed_indices.append(indices[along])
    if not loads or any(index != fixed_indices[0] for index in fixed_indices):
        raise NoMatch("no element, or several")
    if all(list(op.operands)[1:] == target for op in loads):
        raise NoMatch("nothing to gain")
    return Cut(fixed_indices[0], tuple(loads))


def is_fixed(value: mlir.Value, block: mlir.Block) -> bool:
    """True if a value is defined outside of a loop body."""
    op = defining_op(value)
    return bool((value.owner if op is None else op.block) != block)


def build_parts(loop: mlir.Operation, cut: Cut) -> None:
    """Replace a loop by the loops before, at, and after the fixed element."""
    lower, upper, step = loop.operands
    with loop.location, mlir.InsertionPoint(loop):
        start = emit.same_type("arith.minsi", emit.same_type("arith.maxsi", cut.index, lower), upper)
        start = emit.same_type("arith.maxsi", start, lower)
        end = emit.same_type("arith.minsi", emit.same_type("arith.addi", start, step), upper)
        end = emit.same_type("arith.maxsi", end, start)
        build_part(loop, lower, start, cut)
        clone_loop(loop, start, end, {})
        build_part(loop, end, upper, cut)
    loop.erase()


def build_part(loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value, cut: Cut) -> None:
    """The iterations from `lower` to `upper`, which do not store to the element; it is loaded once."""

    def part() -> list[mlir.Value]:
        known = {op.results[0]: clone_with(op, {}).results[0] for op in cut.loads}
        clone_loop(loop, lower, upper, known)
        return []

    emit.conditional(emit.compare("slt", lower, upper), part, list, [])


def clone_loop(loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value, known: dict[mlir.Value, mlir.Value]) -> None:
    """Clone a loop with another range; values in `known` are replaced."""
    block = loop.regions[0].blocks[0]

    def body(variable: mlir.Value, _: list[mlir.Value]) -> None:
        values = {**known, block.arguments[0]: variable}
        for op in block_ops(block)[:-1]:
            if not any(result in known for result in op.results):
                clone_with(op, values)

    emit.for_loop(lower, upper, loop.operands[2], body)
