"""The disk cache of compiled programs: keyed by named entries, written atomically, checked before it is trusted."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from mlirml.config import config
from mlirml.dataclass import dataclass
from mlirml.runtime import _native
from mlirml.runtime.artifact import Artifact

if TYPE_CHECKING:
    from pathlib import Path  # to import it takes longer than to load a program

_MAGIC = b"mlirml-cache-1\n"
_SUFFIX = ".mlirml"
MAX_BYTES = 1 << 30

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
    native = _state(_native.__file__)  # lies elsewhere in some kinds of installation
    return _digest(state_of_sources(os.path.dirname(os.path.abspath(__file__))) + native)[:16]


def state_of_sources(folder: str) -> bytes:
    """The places, sizes and times of change of the Python files below a folder.

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
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        for name in os.listdir(os.path.dirname(place)):
            if name.startswith(f"{package}-") and name.endswith(".dist-info"):
                return name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return "unknown"


def key_entries(ir: str, fingerprint: Entries) -> list[tuple[str, str]]:
    """Everything that a program's code depends on, by name."""
    return [("ir", _digest(ir.encode())), *fingerprint, *versions()]


def key_of(entries: Entries) -> str:
    """The name of a cache entry."""
    return _digest(json.dumps(list(entries)).encode())


def directory() -> Path:
    """Where entries lie: `config.cache_dir`, or the user's cache folder for mlirml."""
    from pathlib import Path

    return Path(_folder())


def _folder() -> str:
    if config.cache_dir is not None:
        return config.cache_dir
    if os.uname().sysname == "Linux":  # as platformdirs has it, which imports too much for one path
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(base, "mlirml")
    import platformdirs

    return platformdirs.user_cache_dir("mlirml")


def _path(entries: Entries) -> str:
    return os.path.join(_folder(), key_of(entries) + _SUFFIX)


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
    path = _path(entries)
    try:
        with open(path, "rb") as file:
            blob = file.read()
    except OSError:
        return None
    try:
        found, artifact = _decode(blob)
        if found != tuple(map(tuple, entries)):
            raise ValueError("the file belongs to another key")
    except ValueError:
        drop(entries)
        return None
    with suppress(OSError):
        os.utime(path)  # the least recently used go first when the cache is full
    return artifact


def is_there() -> bool:
    """Whether anything can be found."""
    return config.cache and os.path.isdir(_folder())


def drop(entries: Entries) -> None:
    """Remove the entry of a key, which turned out not to be usable."""
    _remove(_path(entries))


def store(entries: Entries, artifact: Artifact) -> None:
    """Keep an artifact. A cache that cannot be written is no error: the program is there already."""
    if not config.cache:
        return
    body = json.dumps(list(entries)).encode() + b"\n" + artifact.to_bytes()
    blob = _MAGIC + _digest(body).encode() + b"\n" + body
    path = _path(entries)
    folder, name = os.path.split(path)
    # A name that no other thread or process writes to.
    new = os.path.join(folder, f".new-{name[:16]}-{os.urandom(8).hex()}")
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(blob)
            os.replace(new, path)
        except BaseException:
            _remove(new)
            raise
        _prune(folder)
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
    """All entries, the least recently used first; a damaged one says what is wrong with it."""
    paths = [p for p in directory().glob(f"*{_SUFFIX}") if p.is_file()]
    for path in sorted(paths, key=lambda p: (p.stat().st_mtime_ns, p.name)):
        try:
            entries, _ = _decode(path.read_bytes())
            problem = None if key_of(entries) == path.stem else "the file belongs to another key"
            yield Entry(path, path.stat().st_size, entries, problem)
        except (OSError, ValueError) as error:
            yield Entry(path, path.stat().st_size, (), str(error))


def clear() -> int:
    """Remove all entries; how many there were."""
    paths = [*directory().glob(f"*{_SUFFIX}"), *directory().glob(".new-*")]
    for path in paths:
        _remove(path)
    return len(paths)


def _prune(folder: str) -> None:
    with os.scandir(folder) as found:
        files = [(file.path, file.stat()) for file in found if file.name.endswith(_SUFFIX)]
    total = sum(status.st_size for _, status in files)
    for path, status in sorted(files, key=lambda file: file[1].st_mtime_ns):
        if total <= MAX_BYTES:
            return
        _remove(path)
        total -= status.st_size


def _remove(path: str | Path) -> None:
    with suppress(OSError):
        os.unlink(path)
