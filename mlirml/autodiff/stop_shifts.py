"""Stop shifts: a maximum that is only subtracted to keep exponentials in range has no derivative.

Before:
    %m = linalg.reduce { arith.maximumf } ins(%x) ...
    %s = linalg.generic ... ins(%x, %m) { arith.subf, math.exp, arith.addf }
    %y = linalg.generic ... ins(%s, %m) { math.log, arith.addf }
After:
    %m = linalg.reduce { arith.maximumf } ins(%x) ...
    %0 = mlirml.stop_gradient %m
    %s = linalg.generic ... ins(%x, %0) { arith.subf, math.exp, arith.addf }
    %y = linalg.generic ... ins(%s, %0) { math.log, arith.addf }

log(sum(exp(x - m))) + m and exp(x - m) / sum(exp(x - m)) have the same value for every m. The values that depend on m
are followed: a sum of m times a factor and something else, or a product of exp(m times a factor) and something else. If
the factor of all results is 0, m is a constant; if a value is used in any other way, it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlirml.analysis.constants import float_of
from mlirml.analysis.traits import FLOAT_CASTS, TENSOR_VIEWS
from mlirml.analysis.values import uses_any
from mlirml.autodiff.structured import Structured
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, has_op, mlir, operations
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_REQUEST

_LARGEST = [op for op, row in COMBINERS.items() if row.is_extreme and row.is_float]
_REQUESTS = ("mlirml.independent", "mlirml.dual")


@dataclass(frozen=True)
class Shift:
    """The dependence of a value on m: something plus `factor` m, or something times exp(`factor` m) if `scales`.

    `dims` are the dimensions of the value that are those of m, without unit dimensions.
    """

    scales: bool
    factor: float
    dims: tuple[int, ...] = ()


@register(when=ANY_REQUEST, optional=True)
class StopShiftsPass(Pass):
    """Put `mlirml.stop_gradient` on maxima and minima that a differentiated program does not depend on."""

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, _REQUESTS):
            return
        alike: dict[tuple[object, ...], list[mlir.Operation]] = {}
        for op in operations(module):
            if op.name in ("linalg.generic", "linalg.reduce") and match_largest(op):
                alike.setdefault(_key(op), []).append(op)
        for ops in alike.values():
            if is_shift(ops):
                for op in ops:
                    build_stop(op)


def _key(op: mlir.Operation) -> tuple[object, ...]:
    """A key that is equal for two reductions with equal results."""
    (body, _) = block_ops(op.regions[0].blocks[0])
    parts = Structured.of(op)
    maps = [str(read.map) for read in (*parts.inputs, *parts.inits)]
    return op.block, op.operands[0], *maps, body.name, _start(op.operands[1])


def match_largest(op: mlir.Operation) -> bool:
    """True if an operation is a reduction to the largest or least element of a tensor."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    block = op.regions[0].blocks[0]
    body = block_ops(block)
    return len(body) == 2 and body[0].name in _LARGEST and set(body[0].operands) == set(block.arguments)


def build_stop(op: mlir.Operation) -> None:
    """Let the users of an operation treat its result as a constant."""
    (result,) = op.results
    uses = [(use.owner, use.operand_number) for use in result.uses]
    following = block_ops(op.block)[block_ops(op.block).index(op) + 1]
    with op.location, mlir.InsertionPoint(following):
        stopped = emit.value("mlirml.stop_gradient", [result], result.type)
    for user, number in uses:
        user.operands[number] = stopped


def is_shift(largest: Sequence[mlir.Operation]) -> bool:
    """True if no result depends on the value of these operations, which have equal results."""
    shape = largest[0].results[0].type.shape
    dims = tuple(d for d, size in enumerate(shape) if size != 1)
    shifts = {op.results[0]: Shift(False, 1.0, dims) for op in largest}
    ops = block_ops(largest[0].block)
    for user in ops[ops.index(largest[0]) + 1 :]:
        try:
            _follow(user, shifts)
        except NoMatch:
            return False
    return True


def _follow(op: mlir.Operation, shifts: dict[mlir.Value, Shift]) -> None:
    """Compute the dependence of an operation's results on m; raises `NoMatch` where that is not known."""
    if not uses_any(op, shifts):
        return
    if op.name.startswith("linalg."):
        _structured(op, shifts)
    elif op.name in TENSOR_VIEWS:
        whole = shifts.get(op.operands[0])
        if whole is None:
            raise NoMatch("an index depends on it")
        shifts[op.results[0]] = replace(whole, dims=_moved(op, whole.dims))
    elif op.name == "tensor.extract" and len(op.operands) == 1:
        shifts[op.results[0]] = shifts[op.operands[0]]
    elif isinstance(op.operands[0].type, mlir.FloatType) and not op.regions:
        found = _scalar(op, shifts)
        if found is not None:
            shifts[op.results[0]] = found
    else:
        raise NoMatch(op.name)


def _moved(op: mlir.Operation, dims: Sequence[int]) -> tuple[int, ...]:
    """The positions of dimensions in another view of a tensor, which must contain them whole."""
    old, new = list(op.operands[0].type.shape), list(op.results[0].type.shape)
    if op.name == "tensor.extract_slice":
        offsets, sizes, strides = (
            list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
        )
        if any((offsets[d], sizes[d], strides[d]) != (0, old[d], 1) for d in dims):
            raise NoMatch("a part of it is taken")
        old = sizes
    # Only unit dimensions may be added or dropped, so the others keep their order.
    kept_old = [d for d, size in enumerate(old) if size != 1]
    kept_new = [d for d, size in enumerate(new) if size != 1]
    if [old[d] for d in kept_old] != [new[d] for d in kept_new]:
        raise NoMatch("reshaped")
    return tuple(kept_new[kept_old.index(d)] for d in dims)


def _structured(op: mlir.Operation, shifts: dict[mlir.Value, Shift]) -> None:
    parts = Structured.of(op)
    if parts.op.name == "linalg.fill":
        raise NoMatch("filled with it")
    loops: tuple[int, ...] | None = None
    body_shifts: dict[mlir.Value, Shift] = {}
    for number, read in enumerate(parts.inputs):
        if read.tensor in shifts:
            shift = shifts[read.tensor]
            dims = tuple(_dim(read.map.results[d]) for d in shift.dims)
            if loops is not None and dims != loops:
                raise NoMatch("read along two sets of dimensions")
            loops = dims
            body_shifts[parts.argument(number)] = replace(shift, dims=())
    if loops is None or any(read.tensor in shifts for read in parts.inits):
        raise NoMatch("no input")
    arguments = list(parts.block.arguments)[len(parts.inputs) :]
    for init in parts.inits:
        if any(loop not in [_position(e) for e in init.map.results] for loop in loops):
            raise NoMatch("reduced over it")
    for inner in parts.body:
        if any(x in arguments for x in inner.operands):
            _accumulated(inner, arguments, parts, body_shifts)
        elif any(x in body_shifts for x in inner.operands):
            found = _scalar(inner, body_shifts)
            if found is not None:
                body_shifts[inner.results[0]] = found
    for result, init, value in zip(op.results, parts.inits, parts.yields):
        if value in body_shifts:
            positions = [_position(e) for e in init.map.results]
            shifts[result] = replace(body_shifts[value], dims=tuple(positions.index(loop) for loop in loops))


def _accumulated(
    op: mlir.Operation, arguments: Sequence[mlir.Value], parts: Structured, body_shifts: dict[mlir.Value, Shift]
) -> None:
    """A sum over terms scaled alike is scaled so, if its init is zero; the maximum of shifted terms is shifted."""
    taken = [i for i, x in enumerate(arguments) if x in list(op.operands)]
    others = [body_shifts.get(x) for x in op.operands if x not in arguments]
    if all(other is None for other in others):
        return
    if len(taken) != 1 or len(others) != 1:
        raise NoMatch("accumulated in another way")
    (number,), (other,) = taken, others
    assert other is not None
    start = _start(parts.inits[number].tensor)
    summed = op.name == "arith.addf" and other.scales and start == 0
    largest = op.name in _LARGEST and not other.scales and start in (float("-inf"), float("inf"))
    if not summed and not largest:
        raise NoMatch("accumulated")
    body_shifts[op.results[0]] = other


def _start(init: mlir.Value) -> float | None:
    """The value that a tensor is filled with."""
    fill = defining_op(init)
    return None if fill is None or fill.name != "linalg.fill" else float_of(fill.operands[0])


def _scalar(op: mlir.Operation, shifts: Mapping[mlir.Value, Shift]) -> Shift | None:
    """The dependence of the result of a scalar operation on m; None if there is none."""
    found = [shifts.get(x) for x in op.operands]
    if op.name == "arith.cmpf":  # no derivative passes
        return None
    if op.name in ("arith.addf", "arith.subf"):
        sign = 1 if op.name == "arith.addf" else -1
        a, b = found
        if any(x is not None and x.scales for x in found):
            if a != b:
                raise NoMatch("a sum with something scaled")
            return a
        factor = (a.factor if a else 0.0) + sign * (b.factor if b else 0.0)
        return _depends(Shift(False, factor))
    if op.name in ("arith.mulf", "arith.divf"):
        return _product(op, *found)
    (first, *rest) = found
    if op.name in _LARGEST and len(set(found)) == 1 and first is not None and not first.scales:
        return first
    if op.name == "arith.select" and rest and len(set(rest)) == 1:
        return rest[0]
    if first is not None and not rest:
        if op.name == "arith.negf":
            return first if first.scales else replace(first, factor=-first.factor)
        if op.name == "math.exp" and not first.scales:
            return replace(first, scales=True)
        if op.name == "math.log" and first.scales:
            return replace(first, scales=False)
        if op.name in FLOAT_CASTS:
            return first
    raise NoMatch(op.name)


def _product(op: mlir.Operation, a: Shift | None, b: Shift | None) -> Shift | None:
    sign = 1 if op.name == "arith.mulf" else -1
    if all(x is None or x.scales for x in (a, b)):
        return _depends(Shift(True, (a.factor if a else 0.0) + sign * (b.factor if b else 0.0)))
    shift, number = (a, float_of(op.operands[1])) if a is not None else (b, float_of(op.operands[0]))
    if number is None or shift is None or (sign < 0 and a is None):
        raise NoMatch("a product of it")
    return _depends(replace(shift, factor=shift.factor * number if sign > 0 else shift.factor / number))


def _depends(shift: Shift) -> Shift | None:
    return None if shift.factor == 0 else shift


def _position(expression: mlir.AffineExpr) -> int | None:
    return int(mlir.AffineDimExpr(expression).position) if isinstance(expression, mlir.AffineDimExpr) else None


def _dim(expression: mlir.AffineExpr) -> int:
    dim = _position(expression)
    if dim is None:
        raise NoMatch("indexed by more than a dimension")
    return dim
