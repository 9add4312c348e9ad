"""Running sums are computed in the result's own memory: no temporaries but the row that is carried."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mlirml as ml


@pytest.mark.parametrize(
    ("shape", "axis", "carried"), [((9, 16), 1, 0), ((64,), 0, 0), ((9, 16), 0, 64), ((3, 4, 16), 1, 192)]
)
def test_a_scan_needs_no_second_array(shape: tuple[int, ...], axis: int, carried: int) -> None:
    text = ml.compile(lambda x: np.cumsum(x, axis=axis)).ir("schedule", np.ones(shape, np.float32))
    (workspace,) = re.findall(r"mlirml.workspace = (\d+)", str(text))
    assert int(workspace) == carried


def test_a_scan_keeps_the_order_of_the_sums() -> None:
    x = np.random.default_rng(0).normal(size=(37, 129)).astype(np.float32)
    for axis in (0, 1):
        given = ml.compile(lambda x, axis=axis: np.cumsum(x, axis=axis))(x)
        np.testing.assert_array_equal(given, np.cumsum(x, axis=axis))
