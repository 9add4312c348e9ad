"""Products of elements that are differentiated more than once: as a tree of pairwise products.

The derivative of a product by a factor is the product of all others, computed by division, or by a search if a factor
is zero. The derivative of that is wrong if two factors are zero; the tree is right, by the rule for one multiplication.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.ops.reductions import normalized_axes

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


def product_of_pairs(
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Any:
    """`np.prod` of floats as a tree; None for other dtypes, or without factors."""
    x: Any = trace.array(a, copy=False)
    x = x if dtype is None else x.astype(dtype)
    if x.dtype.kind not in "fc" or not x.size:
        return None
    if where is not True:
        x = np.where(where, x, 1)
    axes = normalized_axes("prod", x.shape, axis)
    kept = [d for d in range(x.ndim) if d not in axes]
    sizes = [x.shape[d] for d in kept]
    count = math.prod(x.shape[d] for d in axes)
    factors = np.transpose(x, [*axes, *kept]).reshape((count, *sizes))
    rest = None
    while count > 1:
        if count % 2:
            rest = factors[-1] if rest is None else rest * factors[-1]
        count //= 2
        factors = factors[:count] * factors[count : 2 * count]
    result = factors[0] if rest is None else factors[0] * rest
    result = result if type(initial) in (int, float) and initial == 1 else result * initial
    return result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims is True else result
