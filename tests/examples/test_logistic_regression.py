"""Logistic regression finds the coefficients of scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from examples.logistic_regression import characteristic, fitted, load

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "logistic_regression.png"
    done = subprocess.run(
        [sys.executable, "examples/logistic_regression.py", "--png", png],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "classified right" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_the_weights_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    data = load()
    parameters, losses = fitted(data.x, data.y, 2.0, 80)
    other = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(data.x, data.y)
    np.testing.assert_allclose(parameters["weights"], other.coef_[0], atol=1e-4)
    assert losses[-1] < losses[0] / 5


def test_the_characteristic_of_perfect_scores() -> None:
    wrong, right = characteristic(np.array([0.1, 0.9, 0.8, 0.2]), np.array([0.0, 1.0, 1.0, 0.0]))
    assert right.tolist() == [0, 0.5, 1, 1, 1] and wrong.tolist() == [0, 0, 0, 0.5, 1]
