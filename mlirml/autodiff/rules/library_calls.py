"""Operations of libraries: the batched form is a larger stack. Fourier transforms have derivatives, as linear maps.

There are none of factorizations. Capture builds them in functions with custom derivatives
(`frontend/functions/linear_algebra.py`), which are expanded before their bodies.
"""

from __future__ import annotations

from mlirml.autodiff.batching import Batch, batching
from mlirml.autodiff.bodies import refuse
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.reverse import Sweep, transpose
from mlirml.autodiff.rules.batch_linalg import _joined, _parted
from mlirml.ir import emit
from mlirml.ir import library_calls as modes
from mlirml.ir.bindings import mlir
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import FACTORIZATIONS, LIBRARY_CALLS, TRANSFORMS


@batching(*LIBRARY_CALLS, *COMPACTIONS)
def batched(batch: Batch, op: mlir.Operation) -> None:
    """The matrices, or the rows of masks, of all lanes are one stack."""
    type_ = batch.batched_type(op.results[0].type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    stacks = [_joined(batch.full(x)) for x in list(op.operands)[:-1]]
    flat = mlir.RankedTensorType.get([type_.shape[0] * type_.shape[1], *list(type_.shape)[2:]], type_.element_type)
    result = emit.create(op.name, [*stacks, emit.empty(flat)], [flat], attributes).results[0]
    batch.values[op.results[0]] = _parted(result, type_)


@transpose(*FACTORIZATIONS)
def refused_in_reverse(sweep: Sweep, op: mlir.Operation) -> None:
    """Refuse if a matrix is differentiated."""
    if any(sweep.is_active(x) for x in op.operands):
        raise refuse(op)


@pushforward(*FACTORIZATIONS)
def refused_forward(push: Push, op: mlir.Operation) -> None:
    """Refuse: a matrix has a tangent."""
    raise refuse(op)


@pushforward(*TRANSFORMS)
def moved_transform(push: Push, op: mlir.Operation) -> None:
    """The transform of the tangent."""
    push.tangents[op.results[0]] = _transform(push.of(op.operands[0]), op, op.results[0].type, _mode(op))


@transpose(*TRANSFORMS)
def transposed_transform(sweep: Sweep, op: mlir.Operation) -> None:
    """The transform in the other direction, with the same factor.

    For real numbers, a bin that counts for its conjugate as well has half of the weight, or twice of it.
    """
    value, mode = op.operands[0], _mode(op)
    if not sweep.is_active(value):
        return
    cotangent, kind, axis = sweep.cotangents[op.results[0]], mode & modes.TRANSFORM, modes.axes_of(mode)[-1]
    other = mode ^ modes.BACKWARD
    if kind == modes.C2C:
        sweep.add(value, _transform(cotangent, op, value.type, other))
        return
    other = other & ~(modes.TRANSFORM | modes.ODD)
    if kind == modes.R2C:
        size = value.type.shape[axis]
        odd = modes.ODD if size % 2 else 0
        weighted = _weighted(cotangent, axis, size, 0.5)
        sweep.add(value, _transform(weighted, op, value.type, other | modes.C2R | odd))
        return
    found = _transform(cotangent, op, value.type, other | modes.R2C)
    sweep.add(value, _weighted(found, axis, cotangent.type.shape[axis], 2.0))


def _mode(op: mlir.Operation) -> int:
    return int(mlir.IntegerAttr(op.attributes["mode"]).value)


def _transform(value: mlir.Value, op: mlir.Operation, type_: mlir.Type, mode: int) -> mlir.Value:
    """`mlirml.fft` of a value, with elements as those of `op`."""
    wide = "64" in str(type_.element_type)
    kind = ("f64" if wide else "f32") if mode & modes.TRANSFORM == modes.R2C else "c128" if wide else "c64"
    attributes = {"kind": mlir.StringAttr.get(kind), "mode": emit.i64(mode)}
    return emit.create(op.name, [value, emit.empty(type_)], [type_], attributes).results[0]


def _weighted(spectrum: mlir.Value, axis: int, size: int, factor: float) -> mlir.Value:
    """The bins along an axis of a transform of `size` real numbers, times a factor where they have a conjugate."""
    type_, rank = spectrum.type, len(spectrum.type.shape)

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        bin_ = emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(axis))
        single = emit.compare("eq", bin_, emit.index(0))
        if size % 2 == 0:
            single = emit.same_type("arith.ori", single, emit.compare("eq", bin_, emit.index(size // 2)))
        one, other = (emit.number(type_.element_type, x) for x in (1.0, factor))
        weight = emit.value("arith.select", [single, one, other], type_.element_type)
        return [emit.same_type("arith.mulf", xs[0], weight)]

    maps = [mlir.AffineMap.get_identity(rank)] * 2
    return emit.generic([spectrum], [emit.empty(type_)], maps, ["parallel"] * rank, body).results[0]
