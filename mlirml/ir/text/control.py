"""Writers of structured control flow, `scf.for`, `scf.while`, `scf.if` and `scf.index_switch`, over tensors.

Rank-0 tensors are passed into and out of regions as scalars, so that they can live in registers, and complex tensors as
two real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.ir.text.builder import LOC, Value
from mlirml.ir.text.complex import ComplexValue, parts_of
from mlirml.ir.text.dtypes import is_complex, marked, mlir_name, part_dtype, tensor_type
from mlirml.ir.text.elements import ElementBuilder as Builder

REJECTION = "mlirml.rejection"
"""On an `scf.while` that proposes random numbers until they are accepted: parameters have no derivative through it."""

Branch = Callable[[], Sequence[Value]]
"""Writes the contents of a region and returns the values that its terminator takes."""


def to_scalar(b: Builder, value: Value) -> str:
    """The element of a tensor without dimensions."""
    return b.element(value)


def from_scalar(b: Builder, name: str, dtype: np.dtype) -> Value:
    """A scalar as a tensor without dimensions."""
    return b.from_element(name, dtype)


def to_index(b: Builder, value: Value) -> str:
    """An integer tensor without dimensions as an index."""
    return b.element_index(value)


def index(b: Builder, number: int) -> str:
    """A constant of type index."""
    return b.index(number) if is_size(number) else b.named(f"arith.constant {number} : index")


def from_index(b: Builder, name: str) -> Value:
    """An index as a tensor of i64 without dimensions."""
    return from_scalar(b, b.number_of(name), np.dtype(np.int64))


def _region_type(value: Value) -> str:
    """The type by which a value is passed into and out of regions: the element type for rank 0."""
    return value.type if value.shape else mlir_name(value.dtype)


def _region_types(values: Sequence[Value]) -> str:
    return ", ".join(map(_region_type, values))


def _passed(b: Builder, value: Value) -> str:
    """The SSA name by which a value is passed into or out of a region."""
    return value.name if value.shape else to_scalar(b, value)


def _received(b: Builder, name: str, like: Value) -> Value:
    """The tensor for a value that was passed into or out of a region by this name."""
    return Value(name, like.shape, like.dtype) if like.shape else from_scalar(b, name, like.dtype)


def _flat(values: Sequence[Value]) -> list[Value]:
    """The real tensors that values consist of."""
    return [part for value in values for part in parts_of(value)]


def _grouped(flat: Sequence[Value], like: Sequence[Value]) -> list[Value]:
    """The inverse of `_flat`, for values like these."""
    rest = iter(flat)
    return [ComplexValue.of(next(rest), next(rest)) if isinstance(v, ComplexValue) else next(rest) for v in like]


def _ended(b: Builder, op: str, values: Sequence[Value], first: str = "") -> None:
    """Write the terminator of a region."""
    names = [_passed(b, value) for value in values]
    types = f" : {_region_types(values)}" if values else ""
    b.line(f"{op} {first}{', '.join(names)}{types}")


def _results(name: str, values: Sequence[Value]) -> tuple[str, list[str]]:
    """The left side of an operation with results like these values, and the names of the results."""
    if len(values) < 2:
        return (f"{name} = ", [name]) if values else ("", [])
    return f"{name}:{len(values)} = ", [f"{name}#{n}" for n in range(len(values))]


def row(b: Builder, source: Value, offset: str) -> Value:
    """`source[i]` for a dynamic index."""
    if isinstance(source, ComplexValue):
        return source.map(lambda part: row(b, part, offset))
    shape = source.shape[1:]
    if not shape:
        return from_scalar(b, b.named(f"tensor.extract {source.name}[{offset}] : {source.type}"), source.dtype)
    if source.size == 0:
        return b.empty(shape, source.dtype)
    slice_ = _row(shape, offset)
    return b.op(
        f"tensor.extract_slice {source.name}{slice_} : {source.type} to {tensor_type(shape, source.dtype)}",
        shape,
        source.dtype,
    )


def set_row(b: Builder, value: Value, into: Value, offset: str) -> Value:
    """`into` with `into[i] = value`, for a dynamic index."""
    if isinstance(into, ComplexValue) and isinstance(value, ComplexValue):
        return ComplexValue.of(set_row(b, value.re, into.re, offset), set_row(b, value.im, into.im, offset))
    if not value.shape:
        text = f"tensor.insert {to_scalar(b, value)} into {into.name}[{offset}] : {into.type}"
    else:
        rows = _row(value.shape, offset)
        text = f"tensor.insert_slice {value.name} into {into.name}{rows} : {value.type} into {into.type}"
    return b.op(text, into.shape, into.dtype)


def _row(shape: tuple[int, ...], offset: str) -> str:
    """Offsets, sizes and strides of the row at an index, for rows of this shape."""
    offsets, sizes = [offset, *["0"] * len(shape)], [1, *map(marked, shape)]
    return f"[{', '.join(offsets)}] {sizes} {[1] * len(sizes)}"


class ForLoop:
    """An `scf.for` that is being written. `index` is the loop variable, of type index."""

    def __init__(self, b: Builder, lower: str, upper: str, owner: str, step: int = 1) -> None:
        self.builder = b
        self._bounds = f"{lower} to {upper} step {index(b, step)}"
        self._line = b.begin(owner, repeats=True)
        self.index = b.fresh()
        self._carried: list[tuple[str, str, Value]] = []
        self._like: list[Value] = []

    def carry(self, init: Value) -> Value:
        """Add a loop-carried value initialised by `init`; returns the iter_arg."""
        self._like.append(init)
        return _grouped([self._carry(part) for part in parts_of(init)], [init])[0]

    def _carry(self, init: Value) -> Value:
        b, start = self.builder, init.name
        if not init.shape and (known := b.known_element(init)) is not None:
            start = known
        elif not init.shape:
            start = b.insert(self._line, f"tensor.extract {init.name}[] : {init.type}")
            self._line += 1
        name = b.fresh()
        self._carried.append((name, start, init))
        return _received(b, name, init)

    def fill_later(self, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """Add a loop-carried tensor that has no contents before the loop."""
        if is_complex(dtype):
            return self.carry(ComplexValue.of(*(self._empty(shape, part_dtype(dtype)) for _ in range(2))))
        return self.carry(self._empty(shape, dtype))

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        empty = self.builder.insert(self._line, f"tensor.empty() : {tensor_type(shape, dtype)}")
        self._line += 1
        return Value(empty, shape, dtype)

    def end(self, values: Sequence[Value], attributes: str = "") -> list[Value]:
        """Close the loop, which yields these values in the order of `carry`; returns its results."""
        b = self.builder
        like = [init for _, _, init in self._carried]
        left, names = _results(b.fresh(), like)
        inits = ", ".join(f"{name} = {start}" for name, start, _ in self._carried)
        carried = f" iter_args({inits}) -> ({_region_types(like)})" if like else ""
        b.set_line(self._line, f"{left}scf.for {self.index} = {self._bounds}{carried} {{")
        _ended(b, "scf.yield", _flat(values))
        b.end(attributes)
        return _grouped([_received(b, name, value) for name, value in zip(names, like)], self._like)


def while_loop(
    b: Builder,
    inits: Sequence[Value],
    condition: Callable[[list[Value]], Value],
    body: Callable[[list[Value]], Sequence[Value]],
    owners: tuple[str, str],
    attributes: str = "",
) -> list[Value]:
    """`scf.while`; `condition` returns a rank-0 bool. `owners` are the user's names for the two regions.

    Tensors come first among the loop-carried values: scalars that are unused are dropped later, which must not change
    the positions of tensors, as bufferization requires a tensor at the same position in operands, arguments and
    results.
    """
    order = sorted(range(len(inits)), key=lambda i: not inits[i].shape)
    if order != list(range(len(inits))):
        back = [order.index(i) for i in range(len(inits))]

        def as_given(values: Sequence[Value]) -> list[Value]:
            return [values[i] for i in back]

        def reordered_body(values: list[Value]) -> Sequence[Value]:
            found = body(as_given(values))
            return [found[i] for i in order]

        moved = [inits[i] for i in order]
        proceeds = lambda values: condition(as_given(values))  # noqa: E731
        return as_given(while_loop(b, moved, proceeds, reordered_body, owners, attributes))
    like, inits = inits, _flat(inits)
    starts = [_passed(b, value) for value in inits]
    line = b.begin(owners[0], repeats=True)
    before = [b.fresh() for _ in inits]
    proceed = to_scalar(b, condition(_grouped([_received(b, name, value) for name, value in zip(before, inits)], like)))
    types = _region_types(inits)
    b.line(f"scf.condition({proceed}){' ' if inits else ''}{', '.join(before)}{' : ' + types if inits else ''}")
    after = [b.fresh() for _ in inits]
    arguments = ", ".join(f"{name}: {_region_type(value)}{LOC}" for name, value in zip(after, inits))
    b.next_region(f"}} do {{\n^bb0({arguments}):" if inits else "} do {", owners[1])
    values = _flat(body(_grouped([_received(b, name, value) for name, value in zip(after, inits)], like)))
    left, names = _results(b.fresh(), inits)
    pairs = ", ".join(f"{name} = {start}" for name, start in zip(before, starts))
    head = f"({pairs}) : ({types}) -> ({types})" if inits else ": () -> ()"
    b.set_line(line, f"{left}scf.while {head} {{")
    _ended(b, "scf.yield", values)
    b.end(f"attributes {attributes}" if attributes else "")
    return _grouped([_received(b, name, value) for name, value in zip(names, inits)], like)


def conditional(b: Builder, condition: str, then: Branch, otherwise: Branch, owner: str) -> list[Value]:
    """`scf.if` whose branches end with values of equal types."""
    line = b.begin(owner)
    whole = then()
    like = _flat(whole)
    _ended(b, "scf.yield", like)
    b.next_region("} else {")
    _ended(b, "scf.yield", _flat(otherwise()))
    left, names = _results(b.fresh(), like)
    b.set_line(line, f"{left}scf.if {condition}{f' -> ({_region_types(like)})' if like else ''} {{")
    b.end()
    return _grouped([_received(b, name, value) for name, value in zip(names, like)], whole)


def switch(b: Builder, number: str, branches: Sequence[Branch], owner: str) -> list[Value]:
    """`scf.index_switch` whose branches end with values of equal types; the last one is taken for any other number."""
    line = b.begin(owner)
    like: Sequence[Value] = ()
    whole: Sequence[Value] = ()
    for case, branch in enumerate(branches):
        if case:
            b.next_region("}\ndefault {" if case == len(branches) - 1 else f"}}\ncase {case} {{")
        whole = branch()
        like = _flat(whole)
        _ended(b, "scf.yield", like)
    left, names = _results(b.fresh(), like)
    kinds = f" -> {_region_types(like)}" if like else ""
    b.set_line(line, f"{left}scf.index_switch {number}{kinds}\n{'case 0' if len(branches) > 1 else 'default'} {{")
    b.end()
    return _grouped([_received(b, name, value) for name, value in zip(names, like)], whole)
