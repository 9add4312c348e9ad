"""The dynamic dimensions of a compiled function's arguments: patterns of sizes, and the values of a call for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import (
    LEAST,
    Atom,
    Condition,
    Dim,
    Size,
    StaticSizeError,
    is_dynamic_shape,
    value_of_size,
)
from mlirml.errors import ArgumentError, LoweringError, ShapeError, SourceLocation
from mlirml.ir.marked_sizes import LEAST_MARK

if TYPE_CHECKING:
    from mlirml.driver.calls import Build, Call
    from mlirml.frontend.captured import Captured
    from mlirml.targets.target import Target

AUTO, OFF = "auto", "off"
_SIZES = 3
"""The number of sizes of a dimension after which it becomes dynamic."""
INSTANCES = 4096
"""Combinations of sizes for which programs are kept ready; the code is the same for all."""
_WINDOW = re.compile(r"linalg\.pooling|linalg\.depthwise|-> \([^()]*d\d+[^,()]* \+ [^,()]*d\d+")
_ELEMENTS = re.compile(r"tensor\.insert .*(?s:.)*scf\.yield")
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")
_MOST_OWN = 16
"""The sizes that come often and get programs of their own, of one function."""
_WORTH = 1_000_000_000
"""The estimated nanoseconds of calls of one size after which it gets a program of its own: what it saves in them is
about the time of its compilation."""
_CALL = 1000
"""The nanoseconds of a call without any work."""
_PER_NS = 32
"""The flops of a product of matrices in a nanosecond, the unit of the estimated work."""
_MOST = 8
"""The programs of different conditions, and those for sizes that no condition separates, up to which "auto" goes."""


@dataclass(frozen=True)
class Fit:
    """A call with dynamic sizes in its signature, and the values of their dimensions in this call."""

    call: Call
    values: dict[str, int]


class Dimensions:
    """The option `dynamic` of `compile`: no dimensions, some by the names of arguments, or those that change."""

    def __init__(self, given: Any, name: str) -> None:
        self._name, self._enabled = name, True
        self._undo: Callable[[], None] | None = None  # takes back what this call has made static
        self.on_device = False  # whether programs run on a device
        self._own = 0  # the sizes that have programs of their own because they come often
        self.notes: dict[str, str] = {}  # the dimensions that stay static in spite of the option, and why
        self._families: dict[Any, _Family] = {}
        self._conditions: dict[Any, list[tuple[Condition, ...]]] = {}  # of the programs for calls of one key
        self._pinned: dict[Any, set[tuple[Any, ...]]] = {}  # the values of calls of one key that have static programs
        self.given = given
        chosen = config.dynamic if given is None else given
        self.is_automatic = isinstance(chosen, str) and chosen == AUTO
        if isinstance(chosen, str) and chosen in (AUTO, OFF):
            self._shapes: dict[str, tuple[Any, ...]] = {}
        elif isinstance(given, Mapping):
            self._dims = _dims(given)
            self._shapes = {path: tuple(map(self._pattern, shape)) for path, shape in given.items()}
        else:
            raise ArgumentError(
                f"compile: dynamic={given!r} is not known",
                help='write dynamic={"x": ("n", None)} with a name for a dynamic dimension of `x`, "auto" or "off"',
            )

    def __bool__(self) -> bool:
        return self._enabled and (self.is_automatic or bool(self._shapes))

    def disable(self, why: str) -> None:
        """Make all dimensions static, for a reason that `explain` shows where the option was given."""
        self._enabled = False
        if self.given is not None:
            self.notes["every dimension"] = f"every dimension stays static: {why}"

    def _pattern(self, entry: Any) -> Any:
        """The size of an entry; None for a static one."""
        if isinstance(entry, str):
            return self._dims[entry].size
        if isinstance(entry, Dim):
            return entry.size
        if entry is None or type(entry) in (int, Size):
            return entry
        raise ArgumentError(
            f"compile: {entry!r} is no dimension",
            help="a dimension is a name, an `ml.Dim`, a size derived from some, or None",
        )

    def fit(self, call: Call, location: SourceLocation | None) -> Fit | None:
        """The call in the form of the program for all sizes; None if it has a static one.

        Raises `ShapeError` for sizes that disagree or are out of their bounds, and `ArgumentError` for an option that
        does not fit the arguments.
        """
        if call.overlaps is not None or not (call.specs or call.constants):
            return None
        fit = self._family(call).fit(call) if self.is_automatic else self._named(call, location)
        if fit is None or (*fit.values.items(),) in self._pinned.get(fit.call.key(), ()):
            return None
        return fit

    def general(
        self, call: Call, location: SourceLocation | None, build: Callable[[Call], Build]
    ) -> tuple[Build, dict[str, int]] | None:
        """The build of dynamic sizes for a call, and the values of its dimensions; None if it has a static one.

        `build` compiles a call. Raises its error where the dimensions are named, and those of `fit`.
        """
        self._undo = None
        while (fit := self.fit(call, location)) is not None:
            if self.is_exhausted(fit):
                continue
            try:
                return build(fit.call), fit.values
            except Exception as error:  # of NumPy too, which was given a dynamic size
                if not self.refused(call, fit, error):
                    if isinstance(error, LoweringError) and fit.values:
                        error.notes = (*error.notes, f"dynamic here: {_shown(fit.values)}")
                    raise
        return None

    def static(self, call: Call, build: Callable[[Call], Build]) -> Build:
        """The build of static sizes for a call that has no other one.

        Where it fails as well as that of dynamic sizes did, the error is one of the call: no dimension becomes static.
        """
        undo, self._undo = self._undo, None
        try:
            return build(call)
        except Exception:
            if undo is not None:
                undo()
            raise

    def instance(self, build: Build, values: dict[str, int]) -> Build:
        """The build for these values of the dimensions of a dynamic one.

        With "auto" the dispatcher runs it as long as a program of its own does not pay for these sizes.
        """
        found = instance(build, values)
        if self.is_automatic and build.captured.is_dynamic:
            nanoseconds = build.program.work(values) // _PER_NS + _CALL
            found.program.remaining = _WORTH // nanoseconds
        return found

    def is_often(self, build: Build) -> bool:
        """True if the sizes of an instance have come so often that they get a program of their own now."""
        if build.values is None or getattr(build.program, "remaining", None) != 0:
            return False
        if self._own == _MOST_OWN:
            build.program.remaining = None
            return False
        self._own += 1
        return True

    def accepted(self, captured: Captured) -> Captured:
        """The program; of dynamic sizes that nobody has asked for, only one that is about as fast as static ones.

        Raises `LoweringError` for another one.
        """
        if self.is_automatic and captured.is_dynamic:
            known = _SLOW | (_SLOW_ON_DEVICES if self.on_device else {})
            slow = next((what for what, is_found in known.items() if is_found(captured.text)), None)
            if slow is not None:
                raise LoweringError(f"{slow} have faster programs of one size")
        return captured

    def known(self, call: Call, builds: Mapping[Any, Build]) -> Build | None:
        """The build of dynamic sizes that a call runs, if there is one."""
        fit = self.fit(call, None) if self else None
        return None if fit is None else builds.get(self.key(fit.call))

    def key(self, call: Call) -> Any:
        """The key of the program for a call: of those for other sizes of its dimensions, the conditions do not hold."""
        key = call.key()
        if call.values is None:
            return key
        known = self._conditions.setdefault(key, [])
        return key, next((i for i, each in enumerate(known) if _hold(each, call.values)), len(known))

    def note(self, key: Any, call: Call, conditions: tuple[Condition, ...]) -> None:
        """Record the conditions of the program that was made for this key of a call."""
        if call.values is not None:
            first, number = key
            self._conditions[first][number : number + 1] = [conditions]

    def _named(self, call: Call, location: SourceLocation | None) -> Fit | None:
        """The call in the form of the program for all sizes of the named dimensions."""
        shapes = [self._shapes.get(path) for path in call.paths]
        unknown = [path for path in self._shapes if path not in call.paths]
        if unknown:
            known = ", ".join(f"`{path}`" for path in call.paths)
            raise ArgumentError(
                f"dynamic: `{self._name}` has no array argument {unknown[0]!r} in this call",
                location=location,
                help=f"it has {known}; parts of containers are named as in `params['w']`",
            )
        solved = _Solution(self._dims, location)
        for path, spec, shape in zip(call.paths, call.specs, shapes):
            if shape is not None:
                solved.add(path, spec.shape, shape)
        return _fit(call, shapes, solved.values())

    def _family(self, call: Call) -> _Family:
        numbers = call.size_numbers()
        statics = {name: value for name, value in call.exact_statics().items() if name not in numbers}
        key = (
            call.with_sizes(dict.fromkeys(numbers)).treedef,
            tuple((spec.dtype, len(spec.shape), spec.weak, spec.scalar) for spec in call.specs),
            tuple(sorted(statics.items(), key=lambda pair: pair[0])),
        )
        return self._families.setdefault(key, _Family(self))

    def refused(self, call: Call, fit: Fit, error: Exception) -> bool:
        """True if the option lets the call use another program than the one that failed with this error.

        Sizes that are equal by chance have a static program. Otherwise the dimension that the error names, or else
        every one, is static from then on.
        """
        names = error.dims if isinstance(error, StaticSizeError) else ()
        if isinstance(error, StaticSizeError) and error.is_pinned:
            known = self._pinned.setdefault(fit.call.key(), set())
            if not self.is_automatic or len(known) < _MOST:
                if len(known) < INSTANCES:
                    known.add((*fit.values.items(),))
                self.notes.setdefault(
                    f"pinned {names}", f"{_shown(fit.values)} has a static program: {_message(error)}"
                )
                return True
        if not self.is_automatic:
            return False
        family = self._family(call)
        self._undo = self._undo or family.restoring()
        family.make_static(names, error)
        return True

    def is_exhausted(self, fit: Fit) -> bool:
        """True if the sizes of a call have found too many different programs by now; they are static from then on."""
        known = self._conditions.get(fit.call.key(), ())
        if not self.is_automatic or len(known) < _MOST or any(_hold(each, fit.values) for each in known):
            return False
        error = ShapeError(f"{len(known)} programs were made for different conditions on its size")
        self._family(fit.call).make_static((), error)
        return True


def _has_sized_windows(text: str) -> bool:
    """True if windows slide along a dynamic dimension, rather than over each image of a batch."""
    for line in filter(_WINDOW.search, text.splitlines()):
        shapes = [[int(n) for n in shape.split("x")[:-1]] for shape in _SHAPE.findall(line)]
        sizes = [n for shape in shapes for n in shape if n >= LEAST_MARK]
        batches = [shape[0] for shape in shapes if shape[0] >= LEAST_MARK]
        if len(sizes) > len(batches) or len(set(sizes)) > 1:
            return True
    return False


_SLOW: dict[str, Callable[[str], Any]] = {
    "windows along it": _has_sized_windows,
    "loops over elements": _ELEMENTS.search,
}
"""The operations of which programs of one size are several times as fast."""
_SLOW_ON_DEVICES: dict[str, Callable[[str], Any]] = {
    "sorts": re.compile(r"mlirml\.(arg)?sort").search,
    "Fourier transforms": re.compile(r"mlirml\.r?fft").search,
    "running sums": re.compile(r"mlirml\.scan").search,
    "stores at computed indices": re.compile(r"mlirml\.scatter").search,
    "products of half floats": re.compile(r"linalg\.\w*(?:matmul|matvec|contract).*x[b]?f16>").search,
}
"""On devices also those that the host computes with dynamic sizes, one thread does, or no tensor cores."""


def _shown(values: Mapping[str, int]) -> str:
    """The dimensions with their values, for a message."""
    return ", ".join(f"`{name}` = {value}" for name, value in values.items())


def _hold(conditions: Sequence[Condition], values: Mapping[str, int]) -> bool:
    """True if all conditions hold for these values of dimensions."""
    return all(condition.holds(values) for condition in conditions)


def _message(error: Exception) -> str:
    """The message of an error with its line."""
    location = getattr(error, "location", None)
    where = "" if location is None else f" ({replace(location, function='')})"
    return f"{getattr(error, 'message', error)}{where}"


def _dims(given: Mapping[str, Any]) -> dict[str, Dim]:
    """The dimensions by name; a bare name has no bounds unless it has them elsewhere."""
    found: dict[str, Dim] = {}
    named: set[str] = set()
    for path, shape in given.items():
        if not isinstance(shape, (tuple, list)):
            raise ArgumentError(
                f"compile: dynamic[{path!r}] is {shape!r}, not a tuple with an entry for each dimension"
            )
        for entry in shape:
            if isinstance(entry, str):
                named.add(entry)
            elif isinstance(entry, Dim):
                if found.setdefault(entry.name, entry) != entry:
                    raise ArgumentError(f"compile: dimension `{entry.name}` is {found[entry.name]!r} and {entry!r}")
            elif type(entry) is Size:
                named.update(entry.dims())
    return found | {name: Dim(name) for name in named if name not in found}


class _Solution:
    """The values of dimensions, from the sizes of arguments."""

    def __init__(self, dims: Mapping[str, Dim], location: SourceLocation | None) -> None:
        self._dims, self._location = dims, location
        self._found: dict[str, tuple[int, str]] = {}
        self._derived: list[tuple[Size, int, str]] = []

    def add(self, path: str, sizes: tuple[int, ...], shape: tuple[Any, ...]) -> None:
        """Take the sizes of an argument whose shape has this pattern."""
        if len(sizes) != len(shape):
            raise ShapeError(
                f"dynamic: `{path}` has {len(sizes)} dimension(s) of sizes {list(sizes)}, and {len(shape)} entries",
                location=self._location,
            )
        for axis, (size, pattern) in enumerate(zip(sizes, shape)):
            where = f"`{path}` (axis {axis})"
            if type(pattern) is int and pattern != size:
                raise ShapeError(f"{where} has size {size}, and {pattern} is expected", location=self._location)
            if type(pattern) is Size:
                name = _plain_name(pattern)
                if name is None:
                    self._derived.append((pattern, size, where))
                else:
                    self._set(name, size, where)

    def _set(self, name: str, size: int, where: str) -> None:
        known, first = self._found.setdefault(name, (size, where))
        if known != size:
            raise ShapeError(f"dimension `{name}` is {known} in {first} and {size} in {where}", location=self._location)

    def values(self) -> dict[str, int]:
        """The value of each dimension."""
        for pattern, size, where in self._derived:
            unknown = [name for name in pattern.dims() if name not in self._found]
            if len(unknown) == 1:
                self._solve(pattern, unknown[0], size, where)
        values = {name: size for name, (size, _) in self._found.items()}
        for name, (size, where) in self._found.items():
            refusal = self._dims[name].refusal(size) if name in self._dims else None
            if refusal is not None:
                raise ShapeError(f"dimension `{name}` {refusal}: the size of {where}", location=self._location)
        for pattern, size, where in self._derived:
            missing = [name for name in pattern.dims() if name not in values]
            if missing:
                message = f"dimension `{missing[0]}` is not known from the size {size} = {pattern} of {where}"
                raise ShapeError(
                    message, location=self._location, help=f"name it alone for some argument: `{missing[0]}`"
                )
            if (expected := pattern.value(values)) != size:
                shown = ", ".join(f"{name} = {values[name]}" for name in pattern.dims())
                message = f"{where} has size {size}, and {pattern} is {expected} with {shown}"
                raise ShapeError(message, location=self._location)
        return values

    def _solve(self, pattern: Size, name: str, size: int, where: str) -> None:
        """Compute a dimension from a derived size that is linear in it."""
        known = {other: value for other, (value, _) in self._found.items()}
        at_zero, at_many = (pattern.at({**known, name: number}) for number in (0, _MANY))
        slope, rest = divmod(value_of_size(at_many, {}) - value_of_size(at_zero, {}), _MANY)
        if rest or slope <= 0 or (size - value_of_size(at_zero, {})) % slope:
            raise ShapeError(f"{where} has size {size}, which is no {pattern}", location=self._location)
        self._set(name, (size - value_of_size(at_zero, {})) // slope, where)


_MANY = 1 << 20


def _plain_name(size: Size) -> str | None:
    """The name of the dimension that a size is; None for a derived one."""
    ((atoms, factor), *others) = size.terms.items()
    if others or len(atoms) != 1 or atoms[0].quotient is not None or factor != atoms[0].multiple_of:
        return None
    return atoms[0].name


def _fit(call: Call, shapes: Sequence[Any], values: dict[str, int]) -> Fit | None:
    """The call with these patterns as shapes; dimensions of fewer than `LEAST` elements are static."""
    small = {name: value for name, value in values.items() if value < LEAST}
    large = {name: value for name, value in values.items() if value >= LEAST}
    if not large:
        return None
    specs = []
    for spec, shape in zip(call.specs, shapes):
        if shape is not None:
            parts = (old if n is None else n if type(n) is int else n.at(small) for old, n in zip(spec.shape, shape))
            spec = replace(spec, shape=tuple(parts))
        specs.append(spec)
    given = _numbers(shapes[len(specs) :], call.size_numbers(), small)
    if not any(is_dynamic_shape(spec.shape) for spec in specs) and not is_dynamic_shape(tuple(given.values())):
        return None
    return Fit(replace(call.with_sizes(given), specs=tuple(specs), values=large), large)


def _numbers(patterns: Sequence[Any], numbers: dict[str, int], small: dict[str, int]) -> dict[str, Any]:
    """The integers that are sizes as those of a pattern, which is the only one of `patterns`, if it has any."""
    parts = zip(numbers.items(), patterns[0]) if patterns else ()
    return {path: old if n is None else n if type(n) is int else n.at(small) for (path, old), n in parts}


Position = tuple[int, int]
"""The index of an argument leaf, and a dimension of it."""


@dataclass
class _Family:
    """Calls with arguments of equal structure, dtypes and ranks.

    The shapes of a call are those of its arrays, and, last, the integers among its arguments that are sizes.
    """

    owner: Dimensions
    history: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    seen: set[tuple[tuple[int, ...], ...]] = field(default_factory=set)
    sizes: dict[Position, set[int]] = field(default_factory=dict)
    static: set[Position] = field(default_factory=set)
    patterns: list[tuple[Any, ...]] = field(default_factory=list)
    is_static: bool = False
    names: dict[str, Position] = field(default_factory=dict)

    def fit(self, call: Call) -> Fit | None:
        """The call in the form of a program for all sizes, once a dimension has had several."""
        if self.is_static:
            return None
        shapes = (*(spec.shape for spec in call.specs), tuple(call.size_numbers().values()))
        if shapes not in self.seen and len(self.seen) < INSTANCES:
            self.seen.add(shapes)
            self.history.append(shapes)
            for leaf, shape in enumerate(shapes):
                for axis, size in enumerate(shape):
                    self.sizes.setdefault((leaf, axis), set()).add(size)
        for pattern in self.patterns:
            if (values := _matched(pattern, shapes)) is not None and not self._is_outgrown(pattern):
                return _fit(call, pattern, values)
        if len(self.history) < _SIZES:
            return None
        found = self._pattern(call, shapes)
        if found is None:
            return None
        self.patterns.insert(0, found)
        values = _matched(found, shapes)
        return None if values is None else _fit(call, found, values)

    def _is_outgrown(self, pattern: tuple[Any, ...]) -> bool:
        """True if a dimension that is static in a pattern has had several sizes by now."""
        entries = ((leaf, axis) for leaf, p in enumerate(pattern) for axis, entry in enumerate(p) if entry is None)
        return any(len(self.sizes[position]) >= _SIZES for position in entries if position not in self.static)

    def restoring(self) -> Callable[[], None]:
        """A function that makes the same dimensions dynamic again as now."""
        static, is_static, patterns = {*self.static}, self.is_static, [*self.patterns]
        notes = dict(self.owner.notes)

        def restore() -> None:
            self.static, self.is_static, self.patterns = static, is_static, patterns
            self.owner.notes.clear()
            self.owner.notes.update(notes)

        return restore

    def make_static(self, names: Sequence[str], error: Exception) -> None:
        """Make these dimensions static, or all, because of an error; note it for `explain`."""
        positions = [self.names[name] for name in names if name in self.names]
        self.patterns.clear()
        if positions:
            self.static.update(positions)
            for name in names:
                self.owner.notes.pop(name, None)
            shown = " and ".join(f"`{name}`" for name in names)
        else:
            self.is_static, shown = True, "every dimension"
        self.owner.notes[shown] = f"{shown} stays static: {_message(error)}"

    def _pattern(self, call: Call, shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, ...] | None:
        """The dimensions that have had several sizes, as dynamic ones: those that were always equal share a name."""
        # Programs are for sizes of at least `LEAST`, of those that change: smaller ones tell nothing of equal sizes.
        changing = [len(set(column)) > 1 for column in zip(*map(_sizes_of, self.history))]
        history = [past for past in self.history if _are_large(past, changing)] or [shapes]
        known: dict[tuple[int, ...], Size] = {}
        pattern: list[Any] = []
        found = False
        names = [[f"{path}.shape[{axis}]" for axis in range(len(s))] for path, s in zip(call.paths, shapes)]
        numbers = list(call.size_numbers())
        for leaf, (named, shape) in enumerate(zip([*names, numbers], shapes)):
            entries: list[Any] = []
            for axis in range(len(shape)):
                column = tuple(past[leaf][axis] for past in history)
                count = len(self.sizes[leaf, axis])
                if count < _SIZES or (leaf, axis) in self.static:
                    entries.append(None if count > 1 else column[0])
                    continue
                found = True
                entries.append(self._size(named[axis], (leaf, axis), column, known))
                if named is numbers:
                    self.owner.notes[named[axis]] = f"`{named[axis]}` has had several values: it is a dynamic size now"
            pattern.append(tuple(entries))
        return tuple(pattern) if found else None

    def _size(self, name: str, position: Position, column: tuple[int, ...], known: dict[tuple[int, ...], Size]) -> Size:
        """The size for a column of sizes: that of an equal column, or of one with a constant difference, or its own."""
        for other, size in known.items():
            differences = {mine - theirs for mine, theirs in zip(column, other)}
            if len(differences) == 1 and min(differences) >= 0:
                total = size + differences.pop()
                assert type(total) is Size
                return total
        self.names[name] = position
        made = Size.of({(Atom(name),): 1})
        assert type(made) is Size
        return known.setdefault(column, made)


def _sizes_of(shapes: tuple[tuple[int, ...], ...]) -> list[int]:
    return [n for shape in shapes for n in shape]


def _are_large(shapes: tuple[tuple[int, ...], ...], changing: Sequence[bool]) -> bool:
    """True if each size that changes is at least `LEAST`."""
    return all(n >= LEAST for n, changes in zip(_sizes_of(shapes), changing, strict=True) if changes)


def _matched(pattern: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...]) -> dict[str, int] | None:
    """The values of the dimensions of a pattern in a call; None if it does not fit."""
    values: dict[str, int] = {}
    derived = []
    for sizes, shape in zip(shapes, pattern):
        for size, entry in zip(sizes, shape):
            if type(entry) is int and entry != size:
                return None
            if type(entry) is not Size:
                continue
            name = _plain_name(entry)
            if name is None:
                derived.append((entry, size))
            elif values.setdefault(name, size) != size:
                return None
    if any(entry.value(values) != size for entry, size in derived):
        return None
    return values if all(entry.value(values) >= LEAST for entry, _ in derived) else None


def check_takes_sizes(
    dimensions: Dimensions, target: Target, passes: Sequence[str] | None, tune: str, donated: Sequence[int]
) -> None:
    """Refuse named dimensions for a target without programs of dynamic sizes, and beside a choice of passes.

    There "auto" has no effect, nor beside tuned schedules and donated arguments, which programs for one size have.
    """
    if tune != "off" and dimensions.is_automatic:
        dimensions.disable("`tune` searches schedules for them")
    if donated and dimensions.is_automatic:
        dimensions.disable("arguments are donated")
    if passes is not None and dimensions:
        if not dimensions.is_automatic:
            raise ArgumentError("compile: pipeline and dynamic: programs of dynamic sizes have passes of their own")
        dimensions.disable("`pipeline` chooses the passes")
    dimensions.on_device = target.device != "cpu"
    if target.sized is not None or not dimensions:
        return
    if not dimensions.is_automatic:
        raise ArgumentError(
            f"compile: target {target.name!r} has no dynamic dimensions", help='use target="cpu", "vulkan" or "cuda"'
        )
    dimensions.disable(f"target {target.name!r} has no dynamic ones")


def instance(build: Build, values: dict[str, int]) -> Build:
    """The build for these values of the dimensions of a dynamic one."""
    return replace(
        build,
        captured=captured_at(build.captured, values),
        program=build.program.at(values) if build.captured.is_dynamic else build.program,
        remembered=set(),
        values=values,
    )


def captured_at(captured: Captured, values: Mapping[str, int]) -> Captured:
    """The captured program with the shapes that its arrays have for these values."""
    inputs, outputs = (
        tuple(replace(spec, shape=tuple(value_of_size(n, values) for n in spec.shape)) for spec in specs)
        for specs in (captured.inputs, captured.outputs)
    )
    return replace(captured, inputs=inputs, outputs=outputs, sizes=())
