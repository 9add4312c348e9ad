"""The indices at which an element reads other tensors, computed without building IR."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from mlirml.analysis.structured import groups_of, indexing_maps
from mlirml.analysis.values import depends_on, is_tensor
from mlirml.codegen.gpu.elements import Indices, apply, dims_at, is_structured
from mlirml.codegen.gpu.index import Base, Digit, Form, coordinates, cut_up, flat
from mlirml.ir.bindings import defining_op, mlir, operations

Element: TypeAlias = "tuple[mlir.Value, Indices]"
"""A tensor and the indices of an element."""


class Untraceable(Exception):
    """An element reads one of the tensors at indices that are not known."""


def reads(
    tensor: mlir.Value, indices: Indices, targets: Collection[mlir.Value], seen: set[Element] | None = None
) -> list[Element]:
    """The elements of the targets that an element of `tensor` is computed from; raises `Untraceable`.

    Those in `seen` are left out, which gets the elements of this search.
    """
    seen = set() if seen is None else seen
    if (tensor, tuple(indices)) in seen:
        return []
    seen.add((tensor, tuple(indices)))
    if tensor in targets:
        return [(tensor, indices)]
    op = defining_op(tensor)
    if op is None or not depends_on(tensor, targets):
        return []
    if op.name == "tensor.expand_shape":
        shape = tensor.type.shape
        inner = tuple(flat([indices[d] for d in group], [shape[d] for d in group]) for group in groups_of(op))
        return reads(op.operands[0], inner, targets, seen)
    if op.name == "tensor.collapse_shape":
        shape = op.operands[0].type.shape
        parts: list[Form] = []
        for group, index in zip(groups_of(op), indices, strict=True):
            parts += cut_up(index, [shape[d] for d in group])
        return reads(op.operands[0], tuple(parts), targets, seen)
    if not is_structured(op) or op.name == "linalg.fill":
        raise Untraceable
    dims = dims_at(op, list(op.results).index(tensor), indices)
    if None in dims:
        raise Untraceable
    return reads_of_operands(op, [dim for dim in dims if dim is not None], targets, seen)


def reads_of_operands(
    op: mlir.Operation, point: Sequence[Form], targets: Collection[mlir.Value], seen: set[Element] | None = None
) -> list[Element]:
    """The elements of the targets that the body of a structured operation reads at a point."""
    seen = set() if seen is None else seen
    block = op.regions[0].blocks[0]
    captured = [v for inner in operations(op) for v in inner.operands if inner != op and is_tensor(v)]
    if any(depends_on(value, targets) for value in captured):
        raise Untraceable
    found = []
    for argument, operand, map_ in zip(block.arguments, op.operands, indexing_maps(op), strict=True):
        if is_tensor(operand) and any(True for _ in argument.uses):
            found += reads(operand, tuple(apply(map_, point)), targets, seen)
    return found


def symbols(name: str, shape: Sequence[int]) -> list[Form]:
    """Coordinates in a box as forms of a symbolic base value."""
    total = 1
    for size in shape:
        total *= size
    return coordinates(Digit(Base(name, total)), shape)


def read_indices(tensor: mlir.Value, target: mlir.Value, point: Indices) -> Indices | None:
    """The indices where `tensor` reads `target` at `point`: the same row-major index, or permuted coordinates.

    The result has the indices of `point`; None if there are no such indices, or if it reads other elements too.
    """
    shape = list(tensor.type.shape)
    number = flat(point, target.type.shape)
    candidates = [tuple(cut_up(number, shape))]
    if sorted(shape) == sorted(target.type.shape) and len(shape) > 1:
        own = symbols("own", shape)
        try:
            found = reads(tensor, tuple(own), [target])
        except Untraceable:
            return None
        if found:
            inverse: list[Form | None] = [None] * len(shape)
            for position, index in enumerate(found[0][1]):
                if index in own:
                    inverse[own.index(index)] = point[position]
            filled = [form if form is not None else Form() for form in inverse]
            if all(form is not None or size == 1 for form, size in zip(inverse, shape, strict=True)):
                candidates.insert(0, tuple(filled))
    for candidate in candidates:
        try:
            if all(indices == point for _, indices in reads(tensor, candidate, [target])):
                return candidate
        except Untraceable:
            return None
    return None
