"""Carry elements: what an iteration stores and the next one reads goes from one to the other in a register.

Before:
    scf.for %j = %c1 to %n step %c1 {
      cf.assert ...
      %last = arith.minui %j, %c8 : index
      %j1 = arith.subi %j, %c1 : index
      %first = arith.minui %j1, %c8 : index
      %old = memref.load %x[%last] : memref<9xf32>
      %before = memref.load %x[%first] : memref<9xf32>
      %new = arith.addf %old, %before : f32
      memref.store %new, %x[%last] : memref<9xf32>
    }
After:
    %some = arith.cmpi slt, %c1, %n : index
    %start = scf.if %some -> (f32) {
      scf.yield /* %x[%first], of the first iteration */
    } else {
      scf.yield %zero
    }
    scf.for %j = %c1 to %n step %c1 iter_args(%before = %start) -> (f32) {
      ...
      memref.store %new, %x[%last] : memref<9xf32>
      scf.yield %new : f32
    }

A load that waits for a store takes as long as several additions. LLVM does the same in loops without exits (its pass
`loop-load-elim`), but not where checks may leave them. This is scalar replacement (Callahan, Carr and Kennedy,
Improving register allocation for subscripted variables, PLDI 1990). Indices of checked elements are clamped, so that
the first one may be read before the check.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.analysis.values import agree
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

_INDEX_OPS = (
    "arith.addi", "arith.subi", "arith.muli", "arith.minui", "arith.minsi", "arith.maxsi", "arith.constant",
    "arith.cmpi", "arith.select", "arith.index_cast",
)  # fmt: skip


@register(when=PROGRAM_LOOP, optional=True)
class CarryElementsPass(Pass):
    """Carry the elements that innermost loops with checks store and read in the next iteration."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                build(loop, match(loop))


@dataclass(frozen=True, eq=False)
class Match:
    """The load of a loop that reads what `value` was in the iteration before."""

    load: mlir.Operation
    value: mlir.Value


def match(loop: mlir.Operation) -> Match:
    """Raises `NoMatch` for anything but an innermost loop with checks that stores into one element an iteration."""
    ops = block_ops(loop.regions[0].blocks[0])
    if any(op.regions for op in ops) or not any(op.name == "cf.assert" for op in ops):
        raise NoMatch("not an innermost loop with checks")
    if "unsignedCmp" in loop.attributes:
        raise NoMatch("an unsigned counter")
    if not all(op.name.startswith(("arith.", "math.", "memref.load", "memref.store", "cf.", "scf.")) for op in ops):
        raise NoMatch("operations that may store elsewhere")
    stores = [op for op in ops if op.name == "memref.store"]
    if not stores or any(list(op.operands)[1:] != list(stores[0].operands)[1:] for op in stores):
        raise NoMatch("not one element that is stored")
    step = constant_of(loop.operands[2])
    early = ops[: ops.index(stores[0])]
    for op in early:
        if op.name == "memref.load" and op.operands[0] == stores[0].operands[1] and step is not None and step > 0:
            pairs = list(zip(list(op.operands)[1:], list(stores[0].operands)[2:], strict=True))
            if any(read != stored for read, stored in pairs) and all(follows(*pair, loop, step) for pair in pairs):
                return Match(op, stores[-1].operands[0])
    raise NoMatch("no element that the iteration before has stored")


def follows(read: mlir.Value, stored: mlir.Value, loop: mlir.Operation, step: int) -> bool:
    """True if an index is what another one was in the iteration before."""
    block = loop.regions[0].blocks[0]

    def compared(read: mlir.Value, stored: mlir.Value) -> list[tuple[mlir.Value, mlir.Value]] | None:
        offsets = offset_of(read, block.arguments[0]), offset_of(stored, block.arguments[0])
        if offsets[1] is not None:
            return [] if offsets[0] is not None and offsets[0] == offsets[1] - step else None
        op, other = defining_op(read), defining_op(stored)
        if op is None or other is None:
            return [] if read == stored and read.owner != block else None
        if read == stored and op.block != block:
            return []
        if op.name != other.name or op.block != block or other.block != block:
            return None
        if op.name == "memref.load":
            return [] if op == other and is_scalar_argument(op, loop) else None
        mine, theirs = ({name: one.attributes[name] for name in one.attributes} for one in (op, other))
        if op.name not in _INDEX_OPS or mine != theirs:
            return None
        return list(zip(op.operands, other.operands, strict=True))

    return agree(read, stored, compared)


def offset_of(value: mlir.Value, variable: mlir.Value) -> int | None:
    """The constant that is added to the induction variable; None for other values."""
    if value == variable:
        return 0
    op = defining_op(value)
    if op is None or op.name not in INTEGER_STEPS or op.operands[0] != variable:
        return None
    distance = constant_of(op.operands[1])
    return distance if distance is None or op.name == "arith.addi" else -distance


def is_scalar_argument(load: mlir.Operation, loop: mlir.Operation) -> bool:
    """True for the load of an integer from outside of a loop that stores other types only."""
    kind = load.results[0].type
    ops = block_ops(loop.regions[0].blocks[0])
    stored = [op.operands[0].type for op in ops if op.name == "memref.store"]
    return len(load.operands) == 1 and isinstance(kind, mlir.IntegerType) and kind not in stored


def build(loop: mlir.Operation, found: Match) -> None:
    """Replace a loop by one that carries an element."""
    body = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    kind = found.load.results[0].type
    with loop.location, mlir.InsertionPoint(loop):
        start = first_element(found.load, lower, upper, loop)
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        operands = [lower, upper, step, *inits, start]
        new = emit.create("scf.for", operands, [value.type for value in operands[3:]], attributes, regions=1)
        block = new.regions[0].blocks.append(*[argument.type for argument in body.arguments], kind)
    values = dict(zip(body.arguments, list(block.arguments)[:-1], strict=True))
    *ops, end = block_ops(body)
    with mlir.InsertionPoint(block):
        for op in ops:
            if op == found.load:
                values[op.results[0]] = block.arguments[len(block.arguments) - 1]
            else:
                clone_with(op, values)
        with end.location:
            ends = [*end.operands, found.value]
            emit.create("scf.yield", [values.get(value, value) for value in ends])
    replace_op(loop, *list(new.results)[: len(loop.results)])


def first_element(load: mlir.Operation, lower: mlir.Value, upper: mlir.Value, loop: mlir.Operation) -> mlir.Value:
    """The value of a load in the first iteration; zero for a zero-trip loop."""
    kind = load.results[0].type
    block = loop.regions[0].blocks[0]
    some = emit.compare("slt", lower, upper)
    choice = emit.create("scf.if", [some], [kind], regions=2)
    values: dict[mlir.Value, mlir.Value] = {block.arguments[0]: lower}
    with mlir.InsertionPoint(choice.regions[0].blocks.append()):
        for op in needed(load, block):
            clone_with(op, values)
        emit.create("scf.yield", [values[load.results[0]]])
    with mlir.InsertionPoint(choice.regions[1].blocks.append()):
        emit.create("scf.yield", [emit.zero(kind)])
    return choice.results[0]


def needed(load: mlir.Operation, block: mlir.Block) -> list[mlir.Operation]:
    """The operations of a block that a load's indices are computed by, and the load."""
    wanted, found = {load}, []
    for op in reversed(block_ops(block)):
        if op in wanted:
            found.append(op)
            wanted |= {source for value in op.operands if (source := defining_op(value)) and source.block == block}
    return found[::-1]
