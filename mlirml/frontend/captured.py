"""The result of tracing a function: the stage `capture`."""

from __future__ import annotations

import operator
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Condition, Size, is_dynamic_shape
from mlirml.core.tree import TreeDef
from mlirml.errors import OutgrownListError, SourceLocation
from mlirml.frontend.spec import TensorSpec
from mlirml.ir.text.builder import Check

Guard = tuple[Any, Any, Any]
"""A condition under which a program is valid, as holder, name and value.

The forms are: a dict or class, a key and its value; an object, the descriptor of a slot and its value, or the
descriptor itself if the slot is empty; a closure cell, None and its contents; a dict, None and the tuple of its keys
and values in turn; a dict or class, None and its length; a list, set or deque, None and the tuple of its items; an
array, None and a copy; a function, None and its `function_parts`.
"""


_PLACE = re.compile(
    r'^#loc\d+ = loc\("(?P<function>.*)"\("(?P<file>.*)":(?P<line>\d+):(?P<column>\d+) to '
    r"(?P<end_line>\d+)?:(?P<end>\d+)\)\)$",
    re.MULTILINE,
)
STATE = "<state>"
"""The name of the argument that holds the state of a function."""

ANY: Any = NotImplemented
"""Wildcard in guards for an item of a container that may change, as it is an input of the program."""


@dataclass(frozen=True)
class Contents:
    """The items of a list or dict after a call: numbers of leaves of the arguments, -1 and so on for the first and the
    further ones of the outputs for contents, and constants in tuples. `path` leads to it from the arguments.
    """

    path: tuple[Any, ...]
    keys: tuple[Any, ...] | None
    items: tuple[Any, ...]

    def holder(self, arguments: Any) -> Any:
        """The list or dict."""
        for key in self.path:
            arguments = arguments[key]
        return arguments

    def store(self, arguments: Any, leaves: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Give it these items."""
        items = [x[0] if isinstance(x, tuple) else leaves[x] if x >= 0 else outputs[-x - 1] for x in self.items]
        holder = self.holder(arguments)
        if self.keys is None:
            holder[:] = items
        else:
            holder.clear()
            holder.update(zip(self.keys, items))


@dataclass(frozen=True)
class Captured:
    """A traced function: the stage `capture`. `text` is MLIR; `key` is the same without locations.

    The inputs are the leaves of the arguments, with overlapping ones replaced by their bases (`Aliasing`). The outputs
    are the results, then the new items in `contents`, then the new values of the leaves in `replaced`, which the
    function put into containers among its arguments, then those of `writebacks`. For errors of later calls, `entry` is
    the location of the function, `narrowed_at` and `stored_at` are the locations that `int_ranges` and `writebacks`
    come from, and `checks` are the program's assertions by index.
    """

    name: str
    text: str = field(repr=False)
    key: str = field(repr=False)
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    out_tree: TreeDef
    constants: tuple[np.ndarray, ...] = field(repr=False)
    writebacks: tuple[tuple[int, int], ...] = ()
    int_ranges: tuple[tuple[int, int, int, str], ...] = ()
    guards: tuple[Guard, ...] = field(default=(), repr=False)
    replaced: tuple[int, ...] = ()
    contents: tuple[Contents, ...] = ()
    entry: SourceLocation | None = field(default=None, repr=False)
    narrowed_at: tuple[SourceLocation | None, ...] = field(default=(), repr=False)
    stored_at: tuple[SourceLocation | None, ...] = field(default=(), repr=False)
    checks: tuple[Check, ...] = field(default=(), repr=False)
    effects: tuple[Any, ...] = field(default=(), repr=False)  # effects of tracing that each call must have
    unset: tuple[int, ...] = ()  # the indices of the state variables that the function does not set
    result_order: tuple[int, ...] | None = None  # the output index of each result, if some are in donated arguments
    host_functions: tuple[Any, ...] = field(default=(), repr=False)  # the Python functions that the program calls
    unrolled: tuple[tuple[SourceLocation | None, str], ...] = field(default=(), repr=False)  # with the reasons
    sizes: tuple[Size, ...] = ()  # the elements of the hidden array of dynamic sizes
    conditions: tuple[Condition, ...] = ()  # on the dynamic sizes of calls

    @property
    def is_dynamic(self) -> bool:
        """True if the program is for arrays of more than one size."""
        return bool(self.sizes) or any(is_dynamic_shape(spec.shape) for spec in self.inputs)

    @property
    def is_plain(self) -> bool:
        """True if all that a call has to do is to run the program and to store new items.

        It is run once more, with more room, if a list outgrew it.
        """
        grows = any(type(check.raised) is OutgrownListError for check in self.checks)
        return not self.effects and not self.contents and not (grows and self.host_functions)

    def result(self, outputs: Sequence[Any]) -> Any:
        """The function's result, from the outputs of the program."""
        return self.out_tree.unflatten([outputs[position] for position in self.result_positions()])

    def result_positions(self) -> Sequence[int]:
        """The indices of the outputs that are leaves of the result."""
        return range(self.out_tree.leaf_count()) if self.result_order is None else self.result_order

    def item_positions(self) -> range:
        """The indices of the outputs that are the new values of `replaced`."""
        end = len(self.outputs) - len(self.writebacks)
        return range(end - len(self.replaced), end)

    def content_positions(self) -> range:
        """The indices of the outputs that are new items in `contents`."""
        end = self.item_positions().start
        return range(end - sum(type(x) is int and x < 0 for one in self.contents for x in one.items), end)

    def operation_locations(self) -> Iterator[SourceLocation]:
        """The source locations of the module's operations, each once."""
        for m in _PLACE.finditer(self.text):
            line, end_line = int(m["line"]), int(m["end_line"] or m["line"])
            yield SourceLocation(m["file"], line, int(m["column"]), end_line, int(m["end"]), m["function"])

    def runs_as(self, other: Captured) -> bool:
        """True if the programs are equal, with the same constant arrays."""
        parts = ("key", "sizes", "inputs", "outputs", "writebacks", "int_ranges")
        return (
            all(getattr(self, part) == getattr(other, part) for part in parts)
            and len(self.constants) == len(other.constants)
            and all(map(operator.is_, self.constants, other.constants))
            and len(self.host_functions) == len(other.host_functions)
            and all(one.is_like(two) for one, two in zip(self.host_functions, other.host_functions))
        )

    def as_text(self) -> str:
        """The MLIR module."""
        return self.key


def function_parts(function: types.FunctionType) -> tuple[Any, Any, Any]:
    """The code and the defaults of a function, which a module that is loaded anew may set (IPython's autoreload)."""
    return function.__code__, function.__defaults__, function.__kwdefaults__


def holds(guard: Guard) -> bool:
    """True if a guard's holder still has the value; the native dispatcher makes the same test in C++."""
    holder, name, value = guard
    if isinstance(holder, types.CellType):
        try:
            return holder.cell_contents is value
        except ValueError:  # deleted
            return False
    if isinstance(holder, types.FunctionType):
        return all(map(operator.is_, function_parts(holder), value))
    if isinstance(name, types.MemberDescriptorType):
        return getattr(holder, name.__name__, name) is value
    if name is not None:
        return (vars(holder) if isinstance(holder, type) else holder).get(name, guard) is value
    if isinstance(holder, np.ndarray):
        same = holder.shape == value.shape and holder.dtype == value.dtype
        return bool(same and holder.tobytes() == value.tobytes())
    if type(value) is int:
        return len(vars(holder) if isinstance(holder, type) else holder) == value
    items = [x for item in holder.items() for x in item] if isinstance(holder, dict) else list(holder)
    return len(items) == len(value) and all(old is ANY or now is old for now, old in zip(items, value))
