"""Convolutions: sums of products in which a window slides over one operand.

Before:
    %r = linalg.generic {maps = [(n, f, y, x, c, i, j) -> (n, c, y * 2 + i, x * 2 + j), (...) -> (f, c, i, j),
        (...) -> (n, f, y, x)]} ins(%image, %weights) outs(%zeros) { mulf, addf }
After:
    %r = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>} ins(%image, %weights) outs(%zeros)

An `if` around the pixels outside of the image becomes `tensor.pad` (`windows.py`). If the init of the sums is not a
constant, they start from zero, and the init is added after them. Forms without a name (groups, other layouts, the
gradients) are generics with the window first, which the same kernels take: the image and the result of a convolution
may be exchanged, since the gradient by the weights slides the result over the image. A kernel that indexes the image
backward, as in the gradient by the image, is flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirml.analysis.structured import map_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.contract import check_cheap, zeros
from mlirml.raising.recognition.factors import Operand, build_operand, match_direct, operand_of
from mlirml.raising.recognition.nest import Nest, loop_of_dims
from mlirml.raising.recognition.pool import window_map
from mlirml.raising.recognition.terms import Mask, is_zero, masks_of, read_terms
from mlirml.raising.recognition.windows import (
    Window,
    build_window,
    converted,
    flattened,
    match_window,
    read_access,
    reshaped,
    without_units,
)

_NAMED = {
    ("nchw", "fchw", "nfhw"): "linalg.conv_2d_nchw_fchw",
    ("nhwc", "hwcf", "nhwf"): "linalg.conv_2d_nhwc_hwcf",
    ("nhwc", "fhwc", "nhwf"): "linalg.conv_2d_nhwc_fhwc",
    ("ncw", "fcw", "nfw"): "linalg.conv_1d_ncw_fcw",
    ("nwc", "wcf", "nwf"): "linalg.conv_1d_nwc_wcf",
    ("ncdhw", "fcdhw", "nfdhw"): "linalg.conv_3d_ncdhw_fcdhw",
    ("ndhwc", "dhwcf", "ndhwf"): "linalg.conv_3d_ndhwc_dhwcf",
    ("nchw", "chw", "nchw"): "linalg.depthwise_conv_2d_nchw_chw",
    ("nhwc", "hwc", "nhwc"): "linalg.depthwise_conv_2d_nhwc_hwc",
    ("ncw", "cw", "ncw"): "linalg.depthwise_conv_1d_ncw_cw",
    ("nwc", "wc", "nwc"): "linalg.depthwise_conv_1d_nwc_wc",
}


@dataclass(frozen=True)
class Convolution:
    """A window that slides over one tensor, and the weights; `out` are the loops of the result in order."""

    window: Window
    weights: Operand
    out: tuple[int, ...]


def match_convolution(nest: Nest) -> Convolution:
    """The window and weights of a convolution; raises `NoMatch` for other generics."""
    terms = read_terms(nest)
    if len(terms) != 1:
        raise NoMatch("several terms")
    (term,) = terms
    out = loop_of_dims(nest.maps[-1])
    scalars = [factor for factor in term.factors if not nest.loops(factor.value)]
    factors = [factor for factor in term.factors if nest.loops(factor.value)]
    if len(factors) != 2:
        raise NoMatch("no product of two operands")
    for slid, other in (factors, factors[::-1]):
        if slid.divides:
            continue
        value, masks = unmasked(nest, slid.value)
        try:
            access = read_access(nest, value, slid.casts)
        except NoMatch:
            continue
        if not access.is_sliding:
            continue
        window = match_window(nest, access, (*term.masks, *masks))
        weights = operand_of(nest, other)
        check_roles(nest, window, weights, out)
        if scalars or term.negative:
            weights = replace(weights, factors=(*scalars, *weights.factors), negative=term.negative)
        check_cheap(nest, weights, frozenset(range(nest.rank)))
        return Convolution(window, weights, out)
    raise NoMatch("no window slides")


def unmasked(nest: Nest, value: mlir.Value) -> tuple[mlir.Value, tuple[Mask, ...]]:
    """`x` and `c` of `select(c, x, 0)`; other values without a condition."""
    op = nest.inner(value)
    if op is None or op.name != "arith.select" or not any(map(is_zero, list(op.operands)[1:])):
        return value, ()
    condition, yes, no = op.operands
    inner, more = unmasked(nest, yes if is_zero(no) else no)
    return inner, (*masks_of(nest, condition, is_zero(no)), *more)


def check_roles(nest: Nest, window: Window, weights: Operand, out: tuple[int, ...]) -> None:
    """Refuse windows that are not the sum of one loop of the result and one of the weights."""
    seen: set[int] = set()
    for pair in window.terms:
        if len(pair) > 2 or (len(pair) == 1 and set(pair.values()) != {1}):
            raise NoMatch("an index is no place of a window")
        if len(pair) == 2:
            placed = [d for d in pair if d in out and d not in weights.order]
            filled = [d for d in pair if d not in out and d in weights.order]
            if len(placed) != 1 or len(filled) != 1:
                raise NoMatch("a window is not placed by one loop and filled by another")
        if seen & set(pair):
            raise NoMatch("a loop is used twice")
        seen |= set(pair)
    used = [seen, set(weights.order), set(out)]
    if any(nest.sizes[d] != 1 and sum(d in part for part in used) < 2 for d in range(nest.rank)):
        raise NoMatch("a loop indexes one operand only")


def build_convolution(nest: Nest, convolution: Convolution) -> tuple[mlir.Value, str]:
    """The new value of the output, and the name of the operation."""
    old = nest.inits[0]
    type_ = old.type.element_type
    zero = mlir.FloatAttr.get(type_, 0.0) if isinstance(type_, mlir.FloatType) else mlir.IntegerAttr.get(type_, 0)
    image, terms = without_units(build_window(convolution.window, type_, zero), convolution.window.terms)
    direct = match_direct(nest, convolution.weights)
    if direct is not None:
        weights, order = nest.inputs[direct.number], direct.order
        if direct.cast is not None:
            weights = converted(weights, direct.cast)
    else:
        weights, order = build_operand(nest, convolution.weights, type_), convolution.weights.order
    if convolution.window.backward:
        weights, order = turned(nest, convolution.window, weights, order, convolution.out)
    origin = stored(old)
    start = origin if is_start(origin) else zeros(old.type)
    value, name = emit_window(nest, image, terms, weights, order, convolution.out, start)
    if start != origin:
        value = added(old, value)
    return value, name


def turned(
    nest: Nest, window: Window, weights: mlir.Value, order: Sequence[int], out: Sequence[int]
) -> tuple[mlir.Value, tuple[int, ...]]:
    """The weights with backward loops reversed, in linalg's usual order of their dimensions."""
    taps = [d for pair in window.terms if len(pair) == 2 for d in pair if d not in out]
    rest = [d for d in order if d not in taps]
    new = (*(d for d in rest if d in out), *(d for d in rest if d not in out), *taps)
    type_ = weights.type.element_type

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        index_of = {}
        for number, d in enumerate(new):
            index = emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(number))
            if d in window.backward:
                index = emit.same_type("arith.subi", emit.index(nest.sizes[d] - 1), index)
            index_of[d] = index
        return [emit.value("tensor.extract", [weights, *(index_of[d] for d in order)], type_)]

    empty = emit.empty(mlir.RankedTensorType.get([nest.sizes[d] for d in new], type_))
    identity = mlir.AffineMap.get_identity(len(new))
    return emit.generic([], [empty], [identity], ["parallel"] * len(new), body).results[0], new


def stored(value: mlir.Value) -> mlir.Value:
    """The tensor that was inserted at the slice that a value is; other values unchanged."""
    op = defining_op(value)
    source = defining_op(op.operands[0]) if op is not None and op.name == "tensor.extract_slice" else None
    if op is None or source is None or source.name != "tensor.insert_slice" or len(source.operands) != 2:
        return value
    same = all(op.attributes[n] == source.attributes[n] for n in ("static_offsets", "static_sizes", "static_strides"))
    return source.operands[0] if same and len(op.operands) == 1 and source.operands[0].type == value.type else value


def is_start(value: mlir.Value) -> bool:
    """True if kernels can start their sums from a value: a constant everywhere, or one value for each filter."""
    op = defining_op(value)
    if op is None or op.name == "linalg.fill":
        return op is not None
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1:
        return False
    block = op.regions[0].blocks[0]
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    copied = len(list(block.operations)) == 1 and block.operations[0].operands[0] == block.arguments[0]
    return copied and maps[1].is_permutation and len(maps[0].results) < len(maps[1].results)


def added(old: mlir.Value, more: mlir.Value) -> mlir.Value:
    """The sum of two tensors."""
    rank = len(old.type.shape)
    name = "arith.addf" if isinstance(old.type.element_type, mlir.FloatType) else "arith.addi"
    identity = mlir.AffineMap.get_identity(rank)
    return emit.generic(
        [old, more],
        [emit.empty(old.type)],
        [identity] * 3,
        ["parallel"] * rank,
        lambda values: [emit.same_type(name, *values[:2])],
    ).results[0]


def emit_window(
    nest: Nest,
    image: mlir.Value,
    terms: Sequence[dict[int, int]],
    weights: mlir.Value,
    order: Sequence[int],
    out: Sequence[int],
    start: mlir.Value,
) -> tuple[mlir.Value, str]:
    """The named operation, with a unit batch dimension where it lacks one; or a generic."""
    spelled = spell(terms, order, out)
    for batch in ((), (0,)):
        letters = ("n" + spelled[0], spelled[1], "n" + spelled[2]) if batch else spelled
        if letters not in _NAMED:
            continue
        name = _NAMED[letters]
        if batch:
            image, start = reshaped(image, [0]), restarted(start)
        sliding = [pair for pair in terms if len(pair) == 2]
        strides = [next(f for d, f in pair.items() if d in out) for pair in sliding]
        dilations = [next(f for d, f in pair.items() if d not in out) for pair in sliding]
        op = emit_named(name, image, weights, start, strides, dilations)
        result = op.results[0]
        return (flattened(result, [0]) if batch else result), name
    maps = [window_map(nest.rank, terms), map_of(nest.rank, order), map_of(nest.rank, out)]
    iterators = ["parallel" if d in out else "reduction" for d in range(nest.rank)]
    op = emit.generic([image, weights], [start], maps, iterators, lambda b: [multiply_add(*b)])
    return op.results[0], "a convolution without a name of its own"


def restarted(start: mlir.Value) -> mlir.Value:
    """The init of sums with a unit batch dimension: rebuilt, so that kernels recognise it."""
    op = defining_op(start)
    shape = [1, *start.type.shape]
    type_ = mlir.RankedTensorType.get(shape, start.type.element_type)
    assert op is not None
    if op.name == "linalg.fill":
        return emit.fill(op.operands[0], emit.empty(type_)).results[0]
    source, written = (attribute.value for attribute in op.attributes["indexing_maps"])
    rank = len(shape)
    loops = [expression.position + 1 for expression in written.results]
    moved = mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(d + 1) for d in range(rank - 1)])
    maps = [mlir.AffineMap.get(rank, 0, [e.compose(moved) for e in source.results]), map_of(rank, [0, *loops])]
    return emit.generic([op.operands[0]], [emit.empty(type_)], maps, ["parallel"] * rank, lambda b: b[:1]).results[0]


def spell(terms: Sequence[dict[int, int]], order: Sequence[int], out: Sequence[int]) -> tuple[str, str, str]:
    """The dims of image, weights and result in the letters of linalg's names; `?` for dims that those names lack."""
    letters: dict[int, str] = {}
    sliding = [pair for pair in terms if len(pair) == 2]
    for letter, pair in zip("dhw"[3 - len(sliding) :] if len(sliding) <= 3 else "", sliding):
        for d in pair:
            letters[d] = letter
    image = ""
    for pair in terms:
        if len(pair) == 2:
            image += letters.get(next(iter(pair)), "?")
            continue
        for d in pair:
            roles = (d in order, d in out)
            letters[d] = {(False, True): "n", (True, False): "c", (True, True): "c"}.get(roles, "?")
            image += letters[d]
        if not pair:
            image += "?"
    for d in out:
        letters.setdefault(d, "f")
    return image, "".join(letters.get(d, "?") for d in order), "".join(letters[d] for d in out)


def emit_named(
    name: str,
    image: mlir.Value,
    weights: mlir.Value,
    start: mlir.Value,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> mlir.Operation:
    """A named convolution."""
    type_ = mlir.RankedTensorType.get([len(strides)], mlir.IntegerType.get_signless(64))
    attributes: dict[str, mlir.Attribute] = {"operandSegmentSizes": emit.segments(2, 1)}
    for what, values in (("strides", strides), ("dilations", dilations)):
        attributes[what] = mlir.DenseElementsAttr.get([emit.i64(number) for number in values], type_)
    op = emit.create(name, [image, weights, start], [start.type], attributes, regions=1)
    block = emit.block(op, [value.type.element_type for value in (image, weights, start)])
    with mlir.InsertionPoint(block):
        emit.create("linalg.yield", [multiply_add(*block.arguments)])
    return op


def multiply_add(a: mlir.Value, b: mlir.Value, total: mlir.Value) -> mlir.Value:
    letter = "f" if isinstance(total.type, mlir.FloatType) else "i"
    return emit.same_type(f"arith.add{letter}", total, emit.same_type(f"arith.mul{letter}", a, b))
