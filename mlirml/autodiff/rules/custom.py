"""Functions with derivatives of their own, and functions that are computed again, in reverse mode.

    %0 = mlirml.custom_input %x {group = 0}
    ... the function ...
    %1 = mlirml.custom_output %y {group = 0}
    %2 = mlirml.custom_cotangent %1 {group = 0}       stands for the cotangent of %1
    ... what the user makes of it ...
    mlirml.custom_gradient %0, %g {group = 0}

Or, by the rule for tangents:

    %0 = mlirml.custom_primal %x {group = 0, depth = 1}
    %1 = mlirml.custom_tangent %0 {group = 0, depth = 1}         stands for the tangent of %x
    ... what the user makes of both ...
    %2 = mlirml.custom_result %y, %dy {group = 0, depth = 1}

Nothing is differentiated between those; the tangents go through a copy of what depends on %1, and reverse mode
transposes such a copy. `depth` is the number of derivatives that are taken: where there are more to come, what the
tangents are multiplied with is copied too, to be differentiated outside.

What is behind the outputs is dead code until a sweep comes to the inputs and builds it again with the cotangents. The
function itself is differentiated as far as its residuals depend on the arguments, for derivatives of derivatives.
"""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.copies import copied_ops
from mlirml.autodiff.reverse import Sweep, active_values, group_of, transpose, used_by
from mlirml.errors import NoDerivativeError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location

_CONTRACTIONS = ("linalg.matmul", "linalg.batch_", "linalg.mat", "linalg.vec", "linalg.dot", "linalg.con")


def _of_group(op: mlir.Operation, name: str) -> list[mlir.Operation]:
    """The operations of this name in the group of `op`, in its block."""
    return [other for other in block_ops(op.block) if other.name == name and group_of(other) == group_of(op)]


@transpose("mlirml.custom_output")
def custom_output(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent waits for the inputs."""
    inputs, ops = _of_group(op, "mlirml.custom_input"), block_ops(op.block)
    inside = ops[ops.index(inputs[0]) + 1 : ops.index(op)] if inputs else []
    arguments = [x.results[0] for x in inputs]
    outer = {x for other in inside for x in used_by(other) if sweep.is_active(x) and x not in arguments}
    outer -= {r for other in inside for r in other.results}
    if outer and op.operands[0] in active_values([x for x in inside if x not in inputs], outer):
        raise refuse_outer(op, "custom_vjp")


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


def tangent_program(
    outputs: list[mlir.Operation], tangents: dict[mlir.Value, mlir.Value]
) -> tuple[list[mlir.Operation], list[mlir.Value | None]]:
    """Build again what depends on tangents, with others in their place; with the tangents of `outputs`."""
    seeds = _of_group(outputs[0], "mlirml.custom_tangent")
    ops = block_ops(outputs[0].block)
    inside = ops[ops.index(seeds[0]) : ops.index(outputs[0])] if seeds else []
    environment = {seed.results[0]: tangents[seed.operands[0]] for seed in seeds}
    wanted = _depending(inside, [seed.results[0] for seed in seeds])
    if int(mlir.IntegerAttr(outputs[0].attributes["depth"]).value) > 1:
        inputs = _of_group(outputs[0], "mlirml.custom_primal")
        environment |= {x.results[0]: x.operands[0] for x in inputs}
        wanted = _needed(inside, wanted, [x.results[0] for x in (*inputs, *seeds)])
    copies = copied_ops(wanted, environment)
    return copies, [environment.get(op.operands[1]) for op in outputs]


def _depending(ops: list[mlir.Operation], values: list[mlir.Value]) -> list[mlir.Operation]:
    """The operations that depend on values."""
    found, depending = set(values), []
    for op in ops:
        if op.results and op.results[0] not in found and any(x in found for x in used_by(op)):
            depending.append(op)
            found.update(op.results)
    return depending


def _needed(ops: list[mlir.Operation], ends: list[mlir.Operation], begin: list[mlir.Value]) -> list[mlir.Operation]:
    """The operations `ends`, and what they need of what depends on `begin`."""
    depending = _depending(ops, begin)
    found, needed = {x for op in ends for x in op.results}, []
    for op in reversed(depending):
        if any(r in found for r in op.results):
            needed.append(op)
            found.update(used_by(op))
    return needed[::-1]


def custom_parts(op: mlir.Operation) -> tuple[list[mlir.Operation], list[mlir.Operation]]:
    """The arguments and the results of the function that `op` is a result of."""
    return _of_group(op, "mlirml.custom_primal"), _of_group(op, "mlirml.custom_result")


def refuse_outer(op: mlir.Operation, transform: str) -> NoDerivativeError:
    """The error for a function that is differentiated by what is none of its arguments."""
    return NoDerivativeError(
        f"a function with `ml.{transform}` uses a float from outside by which is differentiated",
        location=source_location(op.location),
        help="pass it to the function as an argument, or put it into `ml.stop_gradient`",
    )


@transpose("mlirml.custom_result")
def custom_result(sweep: Sweep, op: mlir.Operation) -> None:
    """What the user makes of tangents, transposed."""
    inputs, outputs = custom_parts(op)
    if op.operands[0] in sweep.active and op.results[0] in sweep.cotangents:
        raise refuse_outer(op, "custom_jvp")
    if op != outputs[0] or not any(x.results[0] in sweep.cotangents for x in outputs):
        return  # what uses a result may stand in front of the next one: when the first is met all has come
    # Zeros, of which a linear function reads nothing but that they are there.
    tangents = {x.results[0]: tensors.zeros_like(x.operands[0]) for x in inputs}
    copies, moves = tangent_program(outputs, tangents)
    wanted = [x for x in inputs if sweep.is_active(x.operands[0])]
    roots = [tangents[x.results[0]] for x in wanted]
    inner = Sweep(active_values(copies, roots), sweep.checkpoint_bytes, sweep.dead)
    masked = any(x.results[0] in sweep.masked for x in outputs)
    for output, move in zip(outputs, moves):
        cotangent = sweep.cotangents.get(output.results[0])
        if cotangent is not None and move is not None:
            inner.add(move, cotangent, masked)
    inner.run(copies)
    for x, root in zip(wanted, roots):
        if root in inner.cotangents:
            sweep.add(x.operands[0], inner.cotangents[root], masked or root in inner.masked)


@transpose("mlirml.again_output")
def again_output(sweep: Sweep, op: mlir.Operation) -> None:
    """The function is built again, behind a barrier that keeps it from being merged with the first time, and swept."""
    outputs = _of_group(op, "mlirml.again_output")
    if op != outputs[0]:
        return  # what uses a result may stand in front of the next one
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
