"""K-means by Newton's method: its steps are those of Lloyd's algorithm, by the Hessian's own structure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.clusters import cost, first_centres, lloyd, newton, newton_step

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 3)) + rng.choice([-4, 0, 4], (60, 3))


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "clusters.png"
    command = [sys.executable, "examples/clusters.py", "--points", "300", "--png", png]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    before, after, steps = (
        next(row[len(name.split()) :] for row in rows if " ".join(row).startswith(name))
        for name in ("cost at the start", "cost at the end", "steps")
    )
    assert after[0] == after[1] and float(after[0]) < float(before[0])
    assert steps[0] == steps[1]
    assert imread(png).shape[1] > 1000


def test_the_hessian_is_diagonal_with_twice_the_numbers_of_points(points: np.ndarray) -> None:
    centres = first_centres(points, 4)
    hessian = ml.hessian(cost)(centres, points).reshape(12, 12)
    nearest = np.argmin(((points[:, None] - centres) ** 2).sum(axis=2), axis=1)
    np.testing.assert_allclose(hessian, np.diag(np.repeat(2.0 * np.bincount(nearest, minlength=4), 3)), atol=1e-12)


def test_a_step_is_one_of_lloyds(points: np.ndarray) -> None:
    centres = first_centres(points, 5, seed=3)
    step = ml.compile(newton_step)
    for _ in range(3):
        expected, _ = lloyd(centres, points, 1)
        centres = step(centres, points)
        np.testing.assert_allclose(centres, expected, rtol=1e-12, atol=1e-12)


def test_the_iteration_ends_where_lloyds_does(points: np.ndarray) -> None:
    centres = first_centres(points, 5, seed=1)
    found, steps = newton(centres, points, 50)
    expected, expected_steps = lloyd(centres, points, 50)
    assert steps == expected_steps < 50
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert newton(centres, points, 2)[1] == 2


def test_a_centre_without_points_stays(points: np.ndarray) -> None:
    far = np.full((1, 3), 100.0)
    found, _ = newton(np.vstack([points[:2], far]), points, 50)
    np.testing.assert_array_equal(found[2], far[0])
