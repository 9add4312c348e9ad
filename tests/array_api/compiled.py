"""`mlirml.numpy` with every call of a function on arrays compiled, for the standard's tests.

`XP` is the namespace. A call with an array among its arguments, at any depth of lists and tuples, is compiled for the
target that `MLIRML_ARRAY_API_TARGET` names; arrays are the parameters, and everything else is static.
In a checkout of github.com/data-apis/array-api-tests, with this repository on `PYTHONPATH`:

    ARRAY_API_TESTS_MODULE=mlirml.numpy pytest array_api_tests
    ARRAY_API_TESTS_MODULE="exec('from tests.array_api.compiled import XP as xp')" pytest array_api_tests
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mlirml as ml
import mlirml.numpy as mnp

TARGET = os.environ.get("MLIRML_ARRAY_API_TARGET", "cpu")
HOST_ONLY = (
    "__array_namespace_info__", "asarray", "astype", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype",
    "repeat", "result_type", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero",
)  # fmt: skip
"""Functions of dtypes and of containers, and those whose results have a shape that depends on data."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each call of it compiled anew."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = [x for x in _leaves((args, list(kwargs.values()))) if isinstance(x, np.ndarray)]
        if not arrays:
            return function(*args, **kwargs)

        def program(*parameters: Any) -> Any:
            remaining = iter(parameters)
            positional = [_replaced(x, remaining) for x in args]
            return function(*positional, **{name: _replaced(x, remaining) for name, x in kwargs.items()})

        return _on_host(ml.compile(program, target=TARGET)(*arrays))

    return call


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _leaves(item)
    else:
        yield x


def _replaced(x: Any, parameters: Iterator[Any]) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_replaced(item, parameters) for item in x)
    return next(parameters) if isinstance(x, np.ndarray) else x


def _on_host(x: Any) -> Any:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_on_host, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_on_host, x))
    return np.asarray(x) if isinstance(x, (np.generic, ml.Array)) else x


def _namespace(module: types.ModuleType) -> types.SimpleNamespace:
    found = types.SimpleNamespace()
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if name in ("fft", "linalg"):
                setattr(found, name, _namespace(value))
        elif isinstance(value, type) or not callable(value) or name in HOST_ONLY:
            setattr(found, name, value)
        else:
            setattr(found, name, compiled(value))
    return found


XP = _namespace(mnp)
XP.__array_api_version__ = mnp.__array_api_version__
