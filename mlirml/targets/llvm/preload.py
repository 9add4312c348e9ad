"""Loads the libraries of MLIR and LLVM in a thread, while Python traces the function and imports the compiler.

To load and link them takes a tenth of a small compilation, in which Python has nothing to do: `ctypes` lets go of the
interpreter, which an import of the bindings would hold all the time.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from functools import cache

from mlirml.core.processes import native_code
from mlirml.errors import MlirmlError
from mlirml.targets.llvm.job_pool import thread_count

_BINDINGS = ("_mlir_libs", "libTorchMLIRAggregateCAPI.so")


@cache
def begin() -> None:
    """Start, once, where there is a processor for it. What cannot be loaded is reported by the import that needs it."""
    if thread_count() > 1:
        threading.Thread(target=_load, name="mlirml-preload", daemon=True).start()


def _load() -> None:
    with native_code():
        _load_libraries()


def _load_libraries() -> None:
    spec = importlib.util.find_spec("torch_mlir")  # does not import it
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        try:
            ctypes.CDLL(os.path.join(folder, *_BINDINGS))
        except OSError:
            return
    from mlirml.targets.llvm.library import host_cpu, host_features

    try:
        host_cpu(), host_features()
    except (MlirmlError, OSError):
        return
