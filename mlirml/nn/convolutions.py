"""Convolutions."""

from __future__ import annotations

from mlirml.dialects.ops import convolutions  # noqa: F401  (makes the records)
from mlirml.nn.define import from_record

conv1d = from_record("conv1d")
conv2d = from_record("conv2d")
conv3d = from_record("conv3d")
conv_transpose2d = from_record("conv_transpose2d")
