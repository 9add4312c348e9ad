"""Neural networks: `mlirml.nn.functional` has their operations as functions of arrays."""

from __future__ import annotations

from mlirml.nn import functional

__all__ = ["functional"]
