"""Compile a module for the CPU and run it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.ir.bindings import mlir, parse
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target

Array = npt.NDArray[Any]


def compiled(text: str, stop_after: str | None = None) -> mlir.Module:
    """The module after the CPU pipeline, or up to a stage."""
    module = parse(text)
    cpu_target().pipeline.run(module, stop_after=stop_after)
    return module


def run(text: str, inputs: list[Array], results: list[Array]) -> list[Array]:
    """Call @main; `results` are arrays with the shapes and dtypes of the results."""
    artifact = codegen(compiled(text))
    program = load_artifact(artifact, [(a.dtype, a.shape) for a in inputs], [(r.dtype, r.shape) for r in results])
    return [np.asarray(out) for out in program(inputs)]
