"""A convolution or pooling: its loops by the operands that they index, as a strided problem that a kernel computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mlirml.analysis.affine import linear_of
from mlirml.analysis.reductions import combination_of
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import block_ops, defining_op, linalg, mlir
from mlirml.passes import NoMatch

_ELEMENTS = ("f32", "f64", "i32", "i64")


@dataclass(frozen=True)
class Axis:
    """A loop that does not slide a window: its size, and the strides of input, weight and output along it."""

    size: int
    x: int
    w: int
    out: int


@dataclass(frozen=True)
class Slide:
    """A spatial dimension: `count` positions of a window of `kernel` taps over `size` elements of the input.

    `low` and `high` elements of padding are not in the input's memory. `x` and `w` are strides of input and weight,
    `out` that of the positions.
    """

    count: int
    kernel: int
    stride: int
    dilation: int
    size: int
    x: int
    w: int
    out: int
    low: int = 0
    high: int = 0

    @property
    def padded(self) -> int:
        return self.low + self.size + self.high


@dataclass(frozen=True)
class Problem:
    """`out[plane, filter, position] = combine over channel and taps of x[plane, channel, position * stride + tap] * w`.

    `planes` are loops of batch and groups. `combiner` is the operation without its dialect; `product`: inputs are
    multiplied with weights. There are three spatial dimensions, of size 1 if the operation has fewer.
    """

    element: str
    combiner: str
    product: bool
    planes: tuple[Axis, ...]
    filters: Axis
    channels: Axis
    slides: tuple[Slide, Slide, Slide]

    @property
    def taps(self) -> int:
        return math.prod(slide.kernel for slide in self.slides)

    @property
    def is_padded(self) -> bool:
        return any(slide.low or slide.high for slide in self.slides)

    @property
    def operations(self) -> int:
        """The number of multiplications and additions."""
        positions = math.prod(slide.count for slide in self.slides)
        return math.prod(a.size for a in self.planes) * self.filters.size * self.channels.size * positions * self.taps


def match_form(op: mlir.Operation) -> tuple[list[mlir.AffineMap], str, bool]:
    """The maps, the combiner and whether inputs are multiplied with weights; `NoMatch` without a sliding window."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results):
        raise NoMatch("it does not have two inputs and an out")
    found = linalg.get_indexing_maps(op)
    if found is None:
        raise NoMatch("it has no indexing maps")
    maps = [attribute.value for attribute in found]
    if not any(isinstance(e, mlir.AffineAddExpr) for e in maps[0].results):
        raise NoMatch("no window slides over its first input")
    types = [value.type for value in op.operands]
    if not all(isinstance(type_, mlir.MemRefType) for type_ in types):
        raise NoMatch("an operand is no memref")
    combiner, product = match_body(op)
    elements = {str(type_.element_type) for type_ in (types if product else types[::2])}
    if len(elements) != 1 or not elements <= set(_ELEMENTS):
        raise NoMatch("the elements differ, or are none that the kernels compute in")
    return maps, combiner, product


def match_convolution(op: mlir.Operation, inner: mlir.Value | None = None, low: Sequence[int] = ()) -> Problem:
    """Read a structured operation on memrefs of static layout; `NoMatch` unless it is a sliding window.

    With `inner`, only that slice of the first input is in memory, from `low` on in each dimension.
    """
    maps, combiner, product = match_form(op)
    types = [value.type for value in op.operands]
    element = str(types[2].element_type)
    shapes = [list(type_.shape) for type_ in types]
    strides = [static_strides(type_) for type_ in (types if inner is None else [inner.type, *types[1:]])]
    problem = build_problem(maps, shapes, strides, element, combiner, product)
    return problem if inner is None else without_padding(problem, maps[0], shapes[0], list(inner.type.shape), low)


def without_padding(
    problem: Problem, map_: mlir.AffineMap, whole: list[int], inner: list[int], low: Sequence[int]
) -> Problem:
    """The problem whose input has only the elements inside of the padding."""
    dims = [dim for dim, e in enumerate(map_.results) if isinstance(e, mlir.AffineAddExpr)]
    if any(low[i] or inner[i] != whole[i] for i in range(len(whole)) if i not in dims):
        raise NoMatch("a dimension is padded that no window slides along")
    slides = list(problem.slides)
    for number, i in enumerate(dims, 3 - len(dims)):
        slides[number] = replace(slides[number], size=inner[i], low=low[i], high=whole[i] - inner[i] - low[i])
    first, second, third = slides
    return replace(problem, slides=(first, second, third))


def static_strides(type_: mlir.MemRefType) -> list[int]:
    """The strides of a memref of static layout."""
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    try:
        strides, offset = type_.get_strides_and_offset()
    except RuntimeError as error:
        raise NoMatch(f"{type_} has no strides") from error
    if dynamic in strides or offset == dynamic or type_.memory_space is not None:
        raise NoMatch(f"{type_} has no static layout")
    return list(strides)


def match_body(op: mlir.Operation) -> tuple[str, bool]:
    """The combiner, and whether inputs are multiplied with weights."""
    block = op.regions[0].blocks[0]
    x, w, total = block.arguments
    *ops, final = block_ops(block)
    found = combination_of(final.operands[0], total)
    if found is None or not ops or found.op != ops[-1]:
        raise NoMatch("the body does not combine")
    combiner, product = found.combiner, defining_op(found.term)
    if combiner.word != "sum" and not combiner.is_extreme:
        raise NoMatch(f"no window has a {combiner.word}")
    if found.term == x and len(ops) == 1:
        return combiner.short, False
    wanted = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}.get(combiner.op)
    if len(ops) != 2 or product != ops[0] or product.name != wanted or set(product.operands) != {x, w}:
        raise NoMatch("the body is no sum of products")
    return combiner.short, True


def terms(expression: mlir.AffineExpr) -> Mapping[int, int]:
    """A sum of loops, as the factor of each."""
    found = linear_of(expression)
    if found is None or found.constant or found.is_constant:
        raise NoMatch(f"{expression} is no sum of loops")
    return found.factors


def _loops_of_dims(map_: mlir.AffineMap) -> list[int]:
    """The loops that index the dimensions of an operand, as often as there are such dimensions."""
    return [d for e in map_.results for d in terms(e)]


def build_problem(
    maps: Sequence[mlir.AffineMap],
    shapes: Sequence[list[int]],
    strides: Sequence[list[int]],
    element: str,
    combiner: str,
    product: bool,
) -> Problem:
    """Classify the loops of an operation by the operands that they index."""
    if any(len(used) > len(set(used)) for used in map(_loops_of_dims, maps)):
        raise NoMatch("a loop indexes two dimensions of an operand")
    x_terms = [terms(e) for e in maps[0].results]
    plain: list[dict[int, int]] = []
    for number, map_ in enumerate(maps):
        dims = {}
        for dimension, e in enumerate(map_.results):
            if isinstance(e, mlir.AffineDimExpr):
                dims[e.position] = dimension
            elif number:
                raise NoMatch("the weight or the out is not indexed by loops")
        plain.append(dims)
    in_x, in_w, in_out = plain

    def axis(d: int) -> Axis:
        at = [(s[dims[d]] if d in dims else 0) for s, dims in zip(strides, plain)]
        size = next(shape[dims[d]] for shape, dims in zip(shapes, plain) if d in dims)
        return Axis(size, at[0], at[1] if product else 0, at[2])

    slides = [slide(pair, dim, [in_w, in_out], shapes, strides) for dim, pair in enumerate(x_terms) if len(pair) > 1]
    sliding = {d for pair in x_terms if len(pair) > 1 for d in pair}
    rest = [d for d in range(maps[0].n_dims) if d not in sliding]
    planes = tuple(axis(d) for d in rest if d in in_out and d in in_x)
    filters = [axis(d) for d in rest if d in in_out and d not in in_x]
    channels = [axis(d) for d in rest if d not in in_out and d in in_x and d in in_w]
    if len(planes) + len(filters) + len(channels) != len(rest) or max(len(filters), len(channels)) > 1:
        raise NoMatch("a loop has no role in a convolution")
    if not 1 <= len(slides) <= 3:
        raise NoMatch(f"a window in {len(slides)} dimensions")
    one = Slide(1, 1, 1, 1, 1, 0, 0, 0)
    first, second, third = [one] * (3 - len(slides)) + slides
    unit = Axis(1, 0, 0, 0)
    filter_, channel = filters[0] if filters else unit, channels[0] if channels else unit
    return Problem(element, combiner, product, planes, filter_, channel, (first, second, third))


def slide(
    pair: Mapping[int, int],
    dim: int,
    others: Sequence[Mapping[int, int]],
    shapes: Sequence[list[int]],
    strides: Sequence[list[int]],
) -> Slide:
    """The spatial dimension that is dimension `dim` of the input, `out * stride + tap * dilation`."""
    in_w, in_out = others
    positions, taps = [d for d in pair if d in in_out], [d for d in pair if d in in_w]
    if len(pair) != 2 or len(positions) != 1 or len(taps) != 1 or set(positions) == set(taps) or min(pair.values()) < 1:
        raise NoMatch("a window is not placed by one loop and filled by another")
    out, tap = in_out[positions[0]], in_w[taps[0]]
    return Slide(
        count=shapes[2][out],
        kernel=shapes[1][tap],
        stride=pair[positions[0]],
        dilation=pair[taps[0]],
        size=shapes[0][dim],
        x=strides[0][dim],
        w=strides[1][tap],
        out=strides[2][out],
    )
