"""Programs of which one part changed reuse the code of the others, from memory and from files that can be trusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.core.private_folder import Untrusted
from mlirml.driver import cache
from mlirml.targets.llvm import code_cache

RNG = np.random.default_rng(0)
X = RNG.standard_normal((128, 192)).astype(np.float32)
W = RNG.standard_normal((192, 192)).astype(np.float32) / 16


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache of its own for each test."""
    with ml.config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        code_cache.forget()
        yield tmp_path / "cache"
    code_cache.forget()


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def normalized(x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def model(last: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of several kernels, of which `last` is one."""
    return lambda x, w: last(normalized(softmax(x @ w) @ w))


def kernels(compiled: Any) -> tuple[int, int, int]:
    """The kernels of the last program, those compiled, and those from the cache, as `explain()` says."""
    found = re.findall(r"kernels: (\d+), compiled (\d+), from the cache (\d+)", compiled.explain())
    total, made, reused = map(int, found[-1])
    assert total == made + reused
    return total, made, reused


def run(function: Callable[[Any, Any], Any]) -> tuple[int, int, int]:
    """Compile a function, check its numbers, and count its kernels."""
    compiled = ml.compile(function)
    found, expected = compiled(X, W), function(X.astype(np.float64), W.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
    return kernels(compiled)


def test_a_program_with_one_changed_part_reuses_the_others() -> None:
    total, made, _ = run(model(np.tanh))
    assert total == made >= 3
    changed = run(model(lambda x: np.abs(x) + 1))
    assert changed[1] <= 2 <= changed[2]


def test_another_process_reuses_kernels_from_files(folder: Path) -> None:
    run(model(np.tanh))
    assert list((folder / "kernels").iterdir())
    code_cache.forget()  # as in another process
    changed = run(model(lambda x: np.abs(x) + 1))
    assert changed[1] <= 2 <= changed[2]


def test_a_program_is_the_same_with_and_without_the_cache() -> None:
    objects = []
    for function in (model(np.tanh), model(np.abs), model(np.tanh)):
        with ml.config.override(cache=len(objects) != 2):
            objects.append(np.asarray(ml.compile(function)(X, W)).tobytes())
    assert objects[0] == objects[2] != objects[1]


def test_without_a_cache_nothing_is_reused(folder: Path) -> None:
    with ml.config.override(cache=False):
        assert run(model(np.tanh))[2] == run(model(np.tanh))[2] == 0
    assert not folder.exists()


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "flipped":
        middle = len(data) - len(data) // 3
        data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes(data[: len(data) // 2] if how == "short" else data if how == "flipped" else b"")


@pytest.mark.parametrize("how", ["flipped", "short", "empty"])
def test_damaged_files_are_removed_and_compiled_anew(folder: Path, how: str) -> None:
    run(model(np.tanh))
    files = sorted((folder / "kernels").iterdir())
    before = [file.read_bytes() for file in files]
    for file in files:
        damaged(file, how)
    cache_files = list(folder.glob("*.mlirml"))
    for file in cache_files:
        file.unlink()
    code_cache.forget()
    assert run(model(np.tanh))[2] == 0
    assert [file.read_bytes() for file in sorted((folder / "kernels").iterdir())] == before


def test_a_file_of_another_key_is_not_loaded(folder: Path) -> None:
    run(model(np.tanh))
    first, *others = sorted((folder / "kernels").iterdir())
    for other in others:
        other.write_bytes(first.read_bytes())
    for file in folder.glob("*.mlirml"):
        file.unlink()
    code_cache.forget()
    assert run(model(np.tanh))[2] <= 1


@pytest.mark.parametrize("what", ["kernels", "file", "link"])
def test_files_that_others_may_write_are_not_loaded(folder: Path, tmp_path: Path, what: str) -> None:
    run(model(np.tanh))
    for file in folder.glob("*.mlirml"):
        file.unlink()
    code_cache.forget()
    if what == "kernels":
        (folder / "kernels").chmod(0o770)
    for file in sorted((folder / "kernels").iterdir()):
        if what == "file":
            file.chmod(0o660)
        elif what == "link":
            file.rename(tmp_path / file.name)
            file.symlink_to(tmp_path / file.name)
    assert run(model(np.tanh))[2] == 0
    if what == "kernels":
        with pytest.raises(Untrusted):
            list(cache.kernels())


def test_the_least_recently_used_kernels_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "MOST_FILES", 8)
    monkeypatch.setattr(code_cache, "_EVERY", "")
    for number in range(12):
        code_cache.store([([("code", str(number))], b"code")])
    code_cache.forget()
    found = [number for number in range(12) if code_cache.load([("code", str(number))])]
    assert 6 <= len(found) <= 8 and found[-1] == 11 and 0 not in found


def test_the_memory_that_code_takes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "MOST_MEMORY", 100)
    for number in range(50):
        code_cache.store([([("code", str(number))], bytes(30))])
    assert sum(map(len, code_cache._memory.values())) <= 100


def test_the_command_counts_checks_and_clears_kernels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(model(np.tanh))
    files = list((folder / "kernels").iterdir())
    assert main(["cache", "list"]) == 0
    assert f"the code of {len(files)} kernels" in capsys.readouterr().out
    damaged(files[0], "flipped")
    assert main(["cache", "check"]) == 1
    assert files[0].name in capsys.readouterr().out
    assert main(["cache", "check", "--fix"]) == 0
    assert not files[0].exists()
    assert main(["cache", "clear"]) == 0
    assert not list((folder / "kernels").iterdir()) and not list(folder.glob("*.mlirml"))
