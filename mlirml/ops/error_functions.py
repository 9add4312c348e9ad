"""The error functions, which NumPy lacks: `mlirml.numpy.erf`, and SciPy's on traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.ir.text.builder import Builder, Operand, Value
from mlirml.ir.text.dtypes import bfloat16, is_float, mlir_name
from mlirml.ops import activations
from mlirml.ops.promotion import promoted, resolve
from mlirml.ops.registry import FLOATS, OpDef, define


def _reference(name: str, doc: str, compute: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    """A function of real arrays, which hands traced ones to their trace."""

    def reference(x: Any) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)) and hasattr(x, "__array_function__"):
            return x.__array_function__(reference, (type(x),), (x,), {})
        x = np.asarray(x)
        dtype = x.dtype if is_float(x.dtype) or x.dtype == np.longdouble else np.exp2(np.zeros((), x.dtype)).dtype
        wide = np.float64 if dtype.itemsize <= 8 else np.longdouble
        return compute(x.astype(wide)).astype(dtype)[()]

    reference.__name__ = reference.__qualname__ = name
    reference.__doc__ = doc
    return reference


def _define(name: str, doc: str, compute: Callable[[np.ndarray], np.ndarray]) -> OpDef:
    def build(b: Builder, x: Operand) -> Value:
        kind = x.dtype if x.dtype == bfloat16() and not x.weak else resolve(np.exp2, (promoted(x),), None)[1]

        def body(block: Any, xs: list[str]) -> str:
            return str(block.op(f"math.{name} {xs[0]}", mlir_name(kind)))

        return b.elementwise((x,), (kind,), kind, x.shape, body)

    return define(OpDef(name, "elementwise", _reference(name, doc, compute), build, FLOATS, doc, tolerance=4))


erf = _define("erf", "The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.", activations.erf)
erfc = _define("erfc", "1 - erf(x), exact where it is small.", activations.erfc)
