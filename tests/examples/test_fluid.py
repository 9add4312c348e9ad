"""The stirred fluid: the solver keeps what a fluid keeps, and its gradient leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from examples.fluid import (
    Fluid,
    carried,
    drop_and_ring,
    first_control,
    misfit_of,
    search,
    slopes,
    solver,
    vorticity_of,
)

ROOT = Path(__file__).parent.parent.parent
SMALL = Fluid(size=16, steps=10)


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "fluid.png"
    sizes = ["--size", "16", "--steps", "8", "--rounds", "5", "--png", png]
    done = subprocess.run(
        [sys.executable, "examples/fluid.py", *sizes], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert "16 x 16 points, 8 steps" in done.stdout and "after 5 rounds" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_the_search_makes_the_misfit_smaller() -> None:
    found = search(SMALL, 40)
    assert found.misfits[-1] < found.misfits[0] / 3
    misfit = misfit_of(SMALL)
    assert misfit(found.control) < 1.1 * found.misfits[-1]
    np.testing.assert_allclose(ml.compile(misfit)(found.control), misfit(found.control), rtol=1e-4)


def test_the_gradient_is_that_of_differences_in_numpy() -> None:
    gradient, difference = slopes(SMALL)
    assert gradient == pytest.approx(difference, rel=1e-3)


@pytest.mark.parametrize("size", [15, 16])
def test_the_waves_are_orthogonal_and_solve_the_equation_of_poisson(size: int) -> None:
    basis, squares = Fluid(size).waves()
    np.testing.assert_allclose(basis.T @ basis, np.eye(size), atol=1e-13)
    points = 2 * np.pi * np.arange(size) / size
    wave = np.sin(2 * points)
    np.testing.assert_allclose(basis @ (squares * (basis.T @ wave)), (4 * np.pi) ** 2 * wave, atol=1e-9)


def test_what_flows_through_a_side_comes_in_at_the_other() -> None:
    field = np.random.default_rng(0).random((6, 6))
    whole = np.ones((6, 6))
    np.testing.assert_allclose(ml.compile(carried)(field, 2 * whole, -7 * whole), np.roll(field, (2, -7), (0, 1)))


def test_vortices_turn_the_dye_and_viscosity_slows_them() -> None:
    drop, _ = drop_and_ring(SMALL.size, np.float64)
    vorticity = vorticity_of(SMALL, 10 * first_control(SMALL, np.float64))
    moved = [
        np.abs(ml.compile(solver(Fluid(16, 10, viscosity=viscosity), np.float64))(vorticity, drop) - drop).sum()
        for viscosity in (1.0, 1e-2, 0.0)
    ]
    assert moved == sorted(moved) and moved[0] < moved[-1] / 2
