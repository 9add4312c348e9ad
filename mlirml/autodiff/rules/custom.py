"""Functions with custom derivatives, and rematerialized functions, in reverse mode.

    %0 = mlirml.custom_input %x {group = 0}
    ... the function ...
    %1 = mlirml.custom_output %y {group = 0}
    %2 = mlirml.custom_cotangent %1 {group = 0}       placeholder of the cotangent of %1
    ... the user's rule ...
    mlirml.custom_gradient %0, %g {group = 0}

Or, by the rule for tangents:

    %0 = mlirml.custom_primal %x {group = 0, depth = 1}
    %1 = mlirml.custom_tangent %0 {group = 0, depth = 1}         placeholder of the tangent of %x
    ... the user's rule ...
    %2 = mlirml.custom_result %y, %dy {group = 0, depth = 1}

The code between those markers is not differentiated; the tangents go through a clone of the operations that depend on
%1, and reverse mode transposes such a clone. `depth` is the number of nested derivatives: for derivatives of
derivatives, the factors of the tangents are cloned too, to be differentiated by the outer one.

The code after the outputs is dead until reverse mode reaches the inputs and clones it with the cotangents. The function
itself is differentiated as far as its residuals depend on the arguments, for derivatives of derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.values import outer_variables
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.copies import copied_ops, recomputed_ops
from mlirml.autodiff.liveness import first_reader
from mlirml.autodiff.reverse import Sweep, active_values, group_of, transpose
from mlirml.errors import NoDerivativeError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location

_RULE_MARKERS = ("mlirml.custom_primal", "mlirml.custom_tangent", "mlirml.custom_result")
_PLACEHOLDERS = ("mlirml.custom_tangent", "mlirml.custom_cotangent")
_CONTRACTIONS = ("linalg.matmul", "linalg.batch_", "linalg.mat", "linalg.vec", "linalg.dot", "linalg.con")


def _of_group(op: mlir.Operation, name: str) -> list[mlir.Operation]:
    """The operations of this name in the group of `op`, in its block."""
    return [other for other in block_ops(op.block) if other.name == name and group_of(other) == group_of(op)]


@transpose("mlirml.custom_output")
def custom_output(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent is used by the rule of the inputs."""
    inputs, ops = _of_group(op, "mlirml.custom_input"), block_ops(op.block)
    body = ops[ops.index(inputs[0]) + 1 : ops.index(op)] if inputs else []
    arguments = [x.results[0] for x in inputs]
    outer = {x for other in body for x in outer_variables(other) if sweep.is_active(x) and x not in arguments}
    outer -= {r for other in body for r in other.results}
    if outer and op.operands[0] in active_values([x for x in body if x not in inputs], outer):
        raise refuse_outer(op, "custom_vjp")


@transpose("mlirml.custom_input")
def custom_input(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangents by the user's rule, and those by way of the residuals."""
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
    """The cotangents by the user's rule, by the inputs."""
    seeds, ends = _of_group(op, "mlirml.custom_cotangent"), _of_group(op, "mlirml.custom_gradient")
    outputs = [seed.operands[0] for seed in seeds]
    if not ends or not any(output in sweep.cotangents for output in outputs):
        return {}
    environment = {seed.results[0]: sweep.of(output) for seed, output in zip(seeds, outputs)}
    ops = block_ops(op.block)
    body = ops[ops.index(seeds[0]) : ops.index(ends[-1])]
    copied_ops([inner for inner in body if inner not in seeds and inner not in ends], environment)
    return {end.operands[0]: environment.get(end.operands[1], end.operands[1]) for end in ends}


def tangent_program(
    outputs: list[mlir.Operation], tangents: dict[mlir.Value, mlir.Value], constants: Sequence[mlir.Value] = ()
) -> tuple[list[mlir.Operation], list[mlir.Value | None]]:
    """Clone the operations that depend on tangents, for other tangents; returns also the tangents of `outputs`.

    The tangents of `constants` are zeros: as a rule is linear, so is what depends on these only, which is not cloned.
    """
    seeds = _of_group(outputs[0], "mlirml.custom_tangent")
    ops = block_ops(outputs[0].block)
    inputs = _of_group(outputs[0], "mlirml.custom_primal")
    # From the first input on: a read of an element of it is written there, before the next input.
    body = ops[ops.index(inputs[0]) + 1 : ops.index(outputs[0])] if seeds else []
    environment = {seed.results[0]: tangents[seed.operands[0]] for seed in seeds}
    wanted = _depending(body, [seed.results[0] for seed in seeds])
    if int(mlir.IntegerAttr(outputs[0].attributes["depth"]).value) > 1:
        environment |= {x.results[0]: x.operands[0] for x in inputs}
        wanted = _needed(body, wanted, [x.results[0] for x in (*inputs, *seeds)])
    elif constants:
        moving = _depending(body, [seed.results[0] for seed in seeds if seed.operands[0] not in constants])
        zeros = [op for op in wanted if op not in moving and all(is_float(r.type) for r in op.results)]
        environment |= {r: tensors.zeros_like(r) for op in zeros for r in op.results}
        wanted = [op for op in wanted if op not in zeros]
    copies = copied_ops(wanted, environment)
    return copies, [environment.get(op.operands[1]) for op in outputs]


def _depending(ops: list[mlir.Operation], values: list[mlir.Value]) -> list[mlir.Operation]:
    """The operations that depend on `values`.

    With a marker of a custom function in it go all of that function's: the clone of its rule needs the placeholders of
    all tangents, those of constants, too, which are zero.
    """
    groups: set[int] = set()
    while True:
        found, depending = set(values), []
        for op in ops:
            if not op.results or op.results[0] in found:
                continue
            if any(x in found for x in outer_variables(op)) or (op.name in _RULE_MARKERS and group_of(op) in groups):
                depending.append(op)
                found.update(op.results)
        met = {group_of(op) for op in depending if op.name in _RULE_MARKERS}
        if met <= groups:
            return depending
        groups |= met


def _needed(ops: list[mlir.Operation], ends: list[mlir.Operation], begin: list[mlir.Value]) -> list[mlir.Operation]:
    """The operations `ends`, and their operands' definitions that depend on `begin`."""
    depending = _depending(ops, begin)
    found, needed = {x for op in ends for x in op.results}, []
    for op in reversed(depending):
        if any(r in found for r in op.results):
            needed.append(op)
            found.update(outer_variables(op))
    return needed[::-1]


def custom_parts(op: mlir.Operation) -> tuple[list[mlir.Operation], list[mlir.Operation]]:
    """The arguments and the results of the custom function that `op` is a result of."""
    return _of_group(op, "mlirml.custom_primal"), _of_group(op, "mlirml.custom_result")


def refuse_outer(op: mlir.Operation, transform: str) -> NoDerivativeError:
    """The error for a function that captures a differentiated value which is no argument.

    A function of this package that is not differentiable by some arguments has its message with it.
    """
    if "refusal" in op.attributes:
        message, help_ = (mlir.StringAttr(text).value for text in mlir.ArrayAttr(op.attributes["refusal"]))
        return NoDerivativeError(message, location=source_location(op.location), help=help_)
    return NoDerivativeError(
        f"a function with `ml.{transform}` uses a float from outside by which is differentiated",
        location=source_location(op.location),
        help="pass it to the function as an argument, or put it into `ml.stop_gradient`",
    )


@transpose("mlirml.custom_result")
def custom_result(sweep: Sweep, op: mlir.Operation) -> None:
    """Transpose the user's tangent rule."""
    inputs, outputs = custom_parts(op)
    if op.operands[0] in sweep.active and op.results[0] in sweep.cotangents:
        raise refuse_outer(op, "custom_jvp")
    if op != outputs[0] or not any(x.results[0] in sweep.cotangents for x in outputs):
        return  # a user of one result may be before the next one: all cotangents are known at the first
    # Zeros, of which a linear function only reads the type.
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
    if copies:
        found = [inner.cotangents[root] for root in roots if root in inner.cotangents]
        check_linear(copies, active_values(copies, tangents.values()), found)
    for x, root in zip(wanted, roots):
        if root in inner.cotangents:
            sweep.add(x.operands[0], inner.cotangents[root], masked or root in inner.masked)


def check_linear(copies: list[mlir.Operation], tangents: set[mlir.Value], cotangents: list[mlir.Value]) -> None:
    """Raise an error if cotangents, computed after the copies of a rule, depend on tangents: the rule is not linear."""
    reader = first_reader(tangents, cotangents, copies[0])
    if reader is not None:
        raise NoDerivativeError(
            "the rule of a function with `ml.custom_jvp` is not linear in the tangents",
            location=source_location(reader.location),
            help="write the tangent of the result as a sum of tangents times factors that depend on the primals alone",
        )


@transpose("mlirml.again_output")
def again_output(sweep: Sweep, op: mlir.Operation) -> None:
    """Clone the function after a barrier that prevents CSE with the original, and propagate cotangents through it."""
    outputs = _of_group(op, "mlirml.again_output")
    if op != outputs[0]:
        return  # a user of one result may be before the next one
    inputs = _of_group(op, "mlirml.again_input")
    ops = block_ops(op.block)
    body = ops[ops.index(inputs[0]) : ops.index(outputs[0])] if inputs else []
    environment = {x.results[0]: emit.value("mlirml.barrier", [x.operands[0]], x.results[0].type) for x in inputs}
    keeps = mlir.StringAttr(op.attributes["policy"]).value == "contractions"
    # Contractions of rules are part of the rules: they have no values before there are tangents or cotangents.
    of_rules = _depending(body, [x.results[0] for x in body if x.name in _PLACEHOLDERS]) if keeps else []
    wanted = [
        x for x in body if x not in inputs and not (keeps and x.name.startswith(_CONTRACTIONS) and x not in of_rules)
    ]
    copies = recomputed_ops(wanted, environment)
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
    """The cotangents that the original function still needs."""
    if sweep.is_active(op.operands[0]) and op.results[0] in sweep.cotangents:
        sweep.add(op.operands[0], sweep.cotangents[op.results[0]], op.results[0] in sweep.masked)
