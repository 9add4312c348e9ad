"""Slices of dynamic length, and functions of them, as loops."""

from mlirml.frontend.loops.dynamic_slices import data_functions, functions, shapes, statistics
from mlirml.frontend.loops.dynamic_slices.gathering import store_at
from mlirml.frontend.loops.dynamic_slices.indices import has_positions, part_of_part
from mlirml.frontend.loops.dynamic_slices.positions import has_rows, store_rows
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, Operations

DynamicSlice._operations = Operations(
    part_of_part,
    has_positions,
    store_at,
    has_rows,
    store_rows,
    functions.call_ufunc,
    functions.call_function,
    functions.product,
    {**functions.FUNCTIONS, **statistics.FUNCTIONS, **shapes.FUNCTIONS},
    {**functions.METHODS, **statistics.METHODS, **shapes.METHODS},
    {**data_functions.NAMED, **shapes.NAMED, **statistics.NAMED},
)
