"""Translation of a module in the llvm dialect to LLVM IR, by MLIR's C API: the Python binding leaks the text."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from mlirml.errors import LoweringError
from mlirml.ir.c_api import address_of, library

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
    """The library that the bindings have loaded."""
    found = library()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def translate(operation: Any) -> str:
    """The text of LLVM IR; raises `LoweringError` where an operation has no LLVM form."""
    functions, address = _library(), address_of(operation)
    context = functions.LLVMContextCreate()
    try:
        module = functions.mlirTranslateModuleToLLVMIR(address, context)
        if not module:
            raise LoweringError("MLIR cannot translate the module to LLVM IR", stage="codegen")
        text = functions.LLVMPrintModuleToString(module)
        try:
            return ctypes.string_at(text).decode()
        finally:
            functions.LLVMDisposeMessage(text)
            functions.LLVMDisposeModule(module)
    finally:
        functions.LLVMContextDispose(context)
