"""Pushforwards of control flow: loops carry tangents next to values, branches return them too."""

from __future__ import annotations

from mlirml.analysis.values import outer_variables
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.checkpoint import keep_bounds
from mlirml.autodiff.copies import copied
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.reverse import active_values
from mlirml.autodiff.rule_table import one_of_two_tensors
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir


def _active(push: Push, op: mlir.Operation) -> set[mlir.Value]:
    return active_values([op], [x for x in outer_variables(op) if x in push.tangents])


def _swept(
    push: Push, block: mlir.Block, environment: dict[mlir.Value, mlir.Value], tangents: dict[mlir.Value, mlir.Value]
) -> tuple[Push, list[mlir.Value]]:
    """Clone a block with tangents; returns the operands of its terminator with theirs."""
    ops = copied(block, environment)
    inner = Push()
    inner.tangents.update(push.tangents)
    inner.tangents.update(tangents)
    # A placeholder for the terminator: its operands are updated when operations are replaced.
    end = emit.create("scf.yield", [environment.get(x, x) for x in block_ops(block)[-1].operands])
    inner.run(ops, [*ops[1:], end])
    push.dead += inner.dead
    passed = list(end.operands)
    end.erase()
    return inner, passed


@pushforward("scf.for")
def for_loop(push: Push, op: mlir.Operation) -> None:
    """The loop with the tangents of its carried values."""
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    carried, active = list(block.arguments)[1:], _active(push, op)
    moving = [i for i, value in enumerate(carried) if value in active]

    def body(i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
        environment = dict(zip(block.arguments, [i, *values]))
        tangents = {values[position]: tangent for position, tangent in zip(moving, values[len(inits) :])}
        inner, ends = _swept(push, block, environment, tangents)
        return ends + [inner.of(ends[position]) for position in moving]

    results = emit.for_loop(lower, upper, step, body, [*inits, *(push.of(inits[position]) for position in moving)])
    keep_bounds(op, results)
    for old, new in zip(op.results, results):
        old.replace_all_uses_with(new)
    for position, tangent in zip(moving, results[len(inits) :]):
        push.tangents[results[position]] = tangent
    push.dead.append(op)


@pushforward("scf.if", "scf.index_switch")
def branches(push: Push, op: mlir.Operation) -> None:
    """The branches with their tangents."""
    active = _active(push, op)
    moving = [i for i, result in enumerate(op.results) if result in active]
    types = [r.type for r in op.results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = emit.create(
        op.name, list(op.operands), types + [types[i] for i in moving], attributes, regions=len(op.regions)
    )
    for number, region in enumerate(op.regions):
        (block,) = region.blocks
        with mlir.InsertionPoint(emit.block(new, [], number)):
            inner, ends = _swept(push, block, {}, {})
            emit.create("scf.yield", ends + [inner.of(ends[i]) for i in moving])
    for old, value in zip(op.results, new.results):
        old.replace_all_uses_with(value)
    for position, tangent in zip(moving, list(new.results)[len(types) :]):
        push.tangents[new.results[position]] = tangent
    push.dead.append(op)


@pushforward("arith.select", types=one_of_two_tensors)
def select(push: Push, op: mlir.Operation) -> None:
    """The tangent of the selected tensor."""
    condition, a, b = op.operands
    push.tangents[op.results[0]] = emit.same_type("arith.select", condition, push.of(a), push.of(b))


@pushforward("scf.while")
def while_loop(push: Push, op: mlir.Operation) -> None:
    """The loop with the tangents of its carried values; its condition reads none of them."""
    before, after = (region.blocks[0] for region in op.regions)
    floats = [i for i, x in enumerate(op.operands) if is_float(x.type)]
    out = [i for i, r in enumerate(op.results) if is_float(r.type)]
    inits = [*op.operands, *(push.of(op.operands[i]) for i in floats)]
    types = [*(r.type for r in op.results), *(op.results[i].type for i in out)]
    new = emit.create("scf.while", inits, types, {n: op.attributes[n] for n in op.attributes}, regions=2)
    with mlir.InsertionPoint(emit.block(new, [x.type for x in inits], 0)):
        arguments = list(new.regions[0].blocks[0].arguments)
        environment = dict(zip(before.arguments, arguments))
        inner, (truth, *ends) = _swept(
            push, before, environment, {arguments[p]: t for p, t in zip(floats, arguments[len(op.operands) :])}
        )
        emit.create("scf.condition", [truth, *ends, *(inner.of(ends[i]) for i in out)])
    with mlir.InsertionPoint(emit.block(new, types, 1)):
        arguments = list(new.regions[1].blocks[0].arguments)
        environment = dict(zip(after.arguments, arguments))
        inner, ends = _swept(
            push, after, environment, {arguments[p]: t for p, t in zip(out, arguments[len(op.results) :])}
        )
        emit.create("scf.yield", [*ends, *(inner.of(ends[i]) for i in floats)])
    for old, value in zip(op.results, new.results):
        old.replace_all_uses_with(value)
    for position, tangent in zip(out, list(new.results)[len(op.results) :]):
        push.tangents[new.results[position]] = tangent
    push.dead.append(op)
