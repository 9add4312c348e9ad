"""Batched forms of linalg operations, and of scalars between tensors.

Every map gets a new first dimension. Contractions stay contractions, with wider maps; a convolution whose filters are
equal for all lanes takes the lanes into its batch dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.structured import dims_of
from mlirml.autodiff import tensors
from mlirml.autodiff.batching import Batch, batching, chosen, index
from mlirml.autodiff.rule_table import one_of_two_tensors, scalars
from mlirml.autodiff.structured import Structured
from mlirml.ir import emit
from mlirml.ir.bindings import clone_with, defining_op, mlir, operations


@batching("arith.", "math.", "affine.apply", "affine.max", "affine.min", types=scalars)
def scalar(batch: Batch, op: mlir.Operation) -> None:
    """A scalar operation for each lane."""
    inputs = [batch.values[x] for x in op.operands if x in batch]
    result = op.results[0]
    type_ = batch.batched_type(result.type)
    identity = mlir.AffineMap.get_identity(len(type_.shape))

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        given = iter(xs)
        operands = [next(given) if x in batch else x for x in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        return [emit.create(op.name, operands, [result.type], attributes).results[0]]

    maps = [identity] * (len(inputs) + 1)
    batch.values[result] = emit.generic(inputs, [emit.empty(type_)], maps, ["parallel"], body).results[0]


@batching("arith.select", types=one_of_two_tensors)
def select(batch: Batch, op: mlir.Operation) -> None:
    """A select between tensors for each lane, or one that all lanes share."""
    condition, a, b = op.operands
    many = batch.full(a), batch.full(b)
    shared = condition not in batch
    new = emit.same_type("arith.select", condition, *many) if shared else chosen(batch.values[condition], *many)
    batch.values[op.results[0]] = new


@batching("linalg.fill")
def fill(batch: Batch, op: mlir.Operation) -> None:
    """A fill value for each lane, broadcast over its tensor."""
    scalar_, out = op.operands
    if scalar_ not in batch:
        batch.values[op.results[0]] = emit.fill(scalar_, emit.empty(batch.batched_type(out.type))).results[0]
        return
    type_ = batch.batched_type(out.type)
    rank = len(type_.shape)
    maps = [mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(0)]), mlir.AffineMap.get_identity(rank)]
    spread = emit.generic([batch.values[scalar_]], [emit.empty(type_)], maps, ["parallel"] * rank, lambda xs: xs[:1])
    batch.values[op.results[0]] = spread.results[0]


@batching("linalg.")
def structured(batch: Batch, op: mlir.Operation) -> None:
    """Any structured operation, with one more parallel dimension first."""
    s = Structured.of(op)
    if ".conv_" in op.name and op.operands[1] not in batch and op.operands[0] in batch and not _from_outside(batch, s):
        batch.values[op.results[0]] = _convolution(batch, op)
        return
    numbers = _from_outside(batch, s)
    inputs = [batch.values.get(r.tensor, r.tensor) for r in s.inputs] + [batch.values[x] for x in numbers]
    inits = [_init(batch, r.tensor) for r in s.inits]
    rank = len(s.sizes) + 1
    first = mlir.AffineDimExpr.get(0)

    def moved(map_: mlir.AffineMap, batched: bool) -> mlir.AffineMap:
        dims = [mlir.AffineDimExpr.get(d + 1) for d in range(map_.n_dims)]
        inner = mlir.AffineMap.get(rank, 0, dims)
        results = [e.compose(inner) for e in map_.results]
        return mlir.AffineMap.get(rank, 0, [first, *results] if batched else results)

    maps = [moved(r.map, r.tensor in batch) for r in s.inputs]
    maps += [mlir.AffineMap.get(rank, 0, [first])] * len(numbers)
    maps += [moved(r.map, True) for r in s.inits]
    if _is_contraction(op) and not numbers:
        batch.values[op.results[0]] = _contract(op, inputs, inits, maps)
        return
    kept = {d for r in s.inits for e in r.map.results for d in [getattr(e, "position", None)]}
    iterators = ["parallel", *("parallel" if d in kept else "reduction" for d in range(len(s.sizes)))]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        count, extra = len(s.inputs), len(numbers)
        environment = dict(zip(s.block.arguments, [*xs[:count], *xs[count + extra :]]))
        environment.update(zip(numbers, xs[count : count + extra]))
        _copy(batch, s, environment)
        return [environment.get(y, y) for y in s.yields]

    new = emit.generic(inputs, inits, maps, iterators, body)
    for old, result in zip(op.results, new.results):
        batch.values[old] = result


def _copy(batch: Batch, s: Structured, environment: dict[mlir.Value, mlir.Value]) -> None:
    """Clone the body: indices are shifted by one dimension, and elements are read from the lane's own tensor."""
    for op in s.body:
        if op.name == "linalg.index":
            environment[op.results[0]] = index(int(mlir.IntegerAttr(op.attributes["dim"]).value) + 1)
        elif op.name == "tensor.extract" and op.operands[0] in batch:
            indices = [environment.get(x, x) for x in list(op.operands)[1:]]
            source = batch.values[op.operands[0]]
            environment[op.results[0]] = emit.value("tensor.extract", [source, index(0), *indices], op.results[0].type)
        elif op.regions:
            clone_with(op, environment)
        else:
            emit.body_op(op, environment)


def _from_outside(batch: Batch, s: Structured) -> list[mlir.Value]:
    """The batched scalars that the body captures."""
    found: dict[mlir.Value, None] = {}
    for op in s.body:
        for inner in operations(op):
            found.update((x, None) for x in inner.operands
                         if x in batch and not isinstance(x.type, mlir.RankedTensorType))  # fmt: skip
    return list(found)


def _init(batch: Batch, value: mlir.Value) -> mlir.Value:
    """The batched init of an operation: one broadcast for all lanes, without a copy where possible."""
    owner = defining_op(value)
    if value not in batch and owner is not None:
        if owner.name == "tensor.empty":
            return tensors.empty(batch.batched_type(value.type), value)
        if owner.name == "linalg.fill" and owner.operands[0] not in batch:
            return emit.fill(owner.operands[0], tensors.empty(batch.batched_type(value.type), value)).results[0]
    return batch.full(value)


def _is_contraction(op: mlir.Operation) -> bool:
    return op.name in CONTRACTIONS


def _contract(
    op: mlir.Operation, inputs: Sequence[mlir.Value], inits: Sequence[mlir.Value], maps: Sequence[mlir.AffineMap]
) -> mlir.Value:
    cast = {"cast": op.attributes["cast"]} if "cast" in op.attributes else {}
    return emit.contract([*inputs, *inits], maps, lambda xs: emit.body_again(op.regions[0].blocks[0], xs)[0], cast)


def _convolution(batch: Batch, op: mlir.Operation) -> mlir.Value:
    """The lanes become part of the batch dimension of the convolution."""
    x, _, out = op.operands
    many = batch.values[x]
    joined = _joined(many)
    init = _repeated(out, joined.type.shape[0]) if out not in batch else None
    init = _joined(_init(batch, out)) if init is None else init
    copy = clone_with(op, {})
    copy.operands[0], copy.operands[2] = joined, init
    type_ = init.type
    result = emit.create(op.name, list(copy.operands), [type_], {n: op.attributes[n] for n in op.attributes}, regions=1)
    copy.regions[0].blocks[0].append_to(result.regions[0])
    copy.erase()
    return _parted(result.results[0], batch.batched_type(out.type))


def _repeated(init: mlir.Value, count: int) -> mlir.Value | None:
    """A value that is equal for all images, such as a bias, for another batch size; None for other values."""
    op = defining_op(init)
    if op is None or op.name != "linalg.generic":
        return None
    s = Structured.of(op)
    alike = not any(0 in dims_of(read.map) for read in s.inputs)
    if s.reduces or not alike or len(s.inits) > 1 or list(s.argument(len(s.inputs)).uses):
        return None
    if s.out_map != mlir.AffineMap.get_identity(len(s.sizes)):
        return None
    if any(op.name in ("linalg.index", "tensor.extract") or op.regions for op in s.body):
        return None
    type_ = mlir.RankedTensorType.get([count, *init.type.shape[1:]], init.type.element_type)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        environment = dict(zip(s.block.arguments, xs))
        s.copy_body(environment)
        return [environment.get(y, y) for y in s.yields]

    maps = [read.map for read in (*s.inputs, *s.inits)]
    new = emit.generic([read.tensor for read in s.inputs], [emit.empty(type_)], maps, ["parallel"] * len(s.sizes), body)
    return new.results[0]


def _groups(rank: int) -> mlir.ArrayAttr:
    i64 = mlir.IntegerType.get_signless(64)
    numbers = [[0, 1], *([d] for d in range(2, rank))]
    return mlir.ArrayAttr.get([mlir.ArrayAttr.get([mlir.IntegerAttr.get(i64, d) for d in g]) for g in numbers])


def _joined(value: mlir.Value) -> mlir.Value:
    """The tensor with its first two dimensions collapsed."""
    shape = list(value.type.shape)
    type_ = mlir.RankedTensorType.get([shape[0] * shape[1], *shape[2:]], value.type.element_type)
    return emit.value("tensor.collapse_shape", [value], type_, reassociation=_groups(len(shape)))


def _parted(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """The tensor with its first dimension expanded into two."""
    attributes = {
        "reassociation": _groups(len(type_.shape)),
        "static_output_shape": mlir.DenseI64ArrayAttr.get(list(type_.shape)),
    }
    return emit.value("tensor.expand_shape", [value], type_, **attributes)
