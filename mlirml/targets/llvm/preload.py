"""Loads the libraries of MLIR and LLVM in a thread, while Python traces the function and imports the compiler.

Loading and linking them takes a tenth of a small compilation, without any Python code: `ctypes` releases the GIL, which
an import of the bindings would hold all the time.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from functools import cache

from mlirml.core.processes import native_code, started
from mlirml.errors import MlirmlError
from mlirml.targets.llvm.job_pool import thread_count

_BINDINGS = ("_mlir_libs", "libTorchMLIRAggregateCAPI.so")


@cache
def begin() -> None:
    """Start the thread, once, if there is a second processor. The later import reports missing libraries."""
    if thread_count() > 1:
        started(threading.Thread(target=_load, name="mlirml-preload", daemon=True))


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
