"""Elementary functions as straight-line code: arithmetic, fma, select and shifts, so that LLVM vectorises them."""

from __future__ import annotations

from mlirml.codegen.math import (
    basic,
    division,
    exponential,
    gauss,
    hyperbolic,
    inverse,
    libmvec,
    logarithm,
    power,
    trigonometric,
)
from mlirml.codegen.math.builder import Builder, Value
from mlirml.codegen.math.registry import ELSEWHERE, EXPANSIONS, GUARDED

__all__ = [
    "ELSEWHERE", "EXPANSIONS", "GUARDED", "Builder", "Value", "basic", "division", "exponential", "gauss",
    "hyperbolic", "inverse", "libmvec", "logarithm", "power", "trigonometric",
]  # fmt: skip
