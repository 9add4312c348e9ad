"""Ranges of the integers that an `scf.for` carries, by induction: an iteration keeps them within.

    %last = scf.for %i = ... iter_args(%crc = %c65535) {          // %crc from 0 to 65535, as both values are:
      %half = arith.shrsi %crc, %c1                               //   from 0 to 32767
      %other = arith.xori %half, %c33800                          //   no bit above those of 33800
      %next = arith.select %odd, %other, %half
      scf.yield %next
    }

The induction goes over all carried integers of a loop at once. It starts with the ranges of their inits; what an
iteration widens is widened to whole bits, twice, then to all numbers of its sign, then to all of its type, until
nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirml.ir.bindings import mlir

if TYPE_CHECKING:
    from mlirml.analysis.ranges import Range, Ranges

_DEEPEST = 3
"""Loops nested in each other whose ranges are looked for together: each evaluates its body a few times."""
_BITWISE = 2
"""How often a range is widened to whole bits. A remainder needs the second time, if its first number is smaller."""
_MOST = 16
"""Carried integers of a loop, at most."""


def carried_ranges(ranges: Ranges, loop: mlir.Operation) -> dict[int, Range]:
    """The ranges of the integers that a loop carries, by their position; without those of which nothing is known."""
    if loop in ranges.inducing or len(ranges.inducing) >= _DEEPEST:
        return {}
    block = loop.regions[0].blocks[0]
    arguments, ends = list(block.arguments)[1:], list(block.operations[len(block.operations) - 1].operands)
    found: dict[int, Range] = {}
    for number, argument in enumerate(arguments):
        if isinstance(argument.type, (mlir.IndexType, mlir.IntegerType)) and ends[number] != argument:
            found[number] = ranges.of(loop.operands[3 + number])
    times = dict.fromkeys(found, 0)
    while 0 < len(found) <= _MOST:
        inside = ranges.inducing_over(loop, {arguments[number]: found[number] for number in found})
        grown = {n: range_ for n in found if not _is_within(range_ := inside.of(ends[n]), found[n])}
        if not grown:
            return found
        for number, (low, high) in grown.items():
            times[number] += 1
            wider = _widened(min(low, found[number][0]), max(high, found[number][1]), times[number])
            if wider is None:
                del found[number]
            else:
                found[number] = wider
    return {}


def _widened(low: int, high: int, times: int) -> Range | None:
    """A range that holds the one given, and more the more often it was not enough; None for all numbers."""
    if times <= _BITWISE:
        bits = max(low.bit_length(), high.bit_length())
        return 0 if low >= 0 else -(1 << bits), (1 << bits) - 1
    return (0, (1 << 63) - 1) if low >= 0 and times == _BITWISE + 1 else None


def _is_within(a: Range, b: Range) -> bool:
    return b[0] <= a[0] and a[1] <= b[1]
