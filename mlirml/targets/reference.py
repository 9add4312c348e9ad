"""The target `reference` of `compile(target="reference")`: the captured module, run by the interpreter."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.errors import LaunchError
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding
from mlirml.targets.cpu import buffer
from mlirml.targets.target import Target, target

# The interpreter has one MLIR context for each program, and contexts are not safe to use from several threads.
_LOCK = threading.RLock()


def _remake_lock() -> None:
    """Replace the lock in a forked child: the thread that may hold it does not exist there."""
    global _LOCK
    _LOCK = threading.RLock()


os.register_at_fork(after_in_child=_remake_lock)


@target("reference")
@cache
def reference_target() -> Target:
    """The target that interprets the captured module, with derivatives and batches expanded, without library calls."""
    return Target(
        name="reference",
        stages=(("raise", "mlirml-choose-library"), ("transform", "mlirml-checkpoint,mlirml-expand"), ("optimize", "")),
        codegen=codegen,
        open=load,
        about="interprets the captured IR in NumPy: slow, for checking the other targets",
    )


def codegen(module: Any) -> Artifact:
    """The module's text is the artifact."""
    from mlirml.ir.bindings import main_function, mlir, to_text

    operation = getattr(module, "operation", module)
    function_type = mlir.FunctionType(mlir.TypeAttr(main_function(operation).attributes["function_type"]).value)
    return Artifact(
        object=to_text(operation).encode(),
        entry="main",
        inputs=tuple(map(buffer, function_type.inputs)),
        outputs=tuple(map(buffer, function_type.results)),
        format="mlir",
    )


class InterpretedProgram:
    """A program that the interpreter runs; it is called like the native `Program`."""

    def __init__(self, artifact: Artifact, binding: Binding) -> None:
        from mlirml.interpreter.program import Program
        from mlirml.ir.bindings import parse

        with _LOCK:
            self._module = parse(artifact.object.decode())
            self._program = Program(self._module.operation)  # prepared at the first call
        self._binding = binding

    def __call__(self, leaves: Iterable[Any], outputs: Iterable[Any] | None = None) -> list[npt.NDArray[Any]]:
        """Run on arrays and scalars; the results, stored into `outputs` if given."""
        from mlirml.interpreter.host_calls import calling
        from mlirml.interpreter.interpreter import interpret

        values, binding = list(leaves), self._binding
        arguments = [_as_input(v, np.dtype(d)).reshape(s) for v, (d, s) in zip(values, binding.inputs)]
        constants = [np.array(c, order="C") for c in binding.constants]
        with _LOCK, calling(binding.host):
            raw = interpret(self._program, [_parts(a) for a in (*arguments, *constants)])
        # The interpreter returns signed integers.
        results = [np.array(r).view(d).reshape(s) for r, (d, s) in zip(raw, binding.outputs)]
        for output, position in binding.writebacks:
            values[position][...] = results[output]
        return [_given(out, result) for out, result in zip(outputs, results)] if outputs is not None else results


def _parts(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A complex array in the program's layout: real and imaginary parts along an added last dimension."""

    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(f"f{array.dtype.itemsize // 2}").reshape(*array.shape, 2)


def _as_input(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if type(value) is int and value >= 2**63:  # as the bits of an unsigned integer
        return np.array(value, np.uint64).view(dtype)
    return np.ascontiguousarray(value, dtype)


def _given(out: Any, result: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if out is None:
        return result
    out[...] = result
    return out


def load(artifact: Artifact, binding: Binding) -> InterpretedProgram:
    """A program from an artifact of this target.

    The caller checks the values of integers and what is stored into: `mlirml.driver.argument_errors`.
    """
    if artifact.format != "mlir":
        raise LaunchError(f"the reference target runs MLIR modules, not {artifact.format!r}")
    return InterpretedProgram(artifact, binding)
