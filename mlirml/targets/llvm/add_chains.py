"""Long sums of scalar integers, cut before code generation."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SHORT = 6
"""Additions that depend on each other in a part of a sum that is cut."""
_LONG = 24
"""Additions that depend on each other, from which on the sums of a block are cut. Those of addresses are shorter: cut,
they would not be a part of the instructions that load and store any more, which takes twice the time."""
_ADD = re.compile(r"  %(\S+) = add (?:nuw |nsw )*(i32|i64) (\S+), ([^\s,]+)(.*)")


def may_have_long_sums(text: str) -> bool:
    """True if LLVM IR has enough scalar additions for a sum that is cut."""
    return text.count(" = add ") >= _LONG


def cut_sums(text: str) -> str:
    """LLVM IR text in which sums of scalar integers are cut, in blocks where 24 additions need the one before each.

    x86's instruction selection tries both operands of each addition as the base and as the index of an address, in both
    orders, six additions deep: four to the sixth power of attempts for each addition of a longer sum, such as those of
    the iterations of a cipher or a hash (4.5 s for 300 additions, 0.06 s when they are cut). It does not look through
    inline assembly, which is empty here and adds no instruction.
    """
    if not may_have_long_sums(text):
        return text
    return "\n".join(line for block in _blocks(text.split("\n")) for line in _cut(block))


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each basic block, each of which is selected by itself, and those between blocks."""
    first = 0
    for number, line in enumerate(lines):
        if not line.startswith("  "):
            yield lines[first:number]
            first = number
    yield lines[first:]


def _cut(block: list[str]) -> list[str]:
    found = [_ADD.fullmatch(line) for line in block]
    depths: dict[str, int] = {}
    for name, _, first, second, _ in (match.groups() for match in found if match):
        depths["%" + name] = 1 + max(depths.get(first, 0), depths.get(second, 0))
    if max(depths.values(), default=0) < _LONG:
        return block
    lines: list[str] = []
    depths.clear()
    for line, match in zip(block, found):
        if match:
            name, dtype, first, second, rest = match.groups()
            depth = 1 + max(depths.get(first, 0), depths.get(second, 0))
            if depth < _SHORT:
                depths["%" + name] = depth
            else:
                lines.append(line.replace(f"%{name} =", f"%sum.{name} =", 1))
                line = f'  %{name} = call {dtype} asm "", "=r,0"({dtype} %sum.{name}){rest}'
        lines.append(line)
    return lines
