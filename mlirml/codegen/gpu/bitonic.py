"""Sorting on the device: a bitonic network over rows whose length is a power of two.

    for k in 2, 4, ..., n:  for j in k/2, ..., 1:
        for each pair (i, i + j): put them in order, upwards where bit k of i is 0

Steps with a small j stay in the shared memory of a block; each larger one is a separate launch. Threads read and write
device memory in vectors of 16 bytes: j is a multiple of that, so that partners of adjacent elements are adjacent.
Elements are compared by all their parts, no two are equal, so the network is stable if one part is the index (Batcher,
"Sorting networks and their applications").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel, extract
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

_BYTES = 16
Before = Callable[[Kernel, Values, Values], mlir.Value]
"""True if an element, given by its parts, comes before another one."""


def power_above(number: int) -> int:
    """The smallest power of two that is not less than a number."""
    return 1 << max(0, number - 1).bit_length()


def lanes_of(length: int, *types: mlir.Type) -> int:
    """The elements of a row that a thread reads at once: 16 bytes of the widest type, 1 if they do not divide it."""
    lanes = max(1, _BYTES // max(map(element_bytes, types)))
    return lanes if length % lanes == 0 else 1


def sort_rows(host: Host, parts: Sequence[mlir.Value], rows: int, length: int, before: Before) -> None:
    """Sort rows of elements whose parts are in the arrays `parts`; `length` is a power of two."""
    total = rows * length
    chunk = min(2 * THREADS, power_above(total))
    Network(host, parts, rows, length, before, chunk).build()


class Network:
    """The kernels of one sort."""

    def __init__(
        self, host: Host, parts: Sequence[mlir.Value], rows: int, length: int, before: Before, chunk: int
    ) -> None:
        self.host = host
        self.parts = parts
        self.total = rows * length
        self.length = length
        self.before = before
        self.chunk = chunk
        self.run_length = min(length, chunk)
        self.lanes = lanes_of(length, *(part.type.element_type for part in parts))

    def build(self) -> None:
        """Sort chunks that fit into a block, then merge more and more of them."""
        self.in_block(merge=None)
        size = 2 * self.run_length
        far: Kernel | None = None
        near: Kernel | None = None
        while size <= self.length:
            distance = size // 2
            while distance >= self.run_length:
                far = self.launch_again(far, size, distance) if far else self.across_blocks(size, distance)
                distance //= 2
            near = self.launch_again(near, size, None) if near else self.in_block(merge=size)
            size *= 2

    def number(self, value: int) -> mlir.Value:
        """A number that a kernel has as an argument from the host."""
        with mlir.InsertionPoint(self.host.end):
            return emit.index(value)

    def launch_again(self, kernel: Kernel, size: int, distance: int | None) -> Kernel:
        """Launch a kernel with other numbers, which are its first arguments."""
        numbers = [self.number(n) for n in (size, distance) if n is not None]
        kernel.operands[: len(numbers)] = numbers
        self.host.launch(kernel)
        return kernel

    def in_block(self, merge: int | None) -> Kernel:
        """A kernel that sorts chunks in shared memory, or does the last steps of merging runs of `merge` elements."""
        threads = self.chunk // 2
        blocks = -(-self.total // self.chunk)
        with self.host.kernel("sort" if merge is None else "merge", (max(1, threads),)) as kernel:
            size = kernel.argument(self.number(merge)) if merge is not None else None
            block = kernel.cover(blocks)
            first = block * self.chunk
            shared = [kernel.shared([self.chunk], part.type.element_type) for part in self.parts]
            vectors = self.chunk // self.lanes
            numbers = [kernel.thread() + start for start in range(0, vectors, max(1, threads))]
            for number in numbers:
                kernel.guarded([kernel.below(number, vectors)], partial(self.fetch, kernel, shared, block, number))
            kernel.barrier()
            if size is None:
                self.sort_shared(kernel, shared, first)
            else:
                self.merge_shared(kernel, shared, first, size, self.run_length)
            for number in numbers:
                in_bounds = kernel.below(block * vectors + number, self.total // self.lanes)
                conditions = [kernel.below(number, vectors), in_bounds]
                kernel.guarded(conditions, partial(self.put_back, kernel, shared, first, number * self.lanes))
        return kernel

    def fetch(self, kernel: Kernel, shared: Sequence[mlir.Value], block: Form, number: Form) -> None:
        """Copy a vector of a chunk into shared memory; the last one in place of those beyond the end."""
        vectors = self.chunk // self.lanes
        at = kernel.clamped(block * vectors + number, self.total // self.lanes) * self.lanes
        for part, memory in zip(self.parts, shared, strict=True):
            write(kernel, memory, number * self.lanes, read(kernel, kernel.argument(part), at, self.lanes))

    def put_back(self, kernel: Kernel, shared: Sequence[mlir.Value], first: Form, index: Form) -> None:
        """Copy a vector of a chunk back."""
        for part, memory in zip(self.parts, shared, strict=True):
            write(kernel, kernel.argument(part), first + index, read(kernel, memory, index, self.lanes))

    def sort_shared(self, kernel: Kernel, shared: Sequence[mlir.Value], first: Form) -> None:
        """All steps up to runs as long as a block or a row."""
        levels = self.run_length.bit_length()

        def level(i: Form, _: Values) -> Values:
            one = kernel.constant(1)
            size = emit.value("arith.shli", [one, kernel.at(i)], kernel.index)
            self.merge_shared(kernel, shared, first, size, form(Digit(Base(size))))
            return []

        kernel.loop((1, levels, 1), level)

    def merge_shared(
        self, kernel: Kernel, shared: Sequence[mlir.Value], first: Form, size: mlir.Value, start: Form | int
    ) -> None:
        """The steps from a distance of half of `start` down to 1."""
        index = kernel.index

        def condition(distance: mlir.Value) -> mlir.Value:
            return emit.compare("ugt", distance, kernel.constant(0))

        def step(distance: mlir.Value) -> mlir.Value:
            low, high = pair(kernel, kernel.at(kernel.thread()), distance)
            element = emit.value("arith.addi", [kernel.at(first), low], index)
            upwards = self.upwards(kernel, element, size)
            ours = [emit.value("memref.load", [memory, low], memory.type.element_type) for memory in shared]
            theirs = [emit.value("memref.load", [memory, high], memory.type.element_type) for memory in shared]
            for memory, a, b in zip(shared, *self.ordered(kernel, ours, theirs, upwards), strict=True):
                emit.create("memref.store", [a, memory, low])
                emit.create("memref.store", [b, memory, high])
            kernel.barrier()
            return emit.value("arith.shrui", [distance, kernel.constant(1)], index)

        half = emit.value("arith.shrui", [kernel.at(start), kernel.constant(1)], index)
        while_loop(kernel, half, condition, step)

    def across_blocks(self, size: int, distance: int) -> Kernel:
        """A kernel that does one step in device memory: a thread has adjacent pairs, in the same order."""
        assert distance % self.lanes == 0
        count = self.total // 2 // self.lanes
        threads = min(THREADS, count)
        with self.host.kernel("exchange", (threads,)) as kernel:
            numbers = [kernel.argument(self.number(n)) for n in (size, distance)]
            number = kernel.cover(-(-count // threads)) * threads + kernel.thread()

            def body() -> None:
                low, high = pair(kernel, kernel.at(number * self.lanes), numbers[1])
                upwards = self.upwards(kernel, low, numbers[0])
                indices = [form(Digit(Base(low))), form(Digit(Base(high)))]
                arguments = [kernel.argument(part) for part in self.parts]
                ours, theirs = ([read(kernel, memory, index, self.lanes) for memory in arguments] for index in indices)
                ordered = [
                    self.ordered(
                        kernel, [values[lane] for values in ours], [values[lane] for values in theirs], upwards
                    )
                    for lane in range(self.lanes)
                ]
                for n, memory in enumerate(arguments):
                    for side, index in enumerate(indices):
                        write(kernel, memory, index, [each[side][n] for each in ordered])

            kernel.guarded([kernel.below(number, count)], body)
        return kernel

    def upwards(self, kernel: Kernel, index: mlir.Value, size: mlir.Value) -> mlir.Value:
        """True if the run of an element is sorted upwards: a whole row is."""
        in_row = emit.value("arith.andi", [index, kernel.constant(self.length - 1)], kernel.index)
        bit = emit.value("arith.andi", [in_row, size], kernel.index)
        return emit.compare("eq", bit, kernel.constant(0))

    def ordered(self, kernel: Kernel, ours: Values, theirs: Values, upwards: mlir.Value) -> tuple[Values, Values]:
        """Two elements, in order."""
        wrong = self.before(kernel, theirs, ours)
        swap = emit.compare("eq", wrong, upwards)
        first = [emit.same_type("arith.select", swap, b, a) for a, b in zip(ours, theirs, strict=True)]
        second = [emit.same_type("arith.select", swap, a, b) for a, b in zip(ours, theirs, strict=True)]
        return first, second


def load(kernel: Kernel, memory: mlir.Value, index: Form) -> mlir.Value:
    """Load an element of an array, uncached."""
    argument = kernel.argument(memory)
    return emit.value("memref.load", [argument, kernel.at(index)], argument.type.element_type)


def read(kernel: Kernel, memory: mlir.Value, index: Form, lanes: int) -> list[mlir.Value]:
    """Adjacent elements of an array, uncached; the index is a multiple of their number."""
    if lanes == 1:
        return [kernel.read(memory, index)]
    vector = kernel.load_vector(memory, index, lanes)
    return [extract(vector, lane) for lane in range(lanes)]


def write(kernel: Kernel, memory: mlir.Value, index: Form, values: Sequence[mlir.Value]) -> None:
    """Store adjacent elements of an array; the index is a multiple of their number."""
    if len(values) == 1:
        kernel.write(values[0], memory, index)
    else:
        kernel.store_vector(memory, index, values)


def pair(kernel: Kernel, number: mlir.Value, distance: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The two elements that a thread compares."""
    index = kernel.index
    mask = emit.value("arith.subi", [distance, kernel.constant(1)], index)
    rest = emit.value("arith.andi", [number, mask], index)
    twice = emit.value("arith.addi", [number, number], index)
    low = emit.value("arith.subi", [twice, rest], index)
    return low, emit.value("arith.addi", [low, distance], index)


def while_loop(
    kernel: Kernel,
    start: mlir.Value,
    condition: Callable[[mlir.Value], mlir.Value],
    step: Callable[[mlir.Value], mlir.Value],
) -> None:
    """`scf.while` that carries an index, in 32 bits: conversions differ in the width of an index."""
    integer = mlir.IntegerType.get_signless(32)
    first = emit.value("arith.index_cast", [start], integer)
    op = emit.create("scf.while", [first], [integer], regions=2)
    with mlir.InsertionPoint(emit.block(op, [integer], 0)), kernel.scope():
        value = op.regions[0].blocks[0].arguments[0]
        emit.create("scf.condition", [condition(emit.value("arith.index_cast", [value], kernel.index)), value])
    with mlir.InsertionPoint(emit.block(op, [integer], 1)), kernel.scope():
        value = emit.value("arith.index_cast", [op.regions[1].blocks[0].arguments[0]], kernel.index)
        emit.create("scf.yield", [emit.value("arith.index_cast", [step(value)], integer)])
