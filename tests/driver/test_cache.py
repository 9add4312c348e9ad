"""The disk cache: what makes a key, what is trusted, and what happens to damaged files and with many writers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.core.private_folder import PrivateFolder
from mlirml.driver import cache
from mlirml.runtime import Artifact, Buffer, cache_entries
from mlirml.targets.registry import get_target

X = np.arange(3.0)
ENTRIES = [("ir", "0123"), ("target", "cpu")]
ARTIFACT = Artifact(b"\x7fELF object\n\x00", "entry", (Buffer("f64", (3,)),), (Buffer("bool", ()),), 64)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setattr(ml.config, "cache_dir", str(path))
    return path


def source_of(compiled: Any) -> str:
    """Where the last program came from."""
    text: str = compiled.explain()
    return "disk" if text.rfind("loaded from the disk cache") > text.rfind("   compiled in") else "compiler"


def run(expected_source: str) -> Path:
    """Compile and run a function, check all that can be seen, and return the file of its program."""
    compiled = ml.compile(lambda x: x * 2 + 1)
    np.testing.assert_array_equal(compiled(X), X * 2 + 1)
    assert source_of(compiled) == expected_source
    (entry,) = cache.listing()
    assert entry.problem is None
    assert dict(entry.entries)["target"] == "cpu"
    return entry.path


def test_a_program_is_kept(folder: Path) -> None:
    path = run("compiler")
    written = path.read_bytes()
    assert run("disk") == path
    assert path.read_bytes() == written
    assert [p.name for p in folder.iterdir()] == [path.name]


# Other processes.

PROGRAM = """
import numpy as np
import mlirml as ml

compiled = ml.compile(lambda x, w: np.tanh(x @ w).sum(axis=0))
x, w = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
assert np.allclose(compiled(x, w), np.tanh(x @ w).sum(axis=0))
loaded = open("/proc/self/maps").read()  # before `explain`, which runs passes to tell about products
print("disk" if "loaded from the disk cache" in compiled.explain() else "compiler")
print(*(name for name in ("libllvmlite", "libTorchMLIR") if name in loaded))
"""


def start(folder: Path, **variables: str) -> str:
    environment = {**os.environ, "MLIRML_PROGRESS": "0", "MLIRML_CACHE_DIR": str(folder), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    return done.stdout


def test_a_new_process_loads_neither_mlir_nor_llvm(folder: Path) -> None:
    assert start(folder) == "compiler\nlibllvmlite libTorchMLIR\n"
    assert start(folder) == "disk\n\n"
    assert start(folder, MLIRML_CACHE="0") == "compiler\nlibllvmlite libTorchMLIR\n"


def test_eight_processes_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda _: start(folder), range(8)))
    assert set(outputs) <= {"compiler\nlibllvmlite libTorchMLIR\n", "disk\n\n"}
    (entry,) = cache.listing()
    assert entry.problem is None
    assert [p.name for p in folder.iterdir()] == [entry.path.name], "no unfinished file is left"


# Damaged files.


def rewrite(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(change(path.read_bytes())), None)[1]


def of_another_key(path: Path) -> None:
    other = ml.compile(lambda x: x - 7)
    other(X)
    (new,) = (entry.path for entry in cache.listing() if entry.path != path)
    os.replace(new, path)


def with_a_broken_object(path: Path) -> None:
    (entry,) = cache.listing()
    artifact = cache.load(entry.entries)
    assert artifact is not None
    cache.store(entry.entries, replace(artifact, object=artifact.object[: len(artifact.object) // 2]))
    assert [e.problem for e in cache.listing()] == [None], "the file itself is whole"


def with_another_result(path: Path) -> None:
    (entry,) = cache.listing()
    artifact = cache.load(entry.entries)
    assert artifact is not None
    cache.store(entry.entries, replace(artifact, outputs=(Buffer("f64", (1000,)),)))


DAMAGE = {
    "empty": rewrite(lambda blob: b""),
    "truncated magic": rewrite(lambda blob: blob[:10]),
    "truncated checksum": rewrite(lambda blob: blob[:50]),
    "truncated header": rewrite(lambda blob: blob[:200]),
    "truncated object": rewrite(lambda blob: blob[: len(blob) // 2]),
    "last byte missing": rewrite(lambda blob: blob[:-1]),
    "longer": rewrite(lambda blob: blob + b"\x00"),
    "flipped bit": rewrite(lambda blob: blob[:-100] + bytes([blob[-100] ^ 1]) + blob[-99:]),
    "zeros": rewrite(lambda blob: bytes(len(blob))),
    "garbage": rewrite(lambda blob: np.random.default_rng(0).bytes(len(blob))),
    "text": rewrite(lambda blob: b"not a program\n" * 100),
    "another version": rewrite(lambda blob: blob.replace(b"mlirml-cache-1", b"mlirml-cache-0", 1)),
    "of another key": of_another_key,
    "broken object": with_a_broken_object,
    "another result": with_another_result,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_made_again(folder: Path, damage: Callable[[Path], None]) -> None:
    path = run("compiler")
    damage(path)
    assert run("compiler") == path
    assert run("disk") == path


@pytest.mark.parametrize("kind", [k for k in DAMAGE if k not in ("broken object", "another result")])
def test_the_command_finds_damage(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = run("compiler")
    DAMAGE[kind](path)
    assert main(["cache", "check"]) == 1
    assert f"damaged: {path}: " in capsys.readouterr().out
    assert main(["cache", "list"]) == 0
    assert "damaged" in capsys.readouterr().out
    assert main(["cache", "check", "--fix"]) == 0
    assert list(cache.listing()) == []


def test_a_folder_in_the_place_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run("compiler")
    path.unlink()
    path.mkdir()
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(ml.errors.CacheWarning, match="is no regular file") as warned:
        for _ in range(2):
            compiled = ml.compile(lambda x: x * 2 + 1)
            np.testing.assert_array_equal(compiled(X), X * 2 + 1)
            assert source_of(compiled) == "compiler"
    assert len(warned) == 1
    assert main(["cache", "check"]) == 0
    assert [p.name for p in folder.iterdir()] == [path.name]


def test_every_flipped_byte_and_every_length_is_noticed(folder: Path) -> None:
    cache.store(ENTRIES, ARTIFACT)
    assert cache.load(ENTRIES) == ARTIFACT
    path = folder / f"{cache.key_of(ENTRIES)}.mlirml"
    blob = path.read_bytes()
    for position in range(len(blob)):
        for damaged in (blob[:position], blob[:position] + bytes([blob[position] ^ 0x20]) + blob[position + 1 :]):
            path.write_bytes(damaged)
            assert cache.load(ENTRIES) is None
            assert not path.exists()
    path.write_bytes(blob)
    assert cache.load(ENTRIES) == ARTIFACT


HEADER = json.dumps(ENTRIES).encode()
PROGRAM_BYTES = ARTIFACT.to_bytes()
STRANGE = {
    "entries: a number": b"3\n" + PROGRAM_BYTES,
    "entries: a dict": b'{"a": 1}\n' + PROGRAM_BYTES,
    "entries: no pairs": b"[[1]]\n" + PROGRAM_BYTES,
    "entries: nothing": b"null\n" + PROGRAM_BYTES,
    "entries: broken": b"[\n" + PROGRAM_BYTES,
    "no program": HEADER,
    "program: nothing": HEADER + b"\n",
    "program: another version": HEADER + b"\n" + PROGRAM_BYTES.replace(b"artifact-8", b"artifact-0"),
    "program: a field is missing": HEADER + b"\n" + PROGRAM_BYTES.replace(b'"entry": "entry", ', b""),
    "program: an unknown field": HEADER + b"\n" + PROGRAM_BYTES.replace(b'"entry": "entry"', b'"exit": "entry"'),
    "program: a list": HEADER + b"\nmlirml-artifact-8\n[]\n",
    "program: broken": HEADER + b"\nmlirml-artifact-8\n{\n",
}


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE.keys())
def test_a_whole_file_with_strange_contents_is_dropped(folder: Path, body: bytes) -> None:
    cache.store(ENTRIES, ARTIFACT)
    (entry,) = cache.listing()
    written = entry.path.read_bytes()
    assert written.endswith(HEADER + b"\n" + PROGRAM_BYTES)
    magic = written[: written.index(b"\n") + 1]
    entry.path.write_bytes(magic + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    (entry,) = cache.listing()
    assert entry.problem is not None
    assert cache.load(ENTRIES) is None
    assert list(cache.listing()) == []


# Without a cache.


def test_the_cache_can_be_switched_off(folder: Path) -> None:
    with ml.config.override(cache=False):
        for _ in range(2):
            compiled = ml.compile(lambda x: x * 2 + 1)
            np.testing.assert_array_equal(compiled(X), X * 2 + 1)
            assert source_of(compiled) == "compiler"
    assert not folder.exists()


@pytest.mark.parametrize("place", ["file", "file/below", "nowhere/at/all", "locked"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").write_text("no folder")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    path = Path("/proc/nowhere") if place == "nowhere/at/all" else tmp_path / place
    monkeypatch.setattr(ml.config, "cache_dir", str(path))
    compiled = ml.compile(lambda x: x * 2 + 1)
    np.testing.assert_array_equal(compiled(X), X * 2 + 1)
    assert source_of(compiled) == "compiler"
    assert (tmp_path / "file").read_text() == "no folder"
    if place != "locked" or os.geteuid() != 0:  # root writes everywhere
        assert main(["cache", "check"]) == 0
        assert list(cache.listing()) == []


def test_a_folder_that_disappears(folder: Path) -> None:
    run("compiler")
    shutil.rmtree(folder)
    run("compiler")


# Keys.


def key(fn: Callable[..., Any], *args: Any, target: Any = None) -> str:
    target = target or get_target("cpu")
    return cache.key_of(cache.key_entries(ml.trace(fn, *args).key, target.fingerprint()))


def double(x: Any) -> Any:
    return 2 * x


def test_equal_programs_share_a_key() -> None:
    def twice(argument: Any) -> Any:
        """Other names, other lines, the same program."""
        result = 2 * argument
        return result

    assert key(double, X) == key(twice, X + 1)


def test_everything_that_code_depends_on_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    target = get_target("cpu")
    facts = dict(target.depends_on)
    assert {"machine", "cpu", "cpu.flags"} <= facts.keys()
    others = [
        key(lambda x: 3 * x, X),
        key(double, X.astype(np.float32)),
        key(double, X[:2]),
        key(double, X, target=get_target("reference")),
        key(double, X, target=replace(target, depends_on=tuple({**facts, "cpu.flags": "sse2"}.items()))),
        key(double, X, target=replace(target, depends_on=tuple({**facts, "cpu": "another"}.items()))),
        key(double, X, target=replace(target, stages=(*target.stages[:-1], ("lower", "canonicalize")))),
    ]
    for name in ("torch_mlir", "llvmlite"):
        with monkeypatch.context() as patch:
            patch.setattr(cache, "versions", lambda name=name: ((f"version.{name}", "another"),))
            others.append(key(double, X))
    with monkeypatch.context() as patch:
        patch.setattr(cache_entries, "compiler_fingerprint", lambda: "another")
        patch.setattr(cache, "versions", cache_entries.versions.__wrapped__)
        others.append(key(double, X))
    assert len({key(double, X), *others}) == 1 + len(others)


def test_an_edited_source_is_another_compiler(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "a.py").write_text("1")
    (package / "b.py").write_text("2")
    states = [cache_entries.state_of_sources(str(tmp_path))]
    (package / "notes.txt").write_text("no source")
    assert cache_entries.state_of_sources(str(tmp_path)) == states[0]
    (package / "b.py").write_text("20")
    states.append(cache_entries.state_of_sources(str(tmp_path)))
    os.utime(tmp_path / "a.py", ns=(5, 5))
    states.append(cache_entries.state_of_sources(str(tmp_path)))
    (package / "c.py").write_text("3")
    states.append(cache_entries.state_of_sources(str(tmp_path)))
    assert len(set(states)) == 4


def test_versions_are_those_installed() -> None:
    versions = dict(cache.versions())
    assert versions["version.llvmlite"].count(".") >= 1
    assert versions["version.torch_mlir"].isdigit()
    assert len(versions["version.mlirml"]) == 16


# The size limit.


def fill(folder: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    """An entry for each letter, the first the least recently used."""
    for age, name in enumerate(names):
        cache.store([("ir", name)], ARTIFACT)
        path = folder / f"{cache.key_of([('ir', name)])}.mlirml"
        os.utime(path, ns=(age * 10**9, age * 10**9))
    monkeypatch.setattr(cache, "MAX_BYTES", len(names) * path.stat().st_size)
    monkeypatch.setattr(cache, "_EVERY", "")


def left(names: str) -> str:
    return "".join(n for n in names if cache.key_of([("ir", n)]) in {e.path.stem for e in cache.listing()})


def test_the_least_recently_used_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, monkeypatch, "abcd")
    assert cache.load([("ir", "a")]) == ARTIFACT  # now b is the oldest
    cache.store([("ir", "e")], ARTIFACT)
    assert left("abcde") == "acde"
    cache.store([("ir", "f")], ARTIFACT)
    assert left("abcdef") == "adef"


def test_a_large_entry_takes_the_place_of_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, monkeypatch, "abcd")
    cache.store([("ir", "e")], replace(ARTIFACT, object=bytes(2 * (cache.MAX_BYTES // 4))))
    assert left("abcde") == "de"


def test_one_in_sixteen_programs_looks_for_those_to_remove(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which also bounds what is beyond the limit."""
    listed: list[PrivateFolder] = []
    monkeypatch.setattr(cache, "_prune", listed.append)
    for number in range(400):
        cache.store([("ir", str(number))], ARTIFACT)
    assert 10 <= len(listed) <= 40


def test_clear_removes_unfinished_files_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, monkeypatch, "ab")
    (folder / ".new-abc").write_bytes(b"half of a")
    (folder / "mine.txt").write_text("not of the cache")
    assert cache.clear() == 3
    assert [p.name for p in folder.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("variable", ["", "/tmp/elsewhere", None])
def test_without_a_setting_it_lies_in_the_users_cache_folder(
    monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    import platformdirs

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if variable is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", variable)
    with ml.config.override(cache_dir=None):
        assert str(cache.directory()) == platformdirs.user_cache_dir("mlirml")
