"""Cumulative products and extrema of complex numbers: loops that carry the last result in the output array.

    for o in outer: for i in 1..n: for k in inner: out[o, i, k] = body(out[o, i - 1, k], x[o, i, k])

Both parts of the last result are needed for both parts of the next, so that no scan of real numbers will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlirml.ir.text.builder import LOC, Body, Operand, Value
from mlirml.ir.text.complex import ComplexBuilder, ComplexValue
from mlirml.ir.text.complex_scalars import Complex, Real
from mlirml.ir.text.dtypes import as_dtype, is_complex
from mlirml.ops import scans
from mlirml.ops.complex import functions as cf
from mlirml.ops.reductions import as_value
from mlirml.ops.registry import OPS, OpDef, complex_form

ScanBody = Callable[[Complex, Complex], Complex]


def scan(b: ComplexBuilder, value: ComplexValue, axis: int, body: ScanBody) -> Value:
    """`result[i] = body(result[i - 1], value[i])` along an axis; the first element stays what it is."""
    shape, dtype = value.shape, value.re.dtype
    if value.size == 0 or shape[axis] == 1:
        return value
    box = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    source = b.reshape(value, box)
    assert isinstance(source, ComplexValue)
    start = b.insert_slice(
        b.extract_slice(source, [0, 0, 0], [box[0], 1, box[2]], [1] * 3, ()),
        b.empty(box, value.dtype),
        [0, 0, 0],
        [box[0], 1, box[2]],
        [1] * 3,
    )
    assert isinstance(start, ComplexValue)
    array = start.re.type
    zero, one, *sizes = (b.index(n) for n in (0, 1, *box))
    block = Body(prefix="%t")
    before = block.op(f"arith.subi %i, {one}", "index")

    def read(names: tuple[str, str], row: str) -> Complex:
        parts = (Real(block, block.op(f"tensor.extract {name}[{row}]", array), dtype) for name in names)
        return Complex(*parts)

    last = read(("%re2", "%im2"), f"%o, {before}, %k")
    result = body(last, read((source.re.name, source.im.name), "%o, %i, %k"))
    stored = [
        block.op(f"tensor.insert {part.name} into {name}[%o, %i, %k]", array)
        for part, name in ((result.re, "%re2"), (result.im, "%im2"))
    ]
    both = f"({array}, {array})"
    loops = [
        f"scf.for %o = {zero} to {sizes[0]} step {one} iter_args(%re0 = {start.re.name}, %im0 = {start.im.name}) "
        f"-> {both} {{",
        f"%a:2 = scf.for %i = {one} to {sizes[1]} step {one} iter_args(%re1 = %re0, %im1 = %im0) -> {both} {{",
        f"%b:2 = scf.for %k = {zero} to {sizes[2]} step {one} iter_args(%re2 = %re1, %im2 = %im1) -> {both} {{",
        *block.lines,
        f"scf.yield {', '.join(stored)} : {array}, {array}{LOC}",
        f"}}{LOC}",
        f"scf.yield %b#0, %b#1 : {array}, {array}{LOC}",
        f"}}{LOC}",
        f"scf.yield %a#0, %a#1 : {array}, {array}{LOC}",
        "}",
    ]
    return b.reshape(ComplexValue.of(*b.op2("\n".join(loops), start.re, start.im)), shape)


def _enter(record: OpDef, body: ScanBody, *, flat: bool = False) -> None:
    """The complex form of a scan; `flat`: without an axis, the array is flattened."""

    @complex_form(record)
    def build(
        b: ComplexBuilder, a: Operand, axis: Any = None if flat else 0, dtype: Any = None, out: None = None
    ) -> Value:
        value = as_value(b, a)
        wanted = value.dtype if dtype is None else as_dtype(dtype)
        value = b.cast(value, wanted)
        if not is_complex(wanted):
            return record.build(b, value, axis)
        value, place = scans._along(record.name, b, value, axis)
        assert isinstance(value, ComplexValue)
        return scan(b, value, place, body)


def _product(total: Complex, x: Complex) -> Complex:
    return total * x


def _larger(total: Complex, x: Complex) -> Complex:
    return (cf.is_nan(total) | cf.less(x, total, "ole")).pick(total, x)


def _smaller(total: Complex, x: Complex) -> Complex:
    return (cf.is_nan(total) | cf.less(total, x, "ole")).pick(total, x)


_enter(scans.cumprod, _product, flat=True)
_enter(OPS["multiply_accumulate"], _product)
_enter(scans.cummax, _larger)
_enter(scans.cummin, _smaller)
