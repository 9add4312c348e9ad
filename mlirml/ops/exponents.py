"""Exponents of integer powers, which NumPy refuses if they are negative."""

from __future__ import annotations

import numpy as np

from mlirml.core.config import config
from mlirml.errors import NegativePowerError
from mlirml.ir.text.builder import Body, Builder, Check, Operand, Scalar, Value
from mlirml.ir.text.dtypes import mlir_name
from mlirml.ir.text.elements import ElementBuilder

_MESSAGE = "power: integers to negative integer powers are not allowed, as in NumPy"
_HELP = "write `x ** -1.0`, or convert the base, `x.astype(float)`"


def check_exponents(b: Builder, base: Operand, exponent: Operand) -> None:
    """Let the call fail if integers are raised to negative powers; constant ones are a `NegativePowerError` at once."""
    if base.dtype.kind not in "biu" or exponent.dtype.kind != "i":
        return
    known = np.asarray(exponent.value) if isinstance(exponent, Scalar) else b.contents(exponent)
    if known is not None:
        if (known < 0).any():
            raise NegativePowerError(_MESSAGE, help=_HELP)
        return
    assert isinstance(exponent, Value)
    if exponent.size and not _is_positive(b, exponent):
        least, kind = _least(b, exponent), mlir_name(exponent.dtype)
        holds = b.named(f"arith.cmpi sge, {least}, {b.scalar(0, exponent.dtype)} : {kind}")
        b.check(holds, Check("NegativePowerError", _MESSAGE, _HELP))


def _is_positive(b: Builder, exponent: Value) -> bool:
    """True if a number is certainly not negative."""
    least, _ = b.known_ranges.get(exponent.name, (None, None))
    if least is None and isinstance(b, ElementBuilder) and not exponent.shape:
        least, _ = b.limits_of(exponent)
    return not config.checks or (least is not None and least >= 0)


def _least(b: Builder, exponent: Value) -> str:
    """The smallest of the exponents."""
    if not exponent.shape:
        return _element(b, exponent)
    kind = mlir_name(exponent.dtype)

    def smaller(block: Body, x: str, least: str) -> str:
        return block.op(f"arith.minsi {x}, {least}", kind)

    found = b.reduce(exponent, range(len(exponent.shape)), exponent.dtype, 0, smaller)
    return _element(b, found)


def _element(b: Builder, value: Value) -> str:
    """The element of a tensor without dimensions."""
    if isinstance(b, ElementBuilder):
        return b.element(value)
    return b.named(f"tensor.extract {value.name}[] : {value.type}")
