"""The disk cache of compiled programs: keyed by named entries, written atomically, checked before it is trusted.

What is in it is machine code, so that an entry is loaded only where nobody but this user and root can have written it
(`mlirml.core.private_folder`), and where its checksum and its key fit.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from mlirml.core import private_folder
from mlirml.core.cache_folder import cache_folder
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.private_folder import PrivateFolder, Untrusted
from mlirml.errors import CacheWarning
from mlirml.runtime import _native
from mlirml.runtime.artifact import Artifact

if TYPE_CHECKING:
    from pathlib import Path  # to import it takes longer than to load a program

_MAGIC = b"mlirml-cache-1\n"
_SUFFIX = ".mlirml"
_UNFINISHED = ".new-"
_ABANDONED_AFTER = 600.0
"""Seconds after which an unfinished file is that of a writer that was killed."""
MAX_BYTES = 1 << 30
_NOT_THERE = FileNotFoundError, NotADirectoryError, PermissionError
_warned = False

Entries = Sequence[tuple[str, str]]


@cache
def _sha256() -> Any:
    """Python's own function: `hashlib` would load OpenSSL for it, which takes as long as to read a program."""
    for module in ("_sha2", "_sha256", "hashlib"):  # from Python 3.12 on, before, and where both are left out
        with suppress(ImportError, AttributeError):
            return importlib.import_module(module).sha256
    raise ImportError("Python has no SHA-256")


def _digest(data: bytes) -> str:
    digest: str = _sha256()(data).hexdigest()
    return digest


@cache
def compiler_fingerprint() -> str:
    """A digest of the compiler itself: an edited compiler finds nothing that an older one has made."""
    native = _state(_native.__file__)  # in some installations not below the package's folder
    return _digest(state_of_sources(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + native)[:16]


def state_of_sources(folder: str) -> bytes:
    """The paths, sizes and modification times of the Python files below a folder.

    Python trusts them for its own compiled files; to read all files would take ten times as long.
    """
    states, folders = [], [folder]
    for folder in folders:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        folders += [entry.path for entry in entries if entry.is_dir() and entry.name != "__pycache__"]
        states += [_state(entry.path) for entry in entries if entry.name.endswith(".py")]
    return b"".join(states)


def _state(path: str) -> bytes:
    status = os.stat(path)
    return f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode()


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """The versions of what makes the code, as key entries."""
    found = tuple((f"version.{package}", _installed_version(package)) for package in ("torch_mlir", "llvmlite"))
    return (("version.mlirml", compiler_fingerprint()), *found)


def _installed_version(package: str) -> str:
    # importlib.metadata says the same, but importing it takes longer than all else here together.
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec is not None else []:
        for name in os.listdir(os.path.dirname(location)):
            if name.startswith(f"{package}-") and name.endswith(".dist-info"):
                return name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return "unknown"


def key_entries(ir: str, fingerprint: Entries) -> list[tuple[str, str]]:
    """The cache key: a digest or version, by name, of everything that the generated code depends on."""
    return [("ir", _digest(ir.encode())), *fingerprint, *versions()]


def key_of(entries: Entries) -> str:
    """The name of a cache entry."""
    return _digest(json.dumps(list(entries)).encode())


def directory() -> Path:
    """The folder of the cache entries: `config.cache_dir`, or the user's cache folder for mlirml."""
    from pathlib import Path

    return Path(cache_folder())


def _name(entries: Entries) -> str:
    return key_of(entries) + _SUFFIX


def _warn(reason: Untrusted) -> None:
    """Say once why the cache is not used."""
    global _warned
    if not _warned:
        _warned = True
        message = (
            f"the disk cache is not used: {reason}. Compiled programs are machine code, so they are loaded only from "
            "files and folders that belong to this user or root and that nobody else may write (`chmod go-w`); "
            "`config.cache_dir` names another folder (SECURITY.md)"
        )
        warnings.warn(message, CacheWarning, stacklevel=2)


@dataclass(frozen=True)
class Entry:
    """One file of the cache."""

    path: Path
    bytes: int
    entries: tuple[tuple[str, str], ...]
    problem: str | None = None


def load(entries: Entries) -> Artifact | None:
    """The artifact of a key, or None. A damaged file is removed, never trusted."""
    if not config.cache:
        return None
    name = _name(entries)
    try:
        with private_folder.opened(cache_folder()) as folder:
            try:
                found, artifact = _decode(folder.read(name))
                if found != tuple(map(tuple, entries)):
                    raise ValueError("the file belongs to another key")
            except ValueError:
                folder.remove(name)
                return None
            folder.touch(name)  # the least recently used go first when the cache is full
            return artifact
    except Untrusted as reason:
        _warn(reason)
    except OSError:
        pass
    return None


def is_there() -> bool:
    """True if the cache is switched on and its folder exists."""
    return config.cache and os.path.isdir(cache_folder())


def drop(entries: Entries) -> None:
    """Remove the entry of a key, which turned out not to be usable."""
    with suppress(OSError), private_folder.opened(cache_folder()) as folder:
        folder.remove(_name(entries))


def store(entries: Entries, artifact: Artifact) -> None:
    """Store an artifact. An unwritable cache is no error: the program is in memory already."""
    if not config.cache:
        return
    body = json.dumps(list(entries)).encode() + b"\n" + artifact.to_bytes()
    try:
        private_folder.make(cache_folder())
        with private_folder.opened(cache_folder()) as folder:
            folder.write(_name(entries), _MAGIC + _digest(body).encode() + b"\n" + body)
            _prune(folder)
    except Untrusted as reason:
        _warn(reason)
    except OSError:
        pass


def _decode(blob: bytes) -> tuple[tuple[tuple[str, str], ...], Artifact]:
    if not blob.startswith(_MAGIC):
        raise ValueError("not a cache entry of this version")
    digest, _, body = blob[len(_MAGIC) :].partition(b"\n")
    if _digest(body).encode() != digest:
        raise ValueError("the checksum does not fit")
    header, _, rest = body.partition(b"\n")
    try:
        return tuple((name, value) for name, value in json.loads(header)), Artifact.from_bytes(rest)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a compiled program of this version: {error}") from None


def listing() -> Iterator[Entry]:
    """All entries, the least recently used first; a damaged one says what is wrong with it.

    Raises `Untrusted` where others may write the folder.
    """
    where = directory()
    with suppress(*_NOT_THERE), private_folder.opened(str(where)) as folder:
        for name, status in _by_age(folder.files(_SUFFIX)):
            try:
                entries, _ = _decode(folder.read(name))
                problem = None if key_of(entries) + _SUFFIX == name else "the file belongs to another key"
                yield Entry(where / name, status.st_size, entries, problem)
            except FileNotFoundError:  # removed by another process
                continue
            except (OSError, ValueError) as error:
                yield Entry(where / name, status.st_size, (), str(error))


def unfinished() -> list[tuple[Path, int]]:
    """The temporary files that writers have not renamed yet, or were killed before renaming, with their sizes."""
    where = directory()
    with suppress(*_NOT_THERE), private_folder.opened(str(where)) as folder:
        return [(where / name, status.st_size) for name, status in folder.files(prefix=_UNFINISHED)]
    return []


def clear() -> int:
    """Remove all entries and unfinished files; how many there were. Raises `Untrusted` as `listing` does."""
    with suppress(*_NOT_THERE), private_folder.opened(cache_folder()) as folder:
        names = [name for name, _ in [*folder.files(_SUFFIX), *folder.files(prefix=_UNFINISHED)]]
        for name in names:
            folder.remove(name)
        return len(names)
    return 0


def remove_abandoned() -> int:
    """Remove what killed writers have left; how many files."""
    with suppress(*_NOT_THERE), private_folder.opened(cache_folder()) as folder:
        return _remove_abandoned(folder)
    return 0


def _remove_abandoned(folder: PrivateFolder) -> int:
    latest = time.time() - _ABANDONED_AFTER
    abandoned = [name for name, status in folder.files(prefix=_UNFINISHED) if status.st_mtime < latest]
    for name in abandoned:
        folder.remove(name)
    return len(abandoned)


def _prune(folder: PrivateFolder) -> None:
    _remove_abandoned(folder)
    files = _by_age(folder.files(_SUFFIX))
    total = sum(status.st_size for _, status in files)
    for name, status in files:
        if total <= MAX_BYTES:
            return
        folder.remove(name)
        total -= status.st_size


def _by_age(files: list[tuple[str, os.stat_result]]) -> list[tuple[str, os.stat_result]]:
    return sorted(files, key=lambda file: (file[1].st_mtime_ns, file[0]))
