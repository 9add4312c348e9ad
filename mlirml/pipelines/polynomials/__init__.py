"""Elementary functions as straight-line code: arithmetic, fma, select and shifts, so that LLVM vectorises them."""

from __future__ import annotations

from mlirml.pipelines.polynomials import basic, exponential, logarithm
from mlirml.pipelines.polynomials.builder import Builder, Features, Value
from mlirml.pipelines.polynomials.registry import EXPANSIONS

__all__ = ["EXPANSIONS", "Builder", "Features", "Value", "basic", "exponential", "logarithm"]
