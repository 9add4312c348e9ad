"""Checks at run time: each call has its own, whatever thread it runs on and wherever the program comes from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(12.0).reshape(3, 4)


def first(x: Any, i: Any) -> Any:
    return x[i].sum()


def other(x: Any, i: Any) -> Any:
    y = np.exp(x)
    return y[i].sum()


def test_threads_get_their_own_errors() -> None:
    compiled = ml.compile(first)

    def call(n: int) -> bool:
        i = np.array([n % 3, 3 if n % 5 == 0 else 0])
        try:
            return bool(compiled(X, i) == X[i].sum())
        except ml.IndexOutOfBoundsError:
            return n % 5 == 0

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(400)))


def test_programs_from_the_disk_cache_show_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    for _ in ("compiled", "from disk"):
        compiled = ml.compile(first)
        with pytest.raises(ml.IndexOutOfBoundsError) as caught:
            compiled(X, np.array([3]))
        location = caught.value.location
        assert location is not None
        assert (location.function, location.column) == ("first", 12)
    assert "loaded from the disk cache" in compiled.explain()


def test_equal_programs_of_other_functions_show_their_own_line() -> None:
    lines = set()
    for function in (first, lambda x, i: x[i].sum()):
        with pytest.raises(ml.IndexOutOfBoundsError) as caught:
            ml.compile(function)(X, np.array([-4]))
        assert caught.value.location is not None
        lines.add(caught.value.location.line)
    assert len(lines) == 2


def test_an_error_leaves_the_next_call_alone() -> None:
    one, two = ml.compile(first), ml.compile(other)
    for _ in range(3):
        with pytest.raises(ml.IndexOutOfBoundsError):
            one(X, np.array([7]))
        assert two(X, np.array([0])) > 0
        assert one(X, np.array([2])) == X[2].sum()


def test_an_out_array_is_no_way_around() -> None:
    out = np.zeros(())
    with pytest.raises(ml.IndexOutOfBoundsError):
        ml.compile(first)(X, np.array([3]), out=out)
