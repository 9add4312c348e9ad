"""The Ising model: few sweeps of the program, and energies that are known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.ising import CRITICAL, exact, neighbours, run

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_draws(tmp_path: Path) -> None:
    from matplotlib.image import imread

    png = tmp_path / "ising.png"
    sizes = ["--size", "16", "--sweeps", "200", "--temperatures", "8", "--png", png]
    done = subprocess.run(
        [sys.executable, "examples/ising.py", *sizes], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert "million spins" in done.stdout
    assert len(np.unique(imread(png).reshape(-1, 4), axis=0)) > 50


def test_energy_and_magnetisation() -> None:
    """High temperatures have the energy -2 tanh(1/T) and more, low ones Yang's magnetisation."""
    temperatures = np.array([1.8, 12.0])
    lattices, magnetisation, energy = run(temperatures, 32, 1000)
    assert {*np.unique(lattices)} == {-1, 1}
    assert magnetisation[0] == pytest.approx(exact(temperatures)[0], abs=0.01)
    series = np.tanh(1 / 12.0)
    assert energy[1] == pytest.approx(-2 * series * (1 + 2 * series**2), abs=0.01)
    assert exact(np.array([CRITICAL + 0.01])) == 0
    assert neighbours(np.eye(4))[0, 1] == 2
