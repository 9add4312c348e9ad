"""Compactions of elements under masks: they move elements, as a gather does, and their transposes move them back."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.autodiff import tensors
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.reverse import Sweep, transpose
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


@pushforward("mlirml.compress")
def moved(push: Push, op: mlir.Operation) -> None:
    """The tangents of the elements that are moved."""
    mask, counts, values, _ = op.operands
    type_ = op.results[0].type
    tangent = push.of(values)
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [mask, counts, tangent, emit.empty(type_)]
    push.tangents[op.results[0]] = emit.value(op.name, operands, type_, **attributes)


@transpose("mlirml.compress")
def moved_back(sweep: Sweep, op: mlir.Operation) -> None:
    """Each element goes back to its position; what is undefined is not read."""
    mask, counts, values, _ = op.operands
    if not sweep.is_active(values):
        return
    cotangent, type_, index = sweep.cotangents[op.results[0]], values.type, mlir.IndexType.get()
    rows, size, *rest = type_.shape
    integers = mlir.RankedTensorType.get([rows, size], mlir.IntegerType.get_signless(64))
    kind = mlir.StringAttr.get("i64")
    positions = emit.value("mlirml.positions", [mask, counts, emit.empty(integers)], integers, kind=kind)
    one, last = emit.index(1), emit.index(counts.type.shape[1] - 1)

    def row(number: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        total = emit.value("tensor.extract", [counts, number, last], integers.element_type)
        count = emit.value("arith.index_cast", [total], index)

        def element(k: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            found = emit.value("tensor.extract", [positions, number, k], integers.element_type)
            at = emit.value("arith.index_cast", [found], index)

            def store(where: list[mlir.Value], array: mlir.Value) -> mlir.Value:
                new = emit.value("tensor.extract", [cotangent, number, k, *where], type_.element_type)
                return emit.value("tensor.insert", [new, array, number, at, *where], array.type)

            return [_loops(rest, inner[0], store)]

        return emit.for_loop(emit.index(0), count, one, element, carried)

    result = emit.for_loop(emit.index(0), emit.index(rows), one, row, [tensors.zeros_like(values)])[0]
    sweep.add(values, result, op.results[0] in sweep.masked)


def _loops(
    sizes: list[int], array: mlir.Value, store: Callable[[list[mlir.Value], mlir.Value], mlir.Value]
) -> mlir.Value:
    """Loops over all indices that carry an array."""

    def level(number: int, indices: list[mlir.Value], value: mlir.Value) -> mlir.Value:
        if number == len(sizes):
            return store(indices, value)
        last = emit.index(sizes[number])
        return emit.for_loop(
            emit.index(0), last, emit.index(1), lambda i, xs: [level(number + 1, [*indices, i], xs[0])], [value]
        )[0]

    return level(0, [], array)
