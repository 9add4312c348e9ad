"""Settings are checked, read from the environment and restored by `override`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlirml.core.config import NATIVE_MODULE, Config, config


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("threads", 0, ValueError),
        ("threads", -1, ValueError),
        ("threads", 1.5, TypeError),
        ("threads", True, TypeError),
        ("cache", 1, TypeError),
        ("cache", "yes", TypeError),
        ("cache_dir", 3, TypeError),
        ("cache_dir", "", ValueError),
        ("target", "", TypeError),
        ("target", None, TypeError),
        ("thread", 1, AttributeError),
    ],
)
def test_wrong_settings_are_refused(name: str, value: Any, error: type[Exception]) -> None:
    before = repr(config)
    with pytest.raises(error, match=name):
        setattr(config, name, value)
    with pytest.raises(error, match=name), config.override(**{"explain": True, name: value}):
        pass
    assert repr(config) == before


def test_override_restores_after_an_error() -> None:
    before = config.threads, config.cache
    with pytest.raises(KeyError), config.override(threads=7, cache=not config.cache):
        assert (config.threads, config.cache) == (7, not before[1])
        raise KeyError
    assert (config.threads, config.cache) == before


@pytest.mark.parametrize(
    "value", ["avx", "x86-64-v5", "sve1024", "avx2,l2=1", "avx2,l2=0K", "avx2 l2=1M", "", None, 512]
)
def test_unknown_processors_are_refused(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"config\.processor: expected 'host', 'x86-64' .*'avx2', 'avx512', 'amx', 'neon'"
    ):
        config.processor = value


def test_settings_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del config.threads


def test_paths_become_absolute(tmp_path: Path) -> None:
    with config.override(dump_dir="dumps", cache_dir=tmp_path):
        assert config.dump_dir == os.path.join(os.getcwd(), "dumps")
        assert config.cache_dir == str(tmp_path)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"THREADS": "3", "CACHE": "0", "CACHE_DIR": "/cache", "DUMP_DIR": "/dumps", "TARGET": "reference"}
    for name, value in settings.items():
        monkeypatch.setenv(f"MLIRML_{name}", value)
    made = Config()
    assert (made.threads, made.cache, made.cache_dir, made.dump_dir, made.target) == (
        3,
        False,
        "/cache",
        "/dumps",
        "reference",
    )


@pytest.mark.parametrize(("name", "value"), [("THREADS", "many"), ("THREADS", "0"), ("CACHE", "maybe")])
def test_a_wrong_environment_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"MLIRML_{name}", value)
    with pytest.raises(ValueError, match=f"MLIRML_{name}='{value}'"):
        Config()


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRML_THREADS", "")
    assert Config().threads is None


def test_the_environment_reaches_the_pool() -> None:
    source = "from mlirml import runtime; import sys; sys.exit(runtime._native.get_threads() != 1)"
    assert subprocess.run([sys.executable, "-c", source], env={**os.environ, "MLIRML_THREADS": "1"}).returncode == 0


def test_setting_threads_does_not_load_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, NATIVE_MODULE, raising=False)
    with config.override(threads=1):
        assert NATIVE_MODULE not in sys.modules
