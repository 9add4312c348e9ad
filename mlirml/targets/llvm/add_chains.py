"""Long sums of scalar integers, cut before code generation."""

from __future__ import annotations

import re

_LONGEST = 6
"""Additions that depend on each other, from which on a sum is cut."""
_ADD = re.compile(r"  %(\S+) = add (?:nuw |nsw )*(i32|i64) (\S+), ([^\s,]+)(.*)")


def may_have_long_sums(text: str) -> bool:
    """True if LLVM IR has enough scalar additions for a sum that is cut."""
    return text.count(" = add ") >= _LONGEST


def cut_sums(text: str) -> str:
    """LLVM IR text without sums of more than 6 scalar integers of which each addition needs the one before.

    x86's instruction selection tries both operands of each addition as the base and as the index of an address, in both
    orders, six additions deep: four to the sixth power of attempts for each addition of a longer sum, such as those of
    the iterations of a cipher or a hash (4.5 s for 300 additions, 0.06 s when they are cut). It does not look through
    inline assembly, which is empty here and adds no instruction.
    """
    if not may_have_long_sums(text):
        return text
    lines: list[str] = []
    depths: dict[str, int] = {}
    for line in text.split("\n"):
        if not line.startswith("  "):
            depths = {}  # a block, each of which is selected by itself
        elif found := _ADD.fullmatch(line):
            name, dtype, first, second, rest = found.groups()
            depth = 1 + max(depths.get(first, 0), depths.get(second, 0))
            if depth < _LONGEST:
                depths["%" + name] = depth
            else:
                lines.append(line.replace(f"%{name} =", f"%sum.{name} =", 1))
                line = f'  %{name} = call {dtype} asm "", "=r,0"({dtype} %sum.{name}){rest}'
        lines.append(line)
    return "\n".join(lines)
