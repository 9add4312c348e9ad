"""`np.c_` and `np.r_`: arrays joined by brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.frames import at_user_line
from mlirml.ops import promotion

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


class Join:
    """`np.c_` and `np.r_`: columns side by side, and rows or vectors joined."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name

    def __getitem__(self, items: Any) -> Any:
        with at_user_line():
            parts: list[Any] = list(items) if isinstance(items, tuple) else [items]
            if any(isinstance(part, (str, np.matrix)) for part in parts):
                raise UnsupportedSyntaxError(
                    f"`np.{self._name}` with text or matrices is not compiled",
                    help="join with `np.concatenate` or `np.stack`",
                )
            trace = self._trace
            parts = [np.r_[part] if isinstance(part, slice) else part for part in parts]
            if any(map(is_dynamic, parts)):
                joined: Any = np.column_stack(parts) if self._name == "c_" else np.concatenate(np.atleast_1d(*parts))
                return joined
            weak = [np.isscalar(part) or (isinstance(part, Traced) and part._is_weak()) for part in parts]
            parts = [part if is_weak else trace.array(part, copy=False) for part, is_weak in zip(parts, weak)]
            dtype = promotion.result_type(*map(trace.lift, parts))
            arrays = [trace.array(part, copy=False).astype(dtype, copy=False) for part in parts]
            if self._name == "c_":
                columns = [a.reshape(-1, 1) if a.ndim < 2 else a for a in arrays]
                return trace.call_function(np.concatenate, (columns,), {"axis": -1})
            return trace.call_function(np.concatenate, ([a if a.ndim else a.reshape(1) for a in arrays],), {})
