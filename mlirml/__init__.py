"""An MLIR-based compiler for Python numeric code: `mlirml.compile(fn)` turns a NumPy function into native code."""

from __future__ import annotations

import importlib

from mlirml import debug, errors
from mlirml.api import compile, lower, trace
from mlirml.core.config import config
from mlirml.core.sizes import Dim
from mlirml.core.tree import static_field
from mlirml.driver.options import optional_passes
from mlirml.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    FailedAssertionError,
    FileFormatError,
    FloatOperationError,
    IndexOutOfBoundsError,
    IntegerRangeError,
    InternalError,
    InvalidIndexError,
    LaunchError,
    LeakedTracerError,
    LinAlgError,
    LoweringError,
    MatrixShapeError,
    MlirmlError,
    NegativePowerError,
    NoBatchingError,
    NoDerivativeError,
    OutgrownListError,
    ParseError,
    PipelineError,
    PreconditionError,
    ShapeError,
    TargetError,
    TracedBoolError,
    TracedValueError,
    TransformError,
    UnassignedNameError,
    UnboundedRecursionError,
    UnsupportedSyntaxError,
)
from mlirml.frontend.control import cond, fori_loop, scan, switch, while_loop
from mlirml.frontend.functions.einop import einop
from mlirml.frontend.loops.mark import loops
from mlirml.frontend.loops.ranges import parallel
from mlirml.frontend.spec import TensorSpec
from mlirml.lazy.creation import array, asarray
from mlirml.lazy.interface import install
from mlirml.runtime.array import Array, put, wait_all, wait_any
from mlirml.runtime.device import device, devices
from mlirml.transforms import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

install()
del install

__version__ = "0.1.0"
__all__ = [
    "ArgumentError", "Array", "CaptureError", "DTypeError", "Dim", "FailedAssertionError", "FileFormatError",
    "FloatOperationError", "IndexOutOfBoundsError", "IntegerRangeError", "InternalError", "InvalidIndexError",
    "LaunchError", "LeakedTracerError", "LinAlgError", "LoweringError", "MatrixShapeError", "MlirmlError",
    "NegativePowerError",
    "NoBatchingError", "NoDerivativeError", "OutgrownListError", "ParseError", "PipelineError", "PreconditionError",
    "ShapeError", "TargetError",
    "TensorSpec", "TracedBoolError", "TracedValueError", "TransformError", "UnassignedNameError",
    "UnboundedRecursionError", "UnsupportedSyntaxError", "array", "asarray", "checkpoint", "compile", "cond",
    "config", "custom_jvp", "custom_vjp", "debug", "device", "devices", "einop", "errors", "fori_loop",
    "grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize", "loops", "lower", "optional_passes", "parallel",
    "put", "scan",
    "static_field", "stop_gradient", "switch", "trace", "value_and_grad", "vjp", "vmap", "wait_all", "wait_any",
    "while_loop",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """The packages that are imported when they are first used."""
    if name in ("fft", "linalg", "ndimage", "nn", "optim", "random", "signal", "special", "stats"):
        return importlib.import_module(f"mlirml.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
