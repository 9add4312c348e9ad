"""Requests for derivatives and batches, as operations of the module, and the order of their expansion.

    %0 = mlirml.independent %x {group = 0}       the differentiated value, reverse mode
    mlirml.cotangent %y, %ct {group = 0, call = 0}
    %g = mlirml.vjp %0 {group = 0, call = 0}

    %1 = mlirml.dual %x, %t {group = 1}          a value and its tangent, forward mode
    %d = mlirml.jvp %y {group = 1}

    %2 = mlirml.unbatch %xs {group = 2}          one lane of the first dimension
    %b = mlirml.vmap %y {group = 2, size = 8}

The code between the markers of a request is ordinary code, and requests nest as the calls of the transforms do: the one
that closes first is the innermost, and is expanded first. A batch of which the program uses no result has no end
marker, and extends to the end of its block: it may contain checks, which are made for each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from mlirml.autodiff import tensors
from mlirml.autodiff.batching import Batch, NoLanes
from mlirml.autodiff.forward import Push
from mlirml.autodiff.reverse import Sweep, active_values
from mlirml.core.dataclass import dataclass
from mlirml.errors import NoBatchingError
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations, replace_op
from mlirml.ir.location import source_location

OPENS = {"mlirml.vjp": "mlirml.independent", "mlirml.jvp": "mlirml.dual", "mlirml.vmap": "mlirml.unbatch"}
_BEGINNINGS = set(OPENS.values())


@dataclass
class Request:
    """The operations of one request.

    `opens` are its start markers, `seeds` have the cotangents, and `closes` have the results.
    """

    kind: str
    group: int
    call: int
    closes: list[mlir.Operation] = field(default_factory=list)
    opens: list[mlir.Operation] = field(default_factory=list)
    seeds: list[mlir.Operation] = field(default_factory=list)


def requests(function: mlir.Operation) -> list[Request]:
    """The requests of a function, innermost first."""
    found: dict[tuple[str, int, int], Request] = {}
    opens: dict[tuple[str, int], list[mlir.Operation]] = {}
    seeds: dict[tuple[int, int], list[mlir.Operation]] = {}
    position: dict[mlir.Operation, int] = {}
    for number, op in enumerate(operations(function)):
        position[op] = number
        if op.name in OPENS:
            key = op.name, _number(op, "group"), _number(op, "call")
            found.setdefault(key, Request(*key)).closes.append(op)
        elif op.name in _BEGINNINGS:
            opens.setdefault((op.name, _number(op, "group")), []).append(op)
        elif op.name == "mlirml.cotangent":
            seeds.setdefault((_number(op, "group"), _number(op, "call")), []).append(op)
    for request in found.values():
        request.opens = opens.get((OPENS[request.kind], request.group), [])
        request.seeds = seeds.get((request.group, request.call), []) if request.kind == "mlirml.vjp" else []
    waiting = list(found.values())
    ended = {request.group for request in waiting if request.kind == "mlirml.vmap"}
    for (name, group), begun in reversed(opens.items()):  # the innermost first
        if name == "mlirml.unbatch" and group not in ended:
            begin = position[begun[0]]
            around = (
                r for r in waiting if r.opens and r.closes and position[r.opens[0]] < begin < position[r.closes[-1]]
            )
            outer = next(around, None)
            insertion = len(waiting) if outer is None else waiting.index(outer)
            waiting.insert(insertion, Request("mlirml.vmap", group, 0, opens=begun))
    return waiting


def drop_unused(function: mlir.Operation) -> None:
    """Erase the end markers of derivatives of which the program uses no result."""
    used = {(op.name, _number(op, "group")) for op in named_operations(function, OPENS)}
    calls = {(_number(op, "group"), _number(op, "call")) for op in named_operations(function, ("mlirml.vjp",))}
    for op in named_operations(function, ("mlirml.cotangent",)):
        if (_number(op, "group"), _number(op, "call")) not in calls:
            op.erase()
    for kind in ("mlirml.vjp", "mlirml.jvp"):
        for op in named_operations(function, (OPENS[kind],)):
            if (kind, _number(op, "group")) not in used:
                replace_op(op, op.operands[0])


def _number(op: mlir.Operation, name: str) -> int:
    return int(mlir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else 0


def expand_vjp(request: Request, checkpoint_bytes: int) -> None:
    """Build the reverse pass of one call of a pullback."""
    starts, seeds = request.opens, request.seeds
    first = request.closes[0]
    ops = _between(request)
    sweep = Sweep(active_values(ops, [r for op in starts for r in op.results]), checkpoint_bytes)
    with mlir.InsertionPoint(first):
        for op in seeds:
            if op.operands[0] in sweep.active:
                with op.location:
                    sweep.add(op.operands[0], op.operands[1])
        sweep.run(ops)
        for op in request.closes:
            with op.location:
                gradient = sweep.of(op.operands[0])
            op.results[0].replace_all_uses_with(gradient)
    _erase([*request.closes, *seeds, *reversed(sweep.dead)])


def expand_jvp(request: Request) -> None:
    """Build the tangents of a request."""
    push = Push()
    for op in request.opens:
        # A value with tangent zero is a constant: nothing is multiplied with its tangent.
        if not tensors.is_zeros(op.operands[1]):
            push.tangents[op.results[0]] = op.operands[1]
    _expand_forward(request, push, lambda op: push.of(op.operands[0]))


def expand_vmap(request: Request, is_differentiated: bool = False) -> None:
    """Build the code of a request for all lanes at once; `is_differentiated` if reverse mode may go through it."""
    size = _number(request.closes[0], "size") if request.closes else request.opens[0].operands[0].type.shape[0]
    # An array without elements has no slices in MLIR. Of dynamic dimensions only the operations know the sizes.
    known = all(_is_static(op.operands[0].type) for op in request.closes)
    batch = NoLanes(size) if size == 0 and known else Batch(size, is_differentiated=is_differentiated)
    for op in request.opens:
        batch.values[op.results[0]] = op.operands[0]
    _expand_forward(request, batch, lambda op: _of_batch(batch, op))
    for op in request.opens:
        _check_unused(op)


def _is_static(type_: mlir.Type) -> bool:
    return not isinstance(type_, mlir.RankedTensorType) or bool(type_.has_static_shape)


def _of_batch(batch: Batch, op: mlir.Operation) -> mlir.Value:
    """A result for all lanes; one that must be equal for all has no batch dimension."""
    value = op.operands[0]
    if "shared" not in op.attributes:
        return batch.full(value)
    if value in batch.values:
        owner = defining_op(value)
        raise NoBatchingError(
            "vmap: out_axes is None, and this result depends on the example",
            location=source_location((owner or op).location),
            help="give the axis for the examples in `out_axes`, or take one example or their mean after `ml.vmap`",
        )
    return value


def _expand_forward(request: Request, new: Push | Batch, of: Callable[[mlir.Operation], mlir.Value]) -> None:
    """Build the transformed operations next to those of a request, and replace its end markers by their results."""
    if request.opens:
        new.run(*_followed(request))
    for op in request.closes:
        with op.location, mlir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(of(op))
    _erase([*request.closes, *reversed(new.dead)], _check_unused if isinstance(new, Batch) else None)


def _check_unused(op: mlir.Operation) -> None:
    """Refuse a value of one lane that code after the request uses: one that was stored, or appended, outside of it."""
    if any(next(iter(result.uses), None) is not None for result in op.results):
        raise NoBatchingError(
            "vmap: this depends on the example, and is used outside of the function for one example",
            location=source_location(op.location),
            help="return it from the function: arrays, lists and objects from outside are the same for all examples",
        )


def _erase(dead: list[mlir.Operation], check: Callable[[mlir.Operation], None] | None = None) -> None:
    """Erase operations, users before definitions, each after a check; some may be nested in others of them."""
    found = set(dead)
    outermost = [op for op in dead if not any(parent in found for parent in _around(op))]
    for op in outermost:
        if check is not None:
            check(op)
        op.erase()


def _around(op: mlir.Operation) -> Iterator[mlir.Operation]:
    while (parent := op.parent) is not None:
        op = parent.operation
        yield op


def close(function: mlir.Operation, request: Request) -> None:
    """Erase the start markers of a request that has no calls left."""
    name = OPENS[request.kind]
    for op in [op for op in operations(function) if op.name == name and _number(op, "group") == request.group]:
        replace_op(op, op.operands[0])


def ops_of(request: Request) -> list[mlir.Operation]:
    """The operations of a request, in the block of its start marker."""
    return _between(request) if request.opens else []


def _end(request: Request, block: mlir.Block) -> mlir.Operation:
    """The operation of the start marker's block that is, or contains, the end marker."""
    if not request.closes:
        return block_ops(block)[-1]
    end = request.closes[-1]
    while end.block != block:
        end = end.parent
    return end


def _between(request: Request) -> list[mlir.Operation]:
    """The operations of the start marker's block, up to the end marker."""
    begin = request.opens[0]
    ops = block_ops(begin.block)
    return ops[ops.index(begin) : ops.index(_end(request, begin.block))]


def _followed(request: Request) -> tuple[list[mlir.Operation], list[mlir.Operation]]:
    """The operations of a request without its end markers, and for each the operation after it."""
    ops = _between(request)
    pairs = [
        (op, next_op) for op, next_op in zip(ops, [*ops[1:], _end(request, ops[0].block)]) if op not in request.closes
    ]
    return [op for op, _ in pairs], [next_op for _, next_op in pairs]
