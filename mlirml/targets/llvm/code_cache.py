"""The object code of units, in memory and on disk: a program of which one part changed reuses the code of the others.

The key has the text of a unit, which does not depend on its program (`units.py`), what LLVM is asked to do with it, and
the versions of LLVM and of this compiler. Files are in the folder `kernels` of the disk cache. What is in them is
machine code: they are loaded only from where nobody but this user and root can have written them, and where their
checksum and their key fit. With `config.cache` off nothing is reused.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from mlirml.core import private_folder
from mlirml.core.cache_folder import cache_folder
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.private_folder import PrivateFolder
from mlirml.runtime.cache_entries import Entries, digest, from_file, key_of, to_file, versions

FOLDER, SUFFIX = "kernels", ".code"
MOST_FILES, MOST_MEMORY = 4096, 32 << 20
_MAGIC = b"mlirml-code-1\n"
_EVERY = "0"
"""The first hexadecimal digit of the keys whose storing looks for files to remove: one in sixteen."""

_lock = threading.Lock()


@dataclass
class Counts:
    """The units of a program, and those that LLVM had to compile for it."""

    units: int = 0
    compiled: int = 0

    def add(self, units: int, compiled: int) -> None:
        """Count units; threads may do so concurrently."""
        with _lock:
            self.units += units
            self.compiled += compiled

    def __str__(self) -> str:
        return f"kernels: {self.units}, compiled {self.compiled}, from the cache {self.units - self.compiled}"


_COUNTS: ContextVar[Counts | None] = ContextVar("mlirml_code_counts", default=None)


@contextmanager
def counted() -> Iterator[Counts]:
    """Count the units of the programs that are compiled meanwhile."""
    counts = Counts()
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)


def current_counts() -> Counts:
    """The counts of the surrounding `counted`; outside of one, some that nobody reads."""
    return _COUNTS.get() or Counts()


_memory: OrderedDict[str, bytes] = OrderedDict()
_memory_bytes = 0


def entries_of(text: str, options: Entries) -> list[tuple[str, str]]:
    """The key of a unit: a digest or version, by name, of everything that its code depends on."""
    return [("code", digest(text.encode())), *options, *versions()]


def load(entries: Entries) -> bytes | None:
    """The contents that were stored for a key, or None. A damaged file is removed, never trusted."""
    if not config.cache:
        return None
    key = key_of(entries)
    with _lock:
        if key in _memory:
            _memory.move_to_end(key)
            return _memory[key]
    content = None
    with suppress(OSError), _folder() as folder:  # `Untrusted` is one: the cache of programs has said so
        content = _read(folder, key, entries)
    if content is not None:
        _remember(key, content)
    return content


def _read(folder: PrivateFolder, key: str, entries: Entries) -> bytes | None:
    try:
        found, content = from_file(_MAGIC, folder.read(key + SUFFIX))
        if found != tuple(map(tuple, entries)):
            raise ValueError("the file belongs to another key")
    except ValueError:
        folder.remove(key + SUFFIX)
        return None
    folder.touch(key + SUFFIX)  # the least recently used go first when the cache is full
    return content


def store(contents: Sequence[tuple[Entries, bytes]]) -> None:
    """Store contents by their keys. A folder that cannot be written is no error."""
    if not config.cache or not contents:
        return
    keys = [key_of(entries) for entries, _ in contents]
    for key, (_, content) in zip(keys, contents):
        _remember(key, content)
    with suppress(OSError):
        private_folder.make(cache_folder())
        private_folder.make(os.path.join(cache_folder(), FOLDER))
        with _folder() as folder:
            for key, (entries, content) in zip(keys, contents):
                folder.write(key + SUFFIX, to_file(_MAGIC, entries, content))
            if any(key.startswith(_EVERY) for key in keys):
                _prune(folder)


def forget() -> None:
    """Empty the part of the cache that is in memory."""
    global _memory_bytes
    with _lock:
        _memory.clear()
        _memory_bytes = 0


def _remember(key: str, content: bytes) -> None:
    global _memory_bytes
    with _lock:
        _memory_bytes += len(content) - len(_memory.pop(key, b""))
        _memory[key] = content
        while _memory_bytes > MOST_MEMORY:
            _memory_bytes -= len(_memory.popitem(last=False)[1])


@contextmanager
def _folder() -> Iterator[PrivateFolder]:
    with private_folder.opened(cache_folder()), private_folder.opened(os.path.join(cache_folder(), FOLDER)) as folder:
        yield folder


def _prune(folder: PrivateFolder) -> None:
    files = folder.files(SUFFIX)
    if len(files) > MOST_FILES:
        files.sort(key=lambda file: (file[1].st_mtime_ns, file[0]))
        for name, _ in files[: len(files) - MOST_FILES * 3 // 4]:
            folder.remove(name)


def problem_of(name: str, blob: bytes) -> str | None:
    """A message saying what is wrong with a file of the folder `kernels`, or None."""
    try:
        entries, _ = from_file(_MAGIC, blob)
    except ValueError as error:
        return str(error)
    return None if key_of(entries) + SUFFIX == name else "the file belongs to another key"


def index_of(objects: Sequence[tuple[Entries, Mapping[str, str]]]) -> bytes:
    """The contents that say of which units, by their keys and names, a module is made."""
    return json.dumps([[list(map(list, entries)), dict(names)] for entries, names in objects]).encode()


def load_index(entries: Entries) -> list[tuple[bytes, dict[str, str], Entries]] | None:
    """The objects, names and keys of the units that a module is made of; None if one of them is missing."""
    content = load(entries)
    if content is None:
        return None
    found: list[tuple[bytes, dict[str, str], Entries]] = []
    for pairs, names in json.loads(content):
        key = [(name, value) for name, value in pairs]
        data = load(key)
        if data is None:
            return None
        found.append((data, names, key))
    return found
