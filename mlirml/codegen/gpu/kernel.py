"""A kernel under construction: memory arguments, constants, index arithmetic, loads and stores, and its launch."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.values import is_tensor
from mlirml.codegen.cpu.frame import flatten
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.targets.machine import Device

WORKGROUP = "#gpu.address_space<workgroup>"


THREADS = 256
"""The number of threads in a block that processes elements, rows or scans, which every device has."""


@dataclass(frozen=True)
class Choices:
    """The choices of the user for kernels, beyond the device.

    `naive`: each element has a thread, without shared memory. `tf32`: products of f32 may use tensor cores.
    `deterministic`: sums and products of floats use no atomic operations.
    """

    naive: bool = False
    tf32: bool = False
    deterministic: bool = True


class Host:
    """The function on memrefs that launches kernels: the memory of each tensor, and temporaries."""

    def __init__(self, function: mlir.Operation, kernels: mlir.Block, device: Device, choices: Choices) -> None:
        self.function = function
        self.name: str = function.attributes["sym_name"].value
        self.device = device
        self.choices = choices
        self.kernels = kernels
        self.buffers: dict[mlir.Value, mlir.Value] = {}
        self.scalars: dict[mlir.Value, mlir.Value] = {}
        self.extents: dict[object, mlir.Value] = {}
        self._flat: dict[mlir.Value, mlir.Value] = {}
        self._views: dict[Hashable, mlir.Value] = {}
        self._count = 0
        self.built: list[mlir.Operation] = []
        arguments = list(function.regions[0].blocks[0].arguments)
        types = [memref_of(a.type) for a in arguments]
        attributes = {
            "sym_name": mlir.StringAttr.get(f"{self.name}__launch"),
            "sym_visibility": mlir.StringAttr.get("private"),
            "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(types, [])),
        }
        self.op = emit.create("func.func", attributes=attributes, regions=1)
        self.block = self.op.regions[0].blocks.append(*types, arg_locs=[function.location] * len(types))
        for argument, own in zip(arguments, self.block.arguments, strict=True):
            (self.buffers if is_tensor(argument) else self.scalars)[argument] = own
        with mlir.InsertionPoint(self.block):
            self.end = emit.create("func.return")

    def temporary(self, tensor: mlir.Value) -> None:
        """Allocate device memory for a tensor between two launches."""
        with mlir.InsertionPoint(self.end):
            attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
            memory = emit.create("memref.alloc", (), [memref_of(tensor.type)], attributes)
        self.buffers[tensor] = memory.results[0]

    def array(self, shape: Sequence[int], type_: mlir.Type) -> mlir.Value:
        """Allocate one-dimensional device memory that belongs to no tensor."""
        with mlir.InsertionPoint(self.end):
            attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
            memory = mlir.MemRefType.get([math.prod(shape)], type_)
            return emit.create("memref.alloc", (), [memory], attributes).results[0]

    def flat(self, tensor: mlir.Value) -> mlir.Value:
        """The memory of a tensor, or a memory, as one dimension."""
        memory = self.buffers.get(tensor, tensor)
        if memory not in self._flat:
            with mlir.InsertionPoint(self.end):
                self._flat[memory] = flatten(memory)
        return self._flat[memory]

    def view(self, tensor: mlir.Value, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> mlir.Value:
        """The memory of a tensor with other dimensions."""
        memory = self.flat(tensor)
        key = (memory, offset, *sizes, *strides)
        if key not in self._views:
            layout = mlir.StridedLayoutAttr.get(offset, list(strides))
            type_ = mlir.MemRefType.get(list(sizes), memory.type.element_type, layout)
            attributes = {
                "static_offsets": mlir.DenseI64ArrayAttr.get([offset]),
                "static_sizes": mlir.DenseI64ArrayAttr.get(list(sizes)),
                "static_strides": mlir.DenseI64ArrayAttr.get(list(strides)),
                "operandSegmentSizes": emit.segments(1, 0, 0, 0),
            }
            with mlir.InsertionPoint(self.end):
                self._views[key] = emit.value("memref.reinterpret_cast", [memory], type_, **attributes)
        return self._views[key]

    @contextmanager
    def kernel(self, hint: str, threads: Sequence[int], form: type[Kernel] | None = None) -> Iterator[Kernel]:
        """Build a kernel at the ambient location, and launch it after those so far; it is erased after an exception."""
        self._count += 1
        name = self.name if self._count == 1 else f"{self.name}_{self._count}"
        kernel = (form or Kernel)(self, f"{name}_{hint}" if hint not in name else name, threads)
        try:
            with mlir.InsertionPoint(kernel.block):
                yield kernel
                emit.create("gpu.return")
        except NoMatch:
            self._count -= 1
            kernel.op.erase()
            raise
        kernel.finish()
        self.built.append(kernel.op)
        self.launch(kernel)

    def launch(self, kernel: Kernel) -> None:
        """Build the `gpu.launch_func` of a finished kernel."""
        with mlir.InsertionPoint(self.end):
            sizes = [emit.index(n) if isinstance(n, int) else n for n in (*kernel.grid, *kernel.threads)]
            operands = [*sizes, *kernel.operands]
            segments = emit.segments(0, *[1] * 6, 0, 0, 0, 0, len(kernel.operands), 0)
            symbol = mlir.Attribute.parse(f"@kernels::@{kernel.name}")
            emit.create("gpu.launch_func", operands, (), {"kernel": symbol, "operandSegmentSizes": segments})


class Kernel:
    """A `gpu.func` under construction. Memory is one-dimensional and becomes an argument when it is first used.

    `known` has computed values: entries of an outer region are visible in inner ones, but not vice versa. `forms` has
    those of the indices that were computed.
    """

    def __init__(self, host: Host, name: str, threads: Sequence[int]) -> None:
        self.host = host
        self.name = name
        self.threads = (*threads, *[1] * (3 - len(threads)))
        self.grid: tuple[int | mlir.Value, ...] = (1, 1, 1)
        self.operands: list[mlir.Value] = []
        self.known: ChainMap[Hashable, Any] = ChainMap()
        self.forms: dict[mlir.Value, Form] = {}
        self.lanes = 0
        self.shared_arrays: dict[Hashable, mlir.Value] = {}
        self.index = mlir.IndexType.get()
        self._arguments: dict[mlir.Value, mlir.Value] = {}
        self._constants: dict[Hashable, mlir.Value] = {}
        attributes = {
            "sym_name": mlir.StringAttr.get(name),
            "gpu.kernel": mlir.UnitAttr.get(),
            "known_block_size": mlir.DenseI32ArrayAttr.get(list(self.threads)),
            "function_type": mlir.TypeAttr.get(mlir.FunctionType.get([], [])),
        }
        with mlir.InsertionPoint(host.kernels):
            self.op = emit.create("gpu.func", attributes=attributes, regions=1)
        self.block = self.op.regions[0].blocks.append()
        with mlir.InsertionPoint(self.block):
            self._constants[self.index, 0] = emit.index(0)
        self.front = mlir.InsertionPoint(self._constants[self.index, 0].owner.operation)

    def finish(self) -> None:
        """Set the function type to that of the arguments."""
        types = [a.type for a in self.block.arguments]
        self.op.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))

    def argument(self, outside: mlir.Value) -> mlir.Value:
        """The argument for a value of the host function."""
        if outside not in self._arguments:
            self.operands.append(outside)
            self._arguments[outside] = self.block.add_argument(outside.type, mlir.Location.current)
        return self._arguments[outside]

    def memory(self, tensor: mlir.Value) -> mlir.Value:
        """The memory of a tensor that the host knows."""
        return self.argument(self.host.flat(tensor))

    def constant(self, number: float, type_: mlir.Type | None = None) -> mlir.Value:
        """A constant at the start of the function; an index if no type is given."""
        type_ = type_ or self.index
        key = (type_, float(number).hex() if isinstance(type_, mlir.FloatType) else number)
        if key not in self._constants:
            with self.front:
                self._constants[key] = emit.number(type_, number)
        return self._constants[key]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope of known values: values computed in it are not known after it."""
        outside, self.known = self.known, self.known.new_child()
        yield
        self.known = outside

    def once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """The result of `build`, which is called if the key is not known."""
        if key not in self.known:
            self.known[key] = build()
        return self.known[key]

    def thread(self, dimension: str = "x") -> Form:
        """The number of a thread in its block."""
        return self._position("gpu.thread_id", dimension, self.threads["xyz".index(dimension)])

    def block_number(self, dimension: str = "x") -> Form:
        """The number of a block in the grid, which must be set already."""
        extent = self.grid["xyz".index(dimension)]
        return self._position("gpu.block_id", dimension, extent if isinstance(extent, int) else None)

    def _position(self, name: str, dimension: str, extent: int | None) -> Form:
        if extent == 1:
            return Form()
        key = (name, dimension)
        if key not in self._constants:
            with self.front:
                attribute = mlir.Attribute.parse(f"#gpu<dim {dimension}>")
                self._constants[key] = emit.value(name, (), self.index, dimension=attribute)
        return form(Digit(Base(self._constants[key], extent)))

    def cover(self, blocks: int) -> Form:
        """Set a grid of at least `blocks` blocks; returns the number of the block, which may be beyond them."""
        width = max(min(blocks, self.host.device.blocks), 1)
        self.grid = (width, -(-blocks // width), 1)
        return self.block_number("y") * width + self.block_number("x")

    def at(self, index: Form | int) -> mlir.Value:
        """The SSA value of a form."""
        if isinstance(index, int):
            return self.constant(index)
        if not index.terms:
            return self.constant(index.constant)
        found: mlir.Value = self.once(("at", index), lambda: self._compute(index))
        self.forms.setdefault(found, index)
        return found

    def _compute(self, index: Form) -> mlir.Value:
        if index.constant:
            return self._arith("addi", self.at(Form(index.terms)), self.constant(index.constant))
        *front, (digit, factor) = index.terms
        term = self.digit(digit)
        if factor != 1:
            key = ("times", digit, factor)
            term = self.once(key, lambda: self._arith("muli", term, self.constant(factor)))
        return self._arith("addi", self.at(Form(tuple(front))), term) if front else term

    def digit(self, digit: Digit) -> mlir.Value:
        """The SSA value of a digit."""
        start = digit.base.value
        base: mlir.Value = self.at(start) if isinstance(start, Form) else start
        if digit.stride != 1:
            outside = Digit(digit.base, digit.stride)
            base = self.once(("digit", outside), lambda: self._arith("divui", base, self.constant(digit.stride)))
        if digit.is_top:
            return base
        size = digit.size
        assert size is not None
        return self.once(("digit", digit), lambda: self._arith("remui", base, self.constant(size)))

    def _arith(self, name: str, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        return emit.value(f"arith.{name}", [a, b], self.index)

    def below(self, index: Form, bound: int) -> mlir.Value | None:
        """True (i1) if an index is below a bound; None if it always is."""
        high = index.range[1]
        if high is not None and high < bound:
            return None
        return self.once(("below", index, bound), lambda: emit.compare("slt", self.at(index), self.constant(bound)))

    def clamped(self, index: Form, bound: int) -> Form:
        """An index clamped to the last one below `bound`."""
        if self.below(index, bound) is None:
            return index
        last = self.constant(bound - 1)
        name = self.once(("clamped", index, bound), lambda: self._arith("minui", self.at(index), last))
        return form(Digit(Base(name, bound)))

    def guarded(self, conditions: Sequence[mlir.Value | None], body: Callable[[], None]) -> None:
        """Build `body` under all conditions; None is always true."""
        needed = [c for c in dict.fromkeys(conditions) if c is not None]
        if not needed:
            body()
            return
        op = emit.create("scf.if", [self.all_of(needed)], (), regions=2)
        with mlir.InsertionPoint(emit.block(op, [])):
            with self.scope():
                body()
            emit.create("scf.yield")

    def all_of(self, conditions: Sequence[mlir.Value]) -> mlir.Value:
        """The conjunction of conditions."""
        result = conditions[0]
        for other in conditions[1:]:
            result = emit.same_type("arith.andi", result, other)
        return result

    def choose(
        self,
        condition: mlir.Value,
        then: Callable[[], mlir.Value],
        otherwise: Callable[[], mlir.Value],
        type_: mlir.Type,
    ) -> mlir.Value:
        """`scf.if` with one result."""

        def branch(build: Callable[[], mlir.Value]) -> Callable[[], list[mlir.Value]]:
            def inner() -> list[mlir.Value]:
                with self.scope():
                    return [build()]

            return inner

        return emit.conditional(condition, branch(then), branch(otherwise), [type_])[0]

    def loop(
        self,
        bounds: tuple[Form | int, Form | int, int],
        body: Callable[[Form, list[mlir.Value]], Sequence[mlir.Value]],
        inits: Sequence[mlir.Value] = (),
        extent: int | None = None,
    ) -> list[mlir.Value]:
        """`scf.for` from, below, by; `body(i, carried)` returns the yielded values; i is less than `extent`."""
        lower, upper, step = bounds
        if isinstance(lower, int) and isinstance(upper, int):
            if upper <= lower:
                return list(inits)
            if upper - lower <= step:
                return list(body(form(lower), list(inits)))
            extent = upper

        def inner(i: mlir.Value, carried: list[mlir.Value]) -> Sequence[mlir.Value]:
            with self.scope():
                return body(form(Digit(Base(i, extent))), carried)

        return emit.for_loop(self.at(lower), self.at(upper), self.constant(step), inner, inits)

    def load(self, tensor: mlir.Value, index: Form) -> mlir.Value:
        """Load an element; with `lanes`, out of an aligned vector that is loaded once."""
        memory = self.memory(tensor)
        type_ = memory.type.element_type
        width = self._width(memory)
        aligned = index - index.constant % width if width > 1 else index
        if width == 1 or not aligned.is_multiple_of(width):
            return self.once(
                ("load", memory, index), lambda: emit.value("memref.load", [memory, self.at(index)], type_)
            )
        whole = self.once(("vector", memory, aligned), lambda: self.load_vector(memory, aligned, width))
        lane = index.constant % width
        return self.once(("lane", whole, lane), lambda: extract(whole, lane))

    def _width(self, memory: mlir.Value) -> int:
        """The lanes of the vectors in which a buffer is read and written."""
        type_ = memory.type.element_type
        if self.lanes < 2 or not vectorisable(type_) or not memory.type.has_static_shape:
            return 1
        width = min(self.lanes, 16 // element_bytes(type_))
        return width if width > 1 and memory.type.shape[0] % width == 0 else 1

    def load_vector(self, memory: mlir.Value, index: Form, width: int) -> mlir.Value:
        """`vector.load` of aligned elements."""
        type_ = memory.type.element_type
        alignment = emit.i64(width * element_bytes(type_))
        vector = mlir.VectorType.get([width], type_)
        return emit.value("vector.load", [memory, self.at(index)], vector, alignment=alignment)

    def store(self, tensor: mlir.Value, elements: Sequence[tuple[Form, mlir.Value]]) -> None:
        """Store elements; adjacent ones that form an aligned vector are stored as one."""
        memory = self.memory(tensor)
        width = self._width(memory)
        rest = list(elements)
        while width > 1 and len(rest) >= width:
            part, rest = rest[:width], rest[width:]
            first = part[0][0]
            if first.is_multiple_of(width) and all(at == first + lane for lane, (at, _) in enumerate(part)):
                self.store_vector(memory, first, [value for _, value in part])
            else:
                self._store_each(memory, part)
        self._store_each(memory, rest)

    def _store_each(self, memory: mlir.Value, elements: Sequence[tuple[Form, mlir.Value]]) -> None:
        for index, value in elements:
            emit.create("memref.store", [value, memory, self.at(index)])

    def store_vector(self, memory: mlir.Value, index: Form, values: Sequence[mlir.Value]) -> None:
        """`vector.store` of elements to an aligned offset."""
        type_ = memory.type.element_type
        alignment = emit.i64(len(values) * element_bytes(type_))
        vector = emit.value("vector.from_elements", list(values), mlir.VectorType.get([len(values)], type_))
        emit.create("vector.store", [vector, memory, self.at(index)], (), {"alignment": alignment})

    def shared(self, shape: Sequence[int], type_: mlir.Type) -> mlir.Value:
        """Allocate an array that the threads of a block share."""
        with self.front:
            space = mlir.Attribute.parse(WORKGROUP)
            memory = mlir.MemRefType.get(list(shape), type_, memory_space=space)
            attributes = {"operandSegmentSizes": emit.segments(0, 0)}
            return emit.create("memref.alloc", (), [memory], attributes).results[0]

    def read(self, memory: mlir.Value, *indices: Form | int) -> mlir.Value:
        """Load an element of a shared array."""
        return emit.value("memref.load", [memory, *map(self.at, indices)], memory.type.element_type)

    def write(self, value: mlir.Value, memory: mlir.Value, *indices: Form | int) -> None:
        """Store into a shared array."""
        emit.create("memref.store", [value, memory, *map(self.at, indices)])

    def barrier(self) -> None:
        """Wait for all threads of the block."""
        emit.create("gpu.barrier")


def extract(vector: mlir.Value, lane: int) -> mlir.Value:
    """A lane of a vector."""
    position = mlir.DenseI64ArrayAttr.get([lane])
    return emit.value("vector.extract", [vector], vector.type.element_type, static_position=position)


def vectorisable(type_: mlir.Type) -> bool:
    """True if vectors of these elements have the memory layout of the elements: a vector of i1 is packed into bits."""
    return isinstance(type_, mlir.FloatType) or (isinstance(type_, mlir.IntegerType) and type_.width >= 8)


def memref_of(type_: mlir.Type) -> mlir.Type:
    """The memref type of a tensor type; other types unchanged."""
    if not isinstance(type_, mlir.RankedTensorType):
        return type_
    return mlir.MemRefType.get(type_.shape, type_.element_type)
