"""The tiles of products whose blocks have whole rows of the result, so that rows are reduced in the same kernel."""

from __future__ import annotations

from mlirml.core.dataclass import dataclass

ROWS = (128, 64, 32, 16)
"""The rows of a block to choose from."""
WIDEST = 512
"""The largest number of columns of a block."""
LEAST = 16
"""The fewest rows, columns and depth that tensor cores are worth it for."""
_MOST_ELEMENTS = 128 * 256
"""The largest tile whose sums are in registers."""
_SHARE = 4
"""Blocks for this part of the processors suffice: the rest is worth less than rows that stay out of memory."""


@dataclass(frozen=True)
class RowTile:
    """The rows and columns of a block, the columns a power of two that is not less than those of the matrix."""

    rows: int
    columns: int

    @property
    def warps(self) -> int:
        """The warps that compute it."""
        return 8 if self.rows * self.columns > _MOST_ELEMENTS // 2 else 4


def row_tile(rows: int, columns: int, batch: int, processors: int) -> RowTile | None:
    """The tile for `batch` matrices: the tallest of which there is one for each processor, or the smallest.

    None if rows are too long, or too few for the device.
    """
    if columns > WIDEST or min(rows, columns) < LEAST:
        return None
    extent = 1 << (columns - 1).bit_length()
    fits = [tile for tile in ROWS if tile * extent <= _MOST_ELEMENTS]
    counts = {tile: -(-rows // tile) * batch for tile in fits}
    enough = [tile for tile in fits if counts[tile] * 8 >= processors * 7 and rows > tile // 2]
    if not enough and counts[fits[-1]] * _SHARE < processors:
        return None
    return RowTile((enough or fits[-1:])[0], extent)
