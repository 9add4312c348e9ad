"""The op records. Importing this package fills the registry."""

from mlirml.dialects.ops import complex as complex_numbers
from mlirml.dialects.ops import (
    contractions,
    creation,
    elementwise,
    float_parts,
    gather,
    joins,
    linear_algebra,
    numeric,
    rearrange,
    reductions,
    scans,
    shapes,
    sorting,
    special,
    statistics,
    views,
)
from mlirml.dialects.ops.registry import BY_FUNCTION, BY_METHOD, OPS, OpDef

__all__ = [
    "BY_FUNCTION",
    "BY_METHOD",
    "OPS",
    "OpDef",
    "complex_numbers",
    "contractions",
    "creation",
    "elementwise",
    "float_parts",
    "gather",
    "joins",
    "linear_algebra",
    "numeric",
    "rearrange",
    "reductions",
    "scans",
    "shapes",
    "sorting",
    "special",
    "statistics",
    "views",
]  # fmt: skip
