"""Tile a cluster by a loop over blocks of its dimension."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.pipelines.tensor.blocking.cluster import SLICES, Cluster, Member, index_of, numbers_of

_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()


class Blocks:
    """One iteration: the members on a block of `length` elements of the dimension.

    The tensors of an iteration have the dimension last, so that vectors run along it, unless it must keep its position.
    `written` are the tensors from outside that results overwrite, and `into` their values in an iteration.
    """

    def __init__(self, cluster: Cluster, length: int, last: bool = True) -> None:
        self.cluster = cluster
        self.length = length
        self.last = last
        self.into: dict[mlir.Value, mlir.Value] = {}
        self.escaping = cluster.escaping()
        self.written = {value: init for value in self.escaping if (init := _written(cluster, value)) is not None}
        self.values: dict[mlir.Value, mlir.Value] = {}

    def moved(self, value: mlir.Value) -> bool:
        """True if the dimension is moved to the end."""
        here = self.cluster.carried[value] == len(value.type.shape) - 1
        return self.last and not here and value not in self.escaping

    def block_type(self, value: mlir.Value) -> mlir.Type:
        """The type of a block of a tensor."""
        axis, shape = self.cluster.carried[value], list(value.type.shape)
        shape[axis] = self.length
        if self.moved(value):
            shape.append(shape.pop(axis))
        return mlir.RankedTensorType.get(shape, value.type.element_type)

    def write(
        self, start: mlir.Value | int, reduced: dict[mlir.Value, mlir.Value], whole: dict[mlir.Value, mlir.Value]
    ) -> tuple[list[mlir.Value], list[mlir.Value]]:
        """Build an iteration at the insertion point; returns the new sums, and the tensors with their blocks stored."""
        self.values = {}
        self.into = {self.written[value]: into for value, into in whole.items() if value in self.written}
        for op, member in self.ordered():
            with op.location:
                self.build_member(member, start, reduced)
        sums = [self.values[value] for value in reduced]
        tensors = [self.put(self.values[value], value, into, start) for value, into in whole.items()]
        return sums, tensors

    def ordered(self) -> list[tuple[mlir.Operation, Member]]:
        """The members in program order."""
        members = self.cluster.members
        block = next(iter(members)).block
        return [(op, members[op]) for op in block_ops(block) if op in members]

    def build_member(self, member: Member, start: mlir.Value | int, reduced: dict[mlir.Value, mlir.Value]) -> None:
        """Build a member on the block."""
        op, first = member.op, member.inputs
        if op.name in SLICES:
            self.values[op.results[0]] = self.sliced(member, start)
            return
        operands = []
        for number, value in enumerate(op.operands):
            if value in self.cluster.carried:
                part = self.block_of(value, start)
                if number >= first:
                    part = self.laid_out(part, value, op.results[number - first])
                operands.append(part)
            elif number >= first and op.results[number - first] in reduced:
                operands.append(reduced[op.results[number - first]])
            else:
                operands.append(value)
        results = [x.type for x in operands[first:]]
        attributes = {name: op.attributes[name] for name in op.attributes}
        name = op.name
        if name not in ("linalg.fill", "linalg.generic", "linalg.contract"):
            attributes = {"operandSegmentSizes": emit.segments(first, len(results))}
        if op.name != "linalg.fill":
            name = "linalg.contract" if op.name in CONTRACTIONS else "linalg.generic"
            attributes |= self.maps(member)
        copy = op.clone().operation
        new = emit.create(name, operands, results, attributes, regions=1)
        for inner in block_ops(copy.regions[0].blocks[0]):
            if self.last and inner.name == "linalg.index" and index_of(inner) > member.loop:
                inner.attributes["dim"] = emit.i64(index_of(inner) - 1)
        copy.regions[0].blocks[0].append_to(new.regions[0])
        copy.erase()
        self.values.update(zip(op.results, new.results))

    def sliced(self, member: Member, start: mlir.Value | int) -> mlir.Value:
        """A slice of a block, or a block with a slice overwritten."""
        op, result = member.op, member.op.results[0]
        takes = op.name == "tensor.extract_slice"
        whole, part = (op.operands[0], result) if takes else (result, op.operands[0])
        place = self.cluster.carried[whole]
        numbers = numbers_of(op)
        numbers[1][place] = self.length
        if self.moved(whole):
            for given in numbers:
                given.append(given.pop(place))
        attributes = {
            f"static_{name}": mlir.DenseI64ArrayAttr.get(given)
            for name, given in zip(("offsets", "sizes", "strides"), numbers)
        }
        attributes["operandSegmentSizes"] = emit.segments(*[1] * len(op.operands), 0, 0, 0)
        there, rank = self.cluster.carried[part], len(part.type.shape)
        last = self.moved(whole) or place == len(whole.type.shape) - 1
        shape = list(part.type.shape)
        shape[there] = self.length
        order = [*(d for d in range(rank) if d != there), there] if last else list(range(rank))
        result_type = mlir.RankedTensorType.get([shape[d] for d in order], part.type.element_type)
        own = [*(d for d in range(rank) if d != there), there] if self.moved(part) else list(range(rank))
        if takes:
            found = emit.value(op.name, [self.block_of(whole, start)], result_type, **attributes)
            return _transposed(found, self.block_type(part), [order.index(d) for d in own]) if order != own else found
        source = self.block_of(part, start)
        if order != own:
            source = _transposed(source, result_type, [own.index(d) for d in order])
        into = self.laid_out(self.block_of(op.operands[1], start), op.operands[1], result)
        return emit.value(op.name, [source, into], into.type, **attributes)

    def laid_out(self, part: mlir.Value, value: mlir.Value, result: mlir.Value) -> mlir.Value:
        """The block of an init, with the dimension at the position that the result has."""
        if self.moved(value) == self.moved(result):
            return part
        result_type = self.block_type(result)
        op = defining_op(value)
        if op is not None and op.name == "tensor.empty":
            return emit.empty(result_type)
        if op is not None and op.name == "linalg.fill":
            return emit.fill(op.operands[0], emit.empty(result_type)).results[0]
        axis, rank = self.cluster.carried[value], len(result_type.shape)
        order = [*(d for d in range(rank) if d != axis), axis]
        return _transposed(part, result_type, order if self.moved(result) else [order.index(d) for d in range(rank)])

    def maps(self, member: Member) -> dict[str, mlir.Attribute]:
        """The maps of a member's operands in their new layout, with its loop innermost."""
        loops = member.maps[0].n_dims
        order = [*(d for d in range(loops) if d != member.loop), member.loop] if self.last else list(range(loops))
        fresh = {old: mlir.AffineDimExpr.get(new) for new, old in enumerate(order)}
        maps = []
        values = [*list(member.op.operands)[: member.inputs], *member.op.results]
        for number, map_ in enumerate(member.maps):
            results = [fresh[e.position] if isinstance(e, mlir.AffineDimExpr) else e for e in map_.results]
            value = values[number]
            if value in self.cluster.carried and self.moved(value):
                results.append(results.pop(self.cluster.carried[value]))
            maps.append(mlir.AffineMapAttr.get(mlir.AffineMap.get(loops, 0, results)))
        found: dict[str, mlir.Attribute] = {"indexing_maps": mlir.ArrayAttr.get(maps)}
        if member.op.name not in CONTRACTIONS:
            kept = {e.position for e in member.maps[-1].results if isinstance(e, mlir.AffineDimExpr)}
            iterator_types = ["parallel" if d in kept else "reduction" for d in order]
            known = member.op.attributes
            given = "iterator_types" in known
            found["iterator_types"] = (
                mlir.ArrayAttr.get([list(known["iterator_types"])[d] for d in order])
                if given
                else emit.iterator_types(iterator_types)
            )
        return found

    def block_of(self, value: mlir.Value, start: mlir.Value | int) -> mlir.Value:
        """The block of a tensor: computed by a member, or a slice of a tensor from outside."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self.taken(value, start)
        return found

    def taken(self, value: mlir.Value, start: mlir.Value | int) -> mlir.Value:
        op = defining_op(value)
        if op is not None and op.name == "tensor.empty":
            return emit.empty(self.block_type(value))
        axis, shape = self.cluster.carried[value], list(value.type.shape)
        shape[axis] = self.length
        slice_type = mlir.RankedTensorType.get(shape, value.type.element_type)
        part = _slice("tensor.extract_slice", [self.into.get(value, value)], slice_type, start, axis, shape)
        if not self.moved(value):
            return part
        order = [*(d for d in range(len(shape)) if d != axis), axis]
        return _transposed(part, self.block_type(value), order)

    def put(self, part: mlir.Value, value: mlir.Value, into: mlir.Value, start: mlir.Value | int) -> mlir.Value:
        """A tensor with a block of it overwritten."""
        axis = self.cluster.carried[value]
        return _slice("tensor.insert_slice", [part, into], into.type, start, axis, part.type.shape)


def _transposed(value: mlir.Value, result_type: mlir.Type, order: Sequence[int]) -> mlir.Value:
    permutation = mlir.DenseI64ArrayAttr.get(list(order))
    operands = [value, emit.empty(result_type)]
    op = emit.create("linalg.transpose", operands, [result_type], {"permutation": permutation}, regions=1)
    body = emit.block(op, [result_type.element_type, result_type.element_type])
    with mlir.InsertionPoint(body):
        emit.create("linalg.yield", [body.arguments[0]])
    return op.results[0]


def _slice(
    name: str,
    operands: Sequence[mlir.Value],
    result_type: mlir.Type,
    start: mlir.Value | int,
    axis: int,
    sizes: Sequence[int],
) -> mlir.Value:
    offsets = [0] * len(sizes)
    offsets[axis] = start if isinstance(start, int) else _DYNAMIC
    given = [] if isinstance(start, int) else [start]
    attributes = {
        "static_offsets": mlir.DenseI64ArrayAttr.get(offsets),
        "static_sizes": mlir.DenseI64ArrayAttr.get(list(sizes)),
        "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(sizes)),
        "operandSegmentSizes": emit.segments(*[1] * len(operands), len(given), 0, 0),
    }
    return emit.value(name, [*operands, *given], result_type, **attributes)


def build_blocks(cluster: Cluster, length: int, last: bool = True, rest_apart: bool = False) -> list[mlir.Operation]:
    """Replace the members by the loop, followed by the remainder after the last full block.

    The remainder is a loop, too, if `rest_apart`.
    """
    blocks = Blocks(cluster, length, last)
    members = blocks.ordered()
    end = members[-1][0]
    following = block_ops(end.block)[block_ops(end.block).index(end) + 1]
    reduced, escaping = cluster.reduced(), blocks.escaping
    full = cluster.size - cluster.size % length
    with members[0][0].location, mlir.InsertionPoint(following):
        inits = [_init(cluster, value) for value in reduced]
        inits += [blocks.written.get(value) or emit.empty(value.type) for value in escaping]
        bounds = [emit.index(0), emit.index(full), emit.index(length)]

        def body(start: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            sums, tensors = blocks.write(
                start, dict(zip(reduced, carried)), dict(zip(escaping, carried[len(reduced) :]))
            )
            return [*sums, *tensors]

        results = emit.for_loop(bounds[0], bounds[1], bounds[2], body, inits)
        loops: list[mlir.Operation] = [results[0].owner.operation]
        if full < cluster.size:
            rest = Blocks(cluster, cluster.size - full, last)
            rest.written = blocks.written

            def remainder(_: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
                sums, tensors = rest.write(
                    full, dict(zip(reduced, carried)), dict(zip(escaping, carried[len(reduced) :]))
                )
                return [*sums, *tensors]

            if rest_apart:
                results = emit.for_loop(emit.index(0), emit.index(1), emit.index(1), remainder, results)
                loops.append(results[0].owner.operation)
            else:
                results = remainder(bounds[0], results)
    _move_after(cluster, end, following)
    replaced = [op for op, _ in reversed(members) if not cluster.recomputed.intersection(op.results)]
    for old, new in zip([*reduced, *escaping], results):
        for use in list(old.uses):
            owner = use.owner.operation if hasattr(use.owner, "operation") else use.owner
            if owner not in cluster.members:
                owner.operands[use.operand_number] = new
    for op in replaced:
        op.erase()
    return loops


def _init(cluster: Cluster, value: mlir.Value) -> mlir.Value:
    """The init of a sum."""
    op = value.owner.operation
    return op.operands[cluster.members[op].inputs + list(op.results).index(value)]


def _written(cluster: Cluster, value: mlir.Value) -> mlir.Value | None:
    """The tensor from outside that only a member uses, as the init of its result."""
    op = value.owner.operation
    if op.name in SLICES:
        return None
    init = op.operands[cluster.members[op].inputs + list(op.results).index(value)]
    outside = init in cluster.carried and not cluster.made(init)
    source = defining_op(init)
    if not outside or (source is not None and source.name == "tensor.empty") or len(list(init.uses)) != 1:
        return None
    return init


def _move_after(cluster: Cluster, last: mlir.Operation, end: mlir.Operation) -> None:
    """Move operations before the last member that depend on results of the loop after it, in their order."""
    ops = block_ops(last.block)
    for op in ops[: ops.index(last)]:
        if op in cluster.late:
            op.move_before(end)
