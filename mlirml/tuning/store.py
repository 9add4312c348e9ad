"""The file of tuned schedules: SQLite in the cache folder, read and written by many processes at a time.

A row is one contraction, convolution or chain of loops, with the operations beside it, on a machine for one version of
the kernels. A row with an empty schedule says that the default one is the fastest. A second table has the keys of these
for each program that was compiled with the tuner, so that it is found without running a pass.

The schedules choose the code that is made, so that the file is trusted as the cache is: only where nobody but this user
and root can have written it. Nothing that is wrong with it ends a program: `Unusable` says what it is, and programs are
compiled as without a tuner.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mlirml.core import private_folder
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.driver import cache

NAME = "tuned.sqlite"
FORMAT = 1
"""The version of the tables, which the file has as its `user_version`."""
PATIENCE = 5.0
"""Seconds to wait for another process that writes."""
_TABLES = """
create table if not exists schedules (
    key text not null, machine text not null, version text not null, operation text not null, shape text not null,
    dtype text not null, schedule text not null, seconds real not null, default_seconds real not null,
    tried integer not null, primary key (key, machine, version)
) without rowid;
create table if not exists programs (program text primary key, keys text not null) without rowid;
"""
_COLUMNS = "key, machine, version, operation, shape, dtype, schedule, seconds, default_seconds, tried"


class Unusable(Exception):
    """The file of tuned schedules cannot be used; the text says why and what to do."""


@dataclass(frozen=True)
class Row:
    """The result of tuning one cluster: medians of the time with the default schedule, and with `schedule`.

    `schedule` is the text of `to_words`, empty if the default schedule is the fastest of `tried` schedules.
    """

    key: str
    machine: str
    version: str
    operation: str
    shape: str
    dtype: str
    schedule: str
    seconds: float
    default_seconds: float
    tried: int


def path() -> Path:
    """The path of the file."""
    return cache.directory() / NAME


class Store:
    """The tables, open. Every method raises `Unusable` where the file does not allow it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, keys: Sequence[str], machine: str, version: str) -> dict[str, Row]:
        """The rows of these keys for a machine and a version, those that there are."""
        found = {}
        for key in keys:
            query = f"select {_COLUMNS} from schedules where key = ? and machine = ? and version = ?"
            for row in self._run(query, (key, machine, version)):
                found[key] = _row(row)
        return found

    def rows(self) -> list[Row]:
        """All rows, ordered by operation, shape and dtype."""
        query = f"select {_COLUMNS} from schedules order by operation, shape, dtype, machine, version"
        return [_row(row) for row in self._run(query, ())]

    def save(self, row: Row) -> None:
        """Add a row, in the place of the one that it updates."""
        values = tuple(getattr(row, name) for name in _COLUMNS.split(", "))
        self._run(f"insert or replace into schedules ({_COLUMNS}) values ({', '.join('?' * len(values))})", values)

    def keys_of(self, program: str) -> list[str] | None:
        """The keys of the clusters of a program; None for one that was never seen."""
        rows = self._run("select keys from programs where program = ?", (program,))
        try:
            found = json.loads(rows[0][0]) if rows else None
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(key, str) for key in found) else None

    def save_keys(self, program: str, keys: Sequence[str]) -> None:
        """Note the keys of the clusters of a program."""
        self._run("insert or replace into programs values (?, ?)", (program, json.dumps(list(keys))))

    def _run(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with _explained(), self._connection:
            return self._connection.execute(statement, tuple(values)).fetchall()


def _row(values: tuple[Any, ...]) -> Row:
    """A row of the table; raises `Unusable` for one that this package has not written."""
    texts, numbers = values[:7], values[7:]
    is_whole = all(isinstance(text, str) for text in texts) and all(isinstance(x, int | float) for x in numbers)
    if not is_whole or not re.fullmatch(r"[\w=/]*", values[6]):
        raise Unusable(f"tuned schedules are not used: {path()} has a row that is damaged; remove it to begin anew")
    return Row(*values)


_in_memory: sqlite3.Connection | None = None
_lock = threading.RLock()


@contextmanager
def opened() -> Iterator[Store]:
    """The file, made where it is not there; with `config.cache` off one of this process only. Raises `Unusable`."""
    if not config.cache:
        with _lock, _explained():
            yield Store(_of_this_process())
        return
    _make_private(path())
    with _explained(), closing(sqlite3.connect(path(), timeout=PATIENCE, check_same_thread=False)) as connection:
        _prepare(connection)
        yield Store(connection)


def _of_this_process() -> sqlite3.Connection:
    global _in_memory
    if _in_memory is None:
        _in_memory = sqlite3.connect(":memory:", check_same_thread=False)
        _prepare(_in_memory)
    return _in_memory


def _make_private(file: Path) -> None:
    """Make the folder and the file for this user alone; raise `Unusable` where others may have written them."""
    try:
        private_folder.make(str(file.parent))
        with private_folder.opened(str(file.parent)):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(file, flags, 0o600)
        try:
            private_folder.require_private(str(file), os.fstat(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = str(error) if isinstance(error, private_folder.Untrusted) else f"{file}: {error.strerror}"
        raise Unusable(f"tuned schedules are not used: {reason}") from None


def _prepare(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("pragma user_version").fetchone()
    if version not in (0, FORMAT):
        raise Unusable(
            f"tuned schedules are not used: {path()} was written by another version of mlirml (format {version}, this "
            f"one has {FORMAT}); remove it to begin anew"
        )
    if version == 0:
        with connection:
            connection.executescript(_TABLES)
            connection.execute(f"pragma user_version = {FORMAT}")


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of SQLite as `Unusable`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text, advice = str(error), ""
        if "locked" in text or "busy" in text:
            advice = f"; another process has locked it for more than {PATIENCE:g} s"
        elif "not a database" in text or "malformed" in text or "no such" in text or "no column" in text:
            advice = "; it is damaged, remove it to begin anew"
        raise Unusable(f"tuned schedules are not used: {path()}: {text}{advice}") from None
