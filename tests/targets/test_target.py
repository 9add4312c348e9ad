"""A program is compiled without the passes that have nothing to do in it, and as it were with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.driver.compilation import run_pipeline
from mlirml.ir.bindings import parse, to_text
from mlirml.nn import functional as F
from mlirml.passes import Pipeline, Stage, parse_pipeline
from mlirml.passes.files import condition_of
from mlirml.passes.presence import Presence
from mlirml.targets.registry import get_target
from tests.pipelines.real_programs import programs

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


def steps_of(fn: Callable[..., Any]) -> set[str]:
    """The names of the passes that run on a program."""
    return {timing.pass_name for timing in run_pipeline(get_target("cpu"), parse(ml.trace(fn, X).text)).timings}


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_shorter_pipeline_makes_the_same_module(fn: Callable[..., Any]) -> None:
    target = get_target("cpu")
    whole, short = (parse(ml.trace(fn, X).text) for _ in range(2))
    target.pipeline.run(whole)
    run_pipeline(target, short)
    assert to_text(short, locations=True) == to_text(whole, locations=True)


def test_a_pass_changes_nothing_where_its_condition_does_not_hold() -> None:
    for name, module in (*((fn.__name__, parse(ml.trace(fn, X).text)) for fn in PROGRAMS), *real_modules()):
        assert idle_passes_that_change(module) == [], name


def real_modules() -> Iterator[tuple[str, Any]]:
    for name, (function, arguments) in [*programs().items()][::6]:
        yield name, parse(ml.trace(function, *arguments).text)


def idle_passes_that_change(module: Any) -> list[str]:
    """The passes of the pipeline that change a module without what they say that they need.

    Those for operations of the program would change others, too, such as the loops of kernels.
    """
    operation, found = module.operation, []
    presence = Presence(operation)
    for stage in get_target("cpu").pipeline.stages:
        presence.begin_program() if stage.name in ("raise", "transform", "optimize") else None
        for each in stage.steps:
            condition = condition_of(each.name)
            idle = condition is not None and "program." not in repr(condition) and not presence.fulfils(condition)
            before = to_text(operation, locations=True) if idle else ""
            Pipeline((Stage("", (each,)),)).run(operation)
            if not idle:
                presence.changed()
            elif to_text(operation, locations=True) != before:
                # Passes of MLIR fold constants on their way.
                found += [] if folded(to_text(operation, locations=True)) == folded(before) else [each.name]
                presence.changed()
    return found


def folded(text: str) -> str:
    """The text of a module whose constants are folded."""
    module = parse(text)
    parse_pipeline("canonicalize").run(module.operation)
    return to_text(module.operation, locations=True)


def test_passes_without_work_are_left_out() -> None:
    every = {step.name for step in get_target("cpu").pipeline.steps}
    products = {
        "fold-contract",
        "lower-contract",
        "schedule-contract",
        "move-scalings",
        "reduce-products",
        "fold-scales",
    }
    several = {"fuse-attention", "order-products", "factor-products", "read-once"}
    of_products = {f"mlirml-{name}" for name in products | several}
    assert of_products <= every - steps_of(softmax)
    assert of_products - steps_of(straight) == {f"mlirml-{name}" for name in several}
    checks = {"mlirml-collect-checks", "mlirml-lower-asserts", "mlirml-fold-clamps", "mlirml-version-checks"}
    assert not checks & steps_of(straight)
    assert "mlirml-lower-conv" in (every - steps_of(straight)) & steps_of(convolution) & steps_of(pooling)
    assert "mlirml-raise" in (every - steps_of(straight)) & steps_of(looping)
    assert "mlirml-expand" in (every - steps_of(straight)) & steps_of(gradient)
    assert not {"mlirml-raise", "mlirml-peel-loops", "mlirml-tile-sweeps", "mlirml-poll-signals"} & steps_of(gradient)


def test_passes_for_loops_are_left_out_where_all_are_raised() -> None:
    for_loops = {f"mlirml-{name}" for name in ("hoist", "double-buffer", "rotate-buffers", "tile-sweeps")}
    assert for_loops <= steps_of(partly_raised) and not for_loops & steps_of(raised)
    assert "mlirml-lower-contract" in steps_of(raised) - steps_of(partly_raised)


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
