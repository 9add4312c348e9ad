"""Translation of a module in the llvm dialect to LLVM IR, by MLIR's C API: the Python binding leaks the text."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache
from typing import Any

from mlirml.errors import LoweringError

_LIBRARY = ("_mlir_libs", "libTorchMLIRAggregateCAPI.so")
_FUNCTIONS = {
    "LLVMContextCreate": (ctypes.c_void_p, []),
    "LLVMContextDispose": (None, [ctypes.c_void_p]),
    "LLVMPrintModuleToString": (ctypes.c_void_p, [ctypes.c_void_p]),
    "LLVMDisposeMessage": (None, [ctypes.c_void_p]),
    "LLVMDisposeModule": (None, [ctypes.c_void_p]),
    "mlirTranslateModuleToLLVMIR": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
}


@cache
def _library() -> Any:
    """The library that the bindings have loaded, called while holding the GIL: diagnostic handlers are Python code."""
    spec = importlib.util.find_spec("torch_mlir")
    (folder, *_) = (spec.submodule_search_locations or [""]) if spec is not None else [""]
    library = ctypes.PyDLL(os.path.join(folder, *_LIBRARY))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _pointer(operation: Any) -> int:
    """The address of an operation."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(operation._CAPIPtr, b"torch_mlir.ir.Operation._CAPIPtr")
    return address


def translate(operation: Any) -> str:
    """The text of LLVM IR; raises `LoweringError` where an operation has no LLVM form."""
    library, address = _library(), _pointer(operation)
    context = library.LLVMContextCreate()
    try:
        module = library.mlirTranslateModuleToLLVMIR(address, context)
        if not module:
            raise LoweringError("MLIR cannot translate the module to LLVM IR", stage="codegen")
        text = library.LLVMPrintModuleToString(module)
        try:
            return ctypes.string_at(text).decode()
        finally:
            library.LLVMDisposeMessage(text)
            library.LLVMDisposeModule(module)
    finally:
        library.LLVMContextDispose(context)
