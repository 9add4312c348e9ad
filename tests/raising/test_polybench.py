"""The algorithms of PolyBench compute the same numbers raised, and keep only the loops that carry something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirml.ir import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.stages import load_passes
from mlirml.targets.reference import interpret
from tests.raising.loop_text import loop_module
from tests.raising.polybench import KERNELS, M, N

PIPELINE = "canonicalize,cse,mlirml-raise{everything=true},canonicalize,cse,mlirml-recognise,canonicalize,cse"
DENSE = 15
"""Of so many nothing but operations on arrays is left."""


def arrays_of(shapes: str) -> dict[str, np.ndarray]:
    """Random arrays; square ones have a heavy diagonal, and can be divided by and factorised."""
    rng = np.random.default_rng(0)
    found = {}
    for name, dims in (part.split(":") for part in shapes.split()):
        array = rng.uniform(0.5, 1.5, [{"N": N, "M": M}[dim] for dim in dims])
        if dims in ("NN", "MM"):
            array = array @ array.T + 6 * np.eye(len(array))
        found[name] = array
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_kernel(kernel: Callable[..., Any]) -> None:
    shapes, loops = KERNELS[kernel]
    arrays = arrays_of(shapes)
    load_passes(PIPELINE)
    module = parse(loop_module(kernel, arrays, {"N": N, "M": M}))
    expected = {name: array.copy() for name, array in arrays.items()}
    kernel(**expected)
    parse_pipeline(PIPELINE).run(module)
    for got, want in zip(interpret(module, list(arrays.values())), expected.values()):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert sum(op.name == "scf.for" for op in operations(module.operation)) == loops


def test_the_dense_ones_have_no_loop() -> None:
    assert sum(loops == 0 for _, loops in KERNELS.values()) == DENSE
    assert len(KERNELS) == 30
