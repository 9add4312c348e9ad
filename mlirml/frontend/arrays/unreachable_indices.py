"""Indices that are out of bounds in code that may never be executed.

They are in branches, and in loops that may be zero-trip. The program checks them there, and goes on with an array that
is large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirml.errors import IndexOutOfBoundsError
from mlirml.frontend.arrays.constructs import is_certain
from mlirml.ir.text.builder import Check

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced

# Larger indices are refused when the function is traced.
MOST = 1 << 16


def stand_in(array: Traced, error: IndexOutOfBoundsError) -> Traced:
    """Zeros with an axis as long as the index needs, after a check that fails; raises the error if the index is
    certainly reached.
    """
    trace = array._trace
    builder = trace.builder
    if error.needs is None or error.needs[1] > MOST or is_certain(builder.region):
        raise error
    never = builder.named("arith.constant false")
    builder.check(never, Check("IndexOutOfBoundsError", error.message, error.help))
    axis, size = error.needs
    shape = [size if d == axis else n for d, n in enumerate(array.shape)]
    return trace.known(np.broadcast_to(np.zeros((), array.dtype), shape))
