"""The file of tuned schedules: shared by processes, and never an error of the program that it serves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import TuningWarning
from mlirml.tuning import program, store
from mlirml.tuning.store import Row, Unusable, opened

ROW = Row("k1", "a machine", "0.1", "matmul", "8x8 8x8 -> 8x8", "f32", "kernel=loops/lanes=8", 1e-6, 2e-6, 5)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path) -> Iterator[None]:
    program._warned.clear()
    with ml.config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield
    program._warned.clear()


def test_rows_are_found_by_key_machine_and_version() -> None:
    with opened() as file:
        file.save(ROW)
        file.save(replace(ROW, machine="another"))
        file.save(replace(ROW, seconds=0.5e-6))
        assert file.find(["k1", "k2"], "a machine", "0.1") == {"k1": replace(ROW, seconds=0.5e-6)}
        assert file.find(["k1"], "a machine", "0.2") == {}
        assert len(file.rows()) == 2


def test_the_file_is_for_this_user_alone() -> None:
    with opened() as file:
        file.save(ROW)
    assert store.path().stat().st_mode & 0o777 == 0o600
    store.path().chmod(0o666)
    with pytest.raises(Unusable, match="writable by other users"), opened():
        pass


def test_the_contractions_of_a_program_are_kept() -> None:
    with opened() as file:
        assert file.keys_of("p") is None
        file.save_keys("p", ["k1", "k2"])
        assert file.keys_of("p") == ["k1", "k2"]
        file.save_keys("q", [])
        assert file.keys_of("q") == []


def test_processes_write_at_the_same_time() -> None:
    text = f"""
import sys
import mlirml as ml
from dataclasses import replace
from mlirml.tuning import store
from mlirml.tuning.store import Row, opened
store.PATIENCE = 60.0
ml.config.cache_dir = {str(store.path().parent)!r}
for number in range(20):
    with opened() as file:
        file.save(Row(f"{{sys.argv[1]}}.{{number}}", "m", "v", "matmul", "s", "f32", "", 1.0, 1.0, 1))
"""
    started = [subprocess.Popen([sys.executable, "-c", text, str(number)]) for number in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    with opened() as file:
        assert len(file.rows()) == 60


def test_without_the_cache_nothing_is_written() -> None:
    with ml.config.override(cache=False):
        with opened() as file:
            file.save(ROW)
        with opened() as file:
            assert file.find(["k1"], ROW.machine, ROW.version) == {"k1": ROW}
        assert not store.path().exists()


def damage_bytes() -> None:
    with opened() as file:
        file.save(ROW)
    store.path().write_bytes(b"no database at all" * 100)


def write_other_version() -> None:
    with opened():
        pass
    connection = sqlite3.connect(store.path())
    connection.execute("pragma user_version = 99")
    connection.commit()
    connection.close()


def drop_tables() -> None:
    with opened():
        pass
    connection = sqlite3.connect(store.path())
    connection.executescript("drop table programs; drop table schedules")
    connection.close()


def write_other_types() -> None:
    """Rows with numbers in the place of texts, for whatever is asked."""
    drop_tables()
    connection = sqlite3.connect(store.path())
    connection.executescript("create table programs as select 1 as program; create table schedules as select 2 as key")
    connection.close()


def take_the_file() -> None:
    store.path().parent.mkdir(mode=0o700)
    store.path().mkdir()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_bytes, "it is damaged, remove it"),
        (write_other_version, "another version of mlirml"),
        (drop_tables, "no such table"),
        (write_other_types, "remove it to begin anew"),
        (take_the_file, "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_warning(damage: object, message: str) -> None:
    damage()  # type: ignore[operator]
    product = ml.compile(lambda x: x @ x, tune="stored")
    x = np.arange(16.0).reshape(4, 4)
    with pytest.warns(TuningWarning, match=message):
        np.testing.assert_array_equal(product(x), x @ x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(product(x.astype(np.float32)), x @ x)


def test_a_locked_file_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with opened():
        pass
    other = sqlite3.connect(store.path(), isolation_level=None)
    other.execute("begin exclusive")
    try:
        with pytest.warns(TuningWarning, match="another process has locked it"):
            assert ml.compile(lambda x: x @ x, tune="stored")(np.ones((4, 4)))[0, 0] == 4
    finally:
        other.close()


def test_a_writer_that_is_killed_leaves_the_rows_before() -> None:
    with opened() as file:
        file.save(ROW)
    text = f"""
import os, sqlite3
connection = sqlite3.connect({str(store.path())!r}, isolation_level=None)
connection.execute("begin immediate")
connection.execute("delete from schedules")
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", text]).returncode == -9
    with opened() as file:
        assert file.find(["k1"], ROW.machine, ROW.version) == {"k1": ROW}


def test_a_folder_that_cannot_be_written_is_a_warning() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    parent = Path(str(ml.config.cache_dir)).parent
    parent.chmod(0o500)
    try:
        with pytest.warns(TuningWarning, match="Permission denied"):
            ml.compile(lambda x: x @ x, tune="stored")(np.ones((4, 4)))
    finally:
        parent.chmod(0o700)
