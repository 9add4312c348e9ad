"""Long chains of operations in pieces of bounded size; pieces of a repetitive chain are equal, and share a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.runtime.node import Node

MOST_OPERATIONS = 512
"""The operations of one program: compile time grows a little faster than their number."""
_MOST_CANDIDATES = 64
_REPEATS = 0.98


def bounds(nodes: list[Node]) -> list[int]:
    """The ends of the pieces of a list of nodes."""
    signatures = _signatures(nodes)
    found = repetition(signatures)
    if found is None:
        return _even(0, len(nodes), MOST_OPERATIONS)
    begin, end, period = found
    length = period * max(1, MOST_OPERATIONS // period)
    whole = begin + (end - begin) // length * length
    ends = _even(0, begin, MOST_OPERATIONS) + _even(begin, whole, length)
    return ends + _even(whole, len(nodes), MOST_OPERATIONS)


def _even(begin: int, end: int, length: int) -> list[int]:
    return [min(position + length, end) for position in range(begin, end, length)]


def repetition(signatures: np.ndarray) -> tuple[int, int, int] | None:
    """The longest run in the middle of a sequence that repeats itself, as begin, end, period; None if there is none."""
    count = len(signatures)
    middle = count // 2
    region = signatures[middle : middle + 2 * MOST_OPERATIONS]
    candidates = np.flatnonzero(region[1 : MOST_OPERATIONS + 1] == region[0])[:_MOST_CANDIDATES] + 1
    for period in candidates.tolist():
        if np.mean(region[period:] == region[:-period]) < _REPEATS:
            continue
        differs = np.flatnonzero(signatures[period:] != signatures[:-period])
        before = differs[differs < middle]
        after = differs[differs >= middle]
        begin = int(before[-1]) + 1 if len(before) else 0
        end = int(after[0]) + period if len(after) else count
        if end - begin >= 2 * period:
            return begin, end, period
    return None


def _signatures(nodes: list[Node]) -> np.ndarray:
    """A number for each node: equal where the operations and the distances to their operands are."""
    positions = {id(node): position for position, node in enumerate(nodes)}
    numbers: dict[Any, int] = {}
    found = np.empty(len(nodes), np.int64)
    for position, node in enumerate(nodes):
        key: list[Any] = [node.call, node.type]
        for operand in node.operands:
            if type(operand) is not Node:
                key.append(type(operand))
            else:
                other = positions.get(id(operand))
                key.append(operand.type if other is None else position - other)
        found[position] = numbers.setdefault(tuple(key), len(numbers))
    return found
