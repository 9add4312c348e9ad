"""Fold scales: what the channels of a convolution are multiplied by and shifted by goes into its weights and its bias.

Before:
    %b = linalg.generic {maps = [(n, f, i, j) -> (f), (n, f, i, j) -> (n, f, i, j)]} ins(%bias) outs(%e0)   // broadcast
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<4x16x34x34xf32>, tensor<32x16x3x3xf32>) outs(%b)
    %z = linalg.generic {...} ins(%y, %scale : tensor<4x32x32x32xf32>, tensor<32xf32>) outs(%e1) { arith.mulf }
    %r = linalg.generic {...} ins(%z, %shift : tensor<4x32x32x32xf32>, tensor<32xf32>) outs(%e2) { arith.addf }
After:
    %v = linalg.generic {...} ins(%w, %scale) outs(%e3) { arith.mulf }                    // of the size of the weights
    %p = linalg.generic {...} ins(%bias, %scale) outs(%e4) { arith.mulf }
    %q = linalg.generic {...} ins(%p, %shift) outs(%e5) { arith.addf }
    %b = linalg.generic {maps = [(n, f, i, j) -> (f), (n, f, i, j) -> (n, f, i, j)]} ins(%q) outs(%e0)
    %r = linalg.conv_2d_nchw_fchw ins(%x, %v) outs(%b)

So a batch norm that is not training costs nothing for each pixel. Any chain of products, quotients, sums and
differences of the result and something that has at most the dims of channels is folded, if it has a product, the
weights are small against the result, and nothing else uses what the convolution computes. Convolutions by single pixels
are contractions: those with short sums are scaled in the same way, with the shift added to the result, as their kernels
do it. The result may be reshaped between, as that of a convolution of groups is. Products are reassociated, which
`exact` forbids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.constants import float_of, is_constant
from mlirml.analysis.structured import dims_of, groups_of, indexing_maps, is_parallel, map_of
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.values import has_one_use, is_static_tensor
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW
from mlirml.pipelines.tensor.move_reshapes import reshaped
from mlirml.pipelines.tensor.products import networks, orders

_WORTH = 4
"""The least ratio of the elements of the result and of the weights."""
_FEWEST = 1024
"""The least number of elements of the result."""
_SCALINGS, _SHIFTS = ("arith.mulf", "arith.divf"), ("arith.addf", "arith.subf")
_WIDTHS = ("f32", "f64")
_LONGEST = 128
"""The most products in a sum of a contraction: for longer ones a product of the result takes no time beside it."""


@register(when=(*ANY_CONTRACTION, *ANY_WINDOW), optional=True)
class FoldScalesPass(Pass):
    """Fold products and sums with the channels of convolutions into weights and biases. With `exact` nothing is."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        if self.exact:
            return
        found: list[Convolution] = []  # before any operation is erased
        for op in operations(module):
            with suppress(NoMatch):
                found.append(match_convolution(op))
        for convolution in found:
            with suppress(NoMatch):
                fold(convolution)


@dataclass(frozen=True)
class Term:
    """A number, or a tensor whose dims are those at `axes` of the channels."""

    value: mlir.Value
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Convolution:
    """A convolution or contraction whose operand `position` are weights, and its bias if it has one.

    `channels` and `of_weights` are the dims of its result and of its weights that are channels.
    """

    op: mlir.Operation
    position: int
    channels: tuple[int, ...]
    of_weights: tuple[int, ...]
    bias: Term | None

    @property
    def weights(self) -> mlir.Value:
        return self.op.operands[self.position]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the dims of channels."""
        return [self.op.results[0].type.shape[d] for d in self.channels]

    @property
    def element(self) -> mlir.Type:
        return self.op.results[0].type.element_type


def match_convolution(op: mlir.Operation) -> Convolution:
    """Match a convolution or contraction of floats whose init is zero or a bias; raises `NoMatch`."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        raise NoMatch("no structured operation with two inputs and an init")
    if not has_one_use(op.results[0]) or not all(map(is_static_tensor, op.operands)):
        raise NoMatch("others use its result")
    if any(str(value.type.element_type) not in _WIDTHS for value in op.operands):
        raise NoMatch("no floats, or short ones")
    names = [inner.name for inner in block_ops(op.regions[0].blocks[0])]
    if names != ["arith.mulf", "arith.addf", "linalg.yield"] or "mlirml.schedule" in op.attributes:
        raise NoMatch("no sum of products")
    return match_weights(op, indexing_maps(op))


def match_weights(op: mlir.Operation, maps: Sequence[mlir.AffineMap]) -> Convolution:
    """Find the operand that is scaled, and its dims of channels; raises `NoMatch`."""
    windows = [e for e in maps[0].results if not isinstance(e, mlir.AffineDimExpr)]
    if not all(isinstance(e, mlir.AffineDimExpr) for map_ in maps[1:] for e in map_.results):
        raise NoMatch("no window")
    outs = [e.position for e in maps[2].results]
    if not windows and (is_square(op) or not networks.is_zero(op.operands[2])):
        raise NoMatch("a symmetric product, or one that is added to something")
    for position in (1,) if windows else (1, 0):
        own = [e.position for e in maps[position].results]
        other = dims_of(maps[1 - position])
        shared = [d for d in outs if d in own and (windows or d not in other)]
        weights, count = op.operands[position].type, math.prod(op.results[0].type.shape)
        size = math.prod(weights.shape)
        terms = size // max(1, math.prod(weights.shape[own.index(d)] for d in shared))
        is_small = 0 < _WORTH * size <= count and count >= _FEWEST
        if shared and is_small and (windows or terms <= _LONGEST):
            channels = tuple(outs.index(d) for d in shared)
            of_weights = tuple(own.index(d) for d in shared)
            return Convolution(op, position, channels, of_weights, match_bias(op.operands[2], channels))
    raise NoMatch("the weights are not small, or the sums are long")


def is_square(op: mlir.Operation) -> bool:
    """True for the product of a tensor and itself, transposed or not: half of it need not be computed."""
    factors = [networks.Factor(value, tuple(range(value.type.rank))) for value in list(op.operands)[:2]]
    one, other = (networks.through_transposes(factor, only_uses=False)[0].value for factor in factors)
    return bool(one == other)


def match_bias(init: mlir.Value, channels: tuple[int, ...]) -> Term | None:
    """The numbers that sums begin with: None for zero, else one number or one for each channel; raises `NoMatch`."""
    op = defining_op(init)
    if op is not None and op.name == "linalg.fill":
        return None if float_of(op.operands[0]) == 0 else Term(op.operands[0])
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or not is_parallel(op):
        raise NoMatch("it adds to something")
    ops, block = networks.body_of(op)
    maps = indexing_maps(op)
    last = block.operations[len(block.operations) - 1]
    if ops or last.operands[0] != block.arguments[0] or maps[-1] != mlir.AffineMap.get_identity(maps[-1].n_dims):
        raise NoMatch("it adds to something")
    return term_of(op.operands[0], maps[0], channels)


def term_of(value: mlir.Value, map_: mlir.AffineMap, channels: tuple[int, ...]) -> Term:
    """An operand of an elementwise operation that is the same for equal channels; raises `NoMatch`."""
    dims = dims_of(map_)
    if not dims <= set(channels) or len(dims) != len(map_.results):
        raise NoMatch("it depends on more than the channel")
    return Term(value, tuple(channels.index(e.position) for e in map_.results))


@dataclass(frozen=True)
class Step:
    """An elementwise operation that combines a result and a term; `name` is the operation of the two in this order."""

    op: mlir.Operation
    name: str
    term: Term


def match_step(value: mlir.Value, channels: tuple[int, ...], block: mlir.Block) -> Step:
    """Match the only user of a value; raises `NoMatch` if it is no product or sum with a term."""
    if not has_one_use(value):
        raise NoMatch("others use it")
    (op,) = (use.owner.operation for use in value.uses)
    if op.name != "linalg.generic" or op.block != block or len(op.results) != 1 or not is_parallel(op):
        raise NoMatch("not elementwise")
    ops, body = networks.body_of(op)
    computed = [each for each in ops if each.name != "arith.constant"]
    maps, operands = indexing_maps(op), list(op.operands)
    last = body.operations[len(body.operations) - 1]
    if len(computed) != 1 or computed[0].name not in (*_SCALINGS, *_SHIFTS) or len(operands) > 3:
        raise NoMatch("no product or sum")
    if last.operands[0] != computed[0].results[0] or value not in operands[:-1]:
        raise NoMatch("it gives something else")
    position = operands.index(value)
    identity = mlir.AffineMap.get_identity(maps[-1].n_dims)
    own = body.arguments[position]
    if maps[position] != identity or maps[-1] != identity or op.results[0].type != value.type:
        raise NoMatch("it moves elements")
    sides = list(computed[0].operands)
    if sides.count(own) != 1 or (computed[0].name in ("arith.divf", "arith.subf") and sides[0] != own):
        raise NoMatch("it does not begin with the result")
    other = sides[1 - sides.index(own)]
    if len(operands) == 3 and other == body.arguments[1 - position]:
        return Step(op, computed[0].name, term_of(operands[1 - position], maps[1 - position], channels))
    outside = defining_op(other)
    if len(operands) == 2 and (is_constant(other) or (outside is not None and outside.block != body)):
        return Step(op, computed[0].name, Term(other))
    raise NoMatch("it does not depend on channels alone")


@dataclass(frozen=True)
class Scaled:
    """A convolution with the operations that scale and shift its result, and a reshape before them if there is one.

    `groups` are the dims of channels, in `Convolution.channels`, of each dim that has channels in the steps.
    """

    convolution: Convolution
    reshape: mlir.Operation | None
    groups: tuple[tuple[int, ...], ...]
    channels: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the dims of channels, as the steps have them."""
        return [math.prod(self.convolution.sizes[axis] for axis in group) for group in self.groups]


def match_scaled(found: Convolution) -> Scaled:
    """Match the operations after a convolution; raises `NoMatch` if none of them scales it."""
    value = found.op.results[0]
    (user,) = (use.owner.operation for use in value.uses)
    reshape = user if user.name in RESHAPES and user.block == found.op.block else None
    if reshape is None:
        channels = found.channels
        groups: tuple[tuple[int, ...], ...] = tuple((axis,) for axis in range(len(channels)))
    else:
        channels, groups = match_reshape(reshape, found.channels)
        value = reshape.results[0]
    steps: list[Step] = []
    with suppress(NoMatch):
        while True:
            steps.append(match_step(value, channels, found.op.block))
            value = steps[-1].op.results[0]
    by_channel = [step for step in steps if step.name in _SCALINGS and step.term.axes]
    if not by_channel:
        raise NoMatch("nothing scales its channels")
    return Scaled(found, reshape, groups, channels, tuple(steps))


def match_reshape(op: mlir.Operation, channels: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The dims of channels after a reshape, and the channels that each of them has; raises `NoMatch`."""
    reassociation = groups_of(op)
    if op.name == "tensor.expand_shape":
        if any(len(reassociation[d]) != 1 for d in channels):
            raise NoMatch("it splits a dim of channels")
        return tuple(reassociation[d][0] for d in channels), tuple((axis,) for axis in range(len(channels)))
    dims, groups = [], []
    for position, group in enumerate(reassociation):
        inner = [d for d in group if d in channels]
        if inner and inner != group:
            raise NoMatch("it joins a dim of channels and another")
        if inner:
            dims.append(position)
            groups.append(tuple(channels.index(d) for d in inner))
    if [axis for group in groups for axis in group] != list(range(len(channels))):
        raise NoMatch("it transposes channels")
    return tuple(dims), tuple(groups)


def fold(found: Convolution) -> None:
    """Fold the operations after a convolution; raises `NoMatch` if none of them scales it."""
    scaled = match_scaled(found)
    last, op = scaled.steps[-1].op, found.op
    with op.location, mlir.InsertionPoint(last):
        scale, shift = build_terms(scaled)
        result = build_scaled(scaled, scale, shift)
    elements, size = math.prod(op.results[0].type.shape), math.prod(found.weights.type.shape)
    count, ops = math.prod(found.sizes), len(scaled.steps)
    old = orders.Cost(float(elements * ops))
    new = orders.Cost(float(size + count * ops + (elements if shift is not None and is_late(found) else 0)))
    networks.tell(
        op.location, f"the scale of channels is folded into the weights of a convolution: {orders.saving(old, new)}"
    )
    last.results[0].replace_all_uses_with(result)
    reshapes = [] if scaled.reshape is None else [scaled.reshape]
    init = defining_op(op.operands[2])
    unused = [*(step.op for step in reversed(scaled.steps)), *reshapes, op]
    is_bias = init is not None and init.name == "linalg.generic"
    networks.erase_unused([*unused, init] if is_bias else unused)  # which erases an init that is filled by itself


def is_late(found: Convolution) -> bool:
    """True for contractions, to whose results the bias is added."""
    return all(isinstance(e, mlir.AffineDimExpr) for map_ in indexing_maps(found.op) for e in map_.results)


def build_terms(scaled: Scaled) -> tuple[Term, Term | None]:
    """The factor and the summand of the result, by the channels of the convolution, at the insertion point."""
    scale: Term | None = None
    shift: Term | None = None
    element = scaled.convolution.element
    for step in scaled.steps:
        term = outside_body(step)
        if step.name in _SCALINGS:
            first = Term(emit.number(element, 1.0)) if scale is None and step.name == "arith.divf" else scale
            scale = term if first is None else combined(scaled.sizes, step.name, first, term, element)
            shift = None if shift is None else combined(scaled.sizes, step.name, shift, term, element)
        else:
            first = Term(emit.zero(element)) if shift is None and step.name == "arith.subf" else shift
            shift = term if first is None else combined(scaled.sizes, step.name, first, term, element)
    assert scale is not None
    factor, summand = (None if term is None else by_channels(scaled, term) for term in (scale, shift))
    assert factor is not None
    bias = scaled.convolution.bias
    if bias is not None:
        bias = combined(scaled.convolution.sizes, "arith.mulf", bias, factor, element)
        summand = bias if summand is None else combined(scaled.convolution.sizes, "arith.addf", bias, summand, element)
    return factor, summand


def by_channels(scaled: Scaled, term: Term) -> Term:
    """A term of the steps with the dims of channels of the convolution, which a reshape between may have joined."""
    axes = tuple(axis for own in term.axes for axis in scaled.groups[own])
    groups = [list(scaled.groups[own]) for own in term.axes]
    return Term(reshaped(term.value, groups, scaled.convolution.sizes), axes)


def outside_body(step: Step) -> Term:
    """The term of a step as a value outside of its body: a constant is cloned at the insertion point."""
    op = defining_op(step.term.value)
    if op is None or op.block == step.op.block or op.name != "arith.constant":
        return step.term
    return replace(step.term, value=emit.constant(op.attributes["value"]))


def combined(sizes: Sequence[int], name: str, first: Term, second: Term, element: mlir.Type) -> Term:
    """The combination of two terms, one number for each channel, at the insertion point."""
    rank = len(sizes)
    out = emit.empty(mlir.RankedTensorType.get(list(sizes), element))
    are_tensors = [isinstance(term.value.type, mlir.RankedTensorType) for term in (first, second)]
    tensors = [term for term, is_one in zip((first, second), are_tensors, strict=True) if is_one]
    maps = [*(map_of(rank, term.axes) for term in tensors), mlir.AffineMap.get_identity(rank)]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        values = iter(xs)
        pairs = zip((first, second), are_tensors, strict=True)
        return [emit.same_type(name, *[next(values) if is_one else term.value for term, is_one in pairs])]

    made = emit.generic([term.value for term in tensors], [out], maps, ["parallel"] * rank, body)
    return Term(made.results[0], tuple(range(rank)))


def build_scaled(scaled: Scaled, scale: Term, shift: Term | None) -> mlir.Value:
    """The convolution with scaled weights and a new bias, and the reshape after it, at the insertion point."""
    found = scaled.convolution
    late = is_late(found)
    weights, init = build_weights(found, scale), build_bias(found, None if late else shift)
    copy: mlir.Operation = found.op.clone().operation
    copy.operands[found.position], copy.operands[2] = weights, init
    result = copy.results[0]
    if late and shift is not None:
        result = build_sum(found, result, shift)
    if scaled.reshape is None:
        return result
    with scaled.reshape.location:
        reshape = scaled.reshape.clone().operation
    reshape.operands[0] = result
    return reshape.results[0]


def build_weights(found: Convolution, scale: Term) -> mlir.Value:
    """The weights times the scale of their channel."""
    return elementwise("arith.mulf", found.weights, scale, found.of_weights)


def build_sum(found: Convolution, result: mlir.Value, shift: Term) -> mlir.Value:
    """A result plus the shift of its channel."""
    return elementwise("arith.addf", result, shift, found.channels)


def elementwise(name: str, tensor: mlir.Value, term: Term, dims: Sequence[int]) -> mlir.Value:
    """An operation on a tensor and a term, whose channels are these dims of the tensor, at the insertion point."""
    rank = tensor.type.rank
    identity = mlir.AffineMap.get_identity(rank)
    is_one = isinstance(term.value.type, mlir.RankedTensorType)
    maps = [identity, *([map_of(rank, [dims[axis] for axis in term.axes])] if is_one else []), identity]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.same_type(name, xs[0], xs[1] if is_one else term.value)]

    operands = [tensor, term.value] if is_one else [tensor]
    return emit.generic(operands, [emit.empty(tensor.type)], maps, ["parallel"] * rank, body).results[0]


def build_bias(found: Convolution, shift: Term | None) -> mlir.Value:
    """The init of a convolution with this bias."""
    type_ = found.op.results[0].type
    if shift is None:
        return networks.zeros(type_.shape, found.element)
    if not isinstance(shift.value.type, mlir.RankedTensorType):
        return emit.fill(shift.value, emit.empty(type_)).results[0]
    rank = type_.rank
    maps = [map_of(rank, [found.channels[axis] for axis in shift.axes]), mlir.AffineMap.get_identity(rank)]
    out = emit.empty(type_)
    return emit.generic([shift.value], [out], maps, ["parallel"] * rank, lambda xs: [xs[0]]).results[0]
