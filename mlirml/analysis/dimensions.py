"""Tiled dimensions followed through operations: which dims of operands and results go with a loop, a slice, a reshape.

A loop of a structured operation is one dimension of all operands that it indexes, whether it is kept or reduced. Static
slices keep the dimensions that they take whole, and reshapes split and merge them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import RESHAPES
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch
from mlirml.ir.bindings import block_ops, mlir, operations

SLICES = ("tensor.extract_slice", "tensor.insert_slice")


@dataclass(frozen=True)
class Part:
    """A dim of a tensor that is the tiled dimension `axis`, or a part of it: `i // step % size` for its index `i`.

    Reshapes split and merge it only if tiles have a `single` index of it.
    """

    axis: int
    size: int
    step: int = 1
    single: bool = False


Parts: TypeAlias = "tuple[Part | None, ...]"
"""For each dim of a tensor its part of a tiled dimension; None for a dim that is not tiled."""


@dataclass(frozen=True)
class Member:
    """An operation, with the parts of its operands and then of its results; `()` for scalars.

    A structured operation has indexing maps, and the parts that are its loops.
    """

    op: mlir.Operation
    parts: tuple[Parts, ...]
    maps: tuple[mlir.AffineMap, ...] = ()
    loops: Mapping[int, Part] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """The number of operands that are inputs; the others are inits."""
        return len(self.op.operands) - len(self.op.results)

    @property
    def results(self) -> dict[mlir.Value, Parts]:
        """The parts of the results."""
        return dict(zip(self.op.results, self.parts[len(self.op.operands) :], strict=True))


def follow(op: mlir.Operation, known: Mapping[int, Parts]) -> Member:
    """The parts of an operation, from those of operands and results at `known` positions, operands first.

    Raises `NoMatch` if a tile of the results is not computed from tiles of the operands.
    """
    if op.name in SLICES:
        return _slice(op, known)
    if op.name in RESHAPES:
        return _reshape(op, known)
    if not op.name.startswith("linalg.") or not op.results or op.name == "linalg.map":
        raise NoMatch(f"`{op.name}` is not tiled")
    loops: dict[int, Part | None] = {}
    maps = indexing_maps(op)
    for position, parts in known.items():
        map_ = maps[position if position < len(op.operands) else position - len(op.results)]
        for d, part in zip(loops_of(map_), parts, strict=True):
            if d < 0 and part is not None:
                raise NoMatch("one index of the dimension is read only")
            if d >= 0 and loops.setdefault(d, part) != part:
                raise NoMatch("a loop iterates over the dimension and over another one")
    return along(op, {d: part for d, part in loops.items() if part is not None})


def along(op: mlir.Operation, loops: Mapping[int, Part]) -> Member:
    """A structured operation some of whose loops are tiled."""
    maps = tuple(indexing_maps(op))
    results = [value.type for value in op.results]
    if not all(isinstance(t, mlir.RankedTensorType) and t.has_static_shape for t in results):
        raise NoMatch("a result of dynamic shape")
    if len(set(loops.values())) < len(loops):
        raise NoMatch("two loops iterate over the dimension")
    dims = [loops_of(map_) for map_ in maps]
    if any(own.count(d) > 1 for own in dims for d in loops):
        raise NoMatch("a tensor has the dimension twice")
    indices_read(op)
    parts = [tuple(loops.get(d) for d in own) for own in dims]
    return Member(op, (*parts, *parts[len(op.operands) - len(results) :]), maps, loops)


def loops_of(affine_map: mlir.AffineMap) -> list[int]:
    """The loops that index the dims of a tensor; -1 for a constant index. Raises `NoMatch` for other expressions."""
    dims = []
    for expression in affine_map.results:
        if isinstance(expression, mlir.AffineDimExpr):
            dims.append(expression.position)
        elif isinstance(expression, mlir.AffineConstantExpr):
            dims.append(-1)
        else:
            raise NoMatch("an indexing map is no projection")
    return dims


def indices_read(op: mlir.Operation) -> set[int]:
    """The loops whose index the body of a structured operation reads; `NoMatch` if it does so in a nested region."""
    found = set[int]()
    for inner in block_ops(op.regions[0].blocks[0]):
        if inner.name == "linalg.index":
            found.add(inner.attributes["dim"].value)
        elif len(inner.regions) and any(nested.name == "linalg.index" for nested in operations(inner)):
            raise NoMatch("a nested region reads an index")
    return found


def _slice(op: mlir.Operation, known: Mapping[int, Parts]) -> Member:
    takes = op.name == "tensor.extract_slice"
    if len(op.operands) != (1 if takes else 2):
        raise NoMatch("a slice at a dynamic offset")
    whole, part = (op.operands[0], op.results[0]) if takes else (op.results[0], op.operands[0])
    kept = kept_dims(op, part.type.shape)
    position, parts = next(iter(known.items()))
    if position == int(takes):  # the part of the tensor, not the whole
        parts = tuple(parts[kept.index(d)] if d in kept else None for d in range(whole.type.rank))
    for d, (each, *field_) in enumerate(zip(parts, *slice_numbers(op), strict=True)):
        if each is not None and (d not in kept or field_ != [0, whole.type.shape[d], 1]):
            raise NoMatch("a slice takes some of the dimension")
    inner = tuple(parts[d] for d in kept)
    return Member(op, (parts, inner) if takes else (inner, parts, parts))


def slice_numbers(op: mlir.Operation) -> list[list[int]]:
    """The static offsets, sizes and strides of a slice."""
    return [list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")]


def kept_dims(op: mlir.Operation, part: Sequence[int]) -> tuple[int, ...]:
    """For each dim of a slice of shape `part` the one of the tensor: some of size 1 may be dropped."""
    kept: list[int] = []
    for dim, size in enumerate(slice_numbers(op)[1]):
        if len(kept) < len(part) and part[len(kept)] == size:
            kept.append(dim)
        elif size != 1:
            raise NoMatch("which dims a slice drops is not clear")
    if len(kept) < len(part):
        raise NoMatch("which dims a slice drops is not clear")
    return tuple(kept)


def _reshape(op: mlir.Operation, known: Mapping[int, Parts]) -> Member:
    expands = op.name == "tensor.expand_shape"
    wide = op.results[0] if expands else op.operands[0]
    if len(op.operands) > 1 or not wide.type.has_static_shape:
        raise NoMatch("a reshape of dynamic shape")
    groups = [[d.value for d in group] for group in op.attributes["reassociation"]]
    for position, parts in known.items():
        if (position == 0) is expands:
            narrow, parts = parts, _expanded(parts, groups, list(wide.type.shape))
        else:
            narrow = _collapsed(parts, groups, list(wide.type.shape))
        return Member(op, (narrow, parts) if expands else (parts, narrow))
    raise NoMatch("no dimension")


def _expanded(parts: Parts, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Parts:
    found: list[Part | None] = [None] * len(shape)
    for part, group in zip(parts, groups, strict=True):
        wide = [d for d in group if shape[d] != 1]
        if part is None:
            continue
        if len(wide) > 1 and not part.single:
            raise NoMatch("the dimension is split")
        step = part.step
        for d in reversed(wide):
            found[d] = Part(part.axis, shape[d], step, part.single)
            step *= shape[d]
    return tuple(found)


def _collapsed(parts: Parts, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Parts:
    found: list[Part | None] = []
    for group in groups:
        inner = [parts[d] for d in group if shape[d] != 1]
        tiled = [part for part in inner if part is not None]
        if len(tiled) > 1 or (tiled and len(inner) > 1):
            steps = [part.step * part.size for part in tiled[1:]]
            if len(tiled) < len(inner) or not all(part.single for part in tiled):
                raise NoMatch("the dimension is merged with another one")
            if len({part.axis for part in tiled}) > 1 or [part.step for part in tiled[:-1]] != steps:
                raise NoMatch("parts are merged in another order")
            last = tiled[-1]
            found.append(Part(last.axis, math.prod(part.size for part in tiled), last.step, True))
        else:
            found.append(tiled[0] if tiled else None)
    return tuple(found)
