"""NumPy's functions of lists with traced items, as `np.sum([a, b])`, which NumPy itself would convert to an array."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.array import Traced
from mlirml.frontend.tracing.growing_list import OF_SEQUENCES, GrowingList
from mlirml.ops import BY_FUNCTION

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_METHODS = {"reduce": 1, "accumulate": 1, "outer": 2}
_OPERANDS = frozenset(["a", "a1", "a2", "b", "x", "x1", "x2", "val", "weights"])  # NumPy's names of array parameters


def taking_lists(trace: Trace, function: Any) -> Any:
    """A NumPy function that accepts lists with traced items as arrays; anything else unchanged.

    Functions of sequences of arrays accept them already.
    """
    if function in OF_SEQUENCES:
        return functools.partial(_of_sequence, function)
    operands = _operands(function)
    return function if operands is None else OfLists(trace, function, *operands)


def _of_sequence(function: Any, arrays: Any, *args: Any, **kwargs: Any) -> Any:
    if type(arrays) is not GrowingList:
        return function(arrays, *args, **kwargs)
    with at_user_line():
        return (OF_SEQUENCES[function] if arrays.has_rows else function)(arrays, *args, **kwargs)


@functools.cache
def _operands(function: Any) -> tuple[frozenset[int], frozenset[str]] | None:
    """The positions and the names of the array parameters; None for an unknown function."""
    from mlirml.frontend.namespace import other_functions

    if isinstance(function, np.ufunc):
        return frozenset(range(function.nin)), frozenset()
    if function is np.einsum:
        return frozenset(range(1, 64)), frozenset()
    record = BY_FUNCTION.get(function)
    if record is not None and record.arrays > 0:
        names = list(record.signature.parameters)[: record.arrays]
        return frozenset(range(record.arrays)), frozenset((*names, *record.array_options))
    if function in other_functions.FUNCTIONS:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
        return frozenset(i for i, name in enumerate(names) if name in _OPERANDS), _OPERANDS
    return None


class OfLists:
    """A proxy for a NumPy function, or for a method of a ufunc, inside of a traced function."""

    def __init__(
        self, trace: Trace, function: Callable[..., Any], positions: Container[int], names: Container[str] = ()
    ) -> None:
        self._trace, self._function, self._positions, self._names = trace, function, positions, names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(map(_has_traced, (*args, *kwargs.values()))):
            with at_user_line():
                args = tuple(self._array(x) if i in self._positions else x for i, x in enumerate(args))
                kwargs = {name: self._array(x) if name in self._names else x for name, x in kwargs.items()}
        return self._function(*args, **kwargs)

    def _array(self, x: Any) -> Any:
        if type(x) is GrowingList:
            return x.array()
        return self._trace.array(x) if _has_traced(x) else x

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return OfLists(self._trace, value, range(_METHODS[name])) if name in _METHODS else value

    def __eq__(self, other: object) -> bool:
        return bool(self._function == (other._function if isinstance(other, OfLists) else other))

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


class Submodule:
    """A proxy for a module of NumPy's, `np.linalg`, inside of a traced function."""

    def __init__(self, trace: Trace, module: types.ModuleType) -> None:
        self._trace, self._module = trace, module

    def __getattr__(self, name: str) -> Any:
        return taking_lists(self._trace, getattr(self._module, name))


def _has_traced(x: Any) -> bool:
    """True if a list or tuple holds a traced array, however deep."""
    if type(x) is GrowingList and x.has_rows:
        return True
    return isinstance(x, (list, tuple)) and any(isinstance(item, Traced) or _has_traced(item) for item in x)
