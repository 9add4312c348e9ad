"""An MLIR-based compiler for Python numeric code: `mlirml.compile(fn)` turns a NumPy function into native code."""

from __future__ import annotations

from mlirml import errors
from mlirml.api import compile, lower, trace
from mlirml.capture.spec import TensorSpec
from mlirml.config import config

__version__ = "0.1.0"
__all__ = ["TensorSpec", "compile", "config", "errors", "lower", "trace"]
