"""The limits of masks have all columns where they may hold, and only columns where they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis.dimensions import Part, along
from mlirml.analysis.masks import counts
from mlirml.analysis.masks.counts import row_limits
from mlirml.analysis.masks.limits import limits_of
from mlirml.analysis.masks.terms import Terms
from mlirml.ir.bindings import operations, parse

LIMITS: dict[str, Callable[[Any, Any], Any]] = {
    "causal": lambda i, j: j <= i,
    "band": lambda i, j: np.abs(i - j) < 9,
    "no band": lambda i, j: ~(np.abs(j - i) < 9),
    "blocks": lambda i, j: i // 7 == j // 7,
    "divided": lambda i, j: (j + 5) // 6 < i,
    "either": lambda i, j: (j < 4) | (j == i),
    "both": lambda i, j: (j < i) & (i - j < 30) & (j != 12),
    "rows": lambda i, j: (i > 30) | (j < 10),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_have_all_columns_where_a_mask_holds(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The indices are those of constants plus a number in memory, which is zero, so that nothing is folded."""
    mask, computed = LIMITS[name], counts._computed
    monkeypatch.setattr(
        counts, "_computed", lambda term, *rest: 0 * rest[1] if term.name == "element" else computed(term, *rest)
    )
    rows, columns = 200, 300

    def masked(x: Any, zero: Any) -> Any:
        return np.where(mask(np.arange(rows)[:, None] + zero, np.arange(columns) + zero), x, 0)

    x = np.ones((rows, columns))
    module = parse(str(ml.compile(masked).ir("optimize", x, np.int64(0))))
    op = [op for op in operations(module) if op.name == "linalg.generic"][-1]
    row, column = Part(1, rows), Part(2, columns)
    member = along(op, {0: row, 1: column})
    terms = Terms({op.results[0]: member}, (row, column))
    select = terms.result(member)
    assert select.name == "arith.select"
    may_low, may_high, low, high = row_limits(limits_of(select.args[0], column), row, np.arange(rows), columns)
    right = np.broadcast_to(mask(np.arange(rows)[:, None], np.arange(columns)), (rows, columns))
    j = np.arange(columns)
    may = (j >= may_low[:, None]) & (j < may_high[:, None])
    must = (j >= low[:, None]) & (j < high[:, None])
    assert not (right & ~may).any() and not (must & ~right).any()
    assert (~may).any()
