"""The modules of the MLIR Python bindings, which no other file imports, with two changes to what they do."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir as mlir
from torch_mlir import passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir._mlir_libs import _mlirDialectsIRDL as irdl
from torch_mlir._mlir_libs import _mlirDialectsLinalg as linalg
from torch_mlir._mlir_libs import _mlirDialectsLLVM as llvm

from mlirml.errors import InternalError

__all__ = ["irdl", "linalg", "llvm", "mlir", "passmanager", "rewrite"]

# The bindings would import the Python classes of every dialect they meet (linalg's alone take 70 ms). Operations are
# made and read by name here, so nothing needs the classes.
_mlir.globals.dialect_search_modules = []

_erase = mlir.Operation.erase


def _erase_unused(op: Any) -> None:
    """Erase an operation; raises `InternalError` if a result of it is used.

    MLIR would leave the users with dangling operands, and the process would crash later, at an unrelated operation.
    """
    for result in op.results:
        if next(iter(result.uses), None) is not None:
            raise InternalError(f"`{op.name}` is erased and still used")
    _erase(op)


mlir.Operation.erase = mlir.OpView.erase = _erase_unused
