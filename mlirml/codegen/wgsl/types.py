"""Element types in WGSL: the type for each MLIR type, and conversions of values.

Integers below 32 bits are represented as sign-extended i32. WGSL's u32 appears only within an expression.
"""

from __future__ import annotations

from mlirml.codegen.c_like import float_literal
from mlirml.errors import TargetError
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location

_NAMES = {"i1": "bool", "i8": "i32", "i16": "i32", "i32": "i32", "index": "i32", "f32": "f32"}
_LACKING = {"f64": "64-bit floats", "i64": "64-bit integers"}


def type_name(type_: mlir.Type, location: mlir.Location) -> str:
    """The WGSL type of an MLIR type; raises `TargetError` at the user's source line for types that WGSL lacks."""
    text = str(type_)
    if text not in _NAMES:
        raise TargetError(
            f"WGSL has no {_LACKING.get(text, text)}, which this is computed with",
            location=source_location(location),
            help='compile for another target: "vulkan", "cuda" or "cpu"',
        )
    return _NAMES[text]


def width(type_: mlir.Type) -> int:
    """The bits of an integer or an index."""
    return type_.width if isinstance(type_, mlir.IntegerType) else 32


def literal(attribute: mlir.Attribute) -> str:
    """A scalar constant."""
    type_ = attribute.type
    if isinstance(type_, mlir.FloatType):
        return float_literal(mlir.FloatAttr(attribute).value)
    number = mlir.IntegerAttr(attribute).value
    if str(type_) == "i1":
        return "true" if number else "false"
    return f"i32({number})" if number == -(2**31) else f"{number}i"


def wrapped(text: str, type_: mlir.Type) -> str:
    """The value of an i32 expression of which only the low bits are significant."""
    bits = width(type_)
    return text if bits == 32 else f"extractBits({text}, 0u, {bits}u)"


def unsigned(text: str, type_: mlir.Type) -> str:
    """A value as a u32 without bits beyond its width."""
    bits = width(type_)
    if text.endswith("i") and text[:-1].isdecimal():
        return f"{text[:-1]}u"
    return f"u32({text})" if bits == 32 else f"(u32({text}) & {(1 << bits) - 1}u)"
