"""What a round of a loop saves for the way back: the fewest bytes from which the rest is computed again cheaply.

Before:
    the derivative of a round reads %h = tanh(%p), %p = contract(%c, %w), and computes both again from the carried %c
After:
    %p is saved, and %h computed again: contractions are not

Values are the nodes of a network, whose capacity is their bytes. What is carried flows in, what derivatives read flows
out, and an operation lets through what it is computed again from. Contractions, convolutions, reductions of much into
little, sorts and loops are not computed again: what they give flows in, too. The values at a minimum cut are saved
(Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016, give the idea; Ford and Fulkerson the
cut).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.minimum_cut import Network
from mlirml.analysis.values import used_values
from mlirml.autodiff.structured import Structured
from mlirml.dialects.mlirml import FACTORIZATIONS, SORTS
from mlirml.ir.bindings import mlir

_COSTLY = ("linalg.matmul", "linalg.batch_", "linalg.mat", "linalg.vec", "linalg.dot", "linalg.con", "linalg.depthwise")
_LOOPS = ("scf.", *SORTS, *FACTORIZATIONS)
_LITTLE = 1 << 12
"""Points of an iteration space below which nothing is costly."""
_MORE_VALUES = 1 << 10
"""So many values more are better than a byte more: of cuts of one size, that of the fewest values is taken.

An array is kept rather than the slices of it, which would have to be copied, in whatever order they are read.
"""


def is_costly(op: mlir.Operation) -> bool:
    """True if an operation takes much more than to read its result."""
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
    """What a value takes in memory; None where that is not known."""
    kind = value.type
    tensor = isinstance(kind, mlir.RankedTensorType)
    element = kind.element_type if tensor else kind
    if tensor and not kind.has_static_shape:
        return None
    count: int = math.prod(kind.shape) if tensor else 1
    return count * max(1, int(getattr(element, "width", 64)) // 8)


def saved_values(
    ops: Sequence[mlir.Operation], carried: Sequence[mlir.Value], live: set[mlir.Value]
) -> list[mlir.Value] | None:
    """Which results of `ops`, and `carried` values, to save; None where what is carried does.

    `ops` are those of a round, computed again from what it began with; `live` is what the derivative depends on.
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
    """True if something live reads a value, other than to compute the round again."""
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
