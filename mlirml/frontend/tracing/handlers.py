"""The table of handlers, by which arrays and the trace call parts of the front end that import them.

These are NumPy's namespace, its functions, derivatives and loops. `frontend/capture.py` fills the table, and gives it
to each trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced
    from mlirml.frontend.arrays.indexing import Index
    from mlirml.frontend.tracing.trace import Trace
    from mlirml.ops import OpDef


class Handlers(Protocol):
    """The table of handlers."""

    @property
    def functions(self) -> Mapping[Any, Callable[..., Any]]:
        """NumPy's functions that are no operations; each takes the trace first (`frontend/functions`)."""

    def namespace(self, trace: Trace) -> Any:
        """The replacement of `np` in the code of composed operations (`frontend/namespace`)."""

    def retarget(
        self, function: Callable[..., Any], trace: Trace, memo: dict[Any, Any] | None = None
    ) -> Callable[..., Any]:
        """A copy of a function that reads its globals through an overlay (`frontend/namespace`)."""

    def by_formula(self, trace: Trace, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result of an operation with a derivative of its own; None if it needs none (`frontend/transforms`)."""

    def of_numbers(self, trace: Trace, function: Callable[..., Any]) -> Any:
        """A function of `math` that takes dynamic numbers, too (`frontend/loops`)."""

    def loop_hooks(self, trace: Trace) -> Any:
        """The functions that rewritten functions call for their statements (`frontend/loops`)."""

    def argument_lists(self, trace: Trace) -> Any:
        """The lists of numbers among the arguments, as the function gets them (`frontend/loops`)."""

    def window_index(self, trace: Trace, shape: tuple[int, ...], index: Any) -> Index | None:
        """An index with dynamic numbers as a view of static size; None for one that is none (`frontend/loops`)."""

    def dynamic_slice(self, array: Traced, index: Any) -> Any:
        """A slice of dynamic length (`frontend/loops`)."""

    def of_data(self, name: str) -> Callable[..., Any]:
        """A function of NumPy whose result has a length that depends on the data (`frontend/loops`)."""

    def compacted_elements(self, masked: Any) -> Any:
        """The elements under a mask side by side, as an array of dynamic length (`frontend/loops`)."""

    def filled_of_size(self, trace: Trace, sizes: Sequence[Any], fill_value: Any, dtype: Any) -> Any:
        """`np.full` of sizes that are numbers of the program (`frontend/loops`)."""

    def grid_of_size(self, trace: Trace, function: Callable[..., Any], args: Sequence[Any], **options: Any) -> Any:
        """`np.arange` and `np.linspace` of sizes that are numbers of the program (`frontend/loops`)."""

    def sized_parts(self, array: Any) -> tuple[list[Traced], tuple[int, ...]]:
        """The buffer and the lengths of an array of dynamic length, and the dimensions of these (`frontend/loops`)."""

    def beginning(self, buffer: Traced, count: Traced) -> Any:
        """The first elements of an array, as one of dynamic length (`frontend/loops`)."""

    def gathered(self, array: Traced, index: Any) -> Any:
        """The elements at arrays of indices of dynamic length (`frontend/loops`)."""

    def scattered(self, array: Traced, index: Any, value: Any) -> None:
        """Stores at arrays of indices of dynamic length (`frontend/loops`)."""
