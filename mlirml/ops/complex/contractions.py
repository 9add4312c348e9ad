"""Contractions of complex operands by real ones.

A product of matrices becomes one real product of twice the size along the reduced and the last dimension, in NumPy's
own memory layout, so that an operand and the result need no pass over memory of their own:

    [re im] of x, (i, 2k)  @  [[ re im], of y, (2k, 2j)  =  [re im] of the result, (i, 2j)
                               [-im re]]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexBuilder, ComplexValue, parts_of
from mlirml.ops import elementwise as ew

Maps = tuple[str, str, str]
Contract = Callable[[ComplexBuilder, Value, Value, Maps, dict[str, int], np.dtype], Value]
"""`contract(b, x, y, maps, sizes, dtype)` of real operands."""


def contract_parts(
    b: ComplexBuilder, contract: Contract, x: Value, y: Value, maps: Maps, sizes: dict[str, int], dtype: np.dtype
) -> Value:
    """A contraction with a complex operand; `dtype` is that of the parts."""
    if isinstance(x, ComplexValue) and isinstance(y, ComplexValue):
        chosen = _doubled(*maps, sizes)
        if chosen is not None:
            return _contract_doubled(b, contract, x, y, maps, sizes, dtype, chosen)
    products = [[contract(b, u, v, maps, sizes, dtype) for v in parts_of(y)] for u in parts_of(x)]
    if not isinstance(x, ComplexValue):
        return ComplexValue.of(*products[0])
    if not isinstance(y, ComplexValue):
        return ComplexValue.of(products[0][0], products[1][0])
    re = ew.subtract.build(b, products[0][0], products[1][1])
    return ComplexValue.of(re, ew.add.build(b, products[0][1], products[1][0]))


def _doubled(x_map: str, y_map: str, out_map: str, sizes: dict[str, int]) -> tuple[str, str] | None:
    """The reduced loop and the loop of y that become twice as long; None where y is not worth writing twice."""
    reduced = [c for c in x_map if c in y_map and c not in out_map]
    rows = [c for c in out_map if c not in y_map]
    free = [c for c in out_map if c not in x_map]
    if not reduced or not free or math.prod([sizes[c] for c in rows]) < 16:
        return None
    return reduced[-1], free[-1]


def _contract_doubled(
    b: ComplexBuilder,
    contract: Contract,
    x: ComplexValue,
    y: ComplexValue,
    maps: Maps,
    sizes: dict[str, int],
    dtype: np.dtype,
    doubled: tuple[str, str],
) -> Value:
    x_map, y_map, out_map = maps
    reduced, last = doubled
    left_map, result_map = (m.replace(c, "") + c for m, c in ((x_map, reduced), (out_map, last)))
    left = b.at_boundary(b.transpose(x, [x_map.index(c) for c in left_map]))
    twice = sizes | {c: 2 * sizes[c] for c in doubled}
    left = b.reshape(left, tuple(twice[c] for c in left_map))
    right = b.reshape(_rows_of(b, y, y_map, sizes, doubled), tuple(twice[c] for c in y_map))
    product = contract(b, left, right, (left_map, y_map, result_map), twice, dtype)
    result = b.from_boundary(b.reshape(product, (*(sizes[c] for c in result_map), 2)))
    return b.transpose(result, [result_map.index(c) for c in out_map])


def _rows_of(b: ComplexBuilder, y: ComplexValue, y_map: str, sizes: dict[str, int], doubled: tuple[str, str]) -> Value:
    """y with a dimension of 2 inserted after each of the doubled ones: y times 1 and i, and its parts."""
    last = doubled[1]
    places = [c for letter in y_map for c in (letter, "12"[doubled.index(letter)] if letter in doubled else "") if c]
    shape = [sizes.get(c, 2) for c in places]
    row, part = places.index("1"), places.index("2")

    def put(source: Value, into: Value, *at: tuple[int, int]) -> Value:
        offsets, extents = [0] * len(shape), list(shape)
        for place, number in at:
            offsets[place], extents[place] = number, 1
        return b.insert_slice(source, into, offsets, extents, [1] * len(shape))

    whole = b.empty(shape, y.re.dtype)
    if y.memory is not None and y_map[-1] == last:
        whole = put(y.memory, whole, (row, 0))
    else:
        whole = put(y.im, put(y.re, whole, (row, 0), (part, 0)), (row, 0), (part, 1))
    turned = put(ew.negative.build(b, y.im), whole, (row, 1), (part, 0))
    return put(y.re, turned, (row, 1), (part, 1))
