"""Functions of MLIR's C API that the bindings lack, called by address."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from mlirml.runtime import _native

if TYPE_CHECKING:
    from mlirml.ir.upstream import mlir

_LIBRARY = ("_mlir_libs", "libTorchMLIRAggregateCAPI.so")


@cache
def library() -> Any:
    """The library that the bindings have loaded; its functions hold the GIL: diagnostic handlers are Python code."""
    spec = importlib.util.find_spec("torch_mlir")
    (folder, *_) = (spec.submodule_search_locations or [""]) if spec is not None else [""]
    return ctypes.PyDLL(os.path.join(folder, *_LIBRARY))


@cache
def _get_pointer() -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get


def address_of(operation: mlir.Operation) -> int:
    """The address of an operation."""
    return _get_pointer()(operation._CAPIPtr, b"torch_mlir.ir.Operation._CAPIPtr")


@cache
def _connected() -> Any:
    """The native functions that read operations, once they know those of the C API."""
    found = (getattr(library(), name) for name in _native.MLIR_FUNCTIONS)
    _native.connect_mlir(tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found))
    return _native


def census(operation: mlir.Operation) -> dict[str, int]:
    """The count of each operation in one, by name; `linalg.window` counts those that slide a window over an input.

    So it does for values that are arrays of bools in memory, `!memref<i1>`, and tensors of rank 0, `!tensor<0d>`; a
    discardable attribute that some operation has is a name as well: `#mlirml.flush_denormals`.
    """
    return _connected().census(address_of(operation))


def has_captures(operation: mlir.Operation) -> bool:
    """True if the regions of an operation use values from outside that are no constants."""
    return bool(_connected().has_captures(address_of(operation)))
