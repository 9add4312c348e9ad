"""Factorizations by a library: the batched form is a larger stack, and there is no derivative.

Capture builds them in functions with custom derivatives (`capture/linear_algebra.py`), which are expanded before their
bodies.
"""

from __future__ import annotations

from mlirml.autodiff.batching import Batch, batching
from mlirml.autodiff.bodies import refuse
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.reverse import Sweep, transpose
from mlirml.autodiff.rules.batch_linalg import _joined, _parted
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import FACTORIZATIONS, LIBRARY_CALLS


@batching(*LIBRARY_CALLS)
def batched(batch: Batch, op: mlir.Operation) -> None:
    """The matrices of all lanes are one stack."""
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
