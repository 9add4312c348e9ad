"""The residual network learns digits, and what it saves is the model that has the accuracy it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.digits_resnet import Block, ResNet, load, predicted
from mlirml import nn, random

ROOT = Path(__file__).parent.parent.parent


def test_it_learns_and_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "resnet.safetensors"
    done = subprocess.run(
        [
            sys.executable,
            "examples/digits_resnet.py",
            "--epochs",
            "4",
            "--save",
            file,
            "--png",
            tmp_path / "picture.png",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(x) for x in re.findall(r"^epoch +\d+: loss ([\d.]+)", done.stdout, re.MULTILINE)]
    assert len(losses) == 4 and losses == sorted(losses, reverse=True)
    accuracy = float(re.search(r"^accuracy on the held-out digits: ([\d.]+)%", done.stdout, re.MULTILINE)[1])  # type: ignore[index]
    assert accuracy > 96
    model = ResNet.init(random.key(5))
    found = nn.load(file, {"model": model, "state": model.init_state()})
    data = load()
    right = np.mean(predicted(found["model"], found["state"], data.test_images) == data.test_labels)
    assert f"{right:.2%}" == f"{accuracy:.2f}%"
    plain = np.argmax(found["model"](data.test_images, found["state"])[0], axis=1)
    assert np.mean(plain == data.test_labels) == pytest.approx(right, abs=0.003), "the same uncompiled"


def test_a_block_keeps_its_input_where_the_convolutions_are_zero() -> None:
    block = Block.init(random.key(0), 4, 4, 1)
    block.conv1.weight[:] = 0
    x = np.abs(np.random.default_rng(0).standard_normal((2, 4, 5, 5))).astype(np.float32)
    found, state = block(x, block.init_state(), training=True)
    np.testing.assert_array_equal(found, x)
    assert state["norm1"].variance.tolist() == pytest.approx([0.9] * 4)
