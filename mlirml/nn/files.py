"""Parameters in files of the safetensors format, by the package of that name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from mlirml.core.tree import ObjectFlattener, TreeDef
from mlirml.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.user_objects import attributes_of
from mlirml.ir.text.dtypes import describe
from mlirml.nn.define import shown
from mlirml.runtime.array import Array, put

__all__ = ["load", "save"]

_NUMBERS = (bool, int, float)
_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
"""The dtypes of the format, by their names in it."""


def save(path: str | os.PathLike[str], tree: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write the arrays and numbers of a pytree, a model or a state of an optimiser say, to a file of safetensors.

    Parameters:
        path: the file, which is replaced at once when all is written.
        tree: arrays and Python numbers in dicts, lists, tuples, dataclasses and other objects. An array is named by
            the keys that lead to it, `layers.0.weight`; a number is saved as an array of no dimension. Static fields,
            strings and functions are no part of the file.
        metadata: texts by names, which the file gets too.

    Raises `DTypeError` for complex numbers and other dtypes that the format does not have, `ArgumentError` where two
    arrays would have the same name.

    >>> import tempfile, numpy as np
    >>> from mlirml import nn, random
    >>> layer, other = (nn.Linear.init(random.key(seed), 3, 2) for seed in range(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nn.save(f"{folder}/layer.safetensors", layer)
    ...     found = nn.load(f"{folder}/layer.safetensors", other)
    >>> np.array_equal(found.weight, layer.weight)
    True
    """
    with at_user_line():
        _refuse_tracing("save")
        library = _library("save")
        leaves, _, names = _named("save", tree)
        arrays = {name: _saved(name, leaf) for name, leaf in zip(names, leaves) if name is not None}
    specs = {
        name: library.TensorSpec(
            dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in arrays.items()
    }
    target = Path(path)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        unfinished.touch()  # which raises the error of the system where no file can be written
        library.serialize_file(specs, str(unfinished), metadata=dict(metadata) if metadata else None)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], like: Any = None) -> Any:
    """The contents of a file of safetensors: a dict of arrays by names, or a pytree of the structure of `like`.

    A model, `like`, is not changed: the result is another one, with its static fields, strings and functions. The file
    must hold an array of the same shape and dtype for each of its arrays and numbers, under the name that `save` gives
    it, and no other. Arrays of a device are put there.

    Raises `FileFormatError` where the file is not of the format, or holds too much or too little, `ShapeError` and
    `DTypeError` for an array that does not fit, with its name.
    """
    with at_user_line():
        _refuse_tracing("load")
        found = _read(Path(path), _library("load"))
        if like is None:
            return found
        leaves, structure, names = _named("load", like)
        wanted = [name for name in names if name is not None]
        _check_names(path, wanted, found)
        return structure.unflatten(
            [leaf if name is None else _fitting(name, leaf, found[name]) for name, leaf in zip(names, leaves)]
        )


def _refuse_tracing(name: str) -> None:
    if current_trace() is not None:
        raise ArgumentError(f"{name}: files are read and written outside of compiled functions")


def _library(name: str) -> Any:
    try:
        import safetensors
    except ImportError:
        raise ArgumentError(
            f"{name}: the package `safetensors` is not installed", help="`pip install mlirml[safetensors]`"
        ) from None
    return safetensors


def _is_saved(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, Array, Traced, complex, *_NUMBERS))


def _named(function: str, tree: Any) -> tuple[list[Any], TreeDef, list[str | None]]:
    """The leaves of a tree, its structure, and the names of the leaves that are in the file."""
    found = ObjectFlattener(attributes_of, _is_saved, lambda value: value)
    structure = found.flatten(tree)
    names: list[str | None] = []
    seen: set[str] = set()
    for leaf, keys in zip(found.leaves, structure.key_paths()):
        name = ".".join(map(str, keys)) or "value"
        if not _is_saved(leaf):
            names.append(None)
            continue
        if name in seen:
            raise ArgumentError(f"{function}: two arrays would have the name `{name}`", help="give dicts other keys")
        if name == "__metadata__":  # of the format: the file could not be read
            raise ArgumentError(f"{function}: `{name}` is no name of an array", help="give the dict another key")
        seen.add(name)
        names.append(name)
    return found.leaves, structure, names


def _saved(name: str, leaf: Any) -> np.ndarray:
    """A leaf as an array in the order of bytes and elements of the file."""
    array = leaf.numpy() if isinstance(leaf, Array) else np.asarray(leaf)
    little = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    if little not in map(np.dtype, _DTYPES.values()):
        raise DTypeError(
            f"save: `{name}` is {array.dtype}, which files of safetensors do not have",
            help="save the real and the imaginary part" if array.dtype.kind == "c" else "convert it with `.astype`",
        )
    return np.array(array, little, order="C", copy=None)


def _read(path: Path, library: Any) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    try:
        parts = library.deserialize(data)
    except library.SafetensorError as error:
        raise FileFormatError(f"load: {path} is no valid file of safetensors: {error}") from None
    found = {}
    for name, part in parts:
        dtype = _DTYPES.get(part["dtype"])
        if dtype is None:
            raise FileFormatError(f"load: `{name}` in {path} has the dtype {part['dtype']}, which NumPy does not have")
        try:
            found[name] = np.frombuffer(part["data"], dtype).reshape(part["shape"]).copy()
        except ValueError as error:
            raise FileFormatError(f"load: `{name}` in {path} is no array: {error}") from None
    return found


def _check_names(path: Any, wanted: list[str], found: Mapping[str, Any]) -> None:
    missing = [name for name in wanted if name not in found]
    more = [name for name in found if name not in set(wanted)]
    if missing or more:
        parts = [f"has no {_listed(missing)}"] if missing else []
        parts += [f"has {_listed(more)}, which the structure does not"] if more else []
        raise FileFormatError(f"load: {os.fspath(path)} {', and '.join(parts)}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in sorted(names)[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _fitting(name: str, leaf: Any, array: np.ndarray) -> Any:
    """An array of the file in the place of a leaf of the structure."""
    old = leaf if isinstance(leaf, Array) else np.asarray(leaf)
    if tuple(old.shape) != array.shape:
        raise ShapeError(
            f"load: `{name}` is {describe(array.shape, array.dtype)} in the file, and {shown(old)} in the structure"
        )
    if old.dtype.newbyteorder("=") != array.dtype:
        raise DTypeError(
            f"load: `{name}` is {describe(array.shape, array.dtype)} in the file, and {shown(old)} in the structure",
            help="load the arrays alone, `load(path)`, and convert them",
        )
    if isinstance(leaf, Array):
        return put(array, leaf.device)
    if isinstance(leaf, _NUMBERS):
        return type(leaf)(array)
    return array[()] if isinstance(leaf, np.generic) else array.astype(old.dtype, copy=False)
