"""Divisors and multiples of integers, by Euclid's algorithm in the element's body."""

from __future__ import annotations

import numpy as np

from mlirml.ir.text.builder import LOC, Body
from mlirml.ir.text.dtypes import mlir_name
from mlirml.ops.elementwise import elementwise
from mlirml.ops.registry import INTEGERS


def _magnitude(block: Body, x: str, dtype: np.dtype) -> str:
    """The magnitude as an unsigned number: that of the lowest signed one is its own bits."""
    return x if dtype.kind == "u" else block.op(f"math.absi {x}", mlir_name(dtype))


def _greatest(block: Body, x: str, y: str, dtype: np.dtype) -> str:
    """`while y: x, y = y, x % y` on unsigned numbers."""
    kind = mlir_name(dtype)
    zero = block.constant(0, dtype)
    before, after = Body(prefix=f"{zero}b"), Body(prefix=f"{zero}a")
    more = before.op(f"arith.cmpi ne, %y, {zero}", kind)
    rest = after.op("arith.remui %x, %y", kind)
    text = "\n".join(
        [
            f"scf.while (%x = {x}, %y = {y}) : ({kind}, {kind}) -> ({kind}, {kind}) {{",
            *before.lines,
            f"scf.condition({more}) %x, %y : {kind}, {kind}{LOC}",
            "} do {",
            f"^bb0(%x: {kind}{LOC}, %y: {kind}{LOC}):",
            *after.lines,
            f"scf.yield %y, {rest} : {kind}, {kind}{LOC}",
            "}",
        ]
    )
    return block.several(text, 2)[0]


def _gcd(block: Body, xs: list[str], dtype: np.dtype) -> str:
    x, y = (_magnitude(block, x, dtype) for x in xs)
    return _greatest(block, x, y, dtype)


def _lcm(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind = mlir_name(dtype)
    x, y = (_magnitude(block, x, dtype) for x in xs)
    common, zero = _greatest(block, x, y, dtype), block.constant(0, dtype)
    none = block.op(f"arith.cmpi eq, {common}, {zero}", kind)
    divisor = block.op(f"arith.select {none}, {block.constant(1, dtype)}, {common}", kind)
    quotient = block.op(f"arith.divui {x}, {divisor}", kind)
    return block.op(f"arith.muli {quotient}, {y}", kind)


gcd = elementwise(np.gcd, _gcd, INTEGERS, "The greatest common divisor; that of 0 and 0 is 0.")
lcm = elementwise(np.lcm, _lcm, INTEGERS, "The lowest common multiple; 0 if one of the two is 0.")
