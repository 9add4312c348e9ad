"""Rewrite the float literals of LLVM 24 text to the forms that LLVM 22 reads.

    %3 = fmul float %2, 1.000000e-01      ->      %3 = fmul float %2, 0x3FB99999A0000000

LLVM 24 prints the shortest decimal, `f0x3F125335`, `+inf` and `+nan(0x..)`; LLVM 22 wants hexadecimal doubles for
`float` and `double`, `0xH` for `half` and `0xR` for `bfloat`. Every rewrite is exact in all bits, NaN payloads too.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_NUMBER = r"[+-]?(?:\d+\.\d*(?:e[+-]?\d+)?|inf\b|qnan\b|s?nan\(0x[0-9A-Fa-f]+\)|f0x[0-9A-Fa-f]+)"
_TOKEN = re.compile(
    rf'"[^"]*"|(?<![\w.%@$"-])(float|double|half|bfloat)\b|(?<![\w.%@$"-])({_NUMBER})(?![\w.])',
)
_CANDIDATE = re.compile(r"(?<![\w.%@$])[+-]?(?:\d+\.\d|inf\b|qnan\b|s?nan\(|f0x)")
_LAYOUT = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}


def rewrite_float_literals(text: str) -> str:
    """LLVM 24 text -> the same module as LLVM 22 reads it."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if ("." in line or "nan" in line or "inf" in line or "f0x" in line) and _CANDIDATE.search(line):
            lines[number] = _rewrite_line(line)
    return "\n".join(lines)


def _rewrite_line(line: str) -> str:
    type_name = ""

    def swap(match: re.Match[str]) -> str:
        nonlocal type_name
        word, number = match.groups()
        if word:
            type_name = word
        elif number and type_name:
            return float_literal(type_name, number)
        return match.group()

    return _TOKEN.sub(swap, line)


@lru_cache(maxsize=1 << 16)
def float_literal(type_name: str, text: str) -> str:
    """One literal of LLVM 24 in the hexadecimal form that LLVM 22 reads.

    >>> float_literal("float", "1.000000e-01"), float_literal("half", "-inf")
    ('0x3FB99999A0000000', '0xHFC00')
    """
    bits = float_bits(type_name, text)
    if type_name == "half":
        return f"0xH{bits:04X}"
    if type_name == "bfloat":
        return f"0xR{bits:04X}"
    if type_name == "double":
        return f"0x{bits:016X}"
    if bits >> 23 & 0xFF == 0xFF:  # a conversion to double would quiet a signalling NaN
        return f"0x{bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"0x{_double_bits(value):016X}"


def float_bits(type_name: str, text: str) -> int:
    """The bits of a literal of LLVM 24 as a `half`, `bfloat`, `float` or `double`."""
    exponent, mantissa = _LAYOUT[type_name]
    digits = text.lstrip("+-")
    sign = text.startswith("-") << (exponent + mantissa)
    top = ((1 << exponent) - 1) << mantissa
    if digits.startswith("f0x"):
        return sign | int(digits[3:], 16)
    if digits == "inf":
        return sign | top
    if digits == "qnan":
        return sign | top | 1 << (mantissa - 1)
    if "nan(" in digits:  # `nan` sets the quiet bit on top of the payload, `snan` does not
        payload = int(digits[digits.index("(") + 1 : -1], 16)
        return sign | top | payload | (digits[0] == "n") << (mantissa - 1)
    if type_name == "double":
        return sign | _double_bits(float(digits))
    if type_name == "float" and (bits := _fast_single(digits)) is not None:
        return sign | bits
    from fractions import Fraction  # 3 ms, and few literals need it

    return sign | _round_exactly(Fraction(digits), exponent, mantissa)


def _double_bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def _fast_single(digits: str) -> int | None:
    """Decimal -> double -> f32 bits, or None if the double is so near a tie that double rounding may be wrong."""
    value = float(digits)
    near_tie = abs((_double_bits(value) & (1 << 29) - 1) - (1 << 28)) <= 1
    if near_tie or not 2.0**-126 <= value < 2.0**127:
        return None
    return struct.unpack("<I", struct.pack("<f", value))[0]


def _round_exactly(value: Fraction, exponent: int, mantissa: int) -> int:
    """The bits of the IEEE number nearest to a non-negative rational, ties to even."""
    bias = (1 << exponent - 1) - 1
    if value == 0:
        return 0
    power = value.numerator.bit_length() - value.denominator.bit_length()
    two = type(value)(2)
    if two**power > value:
        power -= 1
    power = max(power, 1 - bias)
    units = round(value / two ** (power - mantissa))  # of a Fraction: to nearest, ties to even
    # A carry out of the mantissa runs into the exponent field, which is what rounding up to the next power means.
    return min(((power + bias - 1) << mantissa) + units, ((1 << exponent) - 1) << mantissa)
