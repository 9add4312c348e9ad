"""Equal programs give equal bytes, in one process and in others with other hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import parse
from mlirml.targets.registry import get_target


def elementwise(x: Any, y: Any) -> Any:
    mask = np.logical_or(np.isnan(x), y > 1)
    return {"gelu": x * (1 + np.tanh(0.79 * (x + 0.04 * x**3))) / 2, "masked": np.where(mask, np.exp(-y), x % 3)}


def matmul_chain(x: Any, y: Any) -> Any:
    return np.tanh(x @ y.T) @ y - (x * 2) @ (y.T @ y)


def reductions(x: Any, y: Any) -> Any:
    centred = x - x.mean(axis=0)
    return centred.var(axis=1), np.argmax(y, axis=0), np.sum(x * y), np.any(centred > 0, axis=0), x.max(axis=(0, 1))


def in_place(x: Any, y: Any) -> Any:
    x[1:-1] += (y[:-2] + y[2:]) / 2
    x[:, 0] = np.arange(x.shape[0])
    y[...] = x[::-1]
    return x.sum(axis=0)


def loops(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        a, n = carry
        a = ml.cond(n % 2 == 0, lambda a: np.sin(a) + row, lambda a: a * row, a)
        a = ml.while_loop(lambda a: np.sum(a) < 1, lambda a: a + 0.5, a)
        return (a, n + 1), {"a": a, "n": n}

    return ml.scan(step, (ml.fori_loop(0, 3, lambda i, c: c @ c.T @ c / 100 + i, x)[0], 0), y)


PROGRAMS: tuple[Callable[..., Any], ...] = (elementwise, matmul_chain, reductions, in_place, loops)
ARGUMENTS = (np.ones((12, 8)), np.full((12, 8), 2.0))


def artifact_of(fn: Callable[..., Any]) -> bytes:
    """What the compiler makes of a function, without the cache."""
    module = parse(ml.trace(fn, *ARGUMENTS).text)
    target = get_target("cpu")
    target.pipeline.run(module)
    artifact: bytes = target.codegen(module).to_bytes()
    return artifact


@pytest.mark.parametrize("fn", PROGRAMS)
def test_compiling_twice_gives_the_same_bytes(fn: Callable[..., Any]) -> None:
    assert artifact_of(fn) == artifact_of(fn)


def test_capture_does_not_depend_on_what_was_captured_before() -> None:
    texts = [[ml.trace(fn, *ARGUMENTS).text for fn in order] for order in (PROGRAMS, PROGRAMS[::-1])]
    assert texts[0] == texts[1][::-1]


def write_artifacts(folder: Path) -> None:
    """Run by the test below in processes of its own."""
    for fn in PROGRAMS:
        (folder / f"{fn.__name__}.mlir").write_text(ml.trace(fn, *ARGUMENTS).text)
        (folder / f"{fn.__name__}.llvm.mlir").write_text(ml.compile(fn).ir("lower", *ARGUMENTS))
        (folder / f"{fn.__name__}.artifact").write_bytes(artifact_of(fn))


def test_processes_with_other_hashes_give_the_same_bytes(tmp_path: Path) -> None:
    program = "import sys; from tests.driver.test_determinism import *; write_artifacts(Path(sys.argv[1]))"
    root = str(Path(__file__).parent.parent.parent)
    folders = [tmp_path / seed for seed in ("1", "4711")]
    for folder in folders:
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": folder.name, "PYTHONPATH": root}
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder)], env=environment, capture_output=True, text=True
        )
        assert done.stderr == ""
    for fn in PROGRAMS:
        for form in ("mlir", "llvm.mlir", "artifact"):
            first, second = ((folder / f"{fn.__name__}.{form}").read_bytes() for folder in folders)
            assert first == second, f"{fn.__name__}: {form}"
