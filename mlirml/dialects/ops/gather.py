"""Reading elements at positions given by arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirml.dialects.build import Body, Builder, Value
from mlirml.dialects.ops.positions import Positions
from mlirml.errors import InvalidIndexError


def broadcast_indices(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of index arrays."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(str(list(shape)) for shape in shapes)
        raise InvalidIndexError(
            f"index arrays of shapes {shown} do not broadcast together",
            help="one array for each axis picks single elements; for rows and columns use `x[np.ix_(rows, columns)]`",
        ) from None


def gather(b: Builder, base: Value, axes: Sequence[int], indices: Sequence[Positions], place: int) -> Value:
    """The elements of `base` at `indices` along `axes`, one `linalg.generic` that reads where they say.

    The dimensions of the indices, broadcast together, stand at `place` among the other dimensions of `base`.
    """
    common = broadcast_indices([i.values.shape for i in indices])
    rest = [d for d in range(len(base.shape)) if d not in axes]
    sizes = [base.shape[d] for d in rest]
    shape = (*sizes[:place], *common, *sizes[place:])
    if 0 in shape:
        return b.empty(shape, base.dtype)
    loop_of = {d: i if i < place else i + len(common) for i, d in enumerate(rest)}
    squeezed = [b.squeezed(i.values, common) for i in indices]

    def index(block: Body, loops: list[str], inputs: list[str]) -> list[str]:
        found = {axis: item.write(block, x) for axis, item, x in zip(axes, indices, inputs)}
        return [found[d] if d in found else loops[loop_of[d]] for d in range(len(base.shape))]

    maps = [[place + d for d in map_] for _, map_ in squeezed]
    return b.gather_at(base, shape, [value for value, _ in squeezed], maps, index)
