"""The GPT learns, and writes with its cache as without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.gpt import CONTEXT, GPT, TEXT, Text, error_of_decoding, loss, windows, write
from mlirml import random

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "gpt.png"
    command = [sys.executable, "examples/gpt.py", "--steps", "20", "--layers", "1", "--length", "30", "--png", png]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("held-out text"))
    before, after = (float(word) for word in line.replace(",", "").split() if word[:1].isdigit())
    assert 5.5 < before < 7 and after < before - 1
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_decoding_is_the_model_and_goes_on_where_the_cache_is_full() -> None:
    text = Text(TEXT.read_text(encoding="utf-8"))
    model = GPT.init(random.key(0), len(text.characters), size=16, layers=2, heads=2)
    assert error_of_decoding(model, text.held_out[:20]) < 1e-4
    tokens, _ = write(model, text.encode("JULIET:"), CONTEXT + 20)
    assert len(tokens) == CONTEXT + 20 and text.decode(tokens).startswith("JULIET:")


def test_the_loss_is_that_of_numpy() -> None:
    text = Text(TEXT.read_text(encoding="utf-8"))
    model = GPT.init(random.key(1), len(text.characters), size=16, layers=1, heads=2)
    tokens = windows(text.training, np.arange(4) * 50, 12)
    assert ml.compile(loss)(model, tokens) == pytest.approx(float(loss(model, tokens)), rel=1e-5)
