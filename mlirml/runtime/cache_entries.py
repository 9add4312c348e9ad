"""Entries of the disk cache: named keys, the versions of what makes code, and the form of a file, which is checked."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from mlirml.runtime import _native

Entries = Sequence[tuple[str, str]]
"""A key: a digest or version, by name, of everything that the contents depend on."""


@cache
def _sha256() -> Any:
    """Python's own function: `hashlib` would load OpenSSL for it, which takes as long as to read a program."""
    for module in ("_sha2", "_sha256", "hashlib"):  # from Python 3.12 on, before, and where both are left out
        with suppress(ImportError, AttributeError):
            return importlib.import_module(module).sha256
    raise ImportError("Python has no SHA-256")


def digest(data: bytes) -> str:
    """SHA-256 of bytes, as hexadecimal text."""
    return _sha256()(data).hexdigest()


@cache
def compiler_fingerprint() -> str:
    """A digest of the compiler itself: an edited compiler finds nothing that an older one has made."""
    native = _state(_native.__file__)  # in some installations not below the package's folder
    return digest(state_of_sources(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + native)[:16]


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


def key_of(entries: Entries) -> str:
    """The name of a cache entry."""
    return digest(json.dumps(list(entries)).encode())


def to_file(magic: bytes, entries: Entries, content: bytes) -> bytes:
    """The bytes of a file: a line that says what it is, a checksum of the rest, the key, and the contents."""
    body = json.dumps(list(entries)).encode() + b"\n" + content
    return magic + digest(body).encode() + b"\n" + body


def from_file(magic: bytes, blob: bytes) -> tuple[tuple[tuple[str, str], ...], bytes]:
    """The key and the contents of a file.

    Raises ValueError where it is of another form, or its checksum does not fit.
    """
    if not blob.startswith(magic):
        raise ValueError("not a cache entry of this version")
    checksum, _, body = blob[len(magic) :].partition(b"\n")
    if digest(body).encode() != checksum:
        raise ValueError("the checksum does not fit")
    header, _, content = body.partition(b"\n")
    try:
        return tuple((name, value) for name, value in json.loads(header)), content
    except (TypeError, ValueError) as error:
        raise ValueError(f"not a key: {error}") from None
