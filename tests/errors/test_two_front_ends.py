"""The error of a function that both front ends refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

POINTS = np.arange(12.0).reshape(6, 2) % 5


class Clusters:
    def centers(self, points: Any) -> Any:
        found = np.zeros((2, 2))
        for i in range(2):
            found[i] = points[i]
        return found

    def grouped(self, points: Any) -> Any:
        centers = self.centers(points)
        groups: list[Any] = [[[]] for _ in range(2)]
        for number, point in enumerate(points):
            nearest = int(np.argmin(np.sum((centers - point) ** 2, axis=1)))
            groups[nearest][0].append(number)
        return groups


def test_an_error_after_what_the_other_front_end_replaces() -> None:
    """Traced, the function fails on the store into `found`, which it may have; with its loops, on the list of lists."""
    with pytest.raises(ml.CaptureError) as caught:
        ml.compile(Clusters().grouped)(POINTS)
    assert "groups: list[Any] = [[[]] for _ in range(2)]" in str(caught.value), caught.value
    assert "groups[nearest]" not in str(caught.value)
    assert "np.zeros" not in str(caught.value)
