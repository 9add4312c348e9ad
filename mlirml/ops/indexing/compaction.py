"""Compaction: the number of true elements of a mask, their positions, and the elements of arrays there.

The results have the length of the mask; only their beginnings, of as many elements as are true, are defined
(`ir/compactions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirml.ir.compactions import counts_length
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexBuilder, ComplexValue
from mlirml.ir.text.dtypes import short_name

_INDEX = np.dtype(np.int64)


def mask_counts(b: ComplexBuilder, mask: Value) -> Value:
    """For each row of a mask the number of true elements before each chunk; the last one is that of all of them."""
    return _compaction(b, "mask_counts", [mask], b.empty((mask.shape[0], counts_length(mask.shape[1])), _INDEX))


def true_positions(b: ComplexBuilder, mask: Value, counts: Value) -> Value:
    """For each row of a mask the positions of its true elements."""
    return _compaction(b, "positions", [mask, counts], b.empty(mask.shape, _INDEX))


def compressed(b: ComplexBuilder, mask: Value, counts: Value, values: Value) -> Value:
    """For each row of a mask the slices of `values` at its true elements; the mask has their first dimensions."""
    if isinstance(values, ComplexValue):
        return values.map(lambda part: compressed(b, mask, counts, part))
    return _compaction(b, "compress", [mask, counts, values], b.empty(values.shape, values.dtype))


def in_rows(b: ComplexBuilder, values: Value, dims: int) -> Value:
    """An array with its first `dims` dimensions as the second one of one row."""
    shape = values.shape
    return b.reshape(values, (1, math.prod(shape[:dims]), *shape[dims:]))


def _compaction(b: ComplexBuilder, name: str, inputs: Sequence[Value], init: Value) -> Value:
    values = [*inputs, init]
    names, types = ", ".join(value.name for value in values), ", ".join(value.type for value in values)
    tags = f'{{kind = "{short_name(init.dtype)}"}}'
    return b.op(f'"mlirml.{name}"({names}) {tags} : ({types}) -> {init.type}', init.shape, init.dtype)
