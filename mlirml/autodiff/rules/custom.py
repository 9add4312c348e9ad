"""Functions with derivatives of their own, and functions that are computed again, in reverse mode.

    %0 = mlirml.custom_input %x {group = 0}
    ... the function ...
    %1 = mlirml.custom_output %y {group = 0}
    %2 = mlirml.custom_cotangent %1 {group = 0}       stands for the cotangent of %1
    ... what the user makes of it ...
    mlirml.custom_gradient %0, %g {group = 0}

What is behind the outputs is dead code until a sweep comes to the inputs and builds it again with the cotangents. The
function itself is differentiated as far as its residuals depend on the arguments, for derivatives of derivatives.
"""

from __future__ import annotations

from mlirml.autodiff.reverse import Sweep, active_values, group_of, transpose
from mlirml.autodiff.rules.control import copied_ops
from mlirml.dialects import emit
from mlirml.ir import block_ops, mlir

_CONTRACTIONS = ("linalg.matmul", "linalg.batch_", "linalg.mat", "linalg.vec", "linalg.dot", "linalg.con")


def _of_group(op: mlir.Operation, name: str) -> list[mlir.Operation]:
    """The operations of this name in the group of `op`, in its block."""
    return [other for other in block_ops(op.block) if other.name == name and group_of(other) == group_of(op)]


@transpose("mlirml.custom_output")
def custom_output(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent waits for the inputs."""


@transpose("mlirml.custom_input")
def custom_input(sweep: Sweep, op: mlir.Operation) -> None:
    """What the user makes of the cotangents of the outputs, and what comes by way of the residuals."""
    number = group_of(op)
    if number not in sweep.given:
        sweep.given[number] = _given(sweep, op)
    value, masked = op.operands[0], op.results[0] in sweep.masked
    if not sweep.is_active(value):
        return
    for cotangent in (sweep.given[number].get(op.results[0]), sweep.cotangents.get(op.results[0])):
        if cotangent is not None:
            sweep.add(value, cotangent, masked)


def _given(sweep: Sweep, op: mlir.Operation) -> dict[mlir.Value, mlir.Value]:
    """The user's cotangents, by the inputs."""
    seeds, ends = _of_group(op, "mlirml.custom_cotangent"), _of_group(op, "mlirml.custom_gradient")
    outputs = [seed.operands[0] for seed in seeds]
    if not ends or not any(output in sweep.cotangents for output in outputs):
        return {}
    environment = {seed.results[0]: sweep.of(output) for seed, output in zip(seeds, outputs)}
    ops = block_ops(op.block)
    inside = ops[ops.index(seeds[0]) : ops.index(ends[-1])]
    copied_ops([inner for inner in inside if inner not in seeds and inner not in ends], environment)
    return {end.operands[0]: environment.get(end.operands[1], end.operands[1]) for end in ends}


@transpose("mlirml.again_output")
def again_output(sweep: Sweep, op: mlir.Operation) -> None:
    """The function is built again, behind a barrier that keeps it from being merged with the first time, and swept."""
    outputs = _of_group(op, "mlirml.again_output")
    if op != outputs[-1]:
        return
    inputs = _of_group(op, "mlirml.again_input")
    ops = block_ops(op.block)
    inside = ops[ops.index(inputs[0]) : ops.index(outputs[0])] if inputs else []
    environment = {x.results[0]: emit.value("mlirml.barrier", [x.operands[0]], x.results[0].type) for x in inputs}
    keeps = mlir.StringAttr(op.attributes["policy"]).value == "contractions"
    again = [x for x in inside if x not in inputs and not (keeps and x.name.startswith(_CONTRACTIONS))]
    copies = copied_ops(again, environment)
    roots = {environment[x.results[0]] for x in inputs if sweep.is_active(x.operands[0])}
    sweep.active |= active_values(copies, roots | sweep.active)
    for output in outputs:
        cotangent = sweep.cotangents.get(output.results[0])
        if cotangent is not None:
            value = environment.get(output.operands[0], output.operands[0])
            sweep.add(value, cotangent, output.results[0] in sweep.masked)
    sweep.run(copies)
    for x in inputs:
        new = environment[x.results[0]]
        if new in sweep.cotangents and sweep.is_active(x.operands[0]):
            sweep.add(x.operands[0], sweep.cotangents[new], new in sweep.masked)


@transpose("mlirml.again_input", "mlirml.barrier")
def passed_on(sweep: Sweep, op: mlir.Operation) -> None:
    """What the first time is still needed for."""
    if sweep.is_active(op.operands[0]) and op.results[0] in sweep.cotangents:
        sweep.add(op.operands[0], sweep.cotangents[op.results[0]], op.results[0] in sweep.masked)
