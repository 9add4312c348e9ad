"""The frame that contraction kernels share: arguments, packing buffers, views, places in the three operands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from mlirml.pipelines.schedules.contract import Axis, Cast, Operand, Problem
from mlirml.pipelines.schedules.contract_plan import Schedule
from mlirml.pipelines.schedules.emitter import Emitter, Index, View, vector

T = TypeVar("T")


@dataclass(frozen=True)
class Argument:
    """How an operand reaches a kernel.

    `type` is a memref type of static layout, `span` the elements from its first to its last. `offset` is the static
    offset of the first, or None when it is an argument of its own.
    """

    type: str
    element: str
    offset: int | None
    span: int


@dataclass(frozen=True)
class Buffer:
    """Scratch memory that the caller provides."""

    element: str
    size: int

    @property
    def type(self) -> str:
        return f"memref<{self.size}x{self.element}>"


@dataclass(frozen=True)
class Kernel:
    """The text of a private function; it takes a, b, out, the dynamic offsets among them, and the buffers."""

    text: str
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True)
class Place:
    """Offsets of one element of each operand."""

    a: Index = field(default_factory=Index)
    b: Index = field(default_factory=Index)
    c: Index = field(default_factory=Index)

    def step(self, axis: Axis, index: Index) -> Place:
        """The place `index` rounds of `axis` further on."""
        return Place(self.a + index * axis.a, self.b + index * axis.b, self.c + index * axis.c)


class Frame:
    """A kernel being written: its emitter, its arguments, and the views that its code uses."""

    def __init__(self, problem: Problem, schedule: Schedule, arguments: Sequence[Argument], accumulate: bool) -> None:
        self.e = Emitter()
        self.problem = problem
        self.schedule = schedule
        self.accumulate = accumulate
        self.arguments = tuple(arguments)
        self.buffers: list[Buffer] = []
        self.views = self._flat_views()

    def buffer(self, size: int) -> View:
        """Ask the caller for `size` elements of the type that the kernel computes in."""
        self.buffers.append(Buffer(self.problem.compute, size))
        return View(f"%buffer{len(self.buffers) - 1}", self.problem.compute, self.buffers[-1].type)

    @property
    def a(self) -> View:
        return self.views[0]

    @property
    def b(self) -> View:
        return self.views[1]

    @property
    def c(self) -> View:
        return self.views[2]

    def _flat_views(self) -> tuple[View, View, View]:
        """One-dimensional views of a, b and out."""
        views = []
        for letter, argument in zip("abc", self.arguments, strict=True):
            offset = f"%{letter}_offset" if argument.offset is None else str(argument.offset)
            shown = "?" if argument.offset is None else offset
            layout = "" if shown == "0" else f", strided<[1], offset: {shown}>"
            kind = f"memref<{argument.span}x{argument.element}{layout}>"
            cast = f"memref.reinterpret_cast %{letter} to offset: [{offset}], sizes: [{argument.span}], strides: [1]"
            views.append(View(self.e.let(f"{cast} : {argument.type} to {kind}", letter), argument.element, kind))
        return views[0], views[1], views[2]

    @contextmanager
    def inside(self, parallel: AbstractContextManager[T]) -> Iterator[T]:
        """A parallel loop whose body makes its views anew: one of dynamic offset cannot enter an outlined function."""
        outside = self.views
        with parallel as indexes:
            self.views = self._flat_views()
            yield indexes
        self.views = outside

    @contextmanager
    def rounds(self, axes: Sequence[Axis]) -> Iterator[tuple[Place, Index]]:
        """Loops over `axes`, parallel where the schedule splits "outer"; the place, and the chunk's number."""
        if self.schedule.parallel == "outer":
            with self.inside(self.chunks(math.prod(axis.size for axis in axes))) as (chunk, index):
                yield self.at_digits(axes, Place(), index), chunk
        else:
            with self.nest(axes, Place()) as place:
                yield place, Index()

    @contextmanager
    def nest(self, axes: Sequence[Axis], place: Place) -> Iterator[Place]:
        """Serial loops over `axes`."""
        if not axes:
            yield place
            return
        with self.e.loop(0, axes[0].size) as index, self.nest(axes[1:], place.step(axes[0], index)) as inner:
            yield inner

    def at_digits(self, axes: Sequence[Axis], place: Place, index: Index) -> Place:
        """The place of round `index` of the nest over `axes`, counted row-major."""
        for axis, digit in zip(axes, self.e.digits(index, [axis.size for axis in axes]), strict=True):
            place = place.step(axis, digit)
        return place

    @contextmanager
    def chunks(self, total: int) -> Iterator[tuple[Index, Index]]:
        """`scf.parallel` over chunks of 0..total, at most as many as the schedule says, and a loop over the chunk."""
        each = -(-total // min(self.schedule.chunks, total))
        with self.e.parallel(-(-total // each), self.schedule.grain) as chunk:
            lower = chunk * each
            upper = self.e.minimum(lower + each, total) if total % each else lower + each
            with self.e.loop(lower, upper) as index:
                yield chunk, index

    def finish(self, name: str) -> Kernel:
        """The whole function."""
        parameters = [f"%{letter}: {argument.type}" for letter, argument in zip("abc", self.arguments, strict=True)]
        parameters += [
            f"%{letter}_offset: index" for letter, a in zip("abc", self.arguments, strict=True) if a.offset is None
        ]
        parameters += [f"%buffer{position}: {buffer.type}" for position, buffer in enumerate(self.buffers)]
        head = f"func.func private @{name}({', '.join(parameters)}) {{"
        return Kernel("\n".join([head, *self.e.body(), "return", "}"]), tuple(self.buffers))


def convert(e: Emitter, value: str, casts: tuple[Cast, ...], lanes: int | None) -> str:
    """Apply casts to a vector of `lanes`, or to a scalar."""
    for cast in casts:
        source, target = (vector(lanes, t) if lanes else t for t in (cast.source, cast.target))
        value = e.let(f"{cast.op} {value} : {source} to {target}")
    return value


def fused_multiply_add(e: Emitter, a: str, b: str, total: str, kind: str) -> str:
    """`a * b + total` on vectors or scalars of type `kind`."""
    element = kind.removesuffix(">").rpartition("x")[2]
    if element.startswith("i"):
        product = e.let(f"arith.muli {a}, {b} : {kind}")
        return e.let(f"arith.addi {total}, {product} : {kind}")
    return e.let(f"{'vector' if kind.startswith('vector') else 'math'}.fma {a}, {b}, {total} : {kind}")


def add(e: Emitter, a: str, b: str, kind: str) -> str:
    """`a + b` on vectors or scalars of type `kind`."""
    element = kind.removesuffix(">").rpartition("x")[2]
    return e.let(f"arith.{'addi' if element.startswith('i') else 'addf'} {a}, {b} : {kind}")


def widen(e: Emitter, value: str, operand: Operand, compute: str, lanes: int | None) -> str:
    """An element of out, as read, to the type that the kernel computes in."""
    return _resize(e, value, operand.element, compute, lanes, "ext")


def narrow(e: Emitter, value: str, operand: Operand, compute: str, lanes: int | None) -> str:
    """The inverse of `widen`: round, or keep the low bits."""
    return _resize(e, value, compute, operand.element, lanes, "trunc")


def _resize(e: Emitter, value: str, source: str, target: str, lanes: int | None, verb: str) -> str:
    if source == target:
        return value
    suffix = "f" if "f" in source else {"ext": "si", "trunc": "i"}[verb]
    types = [vector(lanes, element) if lanes else element for element in (source, target)]
    return e.let(f"arith.{verb}{suffix} {value} : {types[0]} to {types[1]}")
