"""NumPy arrays among the variables of a rewritten function: which are captured, and that no loop stores into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.frontend.frames import at_user_line
from mlirml.frontend.state.concrete_arrays import Watched
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.dtypes import is_supported


def is_real(x: Any) -> bool:
    """True for an array of NumPy, or a proxy of one, that a program can have."""
    return type(x) in (np.ndarray, Watched) and not x.dtype.hasobject and is_supported(x.dtype)


def check_target(trace: Trace, x: Any) -> None:
    """Refuse a store into an array of NumPy in a loop or branch of the program, which Python would execute once."""
    if type(x) is np.ndarray and trace.builder.region.parent is not None and is_real(x):
        with at_user_line():
            raise trace.real_array_error()
