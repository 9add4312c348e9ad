"""Rules of the reference interpreter for `func`, `scf` and `cf`.

Iterations of parallel loops run last to first, and so do the chunks of a call with `mlirml.parallel_for`: a loop that
is wrongly marked as parallel computes a wrong result here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mlirml.analysis.traits import TENSOR_STORES
from mlirml.dialects.checks import checked_number
from mlirml.dialects.mlirml import CHECK, parallel_grain
from mlirml.errors import CheckFailed, check_code
from mlirml.interpreter.program import Environment, Function, Kernel, Step, controls, evaluates, unsupported
from mlirml.interpreter.tensor import insert_into, stores_in_place
from mlirml.interpreter.values import Trap, Value, integers, mixed, segments
from mlirml.ir.bindings import block_ops, callee_of, mlir

PARALLEL_CHUNKS = 4
"""The maximum number of chunks of a parallel call: more than one, so that wrong chunk bounds are visible."""


def _slots(function: Function, values: Iterable[mlir.Value]) -> list[int]:
    return [function.slot(value) for value in values]


def _assign(environment: Environment, slots: Sequence[int], values: Sequence[Value]) -> None:
    for slot, value in zip(slots, values, strict=True):
        environment[slot] = value


@evaluates("func.call")
def call_rule(op: mlir.Operation, function: Function) -> Kernel:
    """Run another function of the module; a call with a grain runs in a few chunks."""
    program, callee = function.program, callee_of(op)
    grain = parallel_grain(op)
    if grain is not None:
        return lambda *operands: _in_chunks(program.function(callee), max(1, grain), *operands)
    if len(op.results) == 1:
        return lambda *operands: program.function(callee)(operands)[0]
    return lambda *operands: program.function(callee)(operands)


def _in_chunks(body: Function, grain: int, lower: Value, upper: Value, *captures: Value) -> None:
    size = max(grain, -(-int(upper - lower) // PARALLEL_CHUNKS))
    for start in reversed(range(int(lower), int(upper), size)):
        body([np.int64(start), np.int64(min(start + size, int(upper))), *captures])


@controls("cf.assert")
def assert_rule(op: mlir.Operation, function: Function) -> Step:
    """Fail as the native runtime does when the condition is false; trap if the check has no index."""
    message = mlir.StringAttr(op.attributes["msg"]).value
    number = mlir.IntegerAttr(op.attributes[CHECK]).value if CHECK in op.attributes else None

    condition, checked = function.slot(op.operands[0]), checked_number(op)
    moved = None if checked is None else function.slot(checked.moved)

    def run(environment: Environment) -> None:
        if np.all(environment[condition]):
            return
        if number is None:
            raise Trap(message)
        if checked is None or moved is None:
            raise CheckFailed(number)
        wide = environment[moved]
        about = int(wide.view(f"u{wide.itemsize}")) if not checked.base else int(wide - wide.dtype.type(checked.base))
        raise CheckFailed(check_code(number, about))

    return run


def _stored_into(body: mlir.Block) -> list[int]:
    """The indices of the loop-carried tensors into which the body stores in place."""
    inserts = [op for op in block_ops(body) if op.name in TENSOR_STORES]
    return [mlir.BlockArgument(op.operands[1]).arg_number - 1 for op in inserts if stores_in_place(op)]


@controls("scf.for")
def for_rule(op: mlir.Operation, function: Function) -> Step:
    """A counted loop with loop-carried values."""
    lower, upper, step, *initial = _slots(function, op.operands)
    body = function.block(op.regions[0].blocks[0])
    results = _slots(function, op.results)
    owned = _stored_into(op.regions[0].blocks[0])

    def run(environment: Environment) -> None:
        values = [environment[slot] for slot in initial]
        for position in owned:
            values[position] = values[position].copy()
        stride = int(environment[step])
        if stride <= 0:
            raise Trap(f"the step {stride} is not positive")
        kind = environment[lower].dtype.type
        for index in range(int(environment[lower]), int(environment[upper]), stride):
            values = body.run(environment, [kind(index), *values])
        _assign(environment, results, values)

    return run


@controls("scf.if")
def if_rule(op: mlir.Operation, function: Function) -> Step:
    """One of two regions."""
    condition = function.slot(op.operands[0])
    branches = [[function.block(block) for block in region.blocks] for region in op.regions]
    results = _slots(function, op.results)

    def run(environment: Environment) -> None:
        for branch in branches[0 if environment[condition] else 1]:
            _assign(environment, results, branch.run(environment))

    return run


@controls("scf.while")
def while_rule(op: mlir.Operation, function: Function) -> Step:
    """Run the first region, then, while its condition holds, the second and the first again."""
    initial = _slots(function, op.operands)
    before, after = (function.block(region.blocks[0]) for region in op.regions)
    results = _slots(function, op.results)

    def run(environment: Environment) -> None:
        proceed, *values = before.run(environment, [environment[slot] for slot in initial])
        while proceed:
            proceed, *values = before.run(environment, after.run(environment, values))
        _assign(environment, results, values)

    return run


@controls("scf.execute_region", "memref.alloca_scope")
def region_rule(op: mlir.Operation, function: Function) -> Step:
    """A region of one block."""
    if len(op.regions[0].blocks) != 1:
        raise unsupported(op, "a region of several blocks")
    body = function.block(op.regions[0].blocks[0])
    results = _slots(function, op.results)
    return lambda environment: _assign(environment, results, body.run(environment))


@controls("scf.index_switch")
def switch_rule(op: mlir.Operation, function: Function) -> Step:
    """The region of the matching case, else the first region."""
    argument = function.slot(op.operands[0])
    default, *regions = (function.block(region.blocks[0]) for region in op.regions)
    cases = dict(zip(integers(op, "cases"), regions))
    results = _slots(function, op.results)

    def run(environment: Environment) -> None:
        chosen = cases.get(int(environment[argument]), default)
        _assign(environment, results, chosen.run(environment))

    return run


def _points_last_first(bounds: Iterable[tuple[int, int, int]]) -> list[tuple[np.int64, ...]]:
    ranges = [[np.int64(index) for index in range(low, high, step)] for low, high, step in bounds]
    return list(itertools.product(*ranges))[::-1]


@controls("scf.parallel")
def parallel_rule(op: mlir.Operation, function: Function) -> Step:
    """A loop nest in reverse order, with its reductions."""
    groups = [_slots(function, list(op.operands)[group]) for group in segments(op)]
    lower, upper, step, initial = groups
    body = function.block(op.regions[0].blocks[0])
    if body.terminator is None:
        raise unsupported(op, "no scf.reduce")
    reductions = [function.block(region.blocks[0]) for region in body.terminator.regions]
    results = _slots(function, op.results)

    def run(environment: Environment) -> None:
        totals = [environment[slot] for slot in initial]
        bounds = [[int(environment[slot]) for slot in group] for group in (lower, upper, step)]
        for point in _points_last_first(zip(*bounds)):
            values = body.run(environment, point)
            totals = [fold.run(environment, pair)[0] for fold, *pair in zip(reductions, totals, values)]
        _assign(environment, results, totals)

    return run


@controls("scf.forall")
def forall_rule(op: mlir.Operation, function: Function) -> Step:
    """A loop nest in reverse order; on tensors each iteration inserts its slices into the shared results."""
    dynamic, outputs = segments(op)[:3], _slots(function, list(op.operands)[segments(op)[3]])
    readers = [mixed(integers(op, name)) for name in ("staticLowerBound", "staticUpperBound", "staticStep")]
    slots = _slots(function, op.operands)
    body = function.block(op.regions[0].blocks[0])
    if body.terminator is None:
        raise unsupported(op, "no scf.forall.in_parallel")
    shared = body.arguments[len(body.arguments) - len(outputs) :]
    inserts = [_shared_insert(insert, function, shared) for insert in _inserts(body.terminator)]
    results = _slots(function, op.results)

    def run(environment: Environment) -> None:
        operands = [environment[slot] for slot in slots]
        initial = [environment[slot] for slot in outputs]
        totals = [np.array(value) for value in initial]
        bounds = [read(operands[group]) for read, group in zip(readers, dynamic)]
        for point in _points_last_first(zip(*bounds)):
            body.run(environment, [*point, *initial])
            for insert in inserts:
                insert(environment, totals)
        _assign(environment, results, totals)

    return run


def _inserts(terminator: mlir.Operation) -> list[mlir.Operation]:
    return [op for region in terminator.regions for block in region.blocks for op in block_ops(block)]


def _shared_insert(
    op: mlir.Operation, function: Function, shared: list[int]
) -> Callable[[Environment, list[Value]], None]:
    """A `tensor.parallel_insert_slice` into one of the shared results."""
    if op.name != "tensor.parallel_insert_slice":
        raise unsupported(op, "inside scf.forall.in_parallel")
    source, target, *rest = _slots(function, op.operands)
    position = shared.index(target)
    insert = insert_into(op)

    def run(environment: Environment, totals: list[Value]) -> None:
        values = [environment[slot] for slot in (source, target, *rest)]
        insert(totals[position], *values)

    return run
