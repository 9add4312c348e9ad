"""Version checks: a loop that checks indices gets a version without checks, which runs up to the first special index.

Before, in @main:
    scf.for %i = %c0 to %n step %c1 {
      %key = memref.load %keys[%i] : memref<?xi64>
      %moved = arith.addi %key, %c5 : i64
      %inside = arith.cmpi ult, %moved, %c10 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
      %index = arith.index_cast %key : i64 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c5 : index
      %position = arith.select %negative, %from_end, %index : index
      ... %x[%position] ...
    }
After:
    scf.for %c = %c0 to %n step %c4096 {
      %end = arith.minsi %c + 4096, %n
      %rest = scf.while (%i = %c) {
        %plain = scf.if (%i < %end) { ... arith.cmpi ult, %key, %c5 : i64 } else { false }
        scf.condition(%plain) %i
      } do {
        ... %x[%index] ...
        scf.yield %i + 1
      }
      scf.for %i = %rest to %end step %c1 { /* as it was */ }
    }

If all indices are the loop variable plus or minus an invariant, the indices of the first and the last iteration of a
chunk bound all others, and the version without checks is an `scf.for`.

The comparison with the size alone serves as the check, and saves the arithmetic for negative indices, which delays the
addresses of stores: later loads wait for them. After the first negative or out-of-bounds index the original loop runs
to the end of the chunk, so that an array of mixed indices costs one misprediction in a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import effects
from mlirml.analysis.ranges import Ranges, returned_operand
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.core.dataclass import dataclass
from mlirml.dialects.checks import checked_number
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP, every
from mlirml.pipelines.checks.lower_asserts import function_of, returns_at_once

INSPECTED = "mlirml.inspected"
"""Marks a loop that runs only if an index is known to be negative or out of bounds: versioning it again is useless."""
_LINEAR = ("arith.addi", "arith.subi", "arith.index_cast", "arith.constant")


@register(when=every(PROGRAM_LOOP, ("cf.assert",)), optional=True)
class VersionChecksPass(Pass):
    """Give innermost loops of at most `longest` operations a version that runs while indices are in bounds.

    After another index the original loop runs to the end of a chunk of `chunk` iterations.
    """

    chunk: int = 4096
    longest: int = 64

    def run(self, module: mlir.Operation) -> None:
        loops = checked_loops(module)
        while loops:
            loop = loops.pop(0)
            with suppress(NoMatch):
                found = match(loop, self.longest)
                loops = outside_of(loop, loops)  # the others are replaced
                build_versions(found, self.chunk)


@dataclass(frozen=True, eq=False)
class Check:
    """An assert that `key` is an index from `-base` to `size - 1`."""

    op: mlir.Operation
    key: mlir.Value
    size: int
    base: int


@dataclass(frozen=True, eq=False)
class Checked:
    """A loop with checks, and the operations of its body that compute the checked indices, in order."""

    loop: mlir.Operation
    checks: tuple[Check, ...]
    computed: tuple[mlir.Operation, ...]


def checked_loops(module: mlir.Operation) -> list[mlir.Operation]:
    """The loops, and other operations, whose bodies contain checks."""
    return list(dict.fromkeys(check.parent.operation for check in named_operations(module, ("cf.assert",))))


def outside_of(loop: mlir.Operation, others: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The operations of `others` that are not nested in a loop."""
    body = set(operations(loop))
    return [other for other in others if other not in body]


def match(loop: mlir.Operation, longest: int) -> Checked:
    """Match a loop of @main, some of whose checked indices may be negative."""
    if loop.name != "scf.for" or INSPECTED in loop.attributes or not returns_at_once(function_of(loop)):
        raise NoMatch("only a loop of @main returns at once")
    nested = [op for op in operations(loop) if op != loop]
    if len(nested) > longest or any(op.name in ("scf.for", "scf.while", "scf.parallel", "func.call") for op in nested):
        raise NoMatch("the body is long")
    ops = block_ops(loop.regions[0].blocks[0])
    first: list[mlir.Operation] = []  # before the first store
    for op in ops:
        if op.name != "cf.assert":
            done = effects(op)
            if done.writes or done.unknown or op.regions:
                break
        first.append(op)
    computed = {op.results[0]: op for op in first if len(op.results) == 1}
    inner = {result for op in ops for result in op.results}
    checks = [check for op in first if op.name == "cf.assert" and (check := match_check(op)) is not None]
    checks = [check for check in checks if check.key not in inner or check.key in computed]
    if not any(check.base for check in checks):
        raise NoMatch("no index may be negative")
    return Checked(loop, tuple(checks), needed_by([check.key for check in checks], first))


def needed_by(keys: Sequence[mlir.Value], ops: Sequence[mlir.Operation]) -> tuple[mlir.Operation, ...]:
    """The operations of `ops` that values depend on, in order."""
    computed = {op.results[0]: op for op in ops if len(op.results) == 1}
    needed, waiting = set(), list(keys)
    while waiting:
        found = computed.get(waiting.pop())
        if found is not None and found not in needed:
            needed.add(found)
            waiting += found.operands
    return tuple(op for op in ops if op in needed)


def match_check(op: mlir.Operation) -> Check | None:
    """The index that an assert checks; None if it checks something else."""
    number, comparison = checked_number(op), defining_op(op.operands[0])
    if number is None or comparison is None:
        return None
    limit, key = constant_of(comparison.operands[1]), number.moved
    if limit is None:
        return None
    if number.base:
        found = key_of(key, number.base)
        if found is None:
            return None
        key = found
    return Check(op, key, limit - number.base, number.base)


def key_of(moved: mlir.Value, base: int) -> mlir.Value | None:
    """The value to which `base` was added, also where that was folded: `c - i` of `(c + base) - i`; None if none is."""
    op = defining_op(moved)
    if op is None or op.name not in INTEGER_STEPS:
        return None
    position = next((n for n in (0, 1) if constant_of(op.operands[n]) is not None), None)
    if position is None or (op.name == "arith.subi" and position == 1):
        return None
    other, constant = op.operands[1 - position], constant_of(op.operands[position])
    assert constant is not None, "the position is that of a constant"
    wanted = constant - base
    if op.name == "arith.addi" and wanted == 0:
        return other
    for use in other.uses:
        user = use.owner.operation
        before = user.name == op.name and user.block == op.block and user.is_before_in_block(op)
        if before and use.operand_number == 1 - position and constant_of(user.operands[position]) == wanted:
            return user.results[0]
    return None


def build_versions(found: Checked, chunk: int) -> None:
    """Replace a loop by a loop over chunks, with both versions in each."""
    loop = found.loop
    lower, upper, step, *inits = loop.operands
    with loop.location, mlir.InsertionPoint(loop):
        length = emit.same_type("arith.muli", step, emit.index(chunk))

        def body(first: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            left = emit.same_type("arith.subi", upper, first)
            end = emit.same_type("arith.addi", first, emit.same_type("arith.minsi", left, length))
            if all(factor_of(check, found) in (-1, 0, 1) for check in found.checks):
                return build_linear(found, first, end, carried)
            rest, *carried = build_plain(found, first, end, carried)
            ops = block_ops(loop.regions[0].blocks[0])
            return emit.for_loop(rest, end, step, lambda i, values: clone_body(loop, ops, [i, *values]), carried)

        results = emit.for_loop(lower, upper, length, body, inits)
    replace_op(loop, *results)


def factor_of(check: Check, found: Checked) -> int | None:
    """The coefficient of the loop variable in an index; None if the index is not affine with invariant offset."""
    block = found.loop.regions[0].blocks[0]
    inner = {result for op in block_ops(block) for result in op.results}
    factors: dict[mlir.Value, int | None] = dict.fromkeys(block.arguments)
    factors[block.arguments[0]] = 1

    def factor(value: mlir.Value) -> int | None:
        return factors.get(value, None if value in inner else 0)

    for op in found.computed:
        parts = [factor(value) for value in op.operands] or [0]
        if op.name not in _LINEAR or None in parts or str(op.results[0].type) not in ("index", "i64"):
            factors[op.results[0]] = None
            continue
        first, *rest = [part for part in parts if part is not None]
        factors[op.results[0]] = first - sum(rest) if op.name == "arith.subi" else first + sum(rest)
    return factor(check.key)


def build_linear(found: Checked, first: mlir.Value, end: mlir.Value, inits: Sequence[mlir.Value]) -> list[mlir.Value]:
    """A chunk without checks, if no index is negative or out of bounds in its first and last iteration."""
    loop = found.loop
    step = loop.operands[2]
    last = emit.same_type("arith.subi", end, emit.index(1))
    plain = emit.same_type("arith.andi", *(is_plain(found, [number]) for number in (first, last)))
    ops = block_ops(loop.regions[0].blocks[0])
    rest, ranges = without_checks(found)

    def unchecked() -> list[mlir.Value]:
        return emit.for_loop(first, end, step, lambda i, values: clone_body(loop, rest, [i, *values], ranges), inits)

    def checked() -> list[mlir.Value]:
        return emit.for_loop(first, end, step, lambda i, values: clone_body(loop, ops, [i, *values]), inits)

    return list(emit.conditional(plain, unchecked, checked, [value.type for value in inits]))


def build_plain(
    found: Checked, first: mlir.Value, end: mlir.Value, inits: Sequence[mlir.Value]
) -> Sequence[mlir.Value]:
    """The version without checks, up to the first index that is negative or out of bounds; returns its iteration."""
    loop = found.loop
    types = [mlir.IndexType.get(), *[value.type for value in inits]]
    plain_loop = emit.create("scf.while", [first, *inits], types, regions=2)
    before, after = (emit.block(plain_loop, types, region) for region in (0, 1))
    flag = mlir.IntegerType.get_signless(1)
    with mlir.InsertionPoint(before):
        more = emit.compare("slt", before.arguments[0], end)
        plain = emit.conditional(
            more, lambda: [is_plain(found, list(before.arguments))], lambda: [emit.number(flag, 0)], [flag]
        )
        emit.create("scf.condition", [*plain, *before.arguments])
    with mlir.InsertionPoint(after):
        ops, ranges = without_checks(found)
        values = clone_body(loop, ops, list(after.arguments), ranges)
        following = emit.same_type("arith.addi", after.arguments[0], loop.operands[2])
        emit.create("scf.yield", [following, *values])
    return list(plain_loop.results)


def without_checks(found: Checked) -> tuple[list[mlir.Operation], Ranges]:
    """The body without the checks that `found` implies, and the integer ranges that `found` establishes."""
    known = {check.op.operands[0] for check in found.checks}
    rest = []
    for op in block_ops(found.loop.regions[0].blocks[0]):
        if op.name == "arith.ori" and any(operand in known for operand in op.operands):
            known.add(op.results[0])
        if op.name != "cf.assert" or op.operands[0] not in known:
            rest.append(op)
    return rest, Ranges().given_ranges({check.key: (0, check.size - 1) for check in found.checks})


def is_plain(found: Checked, arguments: Sequence[mlir.Value]) -> mlir.Value:
    """True if no checked index of an iteration is negative or out of bounds."""
    values = dict(zip(found.loop.regions[0].blocks[0].arguments, arguments))
    for op in found.computed:
        clone_with(op, values)
    plain: mlir.Value | None = None
    for check in found.checks:
        key = values.get(check.key, check.key)
        in_bounds = emit.compare("ult", key, emit.number(key.type, check.size))
        plain = in_bounds if plain is None else emit.same_type("arith.andi", plain, in_bounds)
    assert plain is not None
    return plain


def clone_body(
    loop: mlir.Operation,
    ops: Sequence[mlir.Operation],
    arguments: Sequence[mlir.Value],
    ranges: Ranges | None = None,
    outer: Mapping[mlir.Value, mlir.Value] | None = None,
) -> list[mlir.Value]:
    """Clone operations of a loop body, folding by integer range analysis; returns the yielded values.

    `outer` maps values from outside of the loop to their clones.
    """
    *inner, final = ops
    values = clone_folded(loop, inner, arguments, ranges, outer)
    return [values.get(value, value) for value in final.operands]


def clone_folded(
    loop: mlir.Operation,
    ops: Sequence[mlir.Operation],
    arguments: Sequence[mlir.Value],
    ranges: Ranges | None = None,
    outer: Mapping[mlir.Value, mlir.Value] | None = None,
) -> dict[mlir.Value, mlir.Value]:
    """Clone operations of a loop body, folding by integer range analysis; returns the clones by the original values."""
    values: dict[mlir.Value, mlir.Value] = dict(outer or {})
    values.update(zip(loop.regions[0].blocks[0].arguments, arguments))
    for op in ops:
        folded = None if ranges is None else returned_operand(op, ranges)
        if folded is None:
            clone_with(op, values)
        else:
            values[op.results[0]] = values.get(folded, folded)
    return values
