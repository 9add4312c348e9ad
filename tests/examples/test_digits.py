"""The demo, run as a user runs it: what it claims is there and true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mlirml.targets.registry import get_target

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def output() -> str:
    start = time.perf_counter()
    # The width is that of a terminal, so that rows are not folded.
    done = subprocess.run(
        [sys.executable, "examples/digits.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 60
    return done.stdout


def test_every_prediction_is_that_of_scikit_learn(output: str) -> None:
    held_out = re.search(r"; (\d+) are held out", output)
    agreeing = re.search(r"all (\d+) predictions are those of scikit-learn", output)
    assert held_out and agreeing
    assert held_out[1] == agreeing[1] == "450"


def test_both_accuracies_are_equal_and_high(output: str) -> None:
    accuracies = re.findall(r"([\d.]+)%", next(line for line in output.splitlines() if "accuracy" in line))
    assert len(accuracies) == 2
    assert accuracies[0] == accuracies[1]
    assert float(accuracies[0]) > 95


def test_the_times_are_figures_and_the_cached_call_is_the_faster_one(output: str) -> None:
    cold, warm = (
        float(re.search(rf"first call, {what} +(\d+) ms", output)[1])  # type: ignore[index]
        for what in ("nothing cached", "from the disk cache")
    )
    assert 0 < warm < cold
    assert re.search(r"forward pass of all 450, one thread +\d+ us +\d+ us \([\d.]+x\)", output)


def test_every_stage_has_its_sizes(output: str) -> None:
    table = output[output.index("the program after each stage") :]
    rows = re.findall(r"^ *(\w+) +([\d,]+) +([\d,]+) +[\d.]+ ", table, re.MULTILINE)
    stages = ["capture", *(name for name, _ in get_target("cpu").stages)]
    assert [name for name, _, _ in rows] == stages
    assert all(int(count.replace(",", "")) > 0 for row in rows for count in row[1:])
    code = re.search(r"codegen .* ([\d,]+) bytes of machine code", table)
    assert code and int(code[1].replace(",", "")) > 500


def test_the_forward_pass_gives_probabilities() -> None:
    from examples.digits import forward

    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape) for shape in ((64, 64), (64, 32), (32, 10))]
    biases = [rng.standard_normal(n) for n in (64, 32, 10)]
    probabilities = forward(weights, biases, rng.standard_normal((5, 64)))
    assert probabilities.shape == (5, 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
