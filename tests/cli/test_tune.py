"""`mlirml tune`: a table of what was found, kept for later programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.tuning.store import opened

SOURCE = """\
import numpy as np


def layer(x, w, b):
    return np.tanh(x @ w + b)


def total(x):
    return np.sum(x)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.py"
    file.write_text(SOURCE)
    return file


def test_the_schedules_of_a_function_are_searched_for(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ml.config.override(cache=True, cache_dir=str(tmp_path / "cache"), threads=1):
        types = "f32[30,40], f32[40,50], f32[50]"
        assert main(["tune", f"{model}:layer", "--args", types, "--seconds", "2"]) == 0
        shown = capsys.readouterr()
        assert "30x40 40x50 -> 30x50" in shown.out and "ratio" in shown.out
        assert shown.err == ""  # no bar where it is no terminal
        with opened() as file:
            (row,) = file.rows()
        assert row.shape in shown.out and f"{row.default_seconds / row.seconds:.2f}" in shown.out


def test_a_function_without_products_has_nothing_to_tune(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", f"{model}:total", "--args", "f32[30]"]) == 0
    assert "no matrix products" in capsys.readouterr().out


def test_other_targets_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", f"{model}:total", "--args", "f32[30]", "--target", "reference"]) == 1
    assert 'is for the target "cpu"' in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_seconds_are_a_number_above_zero(model: Path, seconds: str) -> None:
    with pytest.raises(SystemExit):
        main(["tune", f"{model}:total", "--args", "f32[30]", "--seconds", seconds])
