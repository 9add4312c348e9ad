"""Replace the type `bfloat` in LLVM IR text by `i16` where its values are only moved.

    %3 = select i1 %c, bfloat 0xR3F80, bfloat %2      ->      %3 = select i1 %c, i16 16256, i16 %2

`mlirml-expand-math` computes with the bits of bf16, so only loads, stores, selects, phis and bitcasts of it remain.
LLVM promotes most of these to f32 on x86 and truncates the result, by `__truncsfbf2`, which no library here has, or by
an instruction of AVX512_BF16 that flushes denormals. Integers are moved unchanged.
"""

from __future__ import annotations

import re

_TYPE_OR_LITERAL = re.compile(r'"[^"]*"|(?<![\w.%@$"-])(?:bfloat|0xR([0-9A-F]{4}))\b')
_INTRINSIC = re.compile(r"@llvm\.(?!x86)[\w.]*bf16[\w.]*")
_ARITHMETIC = re.compile(
    r"= (?:\w+ )*?(?:f(?:add|sub|mul|div|rem|neg|cmp|pext|ptrunc|ptosi|ptoui)|[su]itofp)\b.*\bbfloat\b"
)
_MOVES = re.compile(r"@llvm\.(?:masked|vector|experimental)\.")
_DECLARATION = re.compile(r"^declare .*?(@[\w.]+)\(", re.MULTILINE)
_PRODUCT = re.compile(r"^(\s*)(%\S+ = .*call .*@llvm\.x86\.avx512bf16\.\w+[\w.]*\()(.*)(\).*)$")
_OPERAND = re.compile(r"(<\d+ x) bfloat> (%[\w.]+)")


def move_bf16_as_integers(text: str) -> str:
    """The same module without `bfloat`, except for operands of instructions that multiply them.

    A module that computes with the type is returned unchanged.
    """
    if "bfloat" not in text or _computes(text):
        return text
    known = set(_DECLARATION.findall(text))
    lines = []
    for line in text.split("\n"):
        if "bf" not in line:
            lines.append(line)
            continue
        line = _rewritten(line)
        declared = _DECLARATION.match(line)
        if not declared or declared[1] not in known:  # integers may be moved by the same function
            lines.append(line)
    return "\n".join(lines)


def _computes(text: str) -> bool:
    """True if an operation other than a move has `bfloat` operands."""
    if _ARITHMETIC.search(text):
        return True
    return any(not _MOVES.match(name) for name in _INTRINSIC.findall(text))


def _rewritten(line: str) -> str:
    if "@llvm.x86.avx512bf16." in line:
        found = _PRODUCT.match(line)
        return _with_casts(found) if found else line
    line = _INTRINSIC.sub(lambda match: match[0].replace("bf16", "i16"), line)
    return _TYPE_OR_LITERAL.sub(_integer, line)


def _integer(match: re.Match[str]) -> str:
    """The integer type, or the bits of a literal."""
    if match[0].startswith('"'):
        return match[0]
    return str(int(match[1], 16)) if match[1] else "i16"


def _with_casts(call: re.Match[str]) -> str:
    """A product of bf16, whose operands are cast before it."""
    indent, head, operands, tail = call.groups()
    result = head.partition(" ")[0].lstrip("%")  # usually a number, with which a name may not begin
    casts: list[str] = []

    def cast(operand: re.Match[str]) -> str:
        vector, value = operand.groups()
        name = f"%bf16.{result}.{len(casts)}"
        casts.append(f"{indent}{name} = bitcast {vector} i16> {value} to {vector} bfloat>")
        return f"{vector} bfloat> {name}"

    operands = _OPERAND.sub(cast, operands)
    return "\n".join([*casts, f"{indent}{head}{operands}{tail}"])
