"""A call analysed into the signature that selects a program, and the programs built for signatures."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.number_lists import ListArray
from mlirml.core.tree import (
    TreeDef,
    exact,
    exact_leaf,
    flatten,
    is_held_twice,
    plain_fields,
    shared_container,
    store_leaves,
)
from mlirml.errors import ArgumentError, SourceLocation
from mlirml.frontend.current import current_trace
from mlirml.runtime import declare_fields, number_leaves
from mlirml.runtime.array import Array
from mlirml.runtime.binding import demoted_dtype
from mlirml.runtime.device_program import DeviceProgram
from mlirml.runtime.sized_device_program import SizedDeviceProgram

if TYPE_CHECKING:
    from mlirml.driver.compilation import Clock
    from mlirml.driver.state import Group
    from mlirml.frontend.aliasing import Aliasing
    from mlirml.frontend.captured import Captured
    from mlirml.frontend.spec import TensorSpec
    from mlirml.passes import Remark
    from mlirml.runtime.artifact import Artifact
    from mlirml.targets.target import Target

_MOST_NUMBERS = 2048
"""Longer lists are arrays, or refused: a program with more arguments takes seconds to compile."""

MOST_COMPARED = 64
"""The most signatures that a new one is compared with."""


@dataclass
class Build:
    """One compiled signature, with the program and the reason for compiling it."""

    number: int
    captured: Captured
    treedef: TreeDef
    specs: tuple[TensorSpec, ...]
    paths: list[str]
    statics: dict[str, Any]
    program: Any
    overlaps: Aliasing | None = None
    remarks: list[Remark] | None = None  # on loops; None where no pass has run
    remembered: set[Any] = field(default_factory=set)  # forms of calls that the native dispatcher knows
    values: dict[str, int] | None = None  # of the dimensions, of one that runs a program of dynamic sizes

    def without_objects(self) -> Build:
        """The program without what refers to the objects that it was compiled for, which it does not keep alive."""
        captured = replace(self.captured, guards=(), effects=())
        return replace(self, captured=captured, treedef=self.captured.out_tree, statics={})

    def for_call(self, call: Call, captured: Captured) -> Build:
        """The same program for another call, maybe with another object, for which it was captured once more."""
        given: dict[str, Any] = {"treedef": call.treedef, "specs": call.specs, "paths": call.paths}
        given |= {"statics": call.static_values(), "overlaps": call.overlaps}
        return replace(self, captured=captured, **given)

    def changed(self, function: Any) -> str | None:
        """A message naming the variable, attribute or item read by the function that is another object now, or None."""
        return changed(self.captured, function)


def drop_program(builds: deque[Build], old: Build) -> None:
    """Remove the builds with the program of an old one."""
    rest = [build for build in builds if build.program is not old.program]
    builds.clear()
    builds.extend(rest)


def changed(captured: Captured, function: Any) -> str | None:
    """A message for the first guard that no longer holds, or None."""
    from mlirml.frontend.captured import holds

    broken = next((guard for guard in captured.guards if not holds(guard)), None)
    if broken is None:
        return None
    holder, name, value = broken
    if name is None and isinstance(holder, dict):
        pairs = zip(value[::2], value[1::2])
        name = next((key for key, old in pairs if type(key) is str and not holds((holder, key, old))), None)
    if name is None and not isinstance(holder, (types.CellType, types.FunctionType)):
        kind = "array" if isinstance(holder, np.ndarray) else type(holder).__name__
        held = "elements" if kind == "array" else "objects"
        return (
            f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} that it reads holds other {held} than when it was compiled"
        )
    if isinstance(holder, types.FunctionType):
        return f"`{holder.__name__}` has other code or defaults than when it was compiled"
    name = getattr(name, "__name__", name) or name_of_cell(function, holder)
    return f"{f'`{name}`' if name else 'a closure variable'} is another object than when it was compiled"


@dataclass
class Call:
    """The arguments of one call, flattened and split into traced leaves and static values."""

    state: Group
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    statics: dict[int | str, Any]
    leaves: list[Any]
    treedef: TreeDef
    specs: tuple[TensorSpec, ...]
    paths: list[str]
    names: list[str]
    abstract: bool
    inputs: list[Any]  # of the program: bases instead of what overlaps
    overlaps: Aliasing | None = None
    constants: dict[str, Any] = field(default_factory=dict)  # the leaves that are static by themselves, by their paths
    values: dict[str, int] | None = None  # of the dynamic dimensions in its specs
    dynamic: Any = None  # the arguments without the static ones, long lists as arrays
    order: tuple[str, ...] = ()  # of the names in the call, where `kwargs` are sorted

    def given(self) -> dict[str, Any]:
        """The arguments by name, in the order of the call."""
        return {name: self.kwargs[name] for name in self.order} if self.order else self.kwargs

    def static_values(self) -> dict[str, Any]:
        """The static arguments by name, and the parts of others that are static by themselves."""
        return {p if isinstance(p, str) else self.names[p]: value for p, value in self.statics.items()} | self.constants

    def exact_statics(self) -> dict[str, Any]:
        """The values of `static_values` as hashable values that are equal where they mean the same."""
        found = {p if isinstance(p, str) else self.names[p]: exact(value) for p, value in self.statics.items()}
        return found | {path: exact_leaf(value) for path, value in self.constants.items()}

    def size_numbers(self) -> dict[str, int]:
        """The Python integers whose values tracing needs, by their paths."""
        return {path: value for path, value in self.constants.items() if type(value) is int}

    def with_sizes(self, sizes: Mapping[str, Any]) -> Call:
        """The call with dynamic sizes in the place of integers."""
        constants = {path: sizes.get(path, value) for path, value in self.constants.items()}
        values = dict(zip(self.treedef.constants(), constants.values(), strict=True))
        treedef = self.treedef.without_constants().with_constants(values)
        return replace(self, constants=constants, treedef=treedef)

    def input_paths(self) -> list[str]:
        """The names of the program's inputs, in messages: `params['w']`."""
        return self.paths if self.overlaps is None else self.overlaps.input_paths(self.paths)

    def key(self) -> Any:
        """The hashable key of the program for this call: equal keys run the same program."""
        return (
            self.treedef,
            self.treedef.orders(),
            self.specs,
            self.overlaps,
            tuple(sorted(self.exact_statics().items(), key=itemgetter(0))),
        )


def flat_form(args: tuple[Any, ...]) -> Any:
    """Hashable key of a call of a device program with arrays of the device alone; None for another call."""
    form = [(a.device, a.shape, a.dtype) if type(a) is Array else None for a in args]
    return None if None in form else (*form,)


def device_form(leaves: Sequence[Any], tree: TreeDef) -> Any:
    """Hashable key of the calls of a device program that need no further checks; None if this call needs them.

    Integer values are subject to range checks, and leaves other than arrays to conversion.
    """
    form: list[Any] = [tree, tree.orders()]
    for leaf in leaves:
        kind = type(leaf)
        if kind is Array:
            form.append((leaf.device, leaf.shape, leaf.dtype))
        elif kind is np.ndarray:
            form.append((leaf.shape, leaf.dtype))
        elif kind is float or kind is bool or isinstance(leaf, np.generic):
            form.append(kind)
        else:
            return None
    return tuple(form)


def needs_no_look(build: Build) -> bool:
    """True if the program depends neither on the values of the arguments nor on which of them are the same array."""
    captured = build.captured
    return not (captured.writebacks or captured.int_ranges or captured.replaced or build.overlaps or build.statics)


def without(args: tuple[Any, ...], kwargs: dict[str, Any], statics: dict[int | str, Any]) -> Any:
    """The arguments without the static ones."""
    return (
        tuple(a for i, a in enumerate(args) if i not in statics),
        {name: a for name, a in kwargs.items() if name not in statics},
    )


@dataclass(frozen=True)
class LeafNumbers:
    """The numbers that the native dispatcher gives the leaves of a call: of all but those of static arguments, in
    order, of the inputs among them, and of static leaves.
    """

    every: list[int]
    inputs: list[int]
    static: list[int]


def leaf_numbers(call: Call, state: Sequence[Any] = ()) -> LeafNumbers | None:
    """The numbers of the leaves of a call in which `state` holds the values of its state variables.

    None if the native dispatcher does not take the arguments apart as Python does.
    """
    if not all(map(_is_declared, call.treedef.classes())):
        return None
    if has_lists(call):  # their arrays are made at each call
        return None
    from mlirml.frontend.captured import STATE

    numbered = number_leaves(call.args, {**call.given(), STATE: [*state]} if state else call.given())
    if numbered is None:
        return None
    args, kwargs = numbered
    kwargs = {name: kwargs[name] for name in call.kwargs}
    if state:
        items = zip(call.kwargs[STATE], kwargs[STATE])
        kwargs[STATE] = [{key: flatten(numbers)[0]} for item, numbers in items for key in item]
    static, passed = flatten([args[i] if isinstance(i, int) else kwargs[i] for i in call.statics])
    if passed.classes():  # compared as a whole by Python: it may hold more than its fields
        return None
    every, structure = flatten(without(args, kwargs, call.statics))
    constants = call.treedef.constants()
    if len(every) != len(constants) + len(call.leaves):  # an object is one leaf to one of the two
        return None
    static += [every[i] for i in constants]
    static += flatten(structure.static_values())[0]
    return LeafNumbers(every, [number for i, number in enumerate(every) if i not in constants], static)


def _is_declared(class_: type) -> bool:
    names = plain_fields(class_)
    return names is not None and declare_fields(class_, names)


def program_input(
    leaf: Any, spec: TensorSpec, path: str, *, target: Target, name: str, location: SourceLocation | None
) -> Any:
    """The value that a program receives for a leaf: an array of the spec's dtype, or the Python scalar."""
    if isinstance(leaf, Array) and leaf.device.kind != target.device:
        raise ArgumentError(
            f"argument `{path}` lies on {leaf.device.id}, and {name} is compiled for {target.name}",
            location=location,
            help=f'pass `{path}.to("{target.device}")`, or `{path}.numpy()`',
        )
    if target.demotes and isinstance(leaf, Array) and (narrow := demoted_dtype(leaf.dtype)) != leaf.dtype:
        raise ArgumentError(
            f"argument `{path}` lies on {leaf.device.id} as {leaf.dtype}, and {name} computes with {narrow} there",
            location=location,
            help=f"put `{path}.astype(np.{narrow})` there instead",
        )
    return leaf_array(leaf, spec) if target.device == "cpu" else leaf


def leaf_array(leaf: Any, spec: TensorSpec) -> Any:
    if type(leaf) is Array:
        return leaf.host()
    return leaf if spec.weak or type(leaf) is np.ndarray else np.asarray(leaf)


def is_traced(tree: Any) -> bool:
    """True for the arguments of a call within a function that is being traced, to which the call belongs."""
    if current_trace() is None:
        return False
    from mlirml.frontend.arrays.array import Traced

    return any(isinstance(leaf, Traced) for leaf in flatten(tree)[0])


def has_lists(call: Call) -> bool:
    """True if lists of numbers are passed as arrays."""
    return any(type(leaf) is ListArray for leaf in call.leaves)


def has_short_lists(call: Call) -> bool:
    """True if lists are passed as arrays that may be passed number by number as well."""
    return has_lists(call) and sum(leaf.size for leaf in call.leaves if type(leaf) is ListArray) <= _MOST_NUMBERS


def result_buffers(out: Any, captured: Captured) -> list[Any]:
    leaves, tree = flatten(out)
    if captured.result_order is not None:
        raise ArgumentError("`out` is given for results that go into donated arguments", location=captured.entry)
    results = captured.outputs[: captured.out_tree.leaf_count()]
    fits = tree == captured.out_tree and all(
        isinstance(x, np.ndarray) and x.shape == s.shape and x.dtype == s.dtype for x, s in zip(leaves, results)
    )
    if not fits:
        given = tree.unflatten([Word(described(leaf)) for leaf in leaves])
        expected = captured.out_tree.unflatten([Word(str(spec)) for spec in results])
        raise ArgumentError(f"`out` is {given!r}, but the result is {expected!r}", location=captured.entry)
    return leaves + [None] * (len(captured.outputs) - len(leaves))


class Word(str):
    """A string that is shown without quotes."""

    __repr__ = str.__str__


def described(leaf: Any) -> str:
    from mlirml.ir.text.dtypes import describe

    return describe(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else f"a {type(leaf).__name__}"


def check_containers(call: Call, captured: Captured) -> None:
    """Refuse a list or dict that is passed twice to a function that stores into it: only one of both would change."""
    holder = None
    if captured.contents:
        changed = (one.holder(call.dynamic) for one in captured.contents)
        holder = next((one for one in changed if is_held_twice(call.dynamic, one)), None)
    if holder is None and captured.replaced:
        holder = shared_container(call.dynamic, captured.replaced)
    if holder is not None:
        raise ArgumentError(
            f"one {type(holder).__name__} is passed twice, and the function stores into it",
            location=captured.entry,
            help="pass a copy, or an array",
        )


def store_items(call: Call, captured: Captured, results: Sequence[np.ndarray]) -> None:
    """Put the new items of the containers among the arguments where the function put them."""
    for leaf in call.leaves:
        if type(leaf) is ListArray and captured.writebacks:
            leaf.restore()
    if captured.replaced:
        places = zip(captured.replaced, captured.item_positions())
        store_leaves(call.dynamic, {number: captured.outputs[at].restored(results[at]) for number, at in places})
    if captured.contents:
        new = [captured.outputs[at].restored(results[at]) for at in captured.content_positions()]
        for one in captured.contents:
            one.store(call.dynamic, call.leaves, new)


def name_of_cell(function: Any, cell: Any) -> str | None:
    """The name of the function's closure variable that a cell belongs to."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return next((n for n, c in zip(names, getattr(function, "__closure__", None) or ()) if c is cell), None)


def differences(call: Call, build: Build) -> list[str]:
    """Messages: one for each part of the signature in which a call differs from a build."""
    old = dict(zip(build.paths, build.specs))
    new = dict(zip(call.paths, call.specs))
    found = [f"`{path}` is {new[path]}, was {old[path]}" for path in new if old.get(path, new[path]) != new[path]]
    found += [f"`{path}` is new" for path in new if path not in old]
    found += [f"`{path}` is missing" for path in old if path not in new]
    statics, missing = call.static_values(), Word("not given")
    for name in dict.fromkeys((*statics, *build.statics)):
        value, was = statics.get(name, missing), build.statics.get(name, missing)
        alike = exact_leaf if name in call.constants else exact
        if alike(value) != alike(was):
            found.append(f"static argument `{name}` is {value!r}, was {was!r}")
    if build.overlaps != call.overlaps:
        found.append("other arguments share memory, or in another way")
    if build.treedef.without_constants() != call.treedef.without_constants() and old.keys() == new.keys():
        found.append("the arguments have another structure")
    elif not found and build.treedef.orders() != call.treedef.orders():
        found.append("the keys of a dict come in another order")
    return found


def reason_for(call: Call, builds: Iterable[Build]) -> str:
    """The reason why no signature fits a call: its differences from the most similar of the latest ones."""
    found = [differences(call, build) for build in [*builds][: -MOST_COMPARED - 1 : -1]]
    fewest: list[str] = min(found, key=len, default=["it is the first call"])
    return "; ".join(fewest)


def notes_on(build: Build, remarks: Sequence[Remark]) -> list[str]:
    """The lines of a report on what passes made of a signature, and on where it runs."""
    lines = []
    for title in ("loops", "algebra", "masks"):
        own = [(r.location, r.text) for r in remarks if r.topic == title]
        notes = [*(build.captured.unrolled if title == "loops" else ()), *own]
        lines += [f"{title} of signature {build.number}:"] * bool(notes)
        lines += [f"   {replace(place, function='') if place else '?'}: {text}" for place, text in notes]
    if isinstance(build.program, (DeviceProgram, SizedDeviceProgram)):
        lines.append(f"where signature {build.number} runs:")
        lines += [f"   {line}" for line in build.program.describe()]
    return lines


def memory_of(artifact: Artifact) -> str:
    """The peak memory of a call, beside that of its arguments."""
    if any(n < 0 for buffer in artifact.outputs for n in buffer.shape):
        return "memory of a call: depends on its sizes"
    results, workspace = sum(buffer.nbytes for buffer in artifact.outputs), artifact.workspace_bytes
    return f"memory of a call: {shown_bytes(results)} of results, {shown_bytes(workspace)} of workspace"


def shown_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.1f} {units[0]}" if units[0] != "B" else f"{count} B"


def report(
    number: int,
    captured: Captured,
    artifact: Artifact,
    entries: list[tuple[str, str]],
    reason: str,
    from_disk: bool,
    clock: Clock,
) -> str:
    """The lines of `explain()` on one signature."""
    from mlirml.driver.cache import key_of

    source = "loaded from the disk cache" if from_disk else "compiled"
    total = sum(clock.seconds.values())
    times = ", ".join(f"{name} {1e3 * t:.1f}" for name, t in clock.seconds.items())
    inputs = ", ".join(map(str, captured.inputs))
    outputs = ", ".join(map(str, captured.outputs))
    facts = ", ".join(
        f"{name} {value[:16]}" for name, value in entries if not name.startswith(("pipeline", "cpu.flags"))
    )
    tuned = sum(text.count("/kernel=") for name, text in entries if name == "pipeline.schedule")
    return (
        f"{number}. ({inputs}) -> ({outputs})\n"
        f"   because {reason}\n"
        f"   {source} in {1e3 * total:.1f} ms ({times})\n"
        + (f"   {clock.reused}\n" if clock.reused else "")
        + f"   {memory_of(artifact)}\n"
        + (f"   tuned schedules: {tuned}\n" if tuned else "")
        + f"   cache entry {key_of(entries)[:16]}: {facts}"
    )
