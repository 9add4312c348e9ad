"""The op records. Importing this package fills the registry."""

from mlirml.dialects.ops import complex as complex_numbers
from mlirml.dialects.ops import (
    contractions,
    elementwise,
    float_parts,
    gather,
    joins,
    linear_algebra,
    rearrange,
    reductions,
    scans,
<<<<<<< HEAD
    sorting,
=======
    special,
>>>>>>> 34adbed (Compile nextafter, spacing, ldexp, frexp, modf, heaviside, bit counts, erf, erfc and decimals)
    views,
)
from mlirml.dialects.ops.registry import BY_FUNCTION, BY_METHOD, OPS, OpDef

__all__ = [
<<<<<<< HEAD
    "BY_FUNCTION", "BY_METHOD", "OPS", "OpDef", "complex_numbers", "contractions", "elementwise", "gather", "joins",
    "linear_algebra", "rearrange", "reductions", "scans", "sorting", "views",
=======
    "BY_FUNCTION", "BY_METHOD", "OPS", "OpDef", "complex_numbers", "contractions", "elementwise", "float_parts",
    "gather", "joins", "linear_algebra", "rearrange", "reductions", "scans", "special", "views",
>>>>>>> 34adbed (Compile nextafter, spacing, ldexp, frexp, modf, heaviside, bit counts, erf, erfc and decimals)
]  # fmt: skip
