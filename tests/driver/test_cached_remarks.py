"""Reports of programs that were found in the cache tell of the same rewrites as those that were compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F


def masked(x: Any) -> Any:
    return np.where(np.arange(300) <= np.arange(300)[:, None], x, 0).sum(-1)


def divided(x: Any) -> Any:
    return x / 3


def scaled(x: Any) -> Any:
    return F.conv2d(x.reshape(1, 1, 300, 300), x[:9].reshape(-1)[:36].reshape(4, 1, 3, 3)) * x[0, :4, None, None]


def multiplied(x: Any) -> Any:
    return (x[:, :4] @ x[:4]) @ x[0]


@pytest.mark.parametrize("function", [masked, divided, scaled, multiplied])
def test_a_report_is_the_same_from_the_cache(function: Callable[..., Any], tmp_path: Any) -> None:
    x = np.random.default_rng(0).standard_normal((300, 300))
    reports = []
    with ml.config.override(cache_dir=tmp_path, cache=True, processor="avx2,l2=1M"):
        for _ in range(2):
            compiled = ml.compile(function)
            compiled(x)
            text = str(compiled.explain())
            reports.append([line for line in text.splitlines() if "rewritten" in line or "masked" in line])
    assert len(reports[0]) >= 1
    assert reports[0] == reports[1]
