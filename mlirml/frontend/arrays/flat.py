"""`x.flat`: the elements of a traced array in C order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlirml.frontend.frames import at_user_line


class Flat:
    """The elements of an array in one dimension; parts of it are copies, and stores change the array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return self._array.flatten()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store values, which are repeated if there are too few, as NumPy does."""
        with at_user_line():
            elements = self._array.flatten()
            elements[key] = repeated(value, elements[key].size)
            self._array[...] = elements.reshape(self._array.shape)

    def __len__(self) -> int:
        return int(self._array.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.flatten())

    def copy(self) -> Any:
        return self._array.flatten()


def repeated(value: Any, count: int) -> Any:
    """`count` values, those given again and again."""
    if not np.ndim(value) or not count:
        return value
    values = np.ravel(value)
    return np.tile(values, -(-count // values.size))[:count] if values.size != count else values
