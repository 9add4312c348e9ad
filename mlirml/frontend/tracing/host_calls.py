"""Calls of Python functions from a program: `print`, `ml.debug.print`, `ml.debug.callback`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import LaunchError, SourceLocation
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import user_location
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexValue, parts_of
from mlirml.ir.text.dtypes import as_dtype, describe, part_dtype, short_name
from mlirml.runtime.host import call_number


@dataclass(frozen=True)
class HostFunction:
    """A Python function that a program calls with a pytree, whose traced leaves have the indices `dynamic_leaves`.

    `python_types` are the types of these leaves in Python, `results` the dtypes and shapes of the function's results.
    """

    function: Callable[..., Any]
    tree: TreeDef
    leaves: tuple[Any, ...]
    dynamic_leaves: tuple[int, ...]
    python_types: tuple[str, ...]
    results: tuple[tuple[np.dtype, tuple[int, ...]], ...] = ()
    name: str = "callback"
    location: SourceLocation | None = None

    def __call__(self, *values: np.ndarray) -> list[np.ndarray]:
        leaves, rest = list(self.leaves), iter(values)
        for leaf_index, python_type in zip(self.dynamic_leaves, self.python_types):
            value = next(rest)
            if python_type.startswith("complex"):
                value = _joined(value, next(rest))
            leaves[leaf_index] = _as_in_python(value, python_type)
        args, kwargs = self.tree.unflatten(leaves)
        found = self.function(*args, **kwargs)
        return [part for one in self._checked(found) for part in _parts(one)] if self.results else []

    def _checked(self, found: Any) -> list[np.ndarray]:
        """The function's results, which must have the declared dtypes and shapes."""
        values = [np.asarray(x) for x in flatten(found)[0]]
        if len(values) != len(self.results):
            what = f"returned {len(values)} arrays, and {len(self.results)} were declared"
            raise LaunchError(f"{self.name}: the function {what}", location=self.location)
        for value, (dtype, shape) in zip(values, self.results):
            if value.shape != shape or not np.can_cast(value.dtype, dtype, "same_kind"):
                returned, declared = describe(value.shape, value.dtype), describe(shape, dtype)
                raise LaunchError(
                    f"{self.name}: the function returned {returned}, and {declared} was declared",
                    location=self.location,
                    help="declare what it returns: `ml.debug.callback(f, ml.TensorSpec(shape, dtype), x)`",
                )
        return [value.astype(dtype, copy=False) for value, (dtype, _) in zip(values, self.results)]

    def is_like(self, other: HostFunction) -> bool:
        """True if the other one makes the same call."""
        same = (
            self.function is other.function and self.tree == other.tree and self.dynamic_leaves == other.dynamic_leaves
        )
        alike = len(self.leaves) == len(other.leaves) and all(a is b for a, b in zip(self.leaves, other.leaves))
        return same and alike and (self.python_types, self.results) == (other.python_types, other.results)


def call(
    trace: Trace,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    results: Sequence[tuple[Any, Sequence[int]]] = (),
    name: str = "callback",
) -> list[Traced]:
    """Emit a call of `function(*args, **kwargs)`; returns its results, of these dtypes and shapes."""
    leaves, tree = flatten((args, kwargs))
    dynamic_leaves = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, Traced))
    b = trace.builder
    number = len(b.host_functions)
    for leaf_index in dynamic_leaves:
        for part in parts_of(value_of(trace, leaves[leaf_index], "an argument of the callback")):
            scalar = not part.shape
            python_type = part.type.removeprefix("tensor<").removesuffix(">") if scalar else part.type
            read = b.element(part) if scalar else part.name
            tags = f'kind = "{short_name(part.dtype)}"{", returns" if len(results) else ""}'
            b.line(f'"mlirml.host_value"({read}) {{{tags}}} : ({python_type}) -> ()')
    b.line(f'"mlirml.host_call"() {{number = {call_number(number)} : i64}} : () -> ()')
    python_types = tuple(_python_type(leaves[leaf_index]) for leaf_index in dynamic_leaves)
    known = tuple(None if isinstance(leaf, Traced) else leaf for leaf in leaves)
    specs = tuple((as_dtype(dtype), tuple(shape)) for dtype, shape in results)
    b.host_functions.append(
        HostFunction(function, tree, known, dynamic_leaves, python_types, specs, name, user_location())
    )
    wanted: list[Value] = []
    made = 0
    for dtype, shape in specs:
        parts = []
        for _ in range(2 if dtype.kind == "c" else 1):
            parts.append(
                _result(trace, call_number(number, made), part_dtype(dtype) if dtype.kind == "c" else dtype, shape)
            )
            made += 1
        wanted.append(parts[0] if len(parts) == 1 else ComplexValue.of(*parts))
    return [Traced(trace, Cell(value, owned=True)) for value in wanted]


def _result(trace: Trace, number: int, dtype: np.dtype, shape: tuple[int, ...]) -> Value:
    """One of the results of the call emitted last. A scalar is passed as a row of one."""
    b, row = trace.builder, shape or (1,)
    empty = b.op(f"tensor.empty() : {Value('', row, dtype).type}", row, dtype)
    tags = f'{{kind = "{short_name(dtype)}", number = {number} : i64}}'
    found = b.op(f'"mlirml.host_result"({empty.name}) {tags} : ({empty.type}) -> {empty.type}', row, dtype)
    if shape:
        return found
    flat = Value("", (), dtype).type
    return b.op(f"tensor.collapse_shape {found.name} [] : {found.type} into {flat}", (), dtype)


def _python_type(leaf: Traced) -> str:
    """The type of a traced leaf in Python: array, NumPy scalar or Python number."""
    number = "complex " if leaf.dtype.kind == "c" else ""
    if leaf._is_weak():
        return f"{number}number"
    return f"{number}scalar" if leaf._scalar else f"{number}array"


def _as_in_python(value: np.ndarray, python_type: str) -> Any:
    if value.shape and not python_type.endswith("array"):  # of all lanes of a batch
        return value
    if python_type.endswith("number"):
        return value.item()
    return value[()] if python_type.endswith("scalar") else value


def _joined(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    whole = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    whole.real, whole.imag = real, imaginary
    return whole


def _parts(value: np.ndarray) -> list[np.ndarray]:
    return [value.real, value.imag] if value.dtype.kind == "c" else [value]
