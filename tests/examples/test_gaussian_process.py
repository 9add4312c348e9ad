"""Regression by a Gaussian process: the gradient of the evidence leads to a prediction that is close to the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.gaussian_process import START, fitted, measured, negative_evidence, prediction, slopes, truth

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "gaussian_process.png"
    sizes = ["--count", "40", "--iterations", "5", "--png", png]
    done = subprocess.run(
        [sys.executable, "examples/gaussian_process.py", *sizes], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert "5 iterations with 40 points" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_the_gradient_is_that_of_differences_in_numpy() -> None:
    gradient, difference = slopes(measured(60))
    assert gradient == pytest.approx(difference, rel=1e-6)


def test_the_evidence_is_that_of_a_normal_distribution() -> None:
    points = measured(30)
    compiled = ml.compile(negative_evidence)(START, points.x, points.y)
    covariance = np.exp(-0.5 * (points.x[:, None] - points.x) ** 2) + np.eye(30)
    sign, logarithm = np.linalg.slogdet(covariance)
    expected = 0.5 * (points.y @ np.linalg.solve(covariance, points.y) + logarithm + 30 * np.log(2 * np.pi))
    assert sign == 1 and compiled == pytest.approx(expected, rel=1e-9)


def test_the_fit_predicts_the_truth() -> None:
    points = measured(150)
    parameters, values = fitted(points, 25)
    assert values[-1] < values[0] - 100
    assert float(np.exp(parameters["noise"])) == pytest.approx(0.2, rel=0.2)
    z = np.linspace(-1.8, 0.2, 50)
    mean, deviation = ml.compile(prediction)(parameters, points.x, points.y, z)
    assert np.sqrt(np.mean((mean - truth(z)) ** 2)) < 0.1
    assert np.mean(np.abs(mean - truth(z)) < 2 * deviation) > 0.9
