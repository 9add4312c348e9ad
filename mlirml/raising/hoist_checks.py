"""Hoist checks: a check in a loop nest that can be made before the nest is made there, in its own loops.

Before:
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %y0) -> (tensor<8xf32>) {
      %key = tensor.extract %keys[%i] : tensor<8xi64>
      %inside = arith.cmpi ult, %key, %c5 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
      %place = ...
      %a = tensor.extract %x[%place] : tensor<5xf32>
      %y1 = tensor.insert %a into %y[%i] : tensor<8xf32>
      scf.yield %y1 : tensor<8xf32>
    }
After:
    %largest = scf.for %i = %c0 to %n step %c1 iter_args(%old = %c0) -> (i64) {
      %key = tensor.extract %keys[%i] : tensor<8xi64>
      %new = arith.maxui %old, %key : i64
      scf.yield %new : i64
    }
    %inside = arith.cmpi ult, %largest, %c5 : i64
    cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
    %r = scf.for %i = ... { /* as above, without the check */ }

The nest can be raised then, vectorised, and run by several threads. A check is hoisted if its condition is computed
from loop variables and from arrays that the nest does not store into, with only the loops that it depends on. That does
not pay if the condition needs all loops of the nest, and the nest must run in order anyway, since it stores at
data-dependent indices or has data-dependent bounds: there a branch in the loop is cheap.

The value that is reported is the largest, as an unsigned integer.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import constant_of
from mlirml.analysis.values import operands_of, walk
from mlirml.core.dataclass import dataclass
from mlirml.dialects.checks import checked_number
from mlirml.dialects.mlirml import CHECK, CHECK_BASE
from mlirml.ir import emit
from mlirml.ir.bindings import clone_with, defining_op, mlir, named_operations, operations
from mlirml.passes import Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.find_loops import loop_functions

_CHEAP = ("math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven", "math.absf", "math.absi", "math.fma")
_READS = ("tensor.extract", "tensor.from_elements")


@register(when=ANY_LOOP, optional=True)
class HoistChecksPass(Pass):
    """Make checks before loop nests if computing the indices takes at most `longest` operations."""

    longest: int = 32

    def run(self, module: mlir.Operation) -> None:
        functions = [f for f in loop_functions(module) if named_operations(f, ("cf.assert",))]
        if not functions:
            return
        run_upstream(module, "canonicalize,cse")
        for function in functions:
            drop_repeated(function)
            checks = [found for op in named_operations(function, ("cf.assert",)) if (found := match(op, self.longest))]
            hoist([check for check in checks if check.pays(checks)])


def drop_repeated(function: mlir.Operation) -> None:
    """Erase checks of conditions that were checked before in the same block."""
    checked: set[tuple[mlir.Block, mlir.Value]] = set()
    for op in named_operations(function, ("cf.assert",)):
        if (op.block, op.operands[0]) in checked:
            op.erase()
        else:
            checked.add((op.block, op.operands[0]))


@dataclass(frozen=True, eq=False)
class Check:
    """A check that can be made before the first loop of `path`, the loops around it, in clones of those `needed`."""

    op: mlir.Operation
    path: tuple[mlir.Operation, ...]
    needed: tuple[mlir.Operation, ...]
    slice: tuple[mlir.Operation, ...]

    def pays(self, others: Sequence[Check]) -> bool:
        """True if it is cheap, or if without checks the iterations of the nest may run in any order."""
        if len(self.needed) < len(self.path):
            return True
        nest = self.path[0]
        hoisted = {other.op for other in others if other.path[0] == nest}
        inside = list(operations(nest))
        if any((op.name == "cf.assert" and op not in hoisted) or op.name == "scf.while" for op in inside):
            return False
        places = [v for op in inside if op.name == "tensor.insert" for v in list(op.operands)[2:]]
        bounds = [v for op in inside if op.name == "scf.for" for v in list(op.operands)[:3]]
        return not any(is_data(value) for value in (*places, *bounds))


def is_data(value: mlir.Value) -> bool:
    """True if a value is computed from elements of arrays, or is loop-carried."""
    return any(map(_is_read, walk(value, operands_of)))


def _is_read(value: mlir.Value) -> bool:
    """True if a value is an element of an array, or is loop-carried."""
    op = defining_op(value)
    if op is None:
        argument = mlir.BlockArgument(value)
        return str(argument.owner.owner.name) != "scf.for" or int(argument.arg_number) > 0
    return bool(op.name.startswith(("tensor.", "scf.")))


def match(op: mlir.Operation, longest: int) -> Check | None:
    """The operations needed to hoist a check out of as many loops as possible; None if it cannot leave its loop."""
    comparison = defining_op(op.operands[0])
    if checked_number(op) is not None and (comparison is None or constant_of(comparison.operands[1]) is None):
        return None
    loops: list[mlir.Operation] = []
    around = op.parent.operation
    while around.name == "scf.for":
        loops.insert(0, around)
        around = around.parent.operation
    for first in range(len(loops)):
        path = loops[first:]
        found = slice_of(op, path)
        if found is not None and len(found) <= longest:
            return Check(op, tuple(path), tuple(needed(path, found, op)), tuple(found))
    return None


def slice_of(check: mlir.Operation, path: Sequence[mlir.Operation]) -> list[mlir.Operation] | None:
    """The operations in a nest that compute the condition, in order, with those for the bounds of its loops."""
    inside = set(operations(path[0])) - {path[0]}
    variables = {loop.regions[0].blocks[0].arguments[0] for loop in path}
    arguments = {a for op in (path[0], *inside) for region in op.regions for b in region.blocks for a in b.arguments}
    bounds = [value for loop in path[1:] for value in list(loop.operands)[:3]]
    waiting, found = [check.operands[0], *bounds], set()
    while waiting:
        value = waiting.pop()
        op = defining_op(value)
        if value in variables or (op is not None and op not in inside):
            continue
        if op is None:
            if value in arguments:
                return None
            continue
        if not (op.name.startswith("arith.") or op.name in _CHEAP or op.name in _READS):
            return None
        if op not in found:
            found.add(op)
            waiting += op.operands
    return [op for op in operations(path[0]) if op in found]


def needed(
    path: Sequence[mlir.Operation], found: Sequence[mlir.Operation], check: mlir.Operation
) -> list[mlir.Operation]:
    """The loops whose variables a condition is computed from, and those that may be zero-trip."""
    variables = {loop.regions[0].blocks[0].arguments[0]: loop for loop in path}
    kept = {loop for loop in path if not runs_for_certain(loop)}
    done: set[mlir.Value] = set()
    waiting = [check.operands[0], *(value for loop in kept for value in list(loop.operands)[:3])]
    while waiting:
        value = waiting.pop()
        if value in done:
            continue
        done.add(value)
        op = defining_op(value)
        if value in variables:
            kept.add(variables[value])
            waiting += list(variables[value].operands)[:3]
        elif op is not None and op in found:
            waiting += op.operands
    return [loop for loop in path if loop in kept]


def hoist(checks: Sequence[Check]) -> None:
    """Make checks before their nests; those with the same loops share one nest."""
    groups: dict[tuple[tuple[mlir.Operation, ...], tuple[mlir.Operation, ...]], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.path, check.needed), []).append(check)
    for group in groups.values():
        make(group)


def make(group: Sequence[Check]) -> None:
    """Build the loops that compute the largest value for each check of a group, and the checks of those."""
    with group[0].op.location, mlir.InsertionPoint(group[0].path[0]):
        inits = [emit.number(kind_of(check), 0) for check in group]
        found = build(group, list(group[0].needed), {}, inits)
        for check, most in zip(group, found):
            comparison, number = defining_op(check.op.operands[0]), checked_number(check.op)
            limit = emit.number(most.type, 1)
            names = ["msg", CHECK]
            if number is not None and comparison is not None:
                limit, names = clone_constant(comparison.operands[1]), [*names, CHECK_BASE]
            attributes = {name: check.op.attributes[name] for name in names if name in check.op.attributes}
            with check.op.location:
                emit.create("cf.assert", [emit.compare("ult", most, limit)], (), attributes)
    for check in group:
        check.op.erase()


def kind_of(check: Check) -> mlir.Type:
    """The type of the value reduced for a check: the checked value, or i1 if only its failure is known."""
    number = checked_number(check.op)
    return check.op.operands[0].type if number is None else number.moved.type


def clone_constant(value: mlir.Value) -> mlir.Value:
    """Clone a constant at the insertion point."""
    op = defining_op(value)
    assert op is not None and op.name == "arith.constant"
    return op.clone().operation.results[0]


def build(
    group: Sequence[Check], loops: list[mlir.Operation], values: dict[mlir.Value, mlir.Value], before: list[mlir.Value]
) -> list[mlir.Value]:
    """Build the remaining loops of a nest for checks; returns the largest values."""
    if not loops:
        return [largest(check, values, old) for check, old in zip(group, before)]
    bounds = [copied(value, group[0].slice, values) for value in list(loops[0].operands)[:3]]

    def body(variable: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        inner = {**values, loops[0].regions[0].blocks[0].arguments[0]: variable}
        return build(group, loops[1:], inner, carried)

    return emit.for_loop(bounds[0], bounds[1], bounds[2], body, before)


def largest(check: Check, values: dict[mlir.Value, mlir.Value], old: mlir.Value) -> mlir.Value:
    """The larger of the value so far and the checked value of this iteration."""
    number = checked_number(check.op)
    if number is not None:
        return emit.same_type("arith.maxui", old, copied(number.moved, check.slice, values))
    passed = copied(check.op.operands[0], check.slice, values)
    return emit.same_type("arith.ori", old, emit.same_type("arith.xori", passed, emit.number(passed.type, 1)))


def copied(value: mlir.Value, ops: Sequence[mlir.Operation], values: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """A value of the nest, computed at the insertion point."""
    if value in values:
        return values[value]
    op = defining_op(value)
    if op is None or op not in ops:
        return value
    for operand in op.operands:
        copied(operand, ops, values)
    clone_with(op, values)
    return values[value]


def runs_for_certain(loop: mlir.Operation) -> bool:
    """True if a loop is not zero-trip, by its constant bounds."""
    lower, upper = (constant_of(value) for value in list(loop.operands)[:2])
    return lower is not None and upper is not None and lower < upper
