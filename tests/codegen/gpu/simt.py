"""Runs scheduled kernels in NumPy: all threads of a block in step, an SSA value is an array with a row a thread.

What a GPU only does wrong now and then is always an error here: shared memory that is read before it was written, or
by another thread than wrote it without a barrier in between, or before an asynchronous copy was waited for; barriers
and copies that not all threads reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mlirml.interpreter.interpreter  # noqa: F401  (registers the rules of scalar operations)
from mlirml.dialects.atomics import kind_of
from mlirml.interpreter.program import ELEMENTWISE, EVALUATES
from mlirml.interpreter.values import constant, dtype_of
from mlirml.ir.bindings import block_ops, mlir, operations
from tests.codegen.gpu.gpu_harness import read_plan

Array = np.ndarray
_SUBGROUP = 32


class Shared:
    """An array of a block, and who read and wrote what since when; times are counted in barriers."""

    def __init__(self, kind: mlir.MemRefType) -> None:
        self.shape = tuple(kind.shape)
        size = int(np.prod(self.shape, dtype=int))
        self.data = np.zeros(size, dtype_of(kind))
        self.wrote = np.full(size, -2)  # when: -2 is never, -1 is a copy under way
        self.writer = np.full(size, -1)
        self.read = np.full(size, -2)
        self.reader = np.full(size, -1)  # -2 for several

    def check_load(self, place: Array, thread: Array, now: int) -> None:
        assert (self.wrote[place] != -1).all(), "shared memory is read before its copy was waited for"
        assert (self.wrote[place] != -2).all(), "shared memory is read before it was written"
        stale = (self.wrote[place] == now) & (self.writer[place] != thread)
        assert not stale.any(), "shared memory is read without a barrier behind the store of another thread"
        others = (self.read[place] == now) & (self.reader[place] != thread)
        self.read[place] = now
        self.reader[place] = thread
        self.reader[place[others]] = -2
        # Threads of one load may read one place together.
        first = np.full(len(self.data), -1)
        first[place] = thread
        self.reader[place[first[place] != thread]] = -2

    def check_store(self, place: Array, thread: Array, now: int) -> None:
        raced = (self.read[place] == now) & (self.reader[place] != thread)
        assert not raced.any(), "shared memory is written without a barrier behind the load of another thread"
        raced = (self.wrote[place] == now) & (self.writer[place] != thread)
        assert not raced.any(), "two threads write to one place"
        self.writer[place] = thread


class Block:
    """One block of threads that runs a kernel."""

    def __init__(self, kernel: mlir.Operation, number: Sequence[int], arguments: Sequence[Any]) -> None:
        self.sizes = list(kernel.attributes["known_block_size"])
        self.threads = int(np.prod(self.sizes))
        self.number = number
        self.now = 0
        self.conflicts = 1  # rows that `ldmatrix`, or chunks that threads, read from one bank at once, at most
        self.values: dict[mlir.Value, Any] = dict(zip(kernel.regions[0].blocks[0].arguments, arguments, strict=True))
        self.groups: list[list[tuple[Shared, Array, Array, Array]]] = []
        self.copies: list[tuple[Shared, Array, Array, Array]] = []
        self.all = np.ones(self.threads, bool)
        self.run(kernel.regions[0].blocks[0], self.all)

    def run(self, block: mlir.Block, active: Array) -> list[Any]:
        """The operations of a block for the active threads; what its terminator hands on."""
        *ops, last = block_ops(block)
        for op in ops:
            rule = _RULES.get(op.name)
            if rule is not None:
                rule(self, op, active)
                continue
            assert op.name in ELEMENTWISE, f"no rule for {op.name}"
            result = EVALUATES[op.name](op, None)(*[self.values[v] for v in op.operands])  # type: ignore[arg-type]
            self.values[op.results[0]] = result
        return [self.values[v] for v in last.operands]

    def each(self, value: Any) -> Array:
        return np.broadcast_to(value, (self.threads,)) if np.ndim(value) == 0 else value

    def place(self, memory: Any, indices: Sequence[Any], active: Array) -> Array:
        """The numbers of elements, for the active threads."""
        shape = memory.shape
        places = np.zeros(self.threads, np.int64)
        for index, size in zip(indices, shape, strict=True):
            number = self.each(index)
            inside = (number[active] >= 0) & (number[active] < size)
            assert inside.all(), f"index {number[active][~inside][0]} of {size}"
            places = places * size + number
        return places[active]

    def load(self, memory: Any, places: Array, active: Array) -> Array:
        if isinstance(memory, Shared):
            memory.check_load(places, np.nonzero(active)[0], self.now)
            memory = memory.data
        found = np.zeros(self.threads, memory.dtype)
        found[active] = memory.reshape(-1)[places]
        return found

    def store(self, value: Any, memory: Any, places: Array, active: Array) -> None:
        if isinstance(memory, Shared):
            memory.check_store(places, np.nonzero(active)[0], self.now)
            memory.wrote[places] = self.now
            memory = memory.data
        memory.reshape(-1)[places] = self.each(value)[active]


Rule = Callable[[Block, mlir.Operation, Array], None]
_RULES: dict[str, Rule] = {}
_COMBINE = {"addf": np.add, "addi": np.add, "maximumf": np.maximum, "maxu": np.maximum}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return add


@rule("arith.constant")
def number(b: Block, op: mlir.Operation, active: Array) -> None:
    value = np.asarray(constant(op.attributes["value"], lambda key: b""), dtype_of(op.results[0].type))
    b.values[op.results[0]] = np.broadcast_to(value, (b.threads, *value.shape))


@rule("gpu.thread_id", "gpu.block_id")
def position(b: Block, op: mlir.Operation, active: Array) -> None:
    dimension = "xyz".index(str(op.attributes["dimension"])[-2])
    found: Any = np.full(b.threads, b.number[dimension])
    if op.name == "gpu.thread_id":
        found = np.arange(b.threads) // int(np.prod(b.sizes[:dimension])) % b.sizes[dimension]
    b.values[op.results[0]] = found


@rule("gpu.barrier")
def barrier(b: Block, op: mlir.Operation, active: Array) -> None:
    assert active.all(), "not all threads reach a barrier"
    b.now += 1


@rule("gpu.shuffle")
def shuffle(b: Block, op: mlir.Operation, active: Array) -> None:
    assert active.all(), "not all threads reach a shuffle"
    value, offset, width = (b.each(b.values[v]) for v in op.operands)
    assert (width == _SUBGROUP).all()
    mode = str(op.attributes["mode"]).split()[-1].rstrip(">")
    lane = np.arange(b.threads) % _SUBGROUP
    other = {"xor": lane ^ offset, "down": lane + offset, "up": lane - offset, "idx": offset}[mode]
    valid = (other >= 0) & (other < _SUBGROUP)
    b.values[op.results[0]] = value[np.arange(b.threads) - lane + np.where(valid, other, lane)]
    b.values[op.results[1]] = valid


@rule("memref.alloc")
def alloc(b: Block, op: mlir.Operation, active: Array) -> None:
    b.values[op.results[0]] = Shared(mlir.MemRefType(op.results[0].type))


@rule("memref.load")
def load(b: Block, op: mlir.Operation, active: Array) -> None:
    memory, *indices = (b.values[v] for v in op.operands)
    b.values[op.results[0]] = b.load(memory, b.place(memory, indices, active), active)


@rule("memref.atomic_rmw")
def combine(b: Block, op: mlir.Operation, active: Array) -> None:
    value, memory, *indices = (b.values[v] for v in op.operands)
    places = b.place(memory, indices, active)
    _COMBINE[kind_of(op)].at(memory.reshape(-1), places, b.each(value)[active])


@rule("memref.store")
def store(b: Block, op: mlir.Operation, active: Array) -> None:
    value, memory, *indices = (b.values[v] for v in op.operands)
    b.store(value, memory, b.place(memory, indices, active), active)


@rule("vector.load")
def load_vector(b: Block, op: mlir.Operation, active: Array) -> None:
    memory, *indices = (b.values[v] for v in op.operands)
    (width,) = op.results[0].type.shape
    start = b.place(memory, indices, active)
    assert not (start % width).any(), "a vector is not aligned"
    note_conflicts(b, memory, start, active, width)
    b.values[op.results[0]] = np.stack([b.load(memory, start + lane, active) for lane in range(width)], 1)


def note_conflicts(b: Block, memory: Any, start: Array, active: Array, width: int) -> None:
    """How many of eight threads that read 16 bytes each, all at once, meet in a bank at other places."""
    if not isinstance(memory, Shared) or width * memory.data.itemsize != 16 or not active.all():
        return
    for places in start.reshape(-1, 8) // width:
        b.conflicts = max(b.conflicts, int(np.bincount(np.unique(places) % 8).max()))


@rule("vector.store")
def store_vector(b: Block, op: mlir.Operation, active: Array) -> None:
    value, memory, *indices = (b.values[v] for v in op.operands)
    (width,) = op.operands[0].type.shape
    start = b.place(memory, indices, active)
    assert not (start % width).any(), "a vector is not aligned"
    for lane in range(width):
        b.store(value[:, lane], memory, start + lane, active)


@rule("vector.extract")
def extract(b: Block, op: mlir.Operation, active: Array) -> None:
    b.values[op.results[0]] = b.values[op.operands[0]][(slice(None), *op.attributes["static_position"])]


@rule("vector.insert")
def insert(b: Block, op: mlir.Operation, active: Array) -> None:
    value, whole = (b.values[v] for v in op.operands)
    found = whole.copy()
    found[(slice(None), *op.attributes["static_position"])] = value
    b.values[op.results[0]] = found


@rule("vector.from_elements")
def from_elements(b: Block, op: mlir.Operation, active: Array) -> None:
    columns = [b.each(b.values[v]) for v in op.operands]
    b.values[op.results[0]] = np.stack(columns, 1).reshape(b.threads, *op.results[0].type.shape)


@rule("scf.if")
def branch(b: Block, op: mlir.Operation, active: Array) -> None:
    condition = b.each(b.values[op.operands[0]])
    found: list[list[Any]] = []
    for region, mask in zip(op.regions, (active & condition, active & ~condition)):
        blocks = list(region.blocks)
        taken = bool(blocks) and mask.any()
        found.append(b.run(blocks[0], mask) if taken else [])
    for n, result in enumerate(op.results):
        one, other = (values[n] if values else np.zeros(b.threads, dtype_of(result.type)) for values in found)
        b.values[result] = np.where(condition, one, other)


@rule("scf.for")
def loop(b: Block, op: mlir.Operation, active: Array) -> None:
    lower, upper, step, *carried = (b.values[v] for v in op.operands)
    body = op.regions[0].blocks[0]
    i, upper = b.each(lower).copy(), b.each(upper)
    while (mask := active & (i < upper)).any():
        for argument, value in zip(body.arguments, [i.copy(), *carried], strict=True):
            b.values[argument] = value
        inside = b.run(body, mask)
        carried = [np.where(mask.reshape(-1, *[1] * (np.ndim(n) - 1)), n, c) for n, c in zip(inside, carried)]
        i = i + step
    for result, value in zip(op.results, carried, strict=True):
        b.values[result] = value


@rule("nvgpu.device_async_copy")
def copy(b: Block, op: mlir.Operation, active: Array) -> None:
    to, to_place, source, source_place, *count = (b.values[v] for v in op.operands)
    width = op.attributes["dstElements"].value
    assert width * source.itemsize == 16
    start, origin = b.place(to, [to_place], active), b.place(source, [source_place], active)
    assert not (start % width).any() and not (origin % width).any(), "a copy is not aligned"
    threads = np.nonzero(active)[0]
    for lane in range(width):
        valid = b.each(count[0])[active] > lane if count else np.ones(len(threads), bool)
        values = np.where(valid, source[np.where(valid, origin + lane, 0)], np.zeros(1, source.dtype))
        to.check_store(start + lane, threads, b.now)
        to.wrote[start + lane] = -1
        b.copies.append((to, start + lane, values, threads))


@rule("nvgpu.device_async_create_group")
def group(b: Block, op: mlir.Operation, active: Array) -> None:
    assert active.all(), "not all threads end a group of copies"
    b.groups.append(b.copies)
    b.copies = []


@rule("nvgpu.device_async_wait")
def wait(b: Block, op: mlir.Operation, active: Array) -> None:
    kept = op.attributes["numGroups"].value
    while len(b.groups) > kept:
        for to, places, values, threads in b.groups.pop(0):
            to.data[places] = values
            to.wrote[places] = b.now
            to.writer[places] = threads


@rule("nvgpu.ldmatrix")
def ldmatrix(b: Block, op: mlir.Operation, active: Array) -> None:
    """Thread 8n + r gives the place of row r of matrix n; thread 4g + t gets the t-th 4 bytes of row g of each matrix,
    or of column g where they are transposed (PTX ISA, "ldmatrix")."""
    assert active.all(), "not all threads reach ldmatrix"
    memory, index = (b.values[v] for v in op.operands)
    tiles, width = op.results[0].type.shape
    starts = b.place(memory, [index], active)
    assert not (starts % (16 // memory.data.itemsize)).any(), "a row is not aligned"
    for n in range(tiles):  # the banks of eight rows
        rows = starts.reshape(-1, 4, 8)[:, n] * memory.data.itemsize // 16 % 8
        b.conflicts = max(b.conflicts, *(int(np.bincount(row).max()) for row in rows))
    lane = np.arange(b.threads) % _SUBGROUP
    first = np.arange(b.threads) - lane
    g, t = lane // 4, lane % 4
    found = np.zeros((b.threads, tiles, width), memory.data.dtype)
    for n in range(tiles):
        for element in range(width):
            column = width * t + element
            row, within = (column, g) if op.attributes["transpose"].value else (g, column)
            found[:, n, element] = b.load(memory, starts[first + 8 * n + row] + within, active)
    b.values[op.results[0]] = found


def multiply_doubles(b: Block, op: mlir.Operation, left: Array, right: Array, before: Array) -> None:
    """PTX ISA, "Matrix fragments for mma.m8n8k4 with .f64 floating point type"."""
    warps = b.threads // _SUBGROUP
    a = left.reshape(warps, 8, 4)
    c = right.reshape(warps, 8, 4).swapaxes(1, 2)
    product = (a @ c).reshape(warps * 8, 4, 2)
    b.values[op.results[0]] = before + product.reshape(b.threads, 1, 2)


@rule("nvgpu.mma.sync")
def mma(b: Block, op: mlir.Operation, active: Array) -> None:
    """PTX ISA, "Matrix fragments for mma.m16n8k16", and m16n8k8 for tf32, of which the low 13 bits are not read."""
    assert active.all(), "not all threads reach mma.sync"
    left, right, before = (b.values[v] for v in op.operands)
    depth = op.attributes["mmaShape"][2].value
    width = depth // 8
    if left.dtype == np.float64:
        multiply_doubles(b, op, left, right, before)
        return
    if left.dtype == np.float32:
        left, right = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (left, right))
    warps = b.threads // _SUBGROUP
    lane = np.arange(_SUBGROUP)
    g, t = lane // 4, lane % 4
    a, c = np.zeros((warps, 16, depth), np.float32), np.zeros((warps, depth, 8), np.float32)
    split = [x.astype(np.float32).reshape(warps, _SUBGROUP, *x.shape[1:]) for x in (left, right, before)]
    for n in range(4):
        for element in range(width):
            a[:, g + 8 * (n % 2), width * t + element + depth // 2 * (n // 2)] = split[0][:, :, n, element]
            if n < 2:
                c[:, width * t + element + depth // 2 * n, g] = split[1][:, :, n, element]
    product = a @ c
    found = split[2].copy()
    for i in range(2):
        for j in range(2):
            found[:, :, i, j] += product[:, g + 8 * i, 2 * t + j]
    b.values[op.results[0]] = found.reshape(b.threads, 2, 2)


def simulate(
    module: mlir.Module, name: str, *arrays: Array, results: int = 1, conflicts: list[int] | None = None
) -> list[Array]:
    """The last `results` arrays after the launches of a kernel function; `conflicts` learns the worst of each block."""
    plan = read_plan(module, name)
    buffers: list[Any] = [np.ascontiguousarray(a).reshape(-1).copy() for a in arrays]
    kernels = {op.attributes["sym_name"].value: op for op in operations(module) if op.name == "gpu.func"}
    for launch in plan.launches:
        kernel = kernels[launch.name]
        for slot, argument in zip(launch.buffers, kernel.regions[0].blocks[0].arguments, strict=True):
            dtype = dtype_of(argument.type)
            if slot >= len(arrays):
                buffers += [None] * (slot + 1 - len(buffers))
                if buffers[slot] is None:
                    buffers[slot] = np.zeros(int(np.prod(argument.type.shape, dtype=int)), dtype)
        given = [buffers[slot] for slot in launch.buffers]
        for z in range(launch.grid[2]):
            for y in range(launch.grid[1]):
                for x in range(launch.grid[0]):
                    with np.errstate(all="ignore"):
                        block = Block(kernel, (x, y, z), given)
                    if conflicts is not None:
                        conflicts.append(block.conflicts)
    first = len(arrays) - results
    return [buffers[n].reshape(arrays[n].shape) for n in range(first, len(arrays))]
