"""Poolings."""

from __future__ import annotations

from mlirml.nn.define import from_record
from mlirml.ops import pooling  # noqa: F401  (makes the records)  # noqa: F401  (makes the records)

max_pool1d = from_record("max_pool1d")
max_pool2d = from_record("max_pool2d")
max_pool3d = from_record("max_pool3d")
avg_pool1d = from_record("avg_pool1d")
avg_pool2d = from_record("avg_pool2d")
avg_pool3d = from_record("avg_pool3d")
adaptive_avg_pool2d = from_record("adaptive_avg_pool2d")
