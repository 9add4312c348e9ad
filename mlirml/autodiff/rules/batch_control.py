"""Batched forms of control flow.

A loop whose bounds are equal for all lanes keeps its form. Where the trip count, or a condition, depends on the lane,
the loop continues while any lane does, and finished lanes keep their values; both branches of an `scf.if` are computed,
and the results are selected.
"""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.batching import Batch, batching, chosen, refuse
from mlirml.autodiff.checkpoint import keep_bounds
from mlirml.autodiff.copies import copied
from mlirml.autodiff.predication import guard, is_call
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations


def _block(
    batch: Batch,
    block: mlir.Block,
    environment: dict[mlir.Value, mlir.Value],
    batched: dict[mlir.Value, mlir.Value],
    alive: mlir.Value | None = None,
) -> tuple[Batch, list[mlir.Value]]:
    """Clone a block for all lanes; returns the batched operands of its terminator.

    `batched` are new values of the block with their batched forms. `alive` is the predicate of the lanes that execute
    it, None if all do.
    """
    inner = batch.inner()
    inner.values.update(batched)
    ops = copied(block, environment)
    # A placeholder for the terminator: its operands are updated when operations are replaced.
    end = emit.create("scf.yield", [environment.get(x, x) for x in block_ops(block)[-1].operands])
    if alive is not None:
        if batch.is_differentiated:
            _stop_cotangents(inner, ops, alive)
        with mlir.InsertionPoint(ops[0] if ops else end):
            inner.alive = _placeholder(mlir.IntegerType.get_signless(1))
        inner.values[inner.alive] = alive
        ops = guard(ops, inner.alive, checked=batch.alive is not None)
    inner.run(ops, [*ops[1:], end])
    passed = list(end.operands)
    end.erase()
    return inner, passed


_ACCESSES = ("tensor.extract", "tensor.extract_slice", "tensor.insert", "tensor.insert_slice", "scf.yield")


def _stop_cotangents(batch: Batch, ops: list[mlir.Operation], alive: mlir.Value) -> None:
    """Let no cotangents go from a block to what it computes with for inactive lanes.

    They are products of zeros with derivatives that may be infinite or NaN there. An array of which the block reads
    elements is left as it is: a loop would go through all of it in each iteration.
    """
    read = ((x, inner.name) for op in ops for inner in operations(op) for x in inner.operands if x in batch)
    for value in dict.fromkeys(x for x, name in read if name not in _ACCESSES or len(batch.values[x].type.shape) == 1):
        many = batch.values[value]
        if is_float(many.type):
            with mlir.InsertionPoint(ops[0]):
                constant = emit.create("mlirml.stop_gradient", [many], [many.type]).results[0]
                batch.values[value] = chosen(alive, many, constant)


def _fixpoint(
    batch: Batch,
    op: mlir.Operation,
    blocks: list[mlir.Block],
    inits: list[mlir.Value],
    carried: list[mlir.Value],
    ends: list[mlir.Value],
) -> list[bool]:
    """For each carried value, whether it depends on the lane."""
    known = set(batch.values)
    many = [x in batch for x in inits]
    while True:
        dependent = known | {a for a, m in zip(carried, many) if m}
        for block in blocks:
            _spread(block, dependent)
        new = [m or e in dependent for m, e in zip(many, ends)]
        if new == many:
            return many
        many = new


def _spread(block: mlir.Block, many: set[mlir.Value]) -> None:
    """Add every value of a block that depends on one in `many`; of control flow all results do."""
    for op in block_ops(block):
        if any(x in many for inner in operations(op) for x in inner.operands):
            many.update(op.results)


@batching("scf.for")
def for_loop(batch: Batch, op: mlir.Operation) -> None:
    """A loop over the iterations that all lanes share, or over the greatest trip count of any lane."""
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    ends = list(block_ops(block)[-1].operands)
    own = any(x in batch for x in (lower, upper, step))
    many = [True] * len(inits) if own else _fixpoint(batch, op, [block], inits, carried, ends)
    starts = [batch.full(x) if m else x for x, m in zip(inits, many)]
    trip_count = _trip_count(batch, lower, upper, step) if own else None

    def body(i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
        environment: dict[mlir.Value, mlir.Value] = {}
        batched: dict[mlir.Value, mlir.Value] = {}
        if trip_count is None:
            environment[block.arguments[0]] = i
        else:
            lane_index = _induction_variable(batch, lower, step, i)
            one = _placeholder(mlir.IndexType.get())
            environment[block.arguments[0]], batched[one] = one, lane_index
        for argument, value, m in zip(carried, values, many):
            if m:
                one = _placeholder(argument.type)
                environment[argument], batched[one] = one, value
            else:
                environment[argument] = value
        going = None if trip_count is None else _compare("slt", i, trip_count)
        inner, passed = _block(batch, block, environment, batched, going)
        new = [inner.full(y) if m else y for y, m in zip(passed, many)]
        if going is None:
            return new
        return [chosen(going, after, before) for after, before in zip(new, values)]

    bounds = (lower, upper, step) if trip_count is None else (emit.index(0), _greatest(trip_count), emit.index(1))
    results = emit.for_loop(*bounds, body, starts)
    keep_bounds(op, results)
    for old, new, m in zip(op.results, results, many):
        if m:
            batch.values[old] = new
        else:
            old.replace_all_uses_with(new)


def _placeholder(type_: mlir.Type) -> mlir.Value:
    """A value of one lane, of which only the batched form is read.

    It is no constant: operations that capture one are not batched for that.
    """
    if isinstance(type_, mlir.RankedTensorType):
        return emit.empty(type_)
    return emit.value("tensor.extract", [emit.empty(mlir.RankedTensorType.get([], type_))], type_)


def _trip_count(batch: Batch, lower: mlir.Value, upper: mlir.Value, step: mlir.Value) -> mlir.Value:
    """The trip count of each lane."""
    type_ = batch.batched_type(mlir.IndexType.get())
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", xs[1], xs[0]), emit.index(0))
        trip_count = emit.same_type("arith.ceildivsi", span, xs[2])
        return [trip_count if batch.alive is None else emit.same_type("arith.select", xs[3], trip_count, emit.index(0))]

    inputs = [batch.full(x) for x in (lower, upper, step, *([] if batch.alive is None else [batch.alive]))]
    maps = [identity] * (len(inputs) + 1)
    return emit.generic(inputs, [emit.empty(type_)], maps, ["parallel"], body).results[0]


def _induction_variable(batch: Batch, lower: mlir.Value, step: mlir.Value, number: mlir.Value) -> mlir.Value:
    """The induction variable of each lane in iteration `number`."""
    type_ = batch.batched_type(mlir.IndexType.get())
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.same_type("arith.addi", xs[0], emit.same_type("arith.muli", xs[1], number))]

    inputs = [batch.full(x) for x in (lower, step)]
    return emit.generic(inputs, [emit.empty(type_)], [identity] * 3, ["parallel"], body).results[0]


def _compare(predicate: str, number: mlir.Value, many: mlir.Value) -> mlir.Value:
    """`number < many` for each lane."""
    type_ = mlir.RankedTensorType.get(list(many.type.shape), mlir.IntegerType.get_signless(1))
    identity = mlir.AffineMap.get_identity(1)
    op = emit.generic(
        [many], [emit.empty(type_)], [identity] * 2, ["parallel"], lambda xs: [emit.compare(predicate, number, xs[0])]
    )
    return op.results[0]


def _reduced(name: str, many: mlir.Value, start: int) -> mlir.Value:
    """The reduction of a tensor of one dimension to a scalar."""
    type_ = mlir.RankedTensorType.get([], many.type.element_type)
    out = emit.fill(emit.number(many.type.element_type, start), emit.empty(type_)).results[0]
    maps = [mlir.AffineMap.get_identity(1), mlir.AffineMap.get(1, 0, [])]
    op = emit.generic([many], [out], maps, ["reduction"], lambda xs: [emit.same_type(name, xs[0], xs[1])])
    return emit.value("tensor.extract", [op.results[0]], many.type.element_type)


def _greatest(trip_count: mlir.Value) -> mlir.Value:
    return _reduced("arith.maxsi", trip_count, 0)


@batching("scf.if", "scf.index_switch")
def branches(batch: Batch, op: mlir.Operation) -> None:
    """The branch that all lanes take, or all branches and a select."""
    selector = op.operands[0]
    blocks = [block for region in op.regions for block in region.blocks]  # an `if` of checks alone has no `else`
    if selector not in batch:
        _shared_branches(batch, op, blocks)
        return
    own = batch.values[selector]
    if op.name == "scf.if":
        takes = [own, _neither([own])]
    else:  # the first region is the default
        hits = [_compare("eq", emit.index(case), own) for case in mlir.DenseI64ArrayAttr(op.attributes["cases"])]
        takes = [_neither(hits), *hits]
    if is_call(op):
        _calls_of_lanes(batch, blocks[0], own)
        return
    found = []
    for block, taken in zip(blocks, takes):
        alive = taken if batch.alive is None else _both(taken, batch.values[batch.alive])
        inner, passed = _block(batch, block, {}, {}, alive)
        found.append([inner.full(y) for y in passed])
    results = found[0]
    for values, taken in zip(found[1:], takes[1:]):
        results = [chosen(taken, new, old) for new, old in zip(values, results)]
    batch.values.update(zip(op.results, results))


def _calls_of_lanes(batch: Batch, block: mlir.Block, taken: mlir.Value) -> None:
    """A loop over the lanes that calls Python for those that execute the call, with their values."""

    def body(b: mlir.Value, _: list[mlir.Value]) -> None:
        call = emit.create("scf.if", [emit.value("tensor.extract", [taken, b], taken.type.element_type)], (), regions=2)
        with mlir.InsertionPoint(emit.block(call, [], 0)):
            for op in block_ops(block)[:-1]:
                operands = [_of_lane(batch.values[x], x.type, b) if x in batch else x for x in op.operands]
                emit.create(op.name, operands, (), {name: op.attributes[name] for name in op.attributes})
            emit.create("scf.yield", [])

    emit.for_loop(emit.index(0), emit.index(batch.size), emit.index(1), body)


def _of_lane(many: mlir.Value, type_: mlir.Type, lane: mlir.Value) -> mlir.Value:
    """The value of one lane."""
    if not isinstance(type_, mlir.RankedTensorType):
        return emit.value("tensor.extract", [many, lane], type_)
    rank = len(many.type.shape)
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    attributes = tensors.slice_attributes([dynamic, *[0] * (rank - 1)], [1, *list(type_.shape)], [1] * rank)
    return emit.value(
        "tensor.extract_slice", [many, lane], type_, **attributes, operandSegmentSizes=emit.segments(1, 1, 0, 0)
    )


def _neither(many: list[mlir.Value]) -> mlir.Value:
    """For each lane, whether none of the conditions holds."""
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        one = emit.number(xs[0].type, 1)
        total = xs[0]
        for x in xs[1:-1]:
            total = emit.same_type("arith.ori", total, x)
        return [emit.same_type("arith.xori", total, one)]

    type_ = many[0].type
    return emit.generic(many, [emit.empty(type_)], [identity] * (len(many) + 1), ["parallel"], body).results[0]


def _shared_branches(batch: Batch, op: mlir.Operation, blocks: list[mlir.Block]) -> None:
    attributes = {name: op.attributes[name] for name in op.attributes}
    types = [batch.batched_type(r.type) for r in op.results]
    new = emit.create(op.name, list(op.operands), types, attributes, regions=len(op.regions))
    for number, block in enumerate(blocks):
        with mlir.InsertionPoint(emit.block(new, [], number)):
            inner, passed = _block(batch, block, {}, {})
            emit.create("scf.yield", [inner.full(y) for y in passed])
    batch.values.update(zip(op.results, new.results))


@batching("scf.while")
def while_loop(batch: Batch, op: mlir.Operation) -> None:
    """Loop while any lane continues; a finished lane keeps its values."""
    before, after = (region.blocks[0] for region in op.regions)
    starts = [batch.full(x) for x in op.operands]
    types = [x.type for x in starts]
    # All values that the condition reads are forwarded, even if a lane's own loop forwards fewer: finished lanes keep
    # them.
    new = emit.create("scf.while", starts, types, {n: op.attributes[n] for n in op.attributes}, regions=2)

    def asked(arguments: list[mlir.Value]) -> tuple[mlir.Value, list[mlir.Value]]:
        environment, batched = _entered(before, arguments)
        inner, (truth, *passed) = _block(batch, before, environment, batched)
        goes = inner.full(truth)
        return goes if batch.alive is None else _both(goes, batch.values[batch.alive]), [inner.full(x) for x in passed]

    with mlir.InsertionPoint(emit.block(new, types, 0)):
        arguments = list(new.regions[0].blocks[0].arguments)
        emit.create("scf.condition", [_reduced("arith.ori", asked(arguments)[0], 0), *arguments])
    with mlir.InsertionPoint(emit.block(new, types, 1)):
        arguments = list(new.regions[1].blocks[0].arguments)
        goes, passed = asked(arguments)  # cloned, since bufferization requires that only carried values are forwarded
        environment, batched = _entered(after, passed)
        inner, new_values = _block(batch, after, environment, batched, goes)
        ends = [inner.full(y) for y in new_values]
        emit.create("scf.yield", [chosen(goes, end, old) for end, old in zip(ends, arguments)])
    positions = {argument: i for i, argument in enumerate(before.arguments)}
    given = list(block_ops(before)[-1].operands)[1:]
    last = list(new.results)
    found = [last[positions[x]] for x in given] if all(x in positions for x in given) else asked(last)[1]
    batch.values.update(zip(op.results, found))


def _both(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """For each lane, whether both conditions hold."""
    return tensors.elementwise([a, b], a.type, lambda xs: emit.same_type("arith.andi", *xs))


def _entered(
    block: mlir.Block, arguments: list[mlir.Value]
) -> tuple[dict[mlir.Value, mlir.Value], dict[mlir.Value, mlir.Value]]:
    environment: dict[mlir.Value, mlir.Value] = {}
    batched: dict[mlir.Value, mlir.Value] = {}
    for argument, value in zip(block.arguments, arguments):
        one = _placeholder(argument.type)
        environment[argument], batched[one] = one, value
    return environment, batched


@batching("cf.assert")
def check(batch: Batch, op: mlir.Operation) -> None:
    """The assertion must hold for every lane."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    emit.create("cf.assert", [_reduced("arith.andi", batch.values[op.operands[0]], 1)], (), attributes)


@batching("mlirml.host_value")
def host_value(batch: Batch, op: mlir.Operation) -> None:
    """Python gets the values of all lanes at once."""
    if "returns" in op.attributes:
        raise refuse(op, "the Python function returns arrays for one example")
    emit.create(op.name, [batch.full(op.operands[0])], (), {"kind": op.attributes["kind"]})


@batching("mlirml.host_call", "mlirml.host_result")
def host_call(batch: Batch, op: mlir.Operation) -> None:
    """One call for all lanes, none of whose operands depends on the lane."""
    raise refuse(op)
