"""The autoencoder learns, and its gradient is that of differences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.vae import Autoencoder, load, loss, train
from mlirml import random

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "vae.png"
    done = subprocess.run(
        [sys.executable, "examples/vae.py", "--epochs", "3", "--png", png],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "held-out images" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_it_learns_and_its_loss_compiled_is_that_of_numpy() -> None:
    images, held_out, _ = load()
    model, losses = train(images, 12)
    assert losses[-1] < 28 < 32 < losses[0]
    found = ml.compile(loss)(model, held_out, random.key(3))
    assert found == pytest.approx(loss(model, held_out, random.key(3)), rel=1e-5)


def test_the_gradient_is_that_of_differences() -> None:
    images, _, _ = load()
    model = Autoencoder.init(random.key(0), hidden=8)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        if hasattr(layer, "weight"):
            layer.weight, layer.bias = layer.weight.astype(np.float64), layer.bias.astype(np.float64)
    batch, key = images[:5].astype(np.float64), random.key(1)
    gradient = ml.grad(loss)(model, batch, key).encoder.layers[0].weight
    weight, step = model.encoder.layers[0].weight, 1e-5
    direction = np.random.default_rng(0).standard_normal(weight.shape)
    values = []
    for sign in (1, -1):
        model.encoder.layers[0].weight = weight + sign * step * direction
        values.append(float(loss(model, batch, key)))
    assert np.sum(gradient * direction) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-3)
