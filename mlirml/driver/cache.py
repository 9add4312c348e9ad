"""The disk cache of compiled programs: keyed by named entries, written atomically, checked before it is trusted.

What is in it is machine code, so that an entry is loaded only where nobody but this user and root can have written it
(`mlirml.core.private_folder`), and where its checksum and its key fit.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from mlirml.core import private_folder
from mlirml.core.cache_folder import cache_folder
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.private_folder import PrivateFolder, Untrusted
from mlirml.errors import CacheWarning
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.cache_entries import Entries, digest, from_file, key_of, to_file, versions

if TYPE_CHECKING:
    from pathlib import Path  # to import it takes longer than to load a program

_MAGIC = b"mlirml-cache-1\n"
_SUFFIX = ".mlirml"
_UNFINISHED = ".new-"
_ABANDONED_AFTER = 600.0
"""Seconds after which an unfinished file is that of a writer that was killed."""
MAX_BYTES = 1 << 30
_EVERY = "0"
"""The first hexadecimal digit of the keys whose storing looks for files to remove: one in sixteen. To list the folder
takes longer than to store a program in it, if there are some thousand others."""
_NOT_THERE = FileNotFoundError, NotADirectoryError, PermissionError
_warned = False

__all__ = [
    "MAX_BYTES", "Entry", "clear", "directory", "drop", "is_there", "kernels", "key_entries", "key_of", "listing",
    "load", "remove_abandoned", "store", "unfinished", "versions",
]  # fmt: skip


def key_entries(ir: str, fingerprint: Entries) -> list[tuple[str, str]]:
    """The cache key: a digest or version, by name, of everything that the generated code depends on."""
    return [("ir", digest(ir.encode())), *fingerprint, *versions()]


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
    try:
        private_folder.make(cache_folder())
        with private_folder.opened(cache_folder()) as folder:
            folder.write(name := _name(entries), to_file(_MAGIC, entries, artifact.to_bytes()))
            if name.startswith(_EVERY):
                _prune(folder)
    except Untrusted as reason:
        _warn(reason)
    except OSError:
        pass


def _decode(blob: bytes) -> tuple[tuple[tuple[str, str], ...], Artifact]:
    entries, content = from_file(_MAGIC, blob)
    try:
        return entries, Artifact.from_bytes(content)
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


def kernels() -> Iterator[Entry]:
    """The files with the code of kernels, which programs share; a damaged one says what is wrong with it.

    Raises `Untrusted` where others may write the folder.
    """
    from mlirml.targets.llvm import code_cache

    where = directory() / code_cache.FOLDER
    with suppress(*_NOT_THERE), private_folder.opened(str(where)) as folder:
        for name, status in _by_age(folder.files(code_cache.SUFFIX)):
            try:
                problem = code_cache.problem_of(name, folder.read(name))
            except FileNotFoundError:  # removed by another process
                continue
            except OSError as error:
                problem = str(error)
            yield Entry(where / name, status.st_size, (), problem)


def unfinished() -> list[tuple[Path, int]]:
    """The temporary files that writers have not renamed yet, or were killed before renaming, with their sizes."""
    where = directory()
    with suppress(*_NOT_THERE), private_folder.opened(str(where)) as folder:
        return [(where / name, status.st_size) for name, status in folder.files(prefix=_UNFINISHED)]
    return []


def clear() -> int:
    """Remove all entries and unfinished files; how many there were. Raises `Untrusted` as `listing` does."""
    from mlirml.targets.llvm import code_cache

    code_cache.forget()
    folders = (cache_folder(), _SUFFIX), (os.path.join(cache_folder(), code_cache.FOLDER), code_cache.SUFFIX)
    return sum(_cleared(path, suffix) for path, suffix in folders)


def _cleared(path: str, suffix: str) -> int:
    with suppress(*_NOT_THERE), private_folder.opened(path) as folder:
        names = [name for name, _ in [*folder.files(suffix), *folder.files(prefix=_UNFINISHED)]]
        for name in names:
            folder.remove(name)
        return len(names)
    return 0


def remove_abandoned() -> int:
    """Remove what killed writers have left; how many files."""
    from mlirml.targets.llvm import code_cache

    count = 0
    for path in (cache_folder(), os.path.join(cache_folder(), code_cache.FOLDER)):
        with suppress(*_NOT_THERE), private_folder.opened(path) as folder:
            count += _remove_abandoned(folder)
    return count


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
