"""Batched forms of control flow.

A loop whose bounds are the same for all examples stays that loop. Where the number of rounds, or a condition, is each
example's own, the loop goes on while any example does, and those that have ended keep what they have; of branches both
are computed, and the right one chosen.
"""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.batching import Batch, batching, chosen, refuse
from mlirml.autodiff.checkpoint import keep_bounds
from mlirml.autodiff.copies import copied
from mlirml.autodiff.predication import guard
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations


def _block(
    batch: Batch,
    block: mlir.Block,
    environment: dict[mlir.Value, mlir.Value],
    batched: dict[mlir.Value, mlir.Value],
    alive: mlir.Value | None = None,
) -> tuple[Batch, list[mlir.Value]]:
    """Build a block again for all examples; with what its terminator passes on.

    `batched` are new values of the block with their batched forms. `alive` tells which examples it is for, where it is
    not for all.
    """
    inner = batch.inner()
    inner.values.update(batched)
    ops = copied(block, environment)
    # Stands in for the terminator: its operands follow when operations are replaced.
    end = emit.create("scf.yield", [environment.get(x, x) for x in block_ops(block)[-1].operands])
    if alive is not None:
        with mlir.InsertionPoint(ops[0] if ops else end):
            inner.alive = emit.number(mlir.IntegerType.get_signless(1), 1)
        inner.values[inner.alive] = alive
        ops = guard(ops, inner.alive, checked=batch.alive is not None)
    inner.run(ops, [*ops[1:], end])
    passed = list(end.operands)
    end.erase()
    return inner, passed


def _fixpoint(
    batch: Batch,
    op: mlir.Operation,
    blocks: list[mlir.Block],
    inits: list[mlir.Value],
    carried: list[mlir.Value],
    ends: list[mlir.Value],
) -> list[bool]:
    """Which carried values depend on the example."""
    known = set(batch.values)
    many = [x in batch for x in inits]
    while True:
        inside = known | {a for a, m in zip(carried, many) if m}
        for block in blocks:
            _spread(block, inside)
        new = [m or e in inside for m, e in zip(many, ends)]
        if new == many:
            return many
        many = new


def _spread(block: mlir.Block, many: set[mlir.Value]) -> None:
    """Note every value of a block that depends on one in `many`; of control flow all results do."""
    for op in block_ops(block):
        if any(x in many for inner in operations(op) for x in inner.operands):
            many.update(op.results)


@batching("scf.for")
def for_loop(batch: Batch, op: mlir.Operation) -> None:
    """A loop over rounds that all examples share, or the most of any."""
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    ends = list(block_ops(block)[-1].operands)
    own = any(x in batch for x in (lower, upper, step))
    many = [True] * len(inits) if own else _fixpoint(batch, op, [block], inits, carried, ends)
    starts = [batch.full(x) if m else x for x, m in zip(inits, many)]
    rounds = _rounds(batch, lower, upper, step) if own else None

    def body(i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
        environment: dict[mlir.Value, mlir.Value] = {}
        batched: dict[mlir.Value, mlir.Value] = {}
        if rounds is None:
            environment[block.arguments[0]] = i
        else:
            place = _place(batch, lower, step, i)
            stand_in = emit.index(0)  # the loop variable of one example, which only its batched form is read of
            environment[block.arguments[0]], batched[stand_in] = stand_in, place
        for argument, value, m in zip(carried, values, many):
            if m:
                one = _stand_in(argument)
                environment[argument], batched[one] = one, value
            else:
                environment[argument] = value
        going = None if rounds is None else _compare("slt", i, rounds)
        inner, passed = _block(batch, block, environment, batched, going)
        new = [inner.full(y) if m else y for y, m in zip(passed, many)]
        if going is None:
            return new
        return [chosen(going, after, before) for after, before in zip(new, values)]

    bounds = (lower, upper, step) if rounds is None else (emit.index(0), _greatest(rounds), emit.index(1))
    results = emit.for_loop(*bounds, body, starts)
    keep_bounds(op, results)
    for old, new, m in zip(op.results, results, many):
        if m:
            batch.values[old] = new
        else:
            old.replace_all_uses_with(new)


def _stand_in(value: mlir.Value) -> mlir.Value:
    """A value of one example, of which only the batched form is read."""
    if isinstance(value.type, mlir.RankedTensorType):
        return emit.empty(value.type)
    return emit.number(value.type, 0)


def _rounds(batch: Batch, lower: mlir.Value, upper: mlir.Value, step: mlir.Value) -> mlir.Value:
    """How many rounds each example has."""
    kind = batch.kind(mlir.IndexType.get())
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", xs[1], xs[0]), emit.index(0))
        rounds = emit.same_type("arith.ceildivsi", span, xs[2])
        return [rounds if batch.alive is None else emit.same_type("arith.select", xs[3], rounds, emit.index(0))]

    inputs = [batch.full(x) for x in (lower, upper, step, *([] if batch.alive is None else [batch.alive]))]
    maps = [identity] * (len(inputs) + 1)
    return emit.generic(inputs, [emit.empty(kind)], maps, ["parallel"], body).results[0]


def _place(batch: Batch, lower: mlir.Value, step: mlir.Value, number: mlir.Value) -> mlir.Value:
    """The loop variable of each example in a round."""
    kind = batch.kind(mlir.IndexType.get())
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.same_type("arith.addi", xs[0], emit.same_type("arith.muli", xs[1], number))]

    inputs = [batch.full(x) for x in (lower, step)]
    return emit.generic(inputs, [emit.empty(kind)], [identity] * 3, ["parallel"], body).results[0]


def _compare(predicate: str, number: mlir.Value, many: mlir.Value) -> mlir.Value:
    """`number < many` for each example."""
    kind = mlir.RankedTensorType.get(list(many.type.shape), mlir.IntegerType.get_signless(1))
    identity = mlir.AffineMap.get_identity(1)
    op = emit.generic(
        [many], [emit.empty(kind)], [identity] * 2, ["parallel"], lambda xs: [emit.compare(predicate, number, xs[0])]
    )
    return op.results[0]


def _reduced(name: str, many: mlir.Value, start: int) -> mlir.Value:
    """All numbers of a tensor of one dimension, as one."""
    kind = mlir.RankedTensorType.get([], many.type.element_type)
    out = emit.fill(emit.number(many.type.element_type, start), emit.empty(kind)).results[0]
    maps = [mlir.AffineMap.get_identity(1), mlir.AffineMap.get(1, 0, [])]
    op = emit.generic([many], [out], maps, ["reduction"], lambda xs: [emit.same_type(name, xs[0], xs[1])])
    return emit.value("tensor.extract", [op.results[0]], many.type.element_type)


def _greatest(rounds: mlir.Value) -> mlir.Value:
    return _reduced("arith.maxsi", rounds, 0)


@batching("scf.if", "scf.index_switch")
def branches(batch: Batch, op: mlir.Operation) -> None:
    """The branch that all examples take, or all of them and a choice."""
    selector = op.operands[0]
    blocks = [region.blocks[0] for region in op.regions]
    if selector not in batch:
        _shared_branches(batch, op, blocks)
        return
    own = batch.values[selector]
    if op.name == "scf.if":
        takes = [own, _neither([own])]
    else:  # the first region is the default
        hits = [_compare("eq", emit.index(case), own) for case in mlir.DenseI64ArrayAttr(op.attributes["cases"])]
        takes = [_neither(hits), *hits]
    found = []
    for block, taken in zip(blocks, takes):
        inner, passed = _block(batch, block, {}, {}, taken)
        found.append([inner.full(y) for y in passed])
    results = found[0]
    for values, taken in zip(found[1:], takes[1:]):
        results = [chosen(taken, new, old) for new, old in zip(values, results)]
    batch.values.update(zip(op.results, results))


def _neither(many: list[mlir.Value]) -> mlir.Value:
    """For each example whether none holds."""
    identity = mlir.AffineMap.get_identity(1)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        one = emit.number(xs[0].type, 1)
        total = xs[0]
        for x in xs[1:-1]:
            total = emit.same_type("arith.ori", total, x)
        return [emit.same_type("arith.xori", total, one)]

    kind = many[0].type
    return emit.generic(many, [emit.empty(kind)], [identity] * (len(many) + 1), ["parallel"], body).results[0]


def _shared_branches(batch: Batch, op: mlir.Operation, blocks: list[mlir.Block]) -> None:
    attributes = {name: op.attributes[name] for name in op.attributes}
    kinds = [batch.kind(r.type) for r in op.results]
    new = emit.create(op.name, list(op.operands), kinds, attributes, regions=len(blocks))
    for number, block in enumerate(blocks):
        with mlir.InsertionPoint(emit.block(new, [], number)):
            inner, passed = _block(batch, block, {}, {})
            emit.create("scf.yield", [inner.full(y) for y in passed])
    batch.values.update(zip(op.results, new.results))


@batching("scf.while")
def while_loop(batch: Batch, op: mlir.Operation) -> None:
    """Goes on while any example does; an example that has ended keeps what it has."""
    before, after = (region.blocks[0] for region in op.regions)
    starts = [batch.full(x) for x in op.operands]
    kinds = [x.type for x in starts]
    # It passes on all that the condition reads, though that of one example may pass on less: the ended ones keep it.
    new = emit.create("scf.while", starts, kinds, regions=2)

    def asked(arguments: list[mlir.Value]) -> tuple[mlir.Value, list[mlir.Value]]:
        environment, batched = _entered(before, arguments)
        inner, (truth, *passed) = _block(batch, before, environment, batched)
        goes = inner.full(truth)
        return goes if batch.alive is None else _both(goes, batch.values[batch.alive]), [inner.full(x) for x in passed]

    with mlir.InsertionPoint(emit.block(new, kinds, 0)):
        arguments = list(new.regions[0].blocks[0].arguments)
        emit.create("scf.condition", [_reduced("arith.ori", asked(arguments)[0], 0), *arguments])
    with mlir.InsertionPoint(emit.block(new, kinds, 1)):
        arguments = list(new.regions[1].blocks[0].arguments)
        goes, passed = asked(arguments)  # again: bufferization wants nothing passed on but what is carried
        environment, batched = _entered(after, passed)
        inner, new_values = _block(batch, after, environment, batched, goes)
        ends = [inner.full(y) for y in new_values]
        emit.create("scf.yield", [chosen(goes, end, old) for end, old in zip(ends, arguments)])
    places = {argument: i for i, argument in enumerate(before.arguments)}
    given = list(block_ops(before)[-1].operands)[1:]
    last = list(new.results)
    found = [last[places[x]] for x in given] if all(x in places for x in given) else asked(last)[1]
    batch.values.update(zip(op.results, found))


def _both(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """For each example whether both hold."""
    return tensors.elementwise([a, b], a.type, lambda xs: emit.same_type("arith.andi", *xs))


def _entered(
    block: mlir.Block, arguments: list[mlir.Value]
) -> tuple[dict[mlir.Value, mlir.Value], dict[mlir.Value, mlir.Value]]:
    environment: dict[mlir.Value, mlir.Value] = {}
    batched: dict[mlir.Value, mlir.Value] = {}
    for argument, value in zip(block.arguments, arguments):
        one = _stand_in(argument)
        environment[argument], batched[one] = one, value
    return environment, batched


@batching("cf.assert")
def check(batch: Batch, op: mlir.Operation) -> None:
    """It must hold for every example."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    emit.create("cf.assert", [_reduced("arith.andi", batch.values[op.operands[0]], 1)], (), attributes)


@batching("mlirml.host_value")
def host_value(batch: Batch, op: mlir.Operation) -> None:
    """Python gets the values of all examples at once."""
    if "returns" in op.attributes:
        raise refuse(op, "the Python function returns arrays for one example")
    emit.create(op.name, [batch.full(op.operands[0])], (), {"kind": op.attributes["kind"]})


@batching("mlirml.host_call", "mlirml.host_result")
def host_call(batch: Batch, op: mlir.Operation) -> None:
    """One call for all examples, which has no operand of an example."""
    raise refuse(op)
