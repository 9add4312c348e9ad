"""Build operations on one tile of some dimensions: on slices of tensors from outside, and on each other's tiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.dimensions import SLICES, Member, Part, Parts, indices_read, kept_dims, slice_numbers
from mlirml.analysis.traits import RESHAPES
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir


@dataclass
class Tile:
    """One tile: `lengths[axis]` of `sizes[axis]` indices of each dimension, from `starts[axis]` on.

    If `is_last`, tensors have the dimension last, so that vectors run along it, except for those in `fixed`. `sums` has
    the inits of results without the dimension, and `into` the current contents of tensors from outside. `replaced`
    builds values of bodies in another way, from the indices of parts.
    """

    sizes: Sequence[int]
    lengths: Sequence[int]
    starts: Sequence[mlir.Value | int]
    is_last: bool = False
    fixed: Collection[mlir.Value] = ()
    sums: Mapping[mlir.Value, mlir.Value] = field(default_factory=dict)
    into: Mapping[mlir.Value, mlir.Value] = field(default_factory=dict)
    values: dict[tuple[mlir.Value, Parts], mlir.Value] = field(default_factory=dict)
    replaced: Mapping[mlir.Value, Callable[[Callable[[Part], mlir.Value]], mlir.Value]] = field(default_factory=dict)

    def add(self, member: Member) -> None:
        """Build an operation at the insertion point, after those that it depends on."""
        with member.op.location:
            if member.op.name in SLICES:
                results = [self._slice(member)]
            elif member.op.name in RESHAPES:
                results = [self._reshape(member)]
            else:
                results = self._structured(member)
        self.values.update(zip(member.results.items(), results, strict=True))

    def of(self, value: mlir.Value, parts: Parts) -> mlir.Value:
        """The tile of a tensor: computed before, or a slice of a tensor from outside."""
        if not any(parts):
            return self.values.get((value, parts), value)
        found = self.values.get((value, parts))
        if found is None:
            found = self.values[value, parts] = self._outside(value, parts)
        return found

    def insert(self, value: mlir.Value, parts: Parts, into: mlir.Value) -> mlir.Value:
        """A tensor with the tile of a `fixed` value stored in it."""
        return emit.insert_slice(self.values[value, parts], into, [self._offset(part) for part in parts])

    def _outside(self, value: mlir.Value, parts: Parts) -> mlir.Value:
        new = self._new(value, self._type(value, parts))
        if new is not None:
            return new
        shape = self._shape(value, parts)
        offsets = [self._offset(part) for part in parts]
        tile = emit.extract_slice(self.into.get(value, value), offsets, shape)
        return _relaid(tile, range(len(parts)), self._layout(value, parts))

    def _new(self, value: mlir.Value, tile_type: mlir.Type) -> mlir.Value | None:
        """The tile of an empty tensor, or of one that is filled with a scalar; None for others."""
        op = defining_op(value)
        if op is not None and op.name == "tensor.empty":
            return emit.empty(tile_type)
        if op is not None and op.name == "linalg.fill":
            return emit.fill(op.operands[0], emit.empty(tile_type)).results[0]
        return None

    def _offset(self, part: Part | None) -> mlir.Value | int:
        """The first index of the tile in a dim."""
        if part is None or (self.lengths[part.axis] == self.sizes[part.axis] and not part.single):
            return 0
        start = self.starts[part.axis]
        if part.step > 1:
            start = emit.same_type("arith.divui", start, emit.index(part.step))
        if part.single and part.step * part.size < self.sizes[part.axis]:
            start = emit.same_type("arith.remui", start, emit.index(part.size))
        return start

    def _layout(self, value: mlir.Value, parts: Parts) -> Sequence[int]:
        """The dims of a tensor in the order in which its tile has them."""
        if not self.is_last or value in self.fixed:
            return range(len(parts))
        return sorted(range(len(parts)), key=lambda d: parts[d] is not None)

    def _shape(self, value: mlir.Value, parts: Parts) -> list[int]:
        sizes = zip(value.type.shape, parts, strict=True)
        return [size if part is None else self.lengths[part.axis] for size, part in sizes]

    def _type(self, value: mlir.Value, parts: Parts, layout: Sequence[int] | None = None) -> mlir.Type:
        shape = self._shape(value, parts)
        order = self._layout(value, parts) if layout is None else layout
        return mlir.RankedTensorType.get([shape[d] for d in order], value.type.element_type)

    def _init(self, value: mlir.Value, parts: Parts, result: mlir.Value) -> mlir.Value:
        """The tile of an init, in the layout of the result."""
        tile = self.of(value, parts)
        have, want = list(self._layout(value, parts)), list(self._layout(result, parts))
        if have == want:
            return tile
        return self._new(value, self._type(result, parts)) or _relaid(tile, have, want)

    def _slice(self, member: Member) -> mlir.Value:
        """A slice of a tile, or a tile with a slice stored in it."""
        op, result = member.op, member.op.results[0]
        takes = op.name == "tensor.extract_slice"
        whole, whole_parts = (op.operands[0], member.parts[0]) if takes else (result, member.parts[1])
        part, part_parts = (result, member.parts[1]) if takes else (op.operands[0], member.parts[0])
        numbers = slice_numbers(op)
        numbers[1] = [n if p is None else self.lengths[p.axis] for n, p in zip(numbers[1], whole_parts, strict=True)]
        layout, kept = self._layout(whole, whole_parts), kept_dims(op, part.type.shape)
        here, own = [kept.index(d) for d in layout if d in kept], self._layout(part, part_parts)
        fields = [[given[d] for d in layout] for given in numbers]
        if takes:
            tile = self.of(whole, whole_parts)
            found = emit.slice_op(op.name, [tile], self._type(part, part_parts, here), *fields)
            return _relaid(found, here, own)
        source = _relaid(self.of(part, part_parts), own, here)
        into = self._init(op.operands[1], whole_parts, result)
        return emit.slice_op(op.name, [source, into], into.type, *fields)

    def _reshape(self, member: Member) -> mlir.Value:
        """A reshape of a tile."""
        op, (given, parts) = member.op, member.parts
        source, result = op.operands[0], op.results[0]
        tile = _relaid(self.of(source, given), self._layout(source, given), range(len(given)))
        tile_type = self._type(result, parts, range(len(parts)))
        attributes = {"reassociation": op.attributes["reassociation"]}
        if op.name == "tensor.expand_shape":
            attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(tile_type.shape))
        found = emit.create(op.name, [tile], [tile_type], attributes).results[0]
        return _relaid(found, range(len(parts)), self._layout(result, parts))

    def _structured(self, member: Member) -> list[mlir.Value]:
        """A structured operation on tiles."""
        op, inputs = member.op, member.inputs
        operands = []
        for number, value in enumerate(op.operands):
            if number >= inputs and op.results[number - inputs] in self.sums:
                operands.append(self.sums[op.results[number - inputs]])
            elif number >= inputs and any(member.parts[number]):
                operands.append(self._init(value, member.parts[number], op.results[number - inputs]))
            else:
                operands.append(self.of(value, member.parts[number]))
        loops: Sequence[int] = range(member.maps[0].n_dims)
        if self.is_last:
            loops = sorted(loops, key=lambda d: d in member.loops)
        name, attributes = op.name, {each: op.attributes[each] for each in op.attributes}
        layouts = [
            self._layout(value, parts)
            for value, parts in zip([*list(op.operands)[:inputs], *op.results], member.parts[: len(op.operands)])
        ]
        if name != "linalg.fill" and any(list(order) != sorted(order) for order in (loops, *layouts)):
            name = "linalg.contract" if op.name in CONTRACTIONS else "linalg.generic"
            if op.name not in ("linalg.generic", "linalg.contract"):
                attributes = {"operandSegmentSizes": emit.segments(inputs, len(op.results))}
            attributes |= _reordered(member, loops, layouts)
        starts = {d: self._offset(member.loops[d]) for d in sorted(indices_read(op)) if d in member.loops}
        shift = {d: emit.index(s) if isinstance(s, int) else s for d, s in starts.items()}
        new = emit.create(name, operands, [v.type for v in operands[inputs:]], attributes, regions=1)
        body = op.regions[0].blocks[0]
        inner = emit.block(new, [argument.type for argument in body.arguments])
        environment: dict[mlir.Value, mlir.Value] = dict(zip(body.arguments, inner.arguments, strict=True))
        with mlir.InsertionPoint(inner):
            self._replace(list(body.arguments), member, loops, environment)
            for scalar in block_ops(body):
                emit.body_op(scalar, environment)
                if scalar.name == "linalg.index":
                    self._index(scalar, environment, loops, shift)
                self._replace(list(scalar.results), member, loops, environment)
        return list(new.results)

    def _replace(
        self,
        values: Sequence[mlir.Value],
        member: Member,
        loops: Sequence[int],
        environment: dict[mlir.Value, mlir.Value],
    ) -> None:
        """Build those of the values in another way that are to be."""

        def index(part: Part) -> mlir.Value:
            d = next(d for d, own in member.loops.items() if own == part)
            found = emit.value("linalg.index", [], mlir.IndexType.get(), dim=emit.i64(list(loops).index(d)))
            start = self._offset(part)
            return emit.same_type("arith.addi", found, emit.index(start) if isinstance(start, int) else start)

        for value in values:
            if value in self.replaced:
                environment[value] = self.replaced[value](index)

    def _index(
        self,
        op: mlir.Operation,
        environment: dict[mlir.Value, mlir.Value],
        loops: Sequence[int],
        shift: Mapping[int, mlir.Value],
    ) -> None:
        """Let the index of a loop be that of the loop in its new position, and count from the start of the tile."""
        d, index = op.attributes["dim"].value, environment[op.results[0]]
        index.owner.attributes["dim"] = emit.i64(list(loops).index(d))
        if d in shift:
            with op.location:
                environment[op.results[0]] = emit.same_type("arith.addi", index, shift[d])


def _reordered(member: Member, loops: Sequence[int], layouts: Sequence[Sequence[int]]) -> dict[str, mlir.Attribute]:
    """The maps of a member whose loops and operands are in another order, and its iterator types."""
    fresh = {old: mlir.AffineDimExpr.get(new) for new, old in enumerate(loops)}
    maps = []
    for map_, layout in zip(member.maps, layouts, strict=True):
        results = [fresh[e.position] if isinstance(e, mlir.AffineDimExpr) else e for e in map_.results]
        maps.append(mlir.AffineMap.get(len(loops), 0, [results[d] for d in layout] if layout else results))
    found: dict[str, mlir.Attribute] = {
        "indexing_maps": mlir.ArrayAttr.get([mlir.AffineMapAttr.get(map_) for map_ in maps])
    }
    if member.op.name in CONTRACTIONS:
        return found
    if "iterator_types" in member.op.attributes:
        known = list(member.op.attributes["iterator_types"])
        return found | {"iterator_types": mlir.ArrayAttr.get([known[d] for d in loops])}
    kept = {e.position for e in member.maps[-1].results if isinstance(e, mlir.AffineDimExpr)}
    return found | {"iterator_types": emit.iterator_types(["parallel" if d in kept else "reduction" for d in loops])}


def _relaid(tile: mlir.Value, have: Sequence[int], want: Sequence[int]) -> mlir.Value:
    """A tile with the dims of a tensor in the order `want` rather than `have`."""
    order = [list(have).index(d) for d in want]
    if order == sorted(order):
        return tile
    result_type = mlir.RankedTensorType.get([tile.type.shape[d] for d in order], tile.type.element_type)
    attributes = {"permutation": mlir.DenseI64ArrayAttr.get(order)}
    op = emit.create("linalg.transpose", [tile, emit.empty(result_type)], [result_type], attributes, regions=1)
    body = emit.block(op, [result_type.element_type, result_type.element_type])
    with mlir.InsertionPoint(body):
        emit.create("linalg.yield", [body.arguments[0]])
    return op.results[0]
