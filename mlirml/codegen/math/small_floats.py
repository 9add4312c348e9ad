"""f16 and bf16 through f32: conversions with a single rounding to nearest even, by integer ops instead of calls.

LLVM calls `__truncsfbf2`, `__truncdfhf2` and others, which are not linked here, and the bf16 instructions of AVX-512
flush denormals.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import Builder, Value

SMALL = ("f16", "bf16")


def extend(b: Builder, x: Value) -> Value:
    """f16 or bf16 -> f32, exact."""
    if x.dtype == "bf16":
        return b.from_bits(b.cast("arith.extui", b.to_bits(x), "i32") << 16, "f32")
    if b.processor.converts_f16:
        return b.cast("arith.extf", x, "f32")
    # The f16 bits, shifted, are an f32 that is 2^112 too small; a product corrects normal numbers and denormals alike.
    bits = b.cast("arith.extui", b.to_bits(x), "i32")
    magnitude = b.from_bits((bits & 0x7FFF) << 13, "f32") * 2.0**112
    special = b.select(magnitude >= 2.0**16, b.constant(0x7F800000, "i32"), 0)
    return b.from_bits(b.to_bits(magnitude) | special | ((bits & 0x8000) << 16), "f32")


def truncate(b: Builder, x: Value, dtype: str) -> Value:
    """f32 or f64 -> f16 or bf16, rounded once to nearest even; NaN stays a quiet NaN."""
    if x.dtype == "f64":
        x = round_to_odd(b, x)
    if dtype == "bf16":
        if b.processor.rounds_to_bf16 and not b.shape:
            return b.cast("arith.truncf", x, dtype)
        bits = b.to_bits(x)
        rounded = bits + 0x7FFF + (b.unsigned_shift(bits, 16) & 1)
        rounded = b.select(x.differs(x), bits | 0x00400000, rounded)
        return b.from_bits(b.cast("arith.trunci", b.unsigned_shift(rounded, 16), "i16"), dtype)
    if b.processor.converts_f16:
        return b.cast("arith.truncf", x, dtype)
    return truncate_to_half(b, x)


def truncate_to_half(b: Builder, x: Value) -> Value:
    """f32 -> f16: adding a power of two by the exponent means rounding at f16's last bit (Dukhan, library FP16)."""
    bits = b.to_bits(x)
    scaled = b.abs(x) * 2.0**112 * 2.0**-110  # to infinity where f16 overflows, and back
    exponent = bits & 0x7F800000
    exponent = b.select(exponent < 0x38800000, b.constant(0x38800000, "i32"), exponent)
    rounded = b.to_bits(b.from_bits(exponent + 0x07800000, "f32") + scaled)
    result = (b.unsigned_shift(rounded, 13) & 0x7C00) + (rounded & 0x0FFF)
    result = b.select(x.differs(x), b.constant(0x7E00, "i32"), result) | (b.unsigned_shift(bits, 16) & 0x8000)
    return b.from_bits(b.cast("arith.trunci", result, "i16"), "f16")


def round_to_odd(b: Builder, x: Value) -> Value:
    """f64 -> f32 so that a second rounding to f16 or bf16 is equal to a single one (Boldo and Melquiond, 2008).

    An inexact result is truncated towards zero and its last bit is set.
    """
    nearest = b.cast("arith.truncf", x, "f32")
    back = b.cast("arith.extf", nearest, "f64")
    bits = b.to_bits(nearest)
    cut = b.select(b.abs(back) > b.abs(x), bits - 1, bits) | 1
    exact = b.compare("ueq", back, x)
    return b.from_bits(b.select(exact, bits, cut), "f32")
