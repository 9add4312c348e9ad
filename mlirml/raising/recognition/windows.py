"""The access of a window to its input: the loops that index each dimension, and the padding that an `if` implies.

Before, in a body over n, f, y, x, c, i, j:
    %row = y + i - 1, %column = x + j - 1
    %inside = 0 <= %row and %row < 56 and 0 <= %column and %column < 56
    %v = tensor.extract %image[%n, %c, max(min(%row, 55), 0), max(min(%column, 55), 0)]
    %s = arith.select %inside, out + %v * %w, out
After:
    %p = tensor.pad %image low[0, 0, 1, 1] high[0, 0, 1, 1] { tensor.yield 0 }     // read at [n, c, y + i, x + j]
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.affine import linear_of
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.linear import read_clamped, read_halfspace
from mlirml.raising.recognition.nest import Nest
from mlirml.raising.recognition.terms import Mask


@dataclass(frozen=True)
class Access:
    """An element of a tensor: `indices` by dimension. `number` is its operand in the nest, None for `source`."""

    source: mlir.Value
    number: int | None
    indices: tuple[Linear, ...]
    casts: tuple[mlir.Operation, ...]
    assumed: tuple[Mask, ...] = ()
    """Conditions under which these are the indices."""

    @property
    def is_sliding(self) -> bool:
        return any(len(index.factors) > 1 for index in self.indices)


@dataclass(frozen=True)
class Window:
    """A padded access: the padding before and after each dimension, and the slice that is indexed."""

    access: Access
    low: tuple[int, ...]
    high: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def terms(self) -> list[dict[int, int]]:
        """The loops of each dimension with their factors, once backward ones are reversed."""
        return [{d: abs(factor) for d, factor in index.factors.items()} for index in self.access.indices]

    @property
    def backward(self) -> frozenset[int]:
        """The loops that index a dimension backward."""
        return frozenset(d for index in self.access.indices for d, factor in index.factors.items() if factor < 0)


def read_access(nest: Nest, value: mlir.Value, casts: Sequence[mlir.Operation] = ()) -> Access:
    """The access of an element of an operand, or of one that the body extracts; raises `NoMatch`."""
    casts = tuple(casts)
    op = nest.inner(value)
    if op is not None and op.name in ("arith.extf", "arith.extsi"):
        return read_access(nest, op.operands[0], (op, *casts))
    number = nest.number(value)
    if number is not None and number < len(nest.inputs):
        indices = tuple(_linear(expression) for expression in nest.maps[number].results)
        return Access(nest.inputs[number], number, indices, casts)
    if op is not None and op.name == "tensor.extract" and nest.inner(op.operands[0]) is None:
        source, *operands = op.operands
        assumed: list[Mask] = []
        indices = tuple(read_clamped(nest, index, assumed) for index in operands)
        return Access(source, None, indices, casts, tuple(assumed))
    raise NoMatch("no element of a tensor")


def _linear(expression: mlir.AffineExpr) -> Linear:
    found = linear_of(expression)
    if found is None:
        raise NoMatch(f"{expression} is not linear")
    return found


def match_window(nest: Nest, access: Access, masks: Sequence[Mask]) -> Window:
    """The padding that the masks imply; raises `NoMatch` if they imply anything else."""
    if not nest.is_static(range(nest.rank)) or not mlir.ShapedType(access.source.type).has_static_shape:
        raise NoMatch("a size is known at run time only")
    shape = list(mlir.ShapedType(access.source.type).shape)
    spans = {d: (0, size - 1) for d, size in enumerate(nest.sizes)}
    inside = [read_halfspace(nest, mask) for mask in masks]
    if any(read_halfspace(nest, mask) not in inside for mask in access.assumed):
        raise NoMatch("an index is another one where a condition does not hold")
    needed = [h for h in inside if (h.range(spans)[0] or 0) < 0]
    low, high, offsets, sizes = [], [], [], []
    for size, index in zip(shape, access.indices, strict=True):
        if any(factor < 0 and not nest.reduction[d] for d, factor in index.factors.items()):
            raise NoMatch("a dimension is walked backward")
        least, most = index.range(spans)
        assert least is not None and most is not None
        below, above = max(0, -least), max(0, most - (size - 1))
        for missing, halfspace in ((below, index), (above, Linear(size - 1) - index)):
            if missing and halfspace not in needed:
                raise NoMatch("it reads outside of a tensor, or the end of it")
            if missing:
                needed.remove(halfspace)
        low.append(below)
        high.append(above)
        offsets.append(least + below)
        sizes.append(most - least + 1)
    if needed:
        raise NoMatch("a condition that is no padding")
    return Window(access, tuple(low), tuple(high), tuple(offsets), tuple(sizes))


def build_window(window: Window, type_: mlir.Type, filler: mlir.Attribute) -> mlir.Value:
    """The padded tensor in elements of `type_`, sliced to the elements that are read."""
    value = window.access.source
    for cast in window.access.casts:
        value = converted(value, cast)
    if any(window.low) or any(window.high):
        value = padded(value, window.low, window.high, filler)
    if list(mlir.ShapedType(value.type).shape) != list(window.sizes):
        value = emit.extract_slice(value, window.offsets, window.sizes)
    return value


def converted(value: mlir.Value, cast: mlir.Operation) -> mlir.Value:
    """A tensor with its elements converted."""
    type_ = cast.results[0].type
    shape = mlir.ShapedType(value.type).shape
    identity = mlir.AffineMap.get_identity(len(shape))
    out = emit.empty(mlir.RankedTensorType.get(shape, type_))
    return emit.generic(
        [value], [out], [identity] * 2, ["parallel"] * len(shape), lambda b: [emit.value(cast.name, b[:1], type_)]
    ).results[0]


def padded(value: mlir.Value, low: Sequence[int], high: Sequence[int], filler: mlir.Attribute) -> mlir.Value:
    """`tensor.pad` by a constant."""
    type_ = mlir.ShapedType(value.type)
    shape = [a + n + b for a, n, b in zip(low, type_.shape, high, strict=True)]
    attributes = {
        "static_low": mlir.DenseI64ArrayAttr.get(list(low)),
        "static_high": mlir.DenseI64ArrayAttr.get(list(high)),
        "operandSegmentSizes": emit.segments(1, 0, 0),
    }
    scalar = emit.constant(filler)
    op = emit.create(
        "tensor.pad", [value], [mlir.RankedTensorType.get(shape, type_.element_type)], attributes, regions=1
    )
    with mlir.InsertionPoint(emit.block(op, [mlir.IndexType.get()] * len(shape))):
        emit.create("tensor.yield", [scalar])
    return op.results[0]


def without_units(image: mlir.Value, terms: Sequence[dict[int, int]]) -> tuple[mlir.Value, list[dict[int, int]]]:
    """The image and its terms without dimensions that no loop indexes."""
    axes = [axis for axis, pair in enumerate(terms) if not pair]
    return (flattened(image, axes) if axes else image), [pair for pair in terms if pair]


def reshaped(value: mlir.Value, axes: Sequence[int]) -> mlir.Value:
    """The tensor with unit dimensions at the positions `axes` of the result."""
    shape = list(mlir.ShapedType(value.type).shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return _reassociated("tensor.expand_shape", value, shape, _groups(len(shape), axes))


def _groups(rank: int, axes: Sequence[int]) -> list[list[int]]:
    """Reassociation groups: each remaining dimension with the `axes` after it, the first also with those before it."""
    kept = [d for d in range(rank) if d not in axes]
    ends = [*kept[1:], rank]
    return [list(range(0 if number == 0 else d, end)) for number, (d, end) in enumerate(zip(kept, ends, strict=True))]


def flattened(value: mlir.Value, axes: Sequence[int]) -> mlir.Value:
    """The tensor without its unit dimensions `axes`."""
    shape = list(mlir.ShapedType(value.type).shape)
    kept = [size for d, size in enumerate(shape) if d not in axes]
    return _reassociated("tensor.collapse_shape", value, kept, _groups(len(shape), axes))


def _reassociated(name: str, value: mlir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> mlir.Value:
    i64 = mlir.IntegerType.get_signless(64)
    listed = mlir.ArrayAttr.get([mlir.ArrayAttr.get([mlir.IntegerAttr.get(i64, d) for d in group]) for group in groups])
    attributes: dict[str, mlir.Attribute] = {"reassociation": listed}
    if name == "tensor.expand_shape":
        attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(shape))
    result = mlir.RankedTensorType.get(list(shape), mlir.ShapedType(value.type).element_type)
    return emit.create(name, [value], [result], attributes).results[0]
