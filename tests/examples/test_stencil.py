"""The stencil example: stores into slices of the caller's array."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import mlirml as ml
from examples.stencil import hot_plate, picture, run, step

ROOT = Path(__file__).parent.parent.parent


def test_the_program_runs_and_agrees_with_numpy() -> None:
    done = subprocess.run([sys.executable, "examples/stencil.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "400 steps on 512 x 512 points: the largest difference from NumPy is " in done.stdout
    assert "mlirml" in done.stdout.splitlines()[-1]


def test_a_compiled_step_changes_the_plate_itself() -> None:
    expected, _ = run(step, 40, 25)
    plate, _ = run(ml.compile(step), 40, 25)
    np.testing.assert_allclose(plate, expected, rtol=0, atol=1e-6)
    assert not np.array_equal(plate, hot_plate(40))
    np.testing.assert_array_equal(plate[0], 1)


def test_the_picture_goes_from_cold_to_hot() -> None:
    assert picture(np.array([[0.0, 0.55], [1.0, 0.25]]), 2, 2) == " +\n@:"
