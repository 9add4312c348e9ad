"""Values that a loop iteration saves for the reverse pass: the fewest bytes from which the rest is cheap to recompute.

Before:
    the derivative of an iteration reads %h = tanh(%p), %p = contract(%c, %w), and recomputes both from the carried %c
After:
    %p is saved, and %h recomputed: contractions are not

Values are the nodes of a flow network whose capacity is their bytes. Carried values are connected to the source, values
that derivatives read to the sink, and an operation connects its operands to its results if it may be recomputed.
Contractions, convolutions, reductions of many elements to few, sorts and loops are not recomputed: their results are
connected to the source, too. The values at a minimum cut are saved (the idea is from Chen, Xu, Zhang, Guestrin,
Training Deep Nets with Sublinear Memory Cost, 2016; the cut from Ford and Fulkerson).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.minimum_cut import Network
from mlirml.analysis.values import used_values
from mlirml.autodiff.structured import Structured
from mlirml.dialects.mlirml import SORTS
from mlirml.ir.bindings import mlir
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS

_COSTLY = ("linalg.matmul", "linalg.batch_", "linalg.mat", "linalg.vec", "linalg.dot", "linalg.con", "linalg.depthwise")
_LOOPS = ("scf.", *SORTS, *LIBRARY_CALLS, *COMPACTIONS)
_LITTLE = 1 << 12
"""Points of an iteration space below which no operation is costly."""
_MORE_VALUES = 1 << 10
"""The number of additional values that are preferred to one additional byte: of cuts of one size, the one with the
fewest values is taken.

A tensor is saved rather than its slices, which would have to be copied.
"""


def is_costly(op: mlir.Operation) -> bool:
    """True if recomputing an operation costs much more than reading its result."""
    if op.name.startswith(_LOOPS):
        return True
    if not op.name.startswith("linalg.") or op.name == "linalg.fill" or not op.results:
        return False
    if not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    points, elements = math.prod(Structured.of(op).sizes), math.prod(op.results[0].type.shape)
    if points < _LITTLE:
        return False
    return bool(op.name.startswith(_COSTLY) or points >= 16 * elements)


def row_bytes(value: mlir.Value) -> int | None:
    """The bytes of a value; None for a dynamic shape."""
    type_ = value.type
    tensor = isinstance(type_, mlir.RankedTensorType)
    element = type_.element_type if tensor else type_
    if tensor and not type_.has_static_shape:
        return None
    count: int = math.prod(type_.shape) if tensor else 1
    return count * max(1, int(getattr(element, "width", 64)) // 8)


def saved_values(
    ops: Sequence[mlir.Operation], carried: Sequence[mlir.Value], live: set[mlir.Value]
) -> list[mlir.Value] | None:
    """Results of `ops`, and `carried` values, to save; None if the carried values suffice.

    `ops` are those of an iteration, recomputed from its carried values; `live` are the values that the derivative
    depends on.
    """
    ops = [op for op in ops if any(r in live for r in op.results)]
    if not any(is_costly(op) for op in ops):
        return None
    network = Network()
    nodes = {value: number for number, value in enumerate([*carried, *(r for op in ops for r in op.results)])}
    values = list(nodes)
    for value, number in nodes.items():
        size = row_bytes(value)
        network.add_edge((number, "in"), (number, "out"), None if size is None else _MORE_VALUES * size + 1)
        if _is_read(value, ops, live):
            network.add_edge((number, "out"), "end")
    for value in carried:
        network.add_edge("begin", (nodes[value], "in"))
    for op in ops:
        given = dict.fromkeys(x for x in used_values(op) if x in nodes)
        for result in op.results:
            if is_costly(op):
                network.add_edge("begin", (nodes[result], "in"))
            for x in () if is_costly(op) else given:
                network.add_edge((nodes[x], "out"), (nodes[result], "in"))
    after = network.minimum_cut("begin", "end")
    if after is None:
        return None
    return [v for number, v in enumerate(values) if (number, "in") not in after and (number, "out") in after]


def _is_read(value: mlir.Value, ops: Sequence[mlir.Operation], live: set[mlir.Value]) -> bool:
    """True if a live operation reads a value, other than to recompute the iteration."""
    block = ops[0].block
    for use in value.uses:
        user = use.owner.operation
        while user.block != block:
            user = user.parent.operation
        if user in ops:
            continue
        if not user.results or any(r in live for r in user.results):
            return True
    return False
