"""Capture of a function: it is traced, and what it reads, changes and returns becomes a program.

This is the one file that knows all parts of the front end: it gives the trace its handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Conditions
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, DTypeError, MlirmlError, SourceLocation
from mlirml.frontend.aliasing import NONE, Aliasing
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.constructs import Restart
from mlirml.frontend.arrays.list_parts import close_items
from mlirml.frontend.arrays.open_lists import Room
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.captured import STATE, Captured
from mlirml.frontend.caught_errors import caught_errors
from mlirml.frontend.current import CURRENT
from mlirml.frontend.frames import innermost_location
from mlirml.frontend.functions.other_functions import FUNCTIONS
from mlirml.frontend.namespace.numpy_namespace import Namespace, module_for, retarget
from mlirml.frontend.namespace.operator_methods import OperatorMethods
from mlirml.frontend.source.choose import can_turn
from mlirml.frontend.spec import TensorSpec
from mlirml.frontend.state.contents import NewContents, changed_contents, refused
from mlirml.frontend.state.effects import Effects
from mlirml.frontend.state.objects import flatten_result
from mlirml.frontend.state.recursion import recursion_errors
from mlirml.frontend.tracing.trace import Trace, at_function, definition, is_weak, value_of
from mlirml.ir.text.builder import Value

if TYPE_CHECKING:
    from mlirml.frontend.arrays.indexing import Index
    from mlirml.frontend.tracing.handlers import Handlers
    from mlirml.ops import OpDef


class _Parts:
    """The parts of the front end as handlers of a trace. Those that few functions need are imported when one does."""

    functions = FUNCTIONS
    namespace = staticmethod(Namespace)
    retarget = staticmethod(retarget)

    @staticmethod
    def by_formula(trace: Trace, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from mlirml.frontend.transforms.complex_derivatives import with_formula

        return with_formula(trace, record, tuple(args), kwargs)

    @staticmethod
    def of_numbers(trace: Trace, function: Callable[..., Any]) -> Any:
        from mlirml.frontend.loops.functions import replaced

        return replaced(trace, function)

    @staticmethod
    def loop_hooks(trace: Trace) -> Any:
        from mlirml.frontend.loops.hooks import Hooks

        return Hooks(trace)

    @staticmethod
    def argument_lists(trace: Trace) -> Any:
        from mlirml.frontend.loops.argument_lists import ArgumentLists

        return ArgumentLists(trace)

    @staticmethod
    def window_index(trace: Trace, shape: tuple[int, ...], index: Any) -> Index | None:
        from mlirml.frontend.loops.dynamic_slices.windows import window_index

        return window_index(trace, shape, index)

    @staticmethod
    def dynamic_slice(array: Traced, index: Any) -> Any:
        from mlirml.frontend.loops.dynamic_slices.indices import part_of_part
        from mlirml.frontend.loops.dynamic_slices.slices import whole

        return part_of_part(whole(array), index)

    @staticmethod
    def of_data(name: str) -> Callable[..., Any]:
        from mlirml.frontend.loops.dynamic_slices.data_functions import NAMED

        return NAMED[name]

    @staticmethod
    def compacted_elements(masked: Any) -> Any:
        from mlirml.frontend.loops.dynamic_slices.compaction import compacted_elements

        return compacted_elements(masked)

    @staticmethod
    def filled_of_size(trace: Trace, sizes: Sequence[Any], fill_value: Any, dtype: Any) -> Any:
        from mlirml.frontend.loops.dynamic_slices.creation import filled_of_size

        return filled_of_size(trace, sizes, fill_value, dtype)

    @staticmethod
    def grid_of_size(trace: Trace, function: Callable[..., Any], args: Sequence[Any], **options: Any) -> Any:
        from mlirml.frontend.loops.dynamic_slices.creation import grid_of_size

        return grid_of_size(trace, function, args, **options)

    @staticmethod
    def sized_parts(array: Any) -> tuple[list[Traced], tuple[int, ...]]:
        from mlirml.frontend.loops.dynamic_slices.compaction import sized_parts

        return sized_parts(array)

    @staticmethod
    def beginning(buffer: Traced, count: Traced) -> Any:
        from mlirml.frontend.loops.dynamic_slices.compaction import beginning

        return beginning(buffer, count)

    @staticmethod
    def gathered(array: Traced, index: Any) -> Any:
        from mlirml.frontend.loops.dynamic_slices.gathering import gathered

        return gathered(array, index)

    @staticmethod
    def scattered(array: Traced, index: Any, value: Any) -> None:
        from mlirml.frontend.loops.dynamic_slices.gathering import scattered

        scattered(array, index, value)


HANDLERS: Handlers = _Parts()


_MOST_ATTEMPTS = 500
"""Each attempt to trace a function anew learns something of its lists and variables."""


def capture(
    function: Callable[..., Any],
    in_tree: TreeDef,
    specs: Sequence[TensorSpec],
    name: str,
    statics: dict[int | str, Any],
    overlaps: Aliasing | None = None,
    loops: bool = False,
    variables: Sequence[Any] = (),
    python: Any = (),
    paths: Sequence[str] = (),
    values: Mapping[str, int] | None = None,
) -> Captured:
    """Trace `function(*args, **kwargs)`; `in_tree` is the structure of (args, kwargs) without the static ones.

    `paths` are the names of the argument leaves, `values` the dynamic dimensions in the call that is traced. With
    `loops`, Python's loops and branches are captured as those of the program. `variables` are passed in the argument
    named `STATE`.

    Where a list cannot be compiled otherwise, the function is traced once more, with room in the list for any number of
    items; and so is one that reads a variable after a loop that alone assigns it, with a check that the loop iterates,
    and one that stores at an index into what a mask picks, with these elements side by side.
    """
    given = function, in_tree, specs, name, statics, overlaps, loops, variables, python, paths, values
    learned = _Learned()
    refused: Exception | None = None
    for _ in range(_MOST_ATTEMPTS):
        try:
            return _captured(learned, given)
        except Restart:  # with the rooms as they are now
            continue
        except (CaptureError, IndexError, ValueError, TypeError) as error:
            if not isinstance(error, (CaptureError, IndexError, ValueError)):
                if refused is None or not learned.assigned or "NoneType" not in str(error):
                    raise
                raise refused from None  # a variable that is None where it is not assigned
            # One that does not arise where arguments are static comes before those of more room or checks.
            if not isinstance(refused, CaptureError) or getattr(error, "final", False) or getattr(error, "sizes", ()):
                refused = error
            if not learned.adds(error):
                if refused is error:
                    raise
                if learned.rooms and _is_later(refused, error):
                    raise
                raise refused from None
    with at_function(function):
        raise CaptureError(
            f"each of {_MOST_ATTEMPTS} attempts to trace the function finds other types of the items of its lists",
            help="append numbers of one type, or keep them in arrays",
        )


def _is_later(refused: Exception, error: Exception) -> bool:
    """True for the error that is left where lists have room for any number of items, and is the one to mend.

    The one without room is a note of it.
    """
    if not isinstance(refused, CaptureError) or not isinstance(error, CaptureError):
        return False
    if refused.sizes or not refused.lists or error.message == refused.message:
        return False
    where = "" if refused.location is None else f"line {refused.location.line}: "
    error.final = True
    error.notes += (f"without room for any number of items in lists: {where}{refused.message}",)
    return True


@dataclass
class _Learned:
    """Findings of the attempts to trace a function, for the next one.

    These are the lists that need room, by where they are created; the variables that loops must assign, or that are
    None where nothing is assigned; and the locations of elements under masks that are stored into.
    """

    rooms: dict[str, Room] = field(default_factory=dict)
    assigned: set[Any] = field(default_factory=set)
    masks: set[Any] = field(default_factory=set)

    def adds(self, error: Exception) -> bool:
        """Add what an error asks for; False if that is nothing new."""
        sites: frozenset[str] = getattr(error, "lists", frozenset()) - self.rooms.keys()
        names = {*[name for name in getattr(error, "unassigned", ()) if name not in self.assigned][:1]}
        stored: frozenset[Any] = getattr(error, "masks", frozenset()) - self.masks
        self.rooms |= {site: Room(site) for site in sorted(sites)}
        self.assigned |= names
        self.masks |= stored
        return bool(sites or names or stored)


def _captured(learned: _Learned, given: tuple[Any, ...]) -> Captured:
    """`capture` once."""
    function, in_tree, specs, name, statics, overlaps, loops, variables, python, paths, values = given
    state = Trace(name, HANDLERS)
    state.rooms, state.assigned, state.masks = learned.rooms, learned.assigned, learned.masks
    state.conditions = None if values is None else Conditions(values)
    cells, inputs = _inputs(state, specs, overlaps or NONE)
    state.has_source = can_turn(function)
    dynamic, kwargs = in_tree.unflatten(inputs)
    lists = HANDLERS.argument_lists(state) if loops else None
    if lists is not None:
        dynamic, kwargs = lists.of(dynamic), lists.of(kwargs)
    args, named = _with_statics(dynamic, kwargs, statics)
    args = [module_for(x, state) for x in args]
    named = {key: module_for(x, state) for key, x in named.items()}
    state.methods = OperatorMethods()
    roots = function, *statics.values(), *(x for x in in_tree.with_leaves(inputs) if not isinstance(x, Traced))
    for root in roots:
        state.reached.add(root)
    items = kwargs.get(STATE, ())
    state.sizes = _sizes(inputs, specs, paths, {id(x) for x in flatten(items)[0]})
    effects = Effects(state, variables, items, python)
    effects.again = partial(capture, *given)
    state.changes = effects.changes
    token = CURRENT.set(state)
    try:
        with state.methods, effects, recursion_errors(state.sizes), _uncovered(state), caught_errors():
            for root in roots:
                state.methods.add(root)
            result = state.call_loops(function, args, named) if loops else retarget(function, state)(*args, **named)
        close_items(state)
        for item in state.copied_items:
            item.check()
        state.warn_of_reuse()
        with at_function(function):
            leaves, tree = flatten_result(result, state.reached.has_seen, state)
            arguments = (dynamic, kwargs) if lists is None else lists.plain((dynamic, kwargs))
            arguments, contents = changed_contents(in_tree.unflatten(inputs), arguments, inputs)
            new = _new_items(in_tree, inputs, arguments)
            ends = _ends(state, leaves, tree, [*contents.outputs, *new.values()], cells)
    except CaptureError as error:
        error.roots = frozenset()
        raise
    finally:
        CURRENT.reset(token)
        state.done = True
        state.location_tracker.release()
    with at_function(function):
        state.builder.sizes.check()
    inputs_in_memory = (overlaps or NONE).input_specs(specs)
    return _program(state, effects, ends, inputs_in_memory, (contents, new), definition(function), loops=loops)


def _program(
    state: Trace,
    effects: Effects,
    ends: _Ends,
    inputs: tuple[TensorSpec, ...],
    items: tuple[NewContents, Mapping[int, Any]],
    entry: SourceLocation | None,
    *,
    loops: bool,
) -> Captured:
    """The program that a trace has built; `items` are new contents of containers, and new items by their leaf."""
    contents, new = items
    builder, writebacks = state.builder, ends.writebacks()
    unrolled = state.unrolled if loops else state.location_tracker.unrolled()
    return Captured(
        state.name,
        builder.text(ends.in_memory, entry=entry, writebacks=writebacks, donated=state.donated),
        builder.text(ends.in_memory, locations=False, writebacks=writebacks, donated=state.donated),
        inputs=inputs,
        outputs=_output_specs(ends.outputs, ends.tree.leaf_count(), [*contents.outputs, *new.values()]),
        out_tree=ends.tree,
        constants=tuple(builder.constants),
        writebacks=writebacks,
        int_ranges=tuple(builder.int_ranges),
        guards=effects.found_guards(),
        replaced=tuple(new),
        contents=tuple(contents.found),
        entry=entry,
        narrowed_at=tuple(builder.narrowed_at),
        stored_at=ends.stored_at,
        checks=tuple(builder.checks),
        effects=effects.redone,
        unset=tuple(effects.unset),
        host_functions=tuple(builder.host_functions),
        unrolled=tuple(unrolled.items()),
        sizes=tuple(builder.sizes.entries),
        conditions=() if state.conditions is None else tuple(state.conditions.found),
    )


@dataclass
class _Ends:
    """The ends of a program: leaves of a result, new items of arguments, and the arguments that it stores into.

    `in_memory` are the values of `outputs` as arrays lie in memory, `written` the numbers of those arguments, and
    `stored_at` the locations of the last stores into them.
    """

    tree: TreeDef
    outputs: list[Value]
    in_memory: list[Value]
    written: list[int]
    stored_at: tuple[SourceLocation | None, ...]

    def writebacks(self) -> tuple[tuple[int, int], ...]:
        """For each argument that is stored into, the number of its output, and its own."""
        first = len(self.outputs) - len(self.written)
        return tuple((first + j, i) for j, i in enumerate(self.written))


def _ends(state: Trace, leaves: Sequence[Any], tree: TreeDef, new: Sequence[Any], cells: Sequence[Cell]) -> _Ends:
    named = [*zip(leaves, tree.paths("result")), *((x, "an item of an argument") for x in new)]
    written = [i for i, cell in enumerate(cells) if cell.written]
    outputs = [value_of(state, leaf, path) for leaf, path in named]
    outputs += [Traced(state, cells[i])._read() for i in written]
    in_memory = [state.builder.at_boundary(v) for v in outputs]
    if state.drops_unused:
        state.builder.without_unused(in_memory)
    return _Ends(tree, outputs, in_memory, written, tuple(cells[i].stored_at for i in written))


def _inputs(state: Trace, specs: Sequence[TensorSpec], aliasing: Aliasing) -> tuple[list[Cell], list[Traced]]:
    """The allocations of the arguments, and the arrays and numbers that are views of them."""
    cells = [Cell(state.builder.argument(s.shape, s.dtype, s.weak), c_order=False) for s in aliasing.input_specs(specs)]
    for cell, strides in zip(cells, aliasing.layouts or ()):
        cell.c_order, cell.strides = True, strides
    views = aliasing.views_of_base(len(specs))
    state.inputs = [Traced(state, cells[n], view, scalar=s.weak or s.scalar) for (n, view), s in zip(views, specs)]
    return cells, state.inputs


def _sizes(
    inputs: Sequence[Traced], specs: Sequence[TensorSpec], paths: Sequence[str], held: set[int]
) -> dict[str, frozenset[str]]:
    """The Python integers among the arguments by the names of their values, without those that are state."""
    return {
        x._cell.value.name: frozenset([path])
        for x, spec, path in zip(inputs, specs, paths)
        if spec.weak and spec.dtype.kind in "bi" and isinstance(x._cell.value, Value) and id(x) not in held
    }


def _with_statics(
    dynamic: Sequence[Any], kwargs: dict[str, Any], statics: dict[int | str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name with the static ones among them, without the state."""
    args = list(dynamic)
    for position in sorted(key for key in statics if isinstance(key, int)):
        args.insert(position, statics[position])
    named = {key: value for key, value in statics.items() if isinstance(key, str)}
    return args, named | {key: value for key, value in kwargs.items() if key != STATE}


def _output_specs(outputs: Sequence[Value], results: int, items: Sequence[Any]) -> tuple[TensorSpec, ...]:
    """The types of the outputs: so many results, new items of arguments, and arguments that were stored into."""
    types = [TensorSpec(v.shape, v.dtype) for v in outputs]
    for number, item in enumerate(items, results):
        types[number] = TensorSpec(outputs[number].shape, outputs[number].dtype, *_python_kind(item))
    return tuple(types)


def _new_items(in_tree: TreeDef, inputs: Sequence[Traced], arguments: Any) -> dict[int, Any]:
    """The values that the function put into the lists, dicts and dataclasses among its arguments, by leaf index."""
    after, tree = flatten(arguments)
    before = in_tree.with_leaves(inputs)
    if tree != in_tree.without_constants():
        raise refused()
    return {i: new for i, (old, new) in enumerate(zip(before, after)) if new is not old}


def _python_kind(leaf: Any) -> tuple[bool, bool]:
    """Two flags of a leaf: it is a Python number; it is a NumPy scalar."""
    weak = is_weak(leaf)
    return weak, not weak and (isinstance(leaf, np.generic) or (isinstance(leaf, Traced) and leaf._scalar))


@contextmanager
def _uncovered(state: Trace) -> Iterator[None]:
    """Context manager: re-raise our error where Python's or a library's is raised instead of it.

    So does NumPy for a store into a real array, and C for a number that has no value yet, as `struct.pack("f", x)`.
    """
    try:
        yield
    except (MlirmlError, RecursionError):
        raise
    except Exception as error:
        cause, location = error.__cause__, innermost_location(error.__traceback__)
        if isinstance(cause, CaptureError) and str(error).startswith("setting an array element with a sequence"):
            raise cause.with_traceback(error.__traceback__) from None
        if state.refused is not None and state.refused.location == location:
            raise state.refused.with_traceback(error.__traceback__) from None
        if isinstance(error, TypeError) and " Traced " in str(error):
            raise DTypeError(
                f"{error}: its value is known only at run time",
                location=location,
                help="write it with numbers of Python's and NumPy's, or call it outside and pass its result",
            ) from None
        raise
