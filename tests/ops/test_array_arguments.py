"""Masks and initial values of reductions that are known only when the program runs; arguments drawn at random."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import check

X = np.array([[1.0, -2.0, np.nan], [4.0, 5.5, -0.0]])
MASK = np.array([[True, False, False], [True, True, True]])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_a_mask_leaves_elements_out(name: str) -> None:
    function = getattr(np, name)
    check(lambda x, mask: (function(x, where=mask), function(x, axis=1, where=mask[0])), X, MASK, rtol=1e-15)


def test_extrema_under_a_mask_start_from_the_initial_value() -> None:
    check(lambda x, mask, start: np.max(x, 0, None, False, start, mask), X, MASK, np.float64(2.0))
    check(lambda x, mask: x.min(axis=1, initial=7, where=mask), X, MASK)


def test_the_initial_value_may_be_traced() -> None:
    check(lambda x, start: (np.sum(x, initial=start), np.prod(x, axis=0, initial=start)), X, np.float32(3.0))
    check(lambda x, start: np.add.reduce(x, initial=start), np.arange(5), np.int64(4))


def test_methods_take_masks() -> None:
    check(lambda x, mask: (x.sum(where=mask), x.mean(axis=0, where=mask), x.any(where=mask)), X, MASK)
