"""The survey of elementwise records: what it calls an error, and that a row can be measured."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import accuracy
from mlirml.ops import OPS


def test_ulp_counts_units_of_the_rounded_result() -> None:
    exact = np.array([1.0, 2.0**-149, np.nan, np.inf, 1.0])
    got = np.array([1 + 2.0**-23, 2.0**-148, np.nan, np.inf, np.nan], np.float32)
    assert accuracy.ulp(got, exact).tolist() == [1, 1, 0, 0, np.inf]


@pytest.mark.parametrize(("name", "dtype"), [("exp", "f4"), ("power", "i4"), ("arctan2", "f8"), ("isnan", "f4")])
def test_row(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "ROUNDS", 1)
    monkeypatch.setattr(accuracy, "COUNT", 1 << 12)
    row = accuracy.measure(OPS[name], np.dtype(dtype))
    assert row is not None and row.ours_ulp is not None
    assert 0 <= row.ours_ulp < 4
    assert row.ours_ns > 0 < row.numpy_ns
    assert accuracy.shown(iter([row])).row_count == 1


def test_records_without_a_loop_are_left_out() -> None:
    assert accuracy.measure(OPS["exp2"], np.dtype("i8")) is not None
    assert accuracy.measure(OPS["bitwise_and"], np.dtype("f4")) is None
