"""`x.at[index].set(v)` and the like: a new array with the elements at an index updated; `x` itself is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend.arrays.scattering import apply_at
from mlirml.frontend.arrays.tracer import Cell, Tracer
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.ops import BY_FUNCTION
from mlirml.runtime.array import Array


class At:
    """The object `x.at`; indexing it returns an `Elements`."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Elements:
        return Elements(self._array, index)


def _updating(ufunc: np.ufunc, doc: str) -> Callable[[Elements, Any], Any]:
    """The method that updates elements by a function of them and of values."""

    def update(self: Elements, values: Any) -> Any:
        return self._update(ufunc, values)

    update.__name__, update.__doc__ = ufunc.__name__, doc
    return update


class Elements:
    """The elements of an array at an index, of any form that stores accept; repeated positions are updated in order.

    Each method returns a new array of the shape and dtype of the old. An index out of bounds is an error, as it is in
    brackets.
    """

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    def get(self) -> Any:
        """A copy of the elements."""
        found = self._array[self._index]
        return found.copy()

    def set(self, values: Any) -> Any:
        """The elements replaced; of repeated positions the last one wins."""
        with at_user_line():
            result = _copied(self._array)
            result[self._index] = values
            return result

    add = _updating(np.add, "Values added to the elements.")
    subtract = _updating(np.subtract, "Values subtracted from the elements.")
    multiply = _updating(np.multiply, "The elements multiplied by values.")
    divide = _updating(np.divide, "The elements divided by values; integers have no quotients of their dtype.")
    power = _updating(np.power, "The elements to the power of values.")
    min = _updating(np.minimum, "The smaller of the elements and the values.")
    max = _updating(np.maximum, "The larger of the elements and the values.")

    def _update(self, ufunc: np.ufunc, values: Any) -> Any:
        with at_user_line():
            result = _copied(self._array)
            if isinstance(result, Tracer):
                apply_at(result._trace, BY_FUNCTION[ufunc], f"x.at[...].{ufunc.__name__}", result, self._index, values)
            else:
                ufunc.at(result, self._index, values)
            return result


def at(x: Any, /) -> Any:
    """`at(x)[index].set(values)`, or another method of `Elements`: `x` with elements changed.

    The others are `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max` and `get`. For real arrays too; a
    traced array has it as `x.at`.

    >>> import numpy as np, mlirml as ml
    >>> from mlirml.numpy import at
    >>> count = ml.compile(lambda i: at(np.zeros(3))[i].add(1))
    >>> count(np.array([0, 2, 2]))
    array([1., 0., 2.])
    """
    return x.at if isinstance(x, Array) else At(x)


def _copied(array: Any) -> Any:
    trace = current_trace()
    if isinstance(array, Tracer):
        return type(array)(array._trace, Cell(array._contents(), owned=True))
    return np.array(array) if trace is None else trace.array(np.asarray(array))
