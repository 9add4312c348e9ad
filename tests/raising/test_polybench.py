"""The algorithms of PolyBench compute the same numbers raised, and keep only the loops that carry something."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from benchmarks.polybench import KERNELS
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.cpu import RAISE

# Time steps, recurrences, factorisations; all others have none.
LOOPS = {
    "jacobi-1d": 1, "jacobi-2d": 1, "heat-3d": 1, "fdtd-2d": 1, "seidel-2d": 3, "adi": 7, "lu": 2, "ludcmp": 4,
    "cholesky": 2, "gramschmidt": 1, "trisolv": 1, "durbin": 1, "floyd-warshall": 3, "deriche": 8, "nussinov": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str) -> None:
    kernel = KERNELS[name]
    captured = ml.compile(kernel.function, frontend="loops").trace(*kernel.arguments(6))
    module = parse(captured.text)
    parse_pipeline(",".join(RAISE)).run(module)
    expected = kernel.arguments(6)
    results = interpret(module, [*kernel.arguments(6), *captured.constants])
    kernel.function(*expected)
    for output, argument in captured.writebacks:
        np.testing.assert_allclose(results[output], expected[argument], rtol=1e-9, atol=1e-12)
    assert sum(op.name == "scf.for" for op in operations(module.operation)) == LOOPS.get(name, 0)
