"""Fourier transforms on the device: `mlirml.fft` of axes whose lengths are powers of two, by Stockham's algorithm.

    for r in 8, 8, ..., with L the product of those before and m = n / (L r):    y starts as x, seen as [1, n]
        y[q + L s, j] = sum over i of w(r, i s) w(L r, i q) y[q, j + i m]        w(n, e) = exp(-2 pi i e / n)

A block transforms whole lines in registers, 8 points a thread, and exchanges them through shared memory between the
steps (Govindaraju et al., "High performance discrete Fourier transforms on graphics processors", 2008). A line that is
too long for a block is a matrix whose columns are transformed first, then multiplied with roots, and then its rows
(Bailey, "FFTs in external or hierarchical memory", 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.device_transforms import BANKS, POINTS, longest_line
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.math.trigonometric import COS_F32, COS_F64, SIN_F32, SIN_F64
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir import library_calls as modes
from mlirml.ir.bindings import mlir

Number: TypeAlias = "tuple[mlir.Value, mlir.Value]"
"""The real and the imaginary part."""
Point: TypeAlias = "tuple[Form, Form, Form]"
"""The indices of an element: before the axis that is transformed, along it, and after it."""


def lower_transform(host: Host, op: mlir.Operation) -> None:
    """Build the kernels of a transform, whose result has its memory: one or two for each axis."""
    mode, source, result = mlir.IntegerAttr(op.attributes["mode"]).value, op.operands[0], op.results[0]
    kind, axes = mode & modes.TRANSFORM, modes.axes_of(mode)
    if kind == modes.R2C:
        axes = axes[::-1]  # the last one has real numbers, and in the other direction, too
    shape = list(source.type.shape if kind == modes.R2C else source.type.shape[:-1])
    lengths = [result.type.shape[axis] if kind == modes.C2R else source.type.shape[axis] for axis in axes]
    factor = 1.0 if not mode & (modes.BY_COUNT | modes.BY_ROOT) else 1.0 / math.prod(lengths)
    factor = math.sqrt(factor) if mode & modes.BY_ROOT else factor
    steps: list[Step] = []
    for axis, length in zip(axes, lengths):
        is_real = axis == modes.axes_of(mode)[-1]
        from_real, to_half = (is_real and kind == modes.R2C,) * 2
        from_half, to_real = (is_real and kind == modes.C2R,) * 2
        around = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        first = Layout(around, shape[axis], real=from_real, half=from_half)
        shape[axis] = length // 2 + 1 if to_half else length
        last = Layout(around, shape[axis], real=to_real, half=to_half)
        steps += _steps_of_axis(length, first, last, longest_line(host.device, result.type.element_type))
    memory = source
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        target = result if is_last else host.array([step.target.elements], result.type.element_type)
        Lines(host, step, bool(mode & modes.BACKWARD), factor if is_last else 1.0).build(memory, target)
        memory = target


@dataclass(frozen=True)
class Layout:
    """An array with an axis of `size` elements: `real` numbers, or complex ones, `half` of which are left out."""

    around: tuple[int, int]
    size: int
    real: bool = False
    half: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.around) * self.size * (1 if self.real else 2)

    def at(self, point: Point) -> Form:
        """The position of an element in memory."""
        return self.number(point) if self.real else self.number(point) * 2

    def number(self, point: Point) -> Form:
        """The row-major index of an element."""
        return flat(point, [self.around[0], self.size, self.around[1]])


@dataclass(frozen=True)
class Step:
    """Transforms of all lines of a box by one kernel: where point j of a line is read, and where bin k is stored.

    Bins are multiplied with the root of unity of order `period` with the exponent `exponent(line, k)`.
    """

    length: int
    box: tuple[int, int, int]
    source: Layout
    target: Layout
    read: Callable[[Sequence[Form], Form], Point]
    store: Callable[[Sequence[Form], Form], Point]
    period: int = 0


def _steps_of_axis(length: int, first: Layout, last: Layout, most: int) -> list[Step]:
    before, after = first.around

    def along(line: Sequence[Form], j: Form) -> Point:
        return line[0], j, line[2]

    if length <= most:
        return [Step(length, (before, 1, after), first, last, along, along)]
    rows = 1 << (length.bit_length() // 2)
    columns = length // rows
    between = Layout((before, after), length)

    def down(line: Sequence[Form], j: Form) -> Point:
        return line[0], j * columns + line[1], line[2]

    def across(line: Sequence[Form], j: Form) -> Point:
        return line[0], line[1] * columns + j, line[2]

    def exchanged(line: Sequence[Form], k: Form) -> Point:
        return line[0], k * rows + line[1], line[2]

    return [
        Step(rows, (before, columns, after), first, between, down, down, length),
        Step(columns, (before, rows, after), between, last, across, exchanged),
    ]


class Lines:
    """The kernel of a step."""

    def __init__(self, host: Host, step: Step, backward: bool, factor: float) -> None:
        self.host = host
        self.step = step
        self.factor = factor
        self.sign = 1.0 if backward else -1.0
        self.points = min(POINTS, step.length)
        self.across = step.length // self.points
        self.count = math.prod(step.box)
        self.lines = max(1, min(THREADS // self.across, self.count))
        self.contiguous = step.box[1:] == (1, 1)  # else adjacent threads have adjacent lines

    def build(self, source: mlir.Value, target: mlir.Value) -> None:
        """Load, transform, store."""
        step, across, lines = self.step, self.across, self.lines
        with self.host.kernel("transform", (across * lines,)) as kernel:
            kernel.lanes = 2
            self.element = target.type.element_type
            blocks = -(-self.count // lines)
            block = kernel.cover(blocks)
            if self.contiguous:
                line, thread = cut_up(kernel.thread(), [lines, across])
            else:
                thread, line = cut_up(kernel.thread(), [across, lines])
            number = block * lines + line
            in_bounds = kernel.below(number, self.count)
            coordinates = cut_up(kernel.clamped(number, self.count), step.box)
            read, padded = Elements(kernel), lines * step.length
            shared = kernel.shared([padded + padded // BANKS + 1], self.element)
            first, *others = _radices(step.length, self.points)
            starts = [thread + across * i for i in range(self.points // first)]
            indices = [start + step.length // first * i for start in starts for i in range(first)]
            values = [self.loaded(kernel, read, source, coordinates, j) for j in indices]
            parts = [_transformed(values[i : i + first], self.sign) for i in range(0, self.points, first)]
            values = [value for part in parts for value in part]
            done = first
            for radix in others:
                rest = step.length // (done * radix)
                q, j = cut_up(thread, [done, rest])
                gotten = [q * (radix * rest) + j + rest * i for i in range(radix)]
                values = self.exchanged(kernel, shared, values, line, indices, gotten)
                values = _transformed(self.turned(kernel, values, q, rest), self.sign)
                indices = [thread + across * i for i in range(radix)]
                done *= radix

            def put_back() -> None:
                for k, value in zip(indices, values):
                    self.put(kernel, target, coordinates, k, value)

            kernel.guarded([in_bounds], put_back)

    def loaded(self, kernel: Kernel, read: Elements, source: mlir.Value, line: Sequence[Form], j: Form) -> Number:
        """Point j of a line; a real one has the imaginary part 0, one that is left out is a conjugate."""
        layout = self.step.source
        before, index, after = self.step.read(line, j)
        zero = kernel.constant(0.0, self.element)
        if layout.half:
            index, is_mirrored = self.mirrored(kernel, index)
        at = layout.number((before, index, after))
        if isinstance(source.type, mlir.RankedTensorType):
            shape = list(source.type.shape if layout.real else source.type.shape[:-1])
            position = tuple(cut_up(at, shape))
            if layout.real:
                return read.get(source, position), zero
            real, imaginary = (read.get(source, (*position, form(i))) for i in range(2))
        else:
            real, imaginary = (kernel.load(source, at * 2 + i) for i in range(2))
        if not layout.half or is_mirrored is False:
            return real, imaginary
        negative = emit.same_type("arith.negf", imaginary)
        if is_mirrored is True:
            return real, negative
        return real, emit.value("arith.select", [is_mirrored, negative, imaginary], self.element)

    def mirrored(self, kernel: Kernel, index: Form) -> tuple[Form, mlir.Value | bool]:
        """The index of a bin or of its conjugate, whichever is in the first half, and whether it is the latter."""
        length = 2 * (self.step.source.size - 1)
        low, high = index.range
        other = index * -1 + length
        if self.step.source.size == 1 or (high is not None and high <= length // 2):
            return index, False
        if low >= length // 2:
            return form(Digit(Base(other, length // 2 + 1))), True
        is_upper = emit.compare("sgt", kernel.at(index), kernel.constant(length // 2))
        chosen = emit.value("arith.select", [is_upper, kernel.at(other), kernel.at(index)], kernel.index)
        return form(Digit(Base(chosen, length // 2 + 1))), is_upper

    def exchanged(
        self,
        kernel: Kernel,
        shared: mlir.Value,
        values: Sequence[Number],
        line: Form,
        put: Sequence[Form],
        get: Sequence[Form],
    ) -> list[Number]:
        """The elements `get` of a line, of which a thread has the elements `put`: first the real parts."""
        put, get = ([self.position(line, index) for index in indices] for indices in (put, get))
        parts = []
        for i in range(2):
            kernel.barrier()
            for value, at in zip(values, put):
                kernel.write(value[i], shared, at)
            kernel.barrier()
            parts.append([kernel.read(shared, at) for at in get])
        return list(zip(*parts))

    def position(self, line: Form, index: Form) -> Form:
        """The position of an element in shared memory."""
        at = line * self.step.length + index if self.contiguous else index * self.lines + line
        row, bank = cut_up(at, [self.lines * self.step.length // BANKS + 1, BANKS])
        return row * (BANKS + 1) + bank

    def turned(self, kernel: Kernel, values: Sequence[Number], q: Form, rest: int) -> list[Number]:
        """Value i times the root of order `step.length` with the exponent i q rest."""
        first, second, fourth = (
            self.root(kernel, kernel.at(q * (rest * i)), self.step.length) if i < len(values) else None
            for i in (1, 2, 4)
        )
        roots: list[Number] = []
        for i in range(1, len(values)):
            factors = [root for root, bit in ((first, 1), (second, 2), (fourth, 4)) if i & bit and root is not None]
            product = factors[0]
            for factor in factors[1:]:
                product = _product(product, factor)
            roots.append(product)
        return [values[0], *(_product(value, root) for value, root in zip(values[1:], roots))]

    def root(self, kernel: Kernel, exponent: mlir.Value, period: int) -> Number:
        """exp(sign 2 pi i exponent / period), of a power of two that is greater than the exponent.

        Integers have the octant, so that sine and cosine are those of a small angle.
        """
        i32 = mlir.IntegerType.get_signless(32)
        wide = element_bytes(self.element) == 8

        def integer(value: int) -> mlir.Value:
            return kernel.constant(value, i32)

        def number(value: float) -> mlir.Value:
            return kernel.constant(value, self.element)

        def chain(z: mlir.Value, coefficients: Sequence[float]) -> mlir.Value:
            total = number(coefficients[0])
            for coefficient in coefficients[1:]:
                total = emit.same_type("arith.addf", emit.same_type("arith.mulf", total, z), number(coefficient))
            return total

        bits = period.bit_length() - 1
        quarters = emit.same_type("arith.shli", emit.value("arith.index_cast", [exponent], i32), integer(2))
        near = emit.same_type("arith.addi", quarters, integer(period // 2))
        quarter = emit.same_type("arith.shrui", near, integer(bits))
        left = emit.same_type("arith.subi", quarters, emit.same_type("arith.shli", quarter, integer(bits)))
        angle = emit.value("arith.sitofp", [left], self.element)
        angle = emit.same_type("arith.mulf", angle, number(math.pi / 2 / period))
        z = emit.same_type("arith.mulf", angle, angle)
        cube = emit.same_type("arith.mulf", angle, z)
        cubed = emit.same_type("arith.mulf", cube, chain(z, SIN_F64 if wide else SIN_F32))
        sine = emit.same_type("arith.addf", angle, cubed)
        cosine = chain(z, [*(COS_F64 if wide else COS_F32), -0.5, 1.0])

        def has(value: mlir.Value, bit: int) -> mlir.Value:
            return emit.compare("ne", emit.same_type("arith.andi", value, integer(bit)), integer(0))

        def negated(condition: mlir.Value, value: mlir.Value) -> mlir.Value:
            return emit.value("arith.select", [condition, emit.same_type("arith.negf", value), value], self.element)

        is_odd = has(quarter, 1)
        real = emit.value("arith.select", [is_odd, sine, cosine], self.element)
        imaginary = emit.value("arith.select", [is_odd, cosine, sine], self.element)
        real = negated(has(emit.same_type("arith.addi", quarter, integer(1)), 2), real)
        below = has(quarter, 2)
        if self.sign < 0:
            below = emit.same_type("arith.xori", below, kernel.constant(1, mlir.IntegerType.get_signless(1)))
        return real, negated(below, imaginary)

    def put(self, kernel: Kernel, target: mlir.Value, line: Sequence[Form], k: Form, value: Number) -> None:
        """Store bin k of a line."""
        layout, step = self.step.target, self.step
        if step.period:
            product = emit.value("arith.muli", [kernel.at(line[1]), kernel.at(k)], kernel.index)
            value = _product(value, self.root(kernel, product, step.period))
        if self.factor != 1:
            factor = kernel.constant(self.factor, self.element)
            value = (emit.same_type("arith.mulf", value[0], factor), emit.same_type("arith.mulf", value[1], factor))
        point = step.store(line, k)
        if point[1].range[0] >= layout.size:
            return
        at = layout.at(point)
        stores = [(at, value[0])] if layout.real else [(at, value[0]), (at + 1, value[1])]
        kernel.guarded([kernel.below(point[1], layout.size)], partial(kernel.store, target, stores))


def _radices(length: int, points: int) -> list[int]:
    """The radices of the steps, the product of which is the length: the last ones are the points of a thread."""
    found: list[int] = []
    while length > points:
        found.append(points)
        length //= points
    return [length, *found]


def _product(a: Number, b: Number) -> Number:
    real = emit.same_type("arith.subf", *(emit.same_type("arith.mulf", a[i], b[i]) for i in range(2)))
    imaginary = emit.same_type("arith.addf", *(emit.same_type("arith.mulf", a[i], b[1 - i]) for i in range(2)))
    return real, imaginary


def _transformed(values: Sequence[Number], sign: float) -> list[Number]:
    """The transform of up to 8 numbers, by halves."""
    half = len(values) // 2
    if not half:
        return list(values)
    even, odd = _transformed(values[::2], sign), _transformed(values[1::2], sign)
    odd = [_by_root(value, k * (4 // half), sign) for k, value in enumerate(odd)]
    pairs = list(zip(even, odd))
    return [
        *((emit.same_type("arith.addf", a[0], b[0]), emit.same_type("arith.addf", a[1], b[1])) for a, b in pairs),
        *((emit.same_type("arith.subf", a[0], b[0]), emit.same_type("arith.subf", a[1], b[1])) for a, b in pairs),
    ]


def _by_root(value: Number, eighths: int, sign: float) -> Number:
    """A number times exp(sign 2 pi i eighths / 8), with less than 4 eighths."""
    re, im = value
    if eighths >= 2:
        negative = emit.same_type("arith.negf", im if sign > 0 else re)
        re, im = (negative, re) if sign > 0 else (im, negative)
    if eighths % 2:
        root = emit.number(re.type, math.sqrt(0.5))
        plus, minus = (emit.same_type(f"arith.{name}", re, im) for name in ("addf", "subf"))
        other = emit.same_type("arith.subf", im, re)
        re, im = (minus, plus) if sign > 0 else (plus, other)
        re, im = emit.same_type("arith.mulf", re, root), emit.same_type("arith.mulf", im, root)
    return re, im
