"""Logistic regression by Hamiltonian Monte Carlo, against the mode and a posterior that can be integrated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.bayes import PRIOR_VARIANCE, Data, Samples, Walk, draw_samples, importance, mode

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(0)
    x = np.hstack([np.ones((40, 1)), rng.standard_normal((40, 1))])
    return Data(["constant", "slope"], x, (rng.random(40) < 1 / (1 + np.exp(-(x @ [0.5, -1.5])))).astype(np.float64))


def test_the_program_runs_and_agrees_with_the_reference() -> None:
    command = [sys.executable, "examples/bayes.py", "--samples", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "569 tumours, 4 chains of 200 samples" in done.stdout
    off = float(done.stdout.split("means differ by at most ")[1].split()[0])
    assert off < 5
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert float(rows["texture"][2]) == pytest.approx(1.593, abs=0.15)
    assert float(rows["texture"][-1]) < 1.05


def test_newtons_method_finds_the_mode(data: Data) -> None:
    weights, covariance = mode(data)
    shares = 1 / (1 + np.exp(-(data.x @ weights)))
    np.testing.assert_allclose(data.x.T @ (shares - data.y) + weights / PRIOR_VARIANCE, 0, atol=1e-10)
    hessian = (data.x.T * (shares * (1 - shares))) @ data.x + np.eye(2) / PRIOR_VARIANCE
    np.testing.assert_allclose(covariance @ hessian, np.eye(2), atol=1e-10)


def test_the_means_and_deviations_are_those_of_the_integrals(data: Data) -> None:
    grid = np.linspace(-6, 6, 241)
    weights = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    scores = weights @ data.x.T
    logs = (data.y * scores - np.logaddexp(0, scores)).sum(axis=1) - (weights**2).sum(axis=1) / (2 * PRIOR_VARIANCE)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    means = shares @ weights
    deviations = np.sqrt(shares @ (weights - means) ** 2)

    found = draw_samples(data, 4, 1000, Walk())
    errors = deviations / np.sqrt(found.effective())
    assert np.all(np.abs(found.weights.mean(axis=(0, 1)) - means) < 4 * errors)
    np.testing.assert_allclose(found.weights.std(axis=(0, 1)), deviations, rtol=0.08)
    assert 0.8 < found.accepted <= 1
    assert np.all(found.r_hat() < 1.02)
    reference, error, worth = importance(data, 20_000)
    assert worth > 10_000
    assert np.all(np.abs(reference - means) < 4 * error)


def test_chains_that_stay_apart_are_told_from_those_that_mix() -> None:
    noise = np.random.default_rng(0).standard_normal((4, 500, 1))
    walk = np.cumsum(noise, axis=1)
    assert Samples(noise, 1, 0, 0).r_hat() < 1.02 < 1.5 < Samples(noise + np.arange(4)[:, None, None], 1, 0, 0).r_hat()
    assert Samples(noise, 1, 0, 0).effective() > 1500 > 100 > Samples(walk, 1, 0, 0).effective()
