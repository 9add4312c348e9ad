"""Jacobians: vector products with all unit vectors, as one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import is_dynamic_shape, is_size
from mlirml.errors import DTypeError
from mlirml.frontend.arrays.carry import flatten_values
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.namespace.grids import dynamic_grid
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.frontend.transforms import derivatives
from mlirml.frontend.transforms.nested_calls import callee_in_trace
from mlirml.ir.text.builder import Value


def jacobian_reverse(
    function: Callable[..., Any], wanted: Sequence[Any], positions: tuple[int, ...], single: bool
) -> Any:
    """One pullback for each element of the result. `positions` are those of the arguments in the user's call."""
    trace = current_trace()
    assert trace is not None
    numbers = tuple(range(len(wanted)))
    pulled = derivatives.trace_pull(trace, "jacrev", function, tuple(wanted), {}, numbers, positions)
    b = trace.builder
    rows = []
    refuse_complex("jacrev", (*pulled.independents, *pulled.outputs))
    for number, output in enumerate(pulled.outputs):

        def pull(unit: Any, number: int = number) -> Any:
            seeds = [b.filled(v.shape, v.dtype, 0) for v in pulled.outputs]
            seeds[number] = value_of(trace, unit, "unit")
            return pulled.pull(seeds)

        units = _units(trace, output.shape, output.dtype)
        found = derivatives.trace_vmap(trace, pull, (units,), 0, 0, None)
        leaves, tree = flatten_values(found[0] if single else found)
        rows.append(tree.unflatten([x.reshape(*output.shape, *x.shape[1:]) for x in leaves]))
    return pulled.out_tree.unflatten(rows)


def jacobian_forward(
    function: Callable[..., Any], wanted: Sequence[Any], positions: tuple[int, ...], single: bool
) -> Any:
    """One pushforward for each element of the arguments. `positions` are theirs in the user's call."""
    trace = current_trace()
    assert trace is not None
    leaves, tree = flatten_values(tuple(wanted))
    with at_user_line():
        values = derivatives.floats(trace, "jacfwd", leaves, derivatives.paths_of(tree, positions))
    refuse_complex("jacfwd", values)
    if not leaves:
        empty = tree.unflatten([])
        out_tree = flatten_values(callee_in_trace(function, trace)(*wanted))[1]
        return out_tree.unflatten([empty[0] if single else empty] * out_tree.leaf_count())
    columns: list[list[Any]] = []
    for number, leaf in enumerate(leaves):
        shape, dtype = np.shape(leaf), np.asarray(leaf).dtype if not hasattr(leaf, "dtype") else leaf.dtype

        def along(unit: Any, number: int = number) -> Any:
            moves: list[Any] = [_zeros(trace, np.shape(x), getattr(x, "dtype", None)) for x in leaves]
            moves[number] = unit
            return derivatives.trace_jvp(trace, function, tuple(wanted), tree.unflatten(moves))[1]

        units = _units(trace, shape, dtype)
        found, out_tree = flatten_values(derivatives.trace_vmap(trace, along, (units,), 0, 0, None))
        columns.append([np.moveaxis(x, 0, -1).reshape(*x.shape[1:], *shape) for x in found])
    results = []
    for column in zip(*columns):
        inputs = tree.unflatten(list(column))
        results.append(inputs[0] if single else inputs)
    return out_tree.unflatten(results)


def _units(trace: Trace, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """All arrays of a shape that are one at one index and zero elsewhere."""
    size = math.prod(shape)
    if is_size(size):
        return dynamic_grid(trace, np.eye, (size,), dtype=dtype).reshape(size, *shape)
    return trace.known(np.eye(size, dtype=dtype).reshape(size, *shape))


def _zeros(trace: Trace, shape: tuple[int, ...], dtype: Any) -> Any:
    if is_dynamic_shape(shape):
        return derivatives.wrapped(trace, trace.builder.filled(shape, np.dtype(dtype), 0))
    return trace.known(np.zeros(shape, dtype))


def refuse_complex(name: str, values: Sequence[Value]) -> None:
    """Raise for complex numbers, whose derivative is no matrix in general."""
    with at_user_line():
        if any(value.dtype.kind == "c" for value in values):
            raise DTypeError(
                f"{name}: Jacobians are of real floats",
                help="take real and imaginary parts apart; of a function of reals `ml.jacfwd` gives complex results",
            )
