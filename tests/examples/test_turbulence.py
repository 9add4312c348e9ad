"""Decaying turbulence: the step is that of NumPy, and keeps what a fluid without viscosity keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import mlirml as ml
from examples.turbulence import Plane, change_of, energy_and_enstrophy, start_of, stepper

ROOT = Path(__file__).parent.parent.parent
SMALL = Plane(size=32, seconds=0.01)


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "turbulence.png"
    sizes = ["--size", "32", "--steps", "16", "--frames", "8", "--png", png]
    done = subprocess.run(
        [sys.executable, "examples/turbulence.py", *sizes], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert "32 x 32 points, 16 steps" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_the_steps_are_those_of_numpy() -> None:
    start, advance = start_of(SMALL), stepper(SMALL, 3)
    np.testing.assert_allclose(ml.compile(advance)(start), advance(start), atol=1e-10)


def test_without_viscosity_energy_and_enstrophy_stay() -> None:
    plane = Plane(size=32, seconds=0.005, viscosity=0.0)
    start = start_of(plane)
    end = ml.compile(stepper(plane, 50))(start)
    assert np.max(np.abs(end - start)) > 1
    np.testing.assert_allclose(energy_and_enstrophy(plane, end), energy_and_enstrophy(plane, start), rtol=1e-5)


def test_a_single_wave_only_fades() -> None:
    """It is a steady flow without viscosity: every product cancels."""
    points = 2 * np.pi * np.arange(SMALL.size) / SMALL.size
    wave = np.fft.rfft2(np.cos(3 * points)[:, None] * np.cos(4 * points))
    np.testing.assert_allclose(ml.compile(change_of(SMALL))(wave), 0, atol=1e-9)
    end = ml.compile(stepper(SMALL, 10))(wave)
    np.testing.assert_allclose(end, wave * np.exp(-SMALL.viscosity * 25 * 10 * SMALL.seconds), atol=1e-9)


def test_the_mean_speed_at_the_start_is_one() -> None:
    energy, _ = energy_and_enstrophy(SMALL, start_of(SMALL))
    assert abs(energy - 0.5) < 1e-12
