"""glibc's vector functions, as an option: their names in the vector ABI of x86-64.

`_ZGVeN16v_expf` is a function of 16 f32 in AVX-512 registers; `d` and `b` mean AVX2 and SSE4. Since glibc 2.35.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.codegen.math.builder import WIDTHS

UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
    "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
FUNCTIONS = {**{name: name for name in UNARY}, "powf": "pow", "atan2": "atan2"}
"""`math.<name>` -> the C function."""

_LETTERS = {512: "e", 256: "d", 128: "b"}


def provides(name: str, dtype: str) -> bool:
    """True if there are vector functions for `math.<name>` on f32 or f64."""
    return name in FUNCTIONS and dtype in ("f32", "f64")


def variants(name: str, dtype: str, arity: int, vector_bits: int) -> Iterator[tuple[int, str]]:
    """(lanes, symbol) for full vectors, and for half vectors if the CPU has wider ones."""
    for bits in (vector_bits, vector_bits // 2):
        if bits in _LETTERS:
            lanes = bits // WIDTHS[dtype]
            suffix = "f" if dtype == "f32" else ""
            yield lanes, f"_ZGV{_LETTERS[bits]}N{lanes}{'v' * arity}_{FUNCTIONS[name]}{suffix}"


SYMBOLS = frozenset(
    symbol
    for name in FUNCTIONS
    for dtype in ("f32", "f64")
    for bits in (512, 256, 128)
    for _, symbol in variants(name, dtype, 2 if name in ("powf", "atan2") else 1, bits)
)
"""Every name that code may call."""
