"""Evaluation: what values are computed from is collected, split into pieces, compiled and run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import numpy as np

from mlirml.core.tracebacks import without_own_frames
from mlirml.lazy.calls import PART_CALLS
from mlirml.lazy.pieces import MOST_OPERATIONS, bounds
from mlirml.lazy.programs import Structure, run
from mlirml.runtime.array import Array
from mlirml.runtime.node import Node, references, stored

_LOCK = threading.RLock()
_HELD = 2
"""References to a node while references to it are counted: of the list of nodes, and of the dict of uses."""


def _remake_lock() -> None:
    global _LOCK
    _LOCK = threading.RLock()


os.register_at_fork(after_in_child=_remake_lock)


@without_own_frames
def evaluate(roots: Iterable[Node]) -> None:
    """Compute nodes, and what they are computed from as far as something else needs it, too."""
    with _LOCK:
        wanted = [node for node in roots if node.value is None]
        uses = _ancestors(wanted)
        nodes: list[Any] = sorted(uses, key=attrgetter("serial"))
        kept = _kept(nodes, uses) | set(map(id, wanted))
        uses.clear()
        ends = bounds(nodes) if len(nodes) > MOST_OPERATIONS else [len(nodes)]
        _run_pieces(nodes, ends, kept)


def _ancestors(wanted: list[Node]) -> dict[Node, int]:
    """The nodes without a value that others are computed from, each with the number of its uses by them."""
    uses = dict.fromkeys(wanted, 0)
    stack = list(wanted)
    while stack:
        node = stack.pop()
        if node.call in PART_CALLS and node.operands[0].value is not None:
            part = node.operands[0].value[PART_CALLS[node.call]]
            node.settle(part.value, part.mark)
            continue
        for operand in node.operands:
            if type(operand) is Node and operand.value is None:
                if operand in uses:
                    uses[operand] += 1
                else:
                    uses[operand] = 1
                    stack.append(operand)
    return uses if all(node.value is None for node in uses) else {n: c for n, c in uses.items() if n.value is None}


def _kept(nodes: list[Node], uses: dict[Node, int]) -> set[int]:
    """The addresses of nodes that something else than the nodes refers to: an array, or an operation for later."""
    kept = set()
    for node in nodes:
        if references(node) > uses[node] + _HELD:
            kept.add(id(node))
    return kept


def _run_pieces(nodes: list[Any], ends: list[int], kept: set[int]) -> None:
    """Run pieces of a list of nodes in order; they are dropped from the list as they are run."""
    if len(ends) > 1:
        kept |= _read_later(nodes, ends)
    begin = 0
    for end in ends:
        structure = Structure(nodes[begin:end], kept)
        if structure.outputs:
            _settle(structure, run(structure))
        del structure
        nodes[begin:end] = [None] * (end - begin)
        begin = end


def _read_later(nodes: list[Node], ends: list[int]) -> set[int]:
    """The addresses of nodes that a later piece reads."""
    later: set[int] = set()
    begin = 0
    for end in ends:
        inside = {id(node) for node in nodes[begin:end]}
        for node in nodes[begin:end]:
            later.update(id(x) for x in node.operands if type(x) is Node and x.value is None and id(x) not in inside)
        begin = end
    return later


def _settle(structure: Structure, results: list[Any]) -> None:
    """Give the nodes that are results their values; nodes of several results get a node for each."""
    found = iter(results)
    for node in structure.output_nodes():
        if not isinstance(node.type, tuple):
            value, node.type, mark = _memory(next(found), node.type)
            node.settle(value, mark)
        else:
            parts = []
            for type in node.type:
                value, own, mark = _memory(next(found), type)
                parts.append(stored(value, own, mark))
            node.settle(tuple(parts))


def _memory(result: Any, type: Any) -> tuple[Any, Any, int]:
    if isinstance(result, Array):
        own = type if result.dtype == type.dtype else result.type
        return result._storage, own, result._mark
    array = np.asarray(result)
    return array, type, 0
