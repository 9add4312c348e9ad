"""A program is compiled without the passes that have nothing to do in it, and as it were with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.driver.compilation import present, run_pipeline
from mlirml.ir.bindings import parse, to_text
from mlirml.nn import functional as F
from mlirml.passes.files import condition_of
from mlirml.targets.registry import get_target

X = np.ones((6, 5))
ROOT = Path(__file__).parent.parent.parent


def straight(x: Any) -> Any:
    return np.tanh(x @ x.T) - np.sum(x, axis=1)


def looping(x: Any) -> Any:
    return ml.fori_loop(0, 3, lambda i, y: np.sin(y) + i, x)


def sorting(x: Any) -> Any:
    return np.sort(x, axis=1)


def gradient(x: Any) -> Any:
    return ml.grad(lambda y: np.sum(np.sin(y) * y))(x)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def convolution(x: Any) -> Any:
    return F.conv2d(x.reshape(1, 1, *x.shape), np.ones((2, 1, 3, 3)), padding=1)


def pooling(x: Any) -> Any:
    return F.max_pool2d(x.reshape(1, 1, *x.shape), 2)


def attention(x: Any) -> Any:
    return softmax(x @ x.T) @ x


def raised(x: Any) -> Any:
    y = np.zeros((6, 6))
    for i in range(6):
        for j in range(6):
            for k in range(5):
                y[i, j] += x[i, k] * x[j, k]
    return y


def partly_raised(x: Any) -> Any:
    y = np.zeros(5)
    for i in range(1, 6):
        for j in range(5):
            y[j] = np.sin(y[j]) + x[i - 1, j]
    return y


PROGRAMS = [straight, looping, sorting, gradient, softmax, convolution, pooling, attention, raised, partly_raised]


def names_of(fn: Callable[..., Any]) -> set[str]:
    return present(parse(ml.trace(fn, X).text))


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_shorter_pipeline_makes_the_same_module(fn: Callable[..., Any]) -> None:
    target = get_target("cpu")
    whole, short = (parse(ml.trace(fn, X).text) for _ in range(2))
    target.pipeline.run(whole)
    run_pipeline(target, short)
    assert to_text(short, locations=True) == to_text(whole, locations=True)


def test_passes_without_work_are_left_out() -> None:
    target = get_target("cpu")

    def steps(fn: Callable[..., Any]) -> set[str]:
        return {step.name for step in target.pipeline_for(names_of(fn)).steps}

    left_out = {step.name for step in target.pipeline.steps} - steps(straight)
    products = {
        "block-examples", "fold-contract", "fuse-attention", "lower-contract", "read-once", "schedule-contract",
        "widen-products", "order-products", "reduce-products", "factor-products", "move-scalings", "skip-masked",
        "fold-scales",
    }  # fmt: skip
    conditional = {step.name for step in target.pipeline.steps if condition_of(step.name)}
    assert left_out == conditional - {f"mlirml-{name}" for name in products}
    assert {f"mlirml-{name}" for name in products} <= {step.name for step in target.pipeline.steps} - steps(softmax)
    assert "mlirml-lower-conv" in left_out & steps(convolution) & steps(pooling)
    assert "mlirml-raise" in left_out & steps(looping)
    assert "mlirml-expand" in left_out & steps(gradient)
    assert [stage.name for stage in target.pipeline_for(()).stages] == [stage.name for stage in target.pipeline.stages]


def test_passes_for_loops_are_left_out_where_all_are_raised() -> None:
    target = get_target("cpu")

    def steps(fn: Callable[..., Any]) -> set[str]:
        return {timing.pass_name for timing in run_pipeline(target, parse(ml.trace(fn, X).text)).timings}

    for_loops = {f"mlirml-{name}" for name in ("hoist", "double-buffer", "rotate-buffers", "tile-sweeps")}
    assert for_loops <= steps(partly_raised) and not for_loops & steps(raised)
    assert "mlirml-lower-contract" in steps(raised) - steps(partly_raised)


def test_what_is_left_out_is_not_imported() -> None:
    program = (
        "import sys, numpy as np, mlirml as ml\n"
        "ml.config.cache = False\n"
        "ml.compile(lambda x: np.tanh(x) + 1)(np.ones(4))\n"
        "print(*[name for name in sys.modules if name.startswith(('mlirml.raising.', 'mlirml.autodiff.'))"
        " or 'cpu.contract.plan' in name or 'cpu.conv' in name or 'attention' in name])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == []
