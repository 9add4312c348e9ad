"""Equal programs give equal bytes, in one process and in another one with other hashes."""

from __future__ import annotations

import numpy as np

import mlirml as ml
from mlirml.ir import parse
from mlirml.targets.registry import get_target


def test_compiling_twice_gives_the_same_bytes() -> None:
    captured = ml.trace(lambda x, y: np.sum(np.exp(x) * y, axis=0), np.ones((4, 8)), np.ones(8))
    target = get_target("cpu")
    artifacts = []
    for _ in range(2):
        module = parse(captured.text)
        target.pipeline.run(module)
        artifacts.append(target.codegen(module).to_bytes())
    assert artifacts[0] == artifacts[1]
