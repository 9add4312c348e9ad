"""From `model.py:forward` and `"f32[4,8], axis=0"` to a function and the arguments of a call."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from mlirml.api import Compiled
from mlirml.core.dataclass import dataclass
from mlirml.errors import ArgumentError, MlirmlError, SourceLocation
from mlirml.frontend.spec import TensorSpec
from mlirml.ir.text.dtypes import from_short_name

_ARGS = "--args"
_PYTHON_NUMBERS = {"bool": bool, "int": int, "float": float}


@dataclass(frozen=True)
class Call:
    """A compiled function and abstract arguments for it."""

    compiled: Compiled
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def read_call(function: str, arguments: str, static: str, target: str | None) -> Call:
    """Load a function and read its arguments. Raises `ArgumentError`, which shows the place of the mistake."""
    args, kwargs = read_arguments(arguments)
    found = load_function(function)
    if isinstance(found, Compiled):
        target = target or found.target.name
        statics = _positions(static) or found.static_argnums
        found = found.fn
    else:
        statics = _positions(static)
    return Call(Compiled(found, target, statics), args, kwargs)


def _positions(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"--static takes positions of arguments, not {text!r}", help="--static 1,2") from None


def load_function(text: str) -> Callable[..., Any]:
    """The function that `FILE.py:NAME` names; runs the file."""
    file, _, name = text.rpartition(":")
    if not file or not name:
        raise ArgumentError(f"expected FILE.py:FUNCTION, got {text!r}", help="name a file and a function in it")
    if not Path(file).is_file():
        raise ArgumentError(f"there is no file {file}")
    module = _run_file(Path(file).resolve())
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            names = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
            close = difflib.get_close_matches(part, names, n=3) or names[:8]
            raise ArgumentError(
                f"{file} has no function {name!r}", help=f"it has {', '.join(close)}" if close else None
            )
        found = getattr(found, part)
    if not callable(found):
        raise ArgumentError(f"{name} in {file} is a {type(found).__name__}, not a function")
    return found


def _run_file(path: Path) -> ModuleType:
    # A name of its own: a file may be called like a module that is loaded already.
    name = f"_mlirml_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        place = SourceLocation(error.filename or str(path), error.lineno or 0, error.offset or 0)
        raise ArgumentError(f"{path.name} cannot be read: {error.msg}", location=place) from None
    except MlirmlError:
        raise
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        place = SourceLocation(str(path), frames[-1].lineno or 0) if frames else SourceLocation(str(path), 0)
        raise ArgumentError(
            f"{path.name} stopped while it was loaded: {type(error).__name__}: {error}", location=place
        ) from error
    return module


def read_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, `TensorSpec`s in the place of arrays."""
    # `f32[]` is how messages write an array without dimensions, and no Python expression.
    text = re.sub(r"(?<=\w)\[\s*\]", "[()]", text)
    source = f"f({text})"
    linecache.cache[_ARGS] = (len(text), None, [text], _ARGS)
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise _mistake(f"not an argument list: {error.msg}", (error.offset or 3) - 3) from None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "f":
        raise _mistake("not an argument list", 0)
    named = {k.arg: _value(k.value) for k in call.keywords if k.arg is not None}
    if len(named) != len(call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        raise _mistake("write the arguments out, without stars", text.find("*"))
    return tuple(map(_value, call.args)), named


def _mistake(message: str, start: int, length: int = 1) -> ArgumentError:
    place = SourceLocation(_ARGS, 1, max(start, 0) + 1, 1, max(start, 0) + 1 + max(1, length))
    return ArgumentError(
        message,
        location=place,
        help='types as messages show them: "f32[4,8], i64[], float", containers of them, and literals',
    )


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        if node.id in _PYTHON_NUMBERS:
            import numpy as np

            return TensorSpec((), np.dtype(_PYTHON_NUMBERS[node.id]), weak=True)
        _dtype(node)
        raise _at(node, f"{node.id} needs a shape: {node.id}[4,8], or {node.id}[] for no dimensions")
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return TensorSpec(_shape(node.slice), _dtype(node.value))
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    if isinstance(node, ast.List):
        return list(map(_value, node.elts))
    if isinstance(node, ast.Dict) and all(k is not None for k in node.keys):
        return {_literal(k): _value(v) for k, v in zip(node.keys, node.values) if k is not None}
    return _literal(node)


def _dtype(node: ast.Name) -> Any:
    try:
        return from_short_name(node.id)
    except KeyError:
        raise _at(node, f"there is no dtype {node.id!r}") from None


def _shape(node: ast.expr) -> tuple[int, ...]:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    sizes = []
    for part in parts:
        size = _literal(part)
        if type(size) is not int or size < 0:
            raise _at(part, f"a size is a number from 0, not {ast.unparse(part)}")
        sizes.append(size)
    return tuple(sizes)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _at(node, f"neither a type nor a literal: {ast.unparse(node)}") from None


def _at(node: ast.expr, message: str) -> ArgumentError:
    return _mistake(message, node.col_offset - 2, (node.end_col_offset or 0) - node.col_offset)
