"""The common frame of contraction kernels: arguments, packing buffers, views, offsets into the operands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import TypeVar

from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.codegen.cpu.contract.problem import Axis, Cast, Operand, Problem
from mlirml.codegen.cpu.emitter import Emitter, Index, View, vector
from mlirml.core.dataclass import dataclass, replace

T = TypeVar("T")


@dataclass(frozen=True)
class Argument:
    """The form of an operand as a parameter of a kernel.

    `type` is a memref type of static layout, `span` the elements from its first to its last. `offset` is the static
    offset of the first, or None if it is a separate parameter.
    """

    type: str
    element: str
    offset: int | None
    span: int


@dataclass(frozen=True)
class Buffer:
    """Scratch memory that the caller allocates."""

    element: str
    size: int

    @property
    def type(self) -> str:
        return f"memref<{self.size}x{self.element}>"


@dataclass(frozen=True)
class Kernel:
    """The text of a private function; its parameters are the operands, their dynamic offsets, and the buffers.

    `functions` are the texts of the functions that it calls, by name: kernels share those of equal names.
    """

    text: str
    buffers: tuple[Buffer, ...]
    functions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Offsets:
    """Offsets of one element of each operand; `more` are those of the operands of the epilogue."""

    a: Index = field(default_factory=Index)
    b: Index = field(default_factory=Index)
    c: Index = field(default_factory=Index)
    more: tuple[Index, ...] = ()

    def step(self, axis: Axis, index: Index) -> Offsets:
        """The offsets `index` iterations of `axis` further on."""
        more = tuple(at + index * stride for at, stride in zip(self.more, axis.more, strict=True))
        return Offsets(self.a + index * axis.a, self.b + index * axis.b, self.c + index * axis.c, more)


@dataclass(frozen=True)
class Epilogue:
    """The elementwise consumer of a product as MLIR on vectors, with `LANES` for their width.

    `lines` read `%product` and `%in0`, `%in1`, ..., and `yields` name the values of the outputs. `inputs` and `outs`
    are element types.
    """

    inputs: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    yields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prologue:
    """The elementwise producer of operand `letter`, as a function of an element of memory, `%product`, and its inputs.

    Its inputs are the operands `x{first}` and following. It yields an element of type `element`.
    """

    letter: str
    first: int
    element: str
    body: Epilogue

    @property
    def inputs(self) -> tuple[tuple[int, str], ...]:
        """The number and the element type of each input."""
        return tuple((self.first + number, element) for number, element in enumerate(self.body.inputs))


@dataclass(frozen=True)
class Job:
    """The complete specification of a kernel.

    `arguments` are a, b and out (None if the product itself is not stored), then the inputs and outputs of the
    epilogue, then the inputs of prologues. `accumulate`: the product is added to the output. `drops_product`: only the
    kernel reads the output, which has partial sums until the epilogue has run.
    """

    problem: Problem
    schedule: Schedule
    arguments: tuple[Argument | None, ...]
    accumulate: bool
    epilogue: Epilogue | None = None
    prologues: tuple[Prologue, ...] = ()
    drops_product: bool = False

    def prologue(self, letter: str) -> Prologue | None:
        """The prologue that computes the elements of operand a or b as they are read, if there is one."""
        return next((prologue for prologue in self.prologues if prologue.letter == letter), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operands."""
        return ("a", "b", "c", *(f"x{number}" for number in range(len(self.arguments) - 3)))

    @property
    def panels(self) -> bool:
        """True if both operands are packed in panels along one loop of k: the kernel whose functions are shared."""
        p, s = self.problem, self.schedule
        return s.kernel == "packed" and s.pack == "ab" and len(p.k) == 1 and (p.n.c == 1 or p.n.size == 1)

    @property
    def symmetric(self) -> bool:
        """True if the tiles above the diagonal are the transposes of those below it."""
        return self.schedule.kernel == "symmetric"

    @property
    def writes_tiles(self) -> bool:
        """True if register tiles are stored to memory, from where a separate function writes them."""
        return self.epilogue is not None or self.panels or self.symmetric


class Frame:
    """A kernel under construction: its emitter, its arguments, and the views that its code uses."""

    def __init__(self, job: Job) -> None:
        self.e = Emitter()
        self.job = job
        self.problem, self.schedule = job.problem, job.schedule
        self.accumulate = job.accumulate
        self.named = {
            name: argument for name, argument in zip(job.names, job.arguments, strict=True) if argument is not None
        }
        self.buffers: list[Buffer] = []
        self.functions: dict[str, str] = {}
        self.tile: View | None = None
        self.views = self._flat_views()

    @property
    def origin(self) -> Offsets:
        """The first element of every operand."""
        return Offsets(more=(Index(),) * len(self.problem.m.more))

    def base(self, name: str) -> tuple[str, Index]:
        """An operand as a memref of rank 0, and the offset of its first element."""
        argument = self.named[name]
        start = Index((), argument.offset) if argument.offset is not None else Index(((f"%{name}_offset", 1),))
        return bare(self.e, f"%{name}", argument.type, argument.element), start

    def call(self, name: str, arguments: Sequence[str], types: Sequence[str]) -> None:
        """Call a function without results."""
        self.e.do(f"func.call @{name}({', '.join(arguments)}) : ({', '.join(types)}) -> ()")

    def scratch(self, size: int) -> None:
        """Allocate a register tile on the stack, in each body of a parallel loop: the view `tile`."""
        compute = self.problem.compute
        self.tile = View("%tile", compute, f"memref<{size}x{compute}>")
        self._make_tile()

    def _make_tile(self) -> None:
        if self.tile:
            name = self.e.fresh("tile")
            self.e.do(f"{name} = memref.alloca() {{alignment = 64 : i64}} : {self.tile.type}")
            self.tile = replace(self.tile, name=name)

    def buffer(self, size: int) -> View:
        """Add a buffer of `size` elements of the compute type, or of as many pairs of narrower ones."""
        element = "i32" if self.schedule.packs_words else self.problem.compute
        self.buffers.append(Buffer(element, size))
        return View(f"%buffer{len(self.buffers) - 1}", element, self.buffers[-1].type)

    @property
    def a(self) -> View:
        return self.views["a"]

    @property
    def b(self) -> View:
        return self.views["b"]

    @property
    def c(self) -> View:
        return self.views["c"]

    def _flat_views(self) -> dict[str, View]:
        """One-dimensional views of the operands that the kernel itself reads or writes."""
        used = {"a", "b"} if self.job.writes_tiles else {"a", "b", "c"}
        if not self.job.panels and not self.job.symmetric:
            used |= {f"x{number}" for prologue in self.job.prologues for number, _ in prologue.inputs}
        return {name: flat_view(self.e, name, argument) for name, argument in self.named.items() if name in used}

    @contextmanager
    def parallel_body(self, parallel: AbstractContextManager[T]) -> Iterator[T]:
        """A parallel loop whose body rebuilds its views: outlined functions cannot capture those of dynamic offset."""
        outside = self.views, self.tile
        with parallel as indexes:
            self.views = self._flat_views()
            self._make_tile()
            yield indexes
        self.views, self.tile = outside

    @contextmanager
    def outer_loops(self, axes: Sequence[Axis]) -> Iterator[tuple[Offsets, Index]]:
        """Loops over `axes`, parallel if the schedule splits "outer"; yields the offsets, and the chunk's number."""
        if self.schedule.parallel == "outer":
            with self.parallel_body(self.chunks(math.prod(axis.size for axis in axes))) as (chunk, index):
                yield self.at_digits(axes, self.origin, index), chunk
        else:
            with self.nest(axes, self.origin) as offsets:
                yield offsets, Index()

    @contextmanager
    def nest(self, axes: Sequence[Axis], offsets: Offsets) -> Iterator[Offsets]:
        """Serial loops over `axes`."""
        if not axes:
            yield offsets
            return
        with self.e.loop(0, axes[0].size) as index, self.nest(axes[1:], offsets.step(axes[0], index)) as inner:
            yield inner

    def at_digits(self, axes: Sequence[Axis], offsets: Offsets, index: Index) -> Offsets:
        """The offsets of iteration `index` of the nest over `axes`, in row-major order."""
        for axis, digit in zip(axes, self.e.digits(index, [axis.size for axis in axes]), strict=True):
            offsets = offsets.step(axis, digit)
        return offsets

    @contextmanager
    def chunks(self, total: int) -> Iterator[tuple[Index, Index]]:
        """`scf.parallel` over at most as many chunks of 0..total as in the schedule, and a loop over the chunk."""
        each = -(-total // min(self.schedule.chunks, total))
        with self.e.parallel(-(-total // each), self.schedule.grain) as chunk:
            lower = chunk * each
            upper = self.e.minimum(lower + each, total) if total % each else lower + each
            with self.e.loop(lower, upper) as index:
                yield chunk, index

    def finish(self, name: str) -> Kernel:
        """Emit the function."""
        parameters = [*declared(self.named)]
        parameters += [f"%buffer{position}: {buffer.type}" for position, buffer in enumerate(self.buffers)]
        head = f"func.func private @{name}({', '.join(parameters)}) {{"
        text = "\n".join([head, *self.e.body(), "return", "}"])
        return Kernel(text, tuple(self.buffers), tuple(self.functions.items()))


def declared(named: Mapping[str, Argument]) -> list[str]:
    """The parameters of a function: operands, then the dynamic offsets."""
    parameters = [f"%{name}: {argument.type}" for name, argument in named.items()]
    return parameters + [f"%{name}_offset: index" for name, argument in named.items() if argument.offset is None]


def passed(named: Mapping[str, Argument]) -> tuple[list[str], list[str]]:
    """The arguments that pass the parameters of `declared` on to another function that has them: names and types."""
    late = [name for name, argument in named.items() if argument.offset is None]
    names = [f"%{name}" for name in named] + [f"%{name}_offset" for name in late]
    return names, [argument.type for argument in named.values()] + ["index"] * len(late)


def bare(e: Emitter, name: str, type_: str, element: str) -> str:
    """A memref as one of rank 0, which functions for memory of any size have as parameter."""
    if type_ == f"memref<{element}>":
        return name
    return e.let(
        f"memref.reinterpret_cast {name} to offset: [0], sizes: [], strides: [] : {type_} to memref<{element}>"
    )


def flat_view(e: Emitter, name: str, argument: Argument) -> View:
    """An operand as one dimension, from its first element to its last."""
    offset = f"%{name}_offset" if argument.offset is None else str(argument.offset)
    shown = "?" if argument.offset is None else offset
    layout = "" if shown == "0" else f", strided<[1], offset: {shown}>"
    type_ = f"memref<{argument.span}x{argument.element}{layout}>"
    cast = f"memref.reinterpret_cast %{name} to offset: [{offset}], sizes: [{argument.span}], strides: [1]"
    return View(e.let(f"{cast} : {argument.type} to {type_}", name), argument.element, type_)


def convert(e: Emitter, value: str, casts: tuple[Cast, ...], lanes: int | None) -> str:
    """Apply casts to a vector of `lanes`, or to a scalar."""
    for cast in casts:
        source, target = (vector(lanes, t) if lanes else t for t in (cast.source, cast.target))
        value = e.let(f"{cast.op} {value} : {source} to {target}")
    return value


def evaluate(e: Emitter, body: Epilogue, product: str, inputs: Sequence[str], lanes: int) -> list[str]:
    """The values that a body yields, for vectors of its inputs."""
    values = {"%product": product} | {f"%in{number}": value for number, value in enumerate(inputs)}
    for line in body.lines:
        result, _, text = line.partition(" = ")
        for name in sorted(values, key=len, reverse=True):
            text = text.replace(f"{name},", f"{values[name]},").replace(f"{name})", f"{values[name]})")
        values[result] = e.let(text.replace("LANES", str(lanes)))
    return [values[name] for name in body.yields]


def outer_product(
    e: Emitter, scalars: Iterable[str], columns: Sequence[tuple[int, str]], compute: str, totals: Sequence[str]
) -> list[str]:
    """`totals` plus the products of scalars, the rows, and vectors, each with its number of lanes.

    A scalar is computed, and broadcast, just before its products.
    """
    after: list[str] = []
    for scalar in scalars:
        spread: dict[int, str] = {}
        for lanes, column in columns:
            type_ = vector(lanes, compute)
            if lanes not in spread:
                spread[lanes] = e.let(f"vector.broadcast {scalar} : {compute} to {type_}")
            after.append(fused_multiply_add(e, spread[lanes], column, totals[len(after)], type_))
    return after


def fused_multiply_add(e: Emitter, a: str, b: str, total: str, type_: str) -> str:
    """`a * b + total` on vectors or scalars of type `type_`."""
    element = type_.removesuffix(">").rpartition("x")[2]
    if element.startswith("i"):
        product = e.let(f"arith.muli {a}, {b} : {type_}")
        return e.let(f"arith.addi {total}, {product} : {type_}")
    return e.let(f"{'vector' if type_.startswith('vector') else 'math'}.fma {a}, {b}, {total} : {type_}")


def add(e: Emitter, a: str, b: str, type_: str) -> str:
    """`a + b` on vectors or scalars of type `type_`."""
    element = type_.removesuffix(">").rpartition("x")[2]
    return e.let(f"arith.{'addi' if element.startswith('i') else 'addf'} {a}, {b} : {type_}")


def widen(e: Emitter, value: str, operand: Operand, compute: str, lanes: int | None) -> str:
    """An element of the output, as loaded, converted to the compute type."""
    return _resize(e, value, operand.element, compute, lanes, "ext")


def narrow(e: Emitter, value: str, operand: Operand, compute: str, lanes: int | None) -> str:
    """The inverse of `widen`: rounding, or truncation of integers."""
    return _resize(e, value, compute, operand.element, lanes, "trunc")


def _resize(e: Emitter, value: str, source: str, target: str, lanes: int | None, verb: str) -> str:
    if source == target:
        return value
    suffix = "f" if "f" in source else {"ext": "si", "trunc": "i"}[verb]
    types = [vector(lanes, element) if lanes else element for element in (source, target)]
    return e.let(f"arith.{verb}{suffix} {value} : {types[0]} to {types[1]}")
