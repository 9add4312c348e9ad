"""Arrays from outside that the function of `ml.vmap` both reads and stores into.

All lanes of a batch are computed at once, from the contents before the first. A loop over the lanes would give
something else where a lane reads an element that another one may have stored: such programs are refused.

    total = np.zeros(3)
    ml.vmap(lambda x: add(total, x))(xs)        # in `add`: total[0] += x[0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.errors import NoBatchingError
from mlirml.frontend.frames import user_location

if TYPE_CHECKING:
    from mlirml.frontend.arrays.tracer import Cell
    from mlirml.ir.text.builder import Region
    from mlirml.ops.shapes.views import ViewOp

_MOST_ELEMENTS = 1 << 20
"""Of a larger array, or one of dynamic size, any two parts are taken to overlap."""


class _Elements:
    """The elements of one allocation that a lane reads before it stores into them, and those that it stores into."""

    def __init__(self, cell: Cell) -> None:
        shape = cell.value.shape
        whole = any(map(is_size, shape)) or int(np.prod(shape)) > _MOST_ELEMENTS
        self.cell, self.shape = cell, () if whole else shape
        self.numbers = None if whole else np.arange(int(np.prod(shape))).reshape(shape)
        self.read, self.stored, self.certain = (np.zeros(self.shape, bool) for _ in range(3))

    def of(self, views: Sequence[ViewOp]) -> np.ndarray | None:
        """The mask of a view; None if its offset is known at run time only."""
        if self.numbers is None or not all(view.known for view in views):
            return None
        if self.cell.value.dtype.kind == "c" and views:
            return None  # the parts of numbers are elements of other arrays
        numbers = self.numbers
        for view in views:
            numbers = view.apply(numbers)
        mask = np.zeros(self.numbers.size, bool)
        mask[numbers.ravel()] = True
        return mask.reshape(self.shape)


class Lanes:
    """The reads and stores of the function of one `ml.vmap` while it is traced, in its `region`.

    `first` is the number of the next allocation when it begins: earlier ones are from outside.
    """

    def __init__(self, first: int, region: Region) -> None:
        self.first, self.region = first, region
        self._elements: dict[int, _Elements] = {}

    def note_read(self, cell: Cell, views: Sequence[ViewOp]) -> None:
        """Note that a view of an allocation is read."""
        found = self._of(cell)
        if found is None:
            return
        mask = found.of(views)
        found.read |= ~found.certain if mask is None else mask & ~found.certain
        self._check(found)

    def note_store(self, cell: Cell, views: Sequence[ViewOp], region: Region) -> None:
        """Note that a view of an allocation is stored into, in a region that may be that of a loop or a branch."""
        found = self._of(cell)
        if found is None:
            return
        mask = found.of(views)
        found.stored |= True if mask is None else mask
        self._check(found)
        if region is self.region and mask is not None:
            found.certain |= mask

    def _of(self, cell: Cell) -> _Elements | None:
        if cell.number >= self.first:
            return None
        return self._elements.setdefault(id(cell), _Elements(cell))

    def _check(self, found: _Elements) -> None:
        if not (found.read & found.stored).any():
            return
        raise NoBatchingError(
            "vmap: the function for one example changes an array from outside of it, and reads what it changes",
            location=user_location(2),
            help="all examples are computed at once, from what the array holds before: make the array in the "
            "function, or write a loop over the examples with `ml.scan`",
        )
