"""The demo, run as a user runs it with fewer epochs: what it claims is there and true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.digits import MODELS, Digits, Model, forward, load, mlp, train
from mlirml.targets.registry import get_target
from tests.targets.drivers import on_devices

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def png(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("curves") / "digits.png"


@pytest.fixture(scope="module")
def output(png: Path) -> str:
    start = time.perf_counter()
    # The width is that of a terminal, so that rows are not folded.
    done = subprocess.run(
        [sys.executable, "examples/digits.py", "--epochs", "4", "--png", png],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 60
    return done.stdout


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load()


def test_a_quarter_of_the_digits_is_held_out(output: str) -> None:
    assert re.search(r"^1348 digits to learn from, 449 are held out$", output, re.MULTILINE)


def test_both_networks_learn(output: str) -> None:
    bars = re.findall(r"4/4 epochs +loss ([\d.]+) +accuracy ([\d.]+)%", output)
    accuracies = re.findall(r"([\d.]+)%", next(line for line in output.splitlines() if "accuracy on the" in line))
    assert [accuracy for _, accuracy in bars] == accuracies
    assert len(bars) == 2
    assert all(float(loss) < 0.2 and float(accuracy) > 92 for loss, accuracy in bars)


def test_the_curves_are_a_picture(output: str, png: Path) -> None:
    from matplotlib.image import imread

    assert f"the curves are in {png}" in output.replace("\n", "")
    picture = imread(png)
    assert picture.shape[0] > 400 and picture.shape[1] > 800
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50


def test_the_times_are_figures_and_the_cached_call_is_the_faster_one(output: str) -> None:
    cold, warm = (
        float(re.search(rf"first call, {what} +(\d+) ms", output)[1])  # type: ignore[index]
        for what in ("nothing cached", "from the disk cache")
    )
    assert 0 < warm < cold
    assert re.search(r"all 449 held-out digits, one thread +\d+ us +\d+ us \([\d.]+x\)", output)
    assert re.search(r"a step of 32 images, one thread +\d+ us +\d+ us", output)


def test_every_stage_has_its_sizes(output: str) -> None:
    table = output[output.index("its program after each stage") :]
    rows = re.findall(r"^ *(\w+) +([\d,]+) +([\d,]+) +[\d.]+ ", table, re.MULTILINE)
    stages = ["capture", *(name for name, _ in get_target("cpu").stages)]
    assert [name for name, _, _ in rows] == stages
    assert all(int(count.replace(",", "")) > 0 for row in rows for count in row[1:])
    code = re.search(r"codegen .* ([\d,]+) bytes of machine code", table)
    assert code and int(code[1].replace(",", "")) > 500


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.scores.__name__)
def test_a_trained_network_reads_97_of_100_digits(model: Model, digits: Digits) -> None:
    history = train(model, digits, model.epochs)
    assert len(history.losses) == model.epochs
    assert history.losses[-1] < history.losses[0] / 50
    assert history.accuracies[-1] >= 0.97
    assert np.mean(history.predictions == digits.test_labels) == history.accuracies[-1]


@pytest.mark.large
@on_devices
def test_a_network_learns_on_a_device(digits: Digits, target: str) -> None:
    with ml.config.override(target=target):
        history = train(MODELS[0], digits, 2)
    assert all(isinstance(array, ml.Array) for array in history.params.values())
    assert history.losses[1] < history.losses[0] / 2
    assert history.accuracies[1] > 0.8


def test_the_batched_forward_pass_is_that_of_one_image_for_each() -> None:
    params = MODELS[0].random_params()
    images = np.random.default_rng(0).random((5, 8, 8)).astype(np.float32)
    expected = [mlp(params, image) for image in images]
    np.testing.assert_allclose(forward(params, images), expected, rtol=1e-4, atol=1e-5)
