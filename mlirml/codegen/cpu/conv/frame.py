"""The common frame of convolution kernels: arguments, scratch buffers, offsets of planes, padding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field

from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.problem import Axis, Problem, Slide
from mlirml.codegen.cpu.emitter import Emitter, Index, View, vector
from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class Argument:
    """An operand as a parameter of a kernel: a memref of static layout, `span` elements from the first to the last."""

    type: str
    element: str
    offset: int
    span: int

    @property
    def flat(self) -> str:
        """The type of its one-dimensional view."""
        layout = f", strided<[1], offset: {self.offset}>" if self.offset else ""
        return f"memref<{self.span}x{self.element}{layout}>"


@dataclass(frozen=True)
class Kernel:
    """The text of a private function of the arguments and the buffers, whose types are listed."""

    text: str
    buffers: tuple[str, ...]


class Frame:
    """A kernel under construction. The arguments are x, out, w and bias if there are any, and the epilogue's inputs."""

    def __init__(self, problem: Problem, arguments: dict[str, Argument], epilogue: Epilogue | None) -> None:
        self.epilogue = epilogue
        self.e = Emitter()
        self.problem = problem
        self.arguments = arguments
        self.buffers: list[str] = []
        self.views = {name: self._view(name, argument) for name, argument in arguments.items()}

    def _view(self, name: str, a: Argument) -> View:
        cast = f"memref.reinterpret_cast %{name} to offset: [{a.offset}], sizes: [{a.span}], strides: [1]"
        return View(self.e.let(f"{cast} : {a.type} to {a.flat}", name), a.element, a.flat)

    def buffer(self, size: int) -> View:
        """Add a buffer of `size` elements."""
        type_ = f"memref<{size}x{self.problem.element}>"
        self.buffers.append(type_)
        return View(f"%buffer{len(self.buffers) - 1}", self.problem.element, type_)

    @contextmanager
    def maybe_parallel(self, count: int, grain: int) -> Iterator[Index]:
        """A loop, parallel if the grain is not 0."""
        with self.e.parallel(count, grain) if grain else self.e.loop(0, count) as index:
            yield index

    def finished(self, total: str, number: Index, out: Index, lanes: int, valid: int | Index | None) -> str:
        """The value to store at `out` for a vector of sums of filter `number`, after the epilogue."""
        if self.epilogue is None:
            return total
        views = [view for name, view in self.views.items() if name.startswith("input")]
        return self.epilogue.apply(self.e, total, views, number, out, lanes, valid)

    def finish(self, name: str) -> Kernel:
        """Emit the function."""
        parameters = [f"%{letter}: {argument.type}" for letter, argument in self.arguments.items()]
        parameters += [f"%buffer{position}: {type_}" for position, type_ in enumerate(self.buffers)]
        head = f"func.func private @{name}({', '.join(parameters)}) {{"
        return Kernel("\n".join([head, *self.e.body(), "return", "}"]), tuple(self.buffers))


@dataclass(frozen=True)
class Offsets:
    """Offsets into input, weight and output."""

    x: Index = field(default_factory=Index)
    w: Index = field(default_factory=Index)
    out: Index = field(default_factory=Index)

    def step(self, axis: Axis, index: Index) -> Offsets:
        return Offsets(self.x + index * axis.x, self.w + index * axis.w, self.out + index * axis.out)


def clamped(e: Emitter, index: Index, step: int, size: int) -> Index:
    """The start of tile `index` of `step` elements; the last one is moved back to end at the last element."""
    return index * step if size % step == 0 else e.minimum(index * step, size - step)


@dataclass(frozen=True)
class Padded:
    """Strides and sizes of a plane with its padding."""

    slides: tuple[Slide, Slide, Slide]

    @property
    def row(self) -> int:
        return self.slides[2].padded

    @property
    def face(self) -> int:
        return self.slides[1].padded * self.row

    @property
    def size(self) -> int:
        return self.slides[0].padded * self.face

    @property
    def strides(self) -> tuple[int, int, int]:
        return self.face, self.row, 1


def pad_plane(
    e: Emitter,
    slides: tuple[Slide, Slide, Slide],
    source: View,
    base: Index,
    room: View,
    at: Index,
    filler: str,
    lanes: int,
) -> None:
    """Copy a plane at `base` to `at`, with `filler` in its padding. Rows of the source must be contiguous."""
    padded = Padded(slides)
    depth, height, width = slides

    def fill(start: Index, length: int) -> None:
        for offset, count in _pieces(e, length, lanes):
            value = e.let(f"arith.constant dense<{filler}> : {vector(lanes, room.element)}", "filler")
            with offset as i:
                e.store(value, room, start + i, lanes, count)

    fill(at, depth.low * padded.face)
    with e.loop(0, depth.size, 1, "d") as d:
        face = at + (d + depth.low) * padded.face
        fill(face, height.low * padded.row + width.low)
        with e.loop(0, height.size, 1, "h") as h:
            row = face + (h + height.low) * padded.row + width.low
            begin = base + d * depth.x + h * height.x
            for offset, count in _pieces(e, width.size, lanes):
                with offset as i:
                    e.store(e.load(source, begin + i, lanes, count), room, row + i, lanes, count)
            fill(row + width.size, width.high + width.low)
        last = face + (height.size + height.low) * padded.row
        fill(last, height.high * padded.row)
    fill(at + (depth.low + depth.size) * padded.face, depth.high * padded.face)


def _pieces(e: Emitter, length: int, lanes: int) -> Iterator[tuple[AbstractContextManager[Index], int]]:
    whole = length // lanes * lanes
    if whole:
        yield e.loop(0, whole, lanes, "i"), lanes
    if length % lanes:
        yield e.loop(whole, length, lanes, "i"), length % lanes
