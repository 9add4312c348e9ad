"""The disk cache: what makes a key, what is trusted, what happens to damaged files and with many processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from mlirml import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setattr(ml.config, "cache_dir", str(path))
    return path


def test_a_program_is_kept(folder: Path) -> None:
    x = np.arange(3.0)
    ml.compile(lambda x: x * 2)(x)
    assert len(list(cache.listing())) == 1
    again = ml.compile(lambda x: x * 2)
    np.testing.assert_array_equal(again(x), x * 2)
    assert "loaded from the disk cache" in again.explain()
    assert len(list(cache.listing())) == 1
