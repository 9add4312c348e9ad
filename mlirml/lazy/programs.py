"""Programs of pieces, by their structure: what was gathered twice is compiled once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlirml.core.tree import exact
from mlirml.errors import CaptureError
from mlirml.lazy.inference import common_type
from mlirml.runtime.array import Array
from mlirml.runtime.node import Node

_MOST_STRUCTURES = 1024
_MOST_PROGRAMS = 64
_FAMILIES: OrderedDict[Any, Family] = OrderedDict()


class Structure:
    """A piece as a program: its steps, with operands by number, its inputs, and its results.

    An operand is the index of an earlier step, or counts down from -1 for the leaves: arrays that have a value. A
    number is represented by its type; bools, of which there are two, by their values.
    """

    def __init__(self, nodes: Sequence[Node], kept: set[int]) -> None:
        steps: list[Any] = []
        positions: dict[int, int] = {}
        leaves: dict[int, int] = {}
        self.inputs: list[Node] = []
        self.numbers: list[Any] = []
        outputs: list[int] = []
        self._nodes = nodes
        for position, node in enumerate(nodes):
            step: list[Any] = [node.call, node.type]
            for operand in node.operands:
                if type(operand) is Node:
                    found = positions.get(id(operand))
                    if found is None:
                        found = leaves.get(id(operand))
                        if found is None:
                            self.inputs.append(operand)
                            found = leaves[id(operand)] = -len(self.inputs)
                    step.append(found)
                elif type(operand) is bool:
                    step.append((bool, operand))
                else:
                    step.append(type(operand))
                    self.numbers.append(operand)
            steps.append(tuple(step))
            positions[id(node)] = position
            if id(node) in kept:
                outputs.append(position)
        self.steps = tuple(steps)
        self.outputs = tuple(outputs)
        self.key = self.steps, self.outputs, tuple([node.type for node in self.inputs])

    def output_nodes(self) -> Iterator[Node]:
        """The nodes that are results, in order."""
        return (self._nodes[position] for position in self.outputs)


def run(structure: Structure) -> list[Any]:
    """The results of a piece, arrays of NumPy or of the device."""
    family = _FAMILIES.get(structure.key)
    if family is None:
        if len(_FAMILIES) >= _MOST_STRUCTURES:
            _FAMILIES.popitem(last=False)
        family = _FAMILIES[structure.key] = Family(structure)
    else:
        _FAMILIES.move_to_end(structure.key)
    return family.run(structure)


class Family:
    """The programs of one structure.

    Numbers are constants of a program at first. One that comes with another value is an input of the next program, so
    that a number that changes in each iteration of a loop takes two compilations.
    """

    def __init__(self, structure: Structure) -> None:
        self._steps = structure.steps
        self._outputs = structure.outputs
        self._leaves = len(structure.inputs)
        self._expected = [
            (part.shape, part.dtype)
            for node in structure.output_nodes()
            for part in (node.type if isinstance(node.type, tuple) else (node.type,))
        ]
        self._where = common_type(tuple(structure.inputs), "these operations")
        self._dynamic: frozenset[int] = frozenset()
        self._fixed: frozenset[int] = frozenset()  # numbers whose values a program needs
        self._programs: dict[Any, Callable[..., Any]] = {}
        self._last: Sequence[Any] = ()

    def run(self, structure: Structure) -> list[Any]:
        """The results for the inputs and the numbers of a structure."""
        numbers = structure.numbers
        program = self._programs.get(self._key(numbers))
        leaves = [self._leaf(node) for node in structure.inputs]
        if program is None:
            if self._programs:
                now, before = map(exact, numbers), map(exact, self._last)
                changed = [i for i, (one, other) in enumerate(zip(now, before)) if one != other]
                self._dynamic = self._dynamic.union(changed) - self._fixed
                program = self._programs.get(self._key(numbers))
            if program is None:
                return self._first_run(numbers, leaves)
        self._last = numbers
        return program(*leaves, *(numbers[i] for i in sorted(self._dynamic)))

    def _key(self, numbers: Sequence[Any]) -> Any:
        dynamic = self._dynamic
        return dynamic, tuple([exact(x) for i, x in enumerate(numbers) if i not in dynamic])

    def _first_run(self, numbers: Sequence[Any], leaves: list[Any]) -> list[Any]:
        """The results of a new program; numbers that cannot be inputs are constants of it."""
        program = self._program(numbers)
        given = [numbers[i] for i in sorted(self._dynamic)]
        try:
            results: list[Any] = program(*leaves, *given)
        except CaptureError:
            if not given:
                raise
            results = []
        if given and not self._fits(results):
            self._fixed, self._dynamic = self._fixed | self._dynamic, frozenset()
            program = self._program(numbers)
            results = program(*leaves)
        if len(self._programs) >= _MOST_PROGRAMS:
            self._programs.clear()
        self._programs[self._key(numbers)] = program
        self._last = numbers
        return results

    def _fits(self, results: list[Any]) -> bool:
        return [(x.shape, x.dtype) for x in results] == self._expected

    def _leaf(self, node: Node) -> Any:
        value = node.value
        return value if isinstance(value, np.ndarray) else Array.of_node(node)

    def _program(self, numbers: Sequence[Any]) -> Callable[..., Any]:
        from mlirml.api import Compiled

        dynamic = sorted(self._dynamic)
        steps, outputs, count = self._steps, self._outputs, self._leaves

        def operations(*leaves: Any) -> list[Any]:
            given = list(numbers)
            for position, number in zip(dynamic, leaves[count:]):
                given[position] = number
            return replayed(steps, outputs, leaves, given)

        operations.__name__ = operations.__qualname__ = "operations on ml.Array"
        return Compiled(operations, self._where.target, frontend="trace")


def replayed(steps: Sequence[Any], outputs: Sequence[int], leaves: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """The results of steps on traced arrays and numbers."""
    from mlirml.core.tree import flatten
    from mlirml.frontend.current import current_trace

    trace: Any = current_trace()
    given = iter(numbers)
    values: list[Any] = []
    for call, _, *operands in steps:
        found = [_operand(x, leaves, values, given) for x in operands]
        values.append(call.apply(trace, found))
    results: list[Any] = []
    for position in outputs:
        results += flatten(values[position])[0] if isinstance(steps[position][1], tuple) else [values[position]]
    return results


def _operand(x: Any, leaves: Sequence[Any], values: list[Any], numbers: Iterator[Any]) -> Any:
    if type(x) is int:
        return values[x] if x >= 0 else leaves[-1 - x]
    return x[1] if type(x) is tuple else next(numbers)
