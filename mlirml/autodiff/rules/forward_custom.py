"""Pushforward of functions with custom derivatives: the user's tangent rule."""

from __future__ import annotations

from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.rules.custom import custom_parts, refuse_outer, tangent_program
from mlirml.ir.bindings import mlir


@pushforward("mlirml.custom_result")
def custom_result(push: Push, op: mlir.Operation) -> None:
    """The tangents of all results, after the first of them."""
    inputs, outputs = custom_parts(op)
    if op.operands[0] in push.tangents:
        raise refuse_outer(op, "custom_jvp")
    if op != outputs[0] or not any(x.operands[0] in push.tangents for x in inputs):
        return
    constants = [x.results[0] for x in inputs if x.operands[0] not in push.tangents]
    _, moves = tangent_program(outputs, {x.results[0]: push.of(x.operands[0]) for x in inputs}, constants)
    for output, move in zip(outputs, moves):
        if move is not None:
            push.tangents[output.results[0]] = move
