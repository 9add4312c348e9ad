"""Convolutions."""

from __future__ import annotations

from mlirml.nn.define import from_record
from mlirml.ops import convolutions  # noqa: F401  (makes the records)  # noqa: F401  (makes the records)

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

conv1d = from_record("conv1d")
conv2d = from_record("conv2d")
conv3d = from_record("conv3d")
conv_transpose1d = from_record("conv_transpose1d")
conv_transpose2d = from_record("conv_transpose2d")
conv_transpose3d = from_record("conv_transpose3d")
