"""An MLIR-based compiler for Python numeric code: `mlirml.compile(fn)` turns a NumPy function into native code."""

from __future__ import annotations

from mlirml import errors
from mlirml.api import compile, lower, trace
from mlirml.capture.control import cond, fori_loop, scan, switch, while_loop
from mlirml.capture.spec import TensorSpec
from mlirml.config import config
from mlirml.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    IndexOutOfBoundsError,
    IntegerRangeError,
    InternalError,
    InvalidIndexError,
    LaunchError,
    LeakedTracerError,
    LoweringError,
    MlirmlError,
    ParseError,
    PipelineError,
    ShapeError,
    TargetError,
    TracedBoolError,
    TransformError,
    UnsupportedSyntaxError,
)

__version__ = "0.1.0"
__all__ = [
    "ArgumentError", "CaptureError", "DTypeError", "IndexOutOfBoundsError", "IntegerRangeError", "InternalError",
    "InvalidIndexError",
    "LaunchError", "LeakedTracerError", "LoweringError", "MlirmlError", "ParseError", "PipelineError", "ShapeError",
    "TargetError", "TensorSpec", "TracedBoolError", "TransformError", "UnsupportedSyntaxError", "compile", "cond",
    "config", "errors", "fori_loop", "lower", "scan", "switch", "trace", "while_loop",
]  # fmt: skip
