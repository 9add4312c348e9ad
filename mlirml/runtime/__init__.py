"""Running compiled programs: thread pool, object loader, call path."""

from __future__ import annotations

import numpy as np

from mlirml.core.config import config
from mlirml.runtime import _native
from mlirml.runtime._native import Code, Dispatcher, Program, declare_fields, load_object, number_leaves, pack_numbers
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.executable import load_artifact

_native.set_threads(config.threads or 0)

HAS_LAPACK: bool = _native.find_lapack(getattr(getattr(np.linalg, "_umath_linalg", None), "__file__", ""))
"""True if compiled programs can call the LAPACK that NumPy is linked to.

Its functions are looked up in NumPy's module for linear algebra and the libraries that this is linked to.
"""

HAS_BLAS: bool = _native.find_blas(getattr(getattr(np.linalg, "_umath_linalg", None), "__file__", ""))
"""True if compiled programs can call the OpenBLAS that NumPy is linked to."""

__all__ = [
    "HAS_BLAS", "HAS_LAPACK", "Artifact", "Buffer", "Code", "Dispatcher", "Program", "declare_fields", "load_artifact",
    "load_object", "number_leaves", "pack_numbers",
]  # fmt: skip
