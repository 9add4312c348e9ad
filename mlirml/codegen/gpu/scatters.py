"""Scatters of many updates: all threads of the device compute them, with the same result as the loop.

    for k in positions: out[i[k]] = combine(out[i[k]], v[k])

- Combinations whose order does not matter, as those of integers and all extrema: one atomic operation per thread.
- Sums and products of floats too, whose last bits then depend on the order of the threads.
- Stores: `last[i[k]] = max(last[i[k]], k + 1)` by atomic operations, then the last update is stored.
- Everything else, and sums of floats that have to be `deterministic`: the updates are sorted by target and number,
  and one thread combines all updates of one target, in order. So the result is bitwise that of the loop, whatever the
  order of the threads.

Few updates, and those of rows so long that a thread for each of their elements fills the device, stay loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlirml.codegen.gpu.bitonic import lanes_of, load, power_above, sort_rows
from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.elements import Elements, form_of, kept_dims, slice_parts
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.core.dataclass import dataclass
from mlirml.dialects.atomics import KIND_OF, KINDS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch

EachBody: TypeAlias = "Callable[[Kernel, Form], None]"
ElementBody: TypeAlias = "Callable[[Kernel, Form, Sequence[Form]], None]"

FEW = 256
"""Fewer updates are sequential."""
FEW_ATOMIC = 32
"""The same limit for updates of one launch, by atomic operations."""
LONG_ROWS = 64
"""With rows of this many elements for each update, the sequential loop is as fast."""
FULL = 1 << 14
"""With rows of this many elements, too: the threads of one fill a device."""
_SUMS_OF = {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}
"""Differences, as sums of negated terms."""
_NOWHERE = (1 << 31) - 1


@dataclass(frozen=True)
class Scatter:
    """Loops with these sizes, whose innermost operation stores, possibly combined with the element it overwrites.

    `combine` is the operation, one of whose operands is the old element, and the other one `update`: scalars, or the
    inputs of `body`, an elementwise operation on slices.
    """

    loops: tuple[mlir.Operation, ...]
    sizes: tuple[int, ...]
    store: mlir.Operation
    slice: tuple[int, ...]
    combine: mlir.Operation | None
    update: mlir.Value

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    @property
    def first_is_old(self) -> bool:
        """True if the first operand of `combine` is the old element."""
        assert self.combine is not None
        first = self.combine.operands[0]
        if not self.slice:
            return bool(first != self.update)
        body = defining_op(self.store.operands[0])
        assert body is not None
        number = list(body.regions[0].blocks[0].arguments).index(first)
        return bool(body.operands[number] != self.update)

    @property
    def element_type(self) -> mlir.Type:
        return self.store.results[0].type.element_type


def match_scatter(loops: Sequence[mlir.Operation], bounds: Sequence[Sequence[int]], store: mlir.Operation) -> Scatter:
    """Read nested loops with a store in the innermost one as independent updates; raises NoMatch."""
    if any(low != 0 or step != 1 for low, _, step in bounds):
        raise NoMatch("the loops do not count from 0")
    sizes = tuple(high for _, high, _ in bounds)
    carried = loops[-1].regions[0].blocks[0].arguments[1]
    value = store.operands[0]
    part: tuple[int, ...] = ()
    if store.name == "tensor.insert_slice":
        part = tuple(store.attributes["static_sizes"])
        check_rows(store, part)
        combine, update = match_rows(store, carried)
    else:
        combine, update = match_element(store, carried)
    if reads(update, carried) or any(reads(operand, carried) for operand in indices_of(store)):
        raise NoMatch("an update depends on those before it")
    return Scatter(tuple(loops), sizes, store, part, combine, value if combine is None else update)


def indices_of(store: mlir.Operation) -> list[mlir.Value]:
    return list(store.operands)[2:]


def check_rows(store: mlir.Operation, part: Sequence[int]) -> None:
    """Check that slices are equal or disjoint: they have offsets only in dimensions of unit size."""
    unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
    if any(size < 0 for size in part):
        raise NoMatch("the slices have no known size")
    for offset, size in zip(store.attributes["static_offsets"], part, strict=True):
        if offset == unknown and size != 1:
            raise NoMatch("slices may overlap")


def match_element(store: mlir.Operation, carried: mlir.Value) -> tuple[mlir.Operation | None, mlir.Value]:
    """The combination of a scalar with the old element, and the update; None for a store."""
    value = store.operands[0]
    op = defining_op(value)
    if not reads(value, carried):
        return None, value
    if op is None or not op.name.startswith("arith.") or len(op.operands) != 2 or op.regions:
        raise NoMatch("an update is combined in another way")
    old = [operand for operand in op.operands if is_old(operand, store, carried)]
    new = [operand for operand in op.operands if not is_old(operand, store, carried)]
    if len(old) != 1 or len(new) != 1:
        raise NoMatch("an update is combined in another way")
    return op, new[0]


def is_old(value: mlir.Value, store: mlir.Operation, carried: mlir.Value) -> bool:
    """True if a value is the element that a store overwrites."""
    op = defining_op(value)
    return (
        op is not None
        and op.name == "tensor.extract"
        and op.operands[0] == carried
        and list(op.operands)[1:] == indices_of(store)
    )


def match_rows(store: mlir.Operation, carried: mlir.Value) -> tuple[mlir.Operation | None, mlir.Value]:
    """The combination of a slice with the old one, and the update; None for a store."""
    value = store.operands[0]
    if not reads(value, carried):
        return None, value
    op = defining_op(value)
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        raise NoMatch("slices are combined in another way")
    old = [n for n, operand in enumerate(op.operands) if is_old_slice(operand, store, carried)]
    body = op.regions[0].blocks[0]
    *ops, end = block_ops(body)
    maps = [m.value for m in op.attributes["indexing_maps"]]
    identity = mlir.AffineMap.get_identity(maps[0].n_dims)
    if (
        len(ops) != 1
        or len(op.operands) != 3
        or any(m != identity for m in maps)
        or end.operands[0] != ops[0].results[0]
    ):
        raise NoMatch("slices are combined in another way")
    used = [n for n, argument in enumerate(body.arguments) if any(True for _ in argument.uses)]
    rest = [n for n in used if n not in old]
    if len(used) != 2 or len(rest) != 1 or list(ops[0].operands) not in (
        [body.arguments[n] for n in used], [body.arguments[n] for n in used[::-1]]
    ):  # fmt: skip
        raise NoMatch("slices are combined in another way")
    return ops[0], op.operands[rest[0]]


def is_old_slice(value: mlir.Value, store: mlir.Operation, carried: mlir.Value) -> bool:
    """True if a slice is the one that a store overwrites."""
    op = defining_op(value)
    names = ("static_offsets", "static_sizes", "static_strides")
    return (
        op is not None
        and op.name == "tensor.extract_slice"
        and op.operands[0] == carried
        and list(op.operands)[1:] == indices_of(store)
        and all(op.attributes[name] == store.attributes[name] for name in names)
    )


def reads(value: mlir.Value, carried: mlir.Value) -> bool:
    """True if a value is computed from the tensor that a loop carries."""
    todo, seen = [value], set[mlir.Value]()
    while todo:
        found = todo.pop()
        if found == carried:
            return True
        op = defining_op(found)
        if found not in seen and op is not None and op.name != "scf.for":
            seen.add(found)
            todo += [operand for inner in operations(op) for operand in inner.operands]
    return False


def lower_scatter_in_parallel(host: Host, plan: Scatter, out: mlir.Value) -> None:
    """Build the kernels; `out` has the init of the loop. Raises NoMatch if the loop is as fast."""
    operation = atomic_operation(host, plan)
    row = math.prod(plan.slice)
    if plan.count < (FEW_ATOMIC if operation else FEW) or row >= min(LONG_ROWS * plan.count, FULL):
        raise NoMatch("there are few updates")
    if plan.combine is None:
        if "i32" not in host.device.atomics:
            raise NoMatch("the device has no atomic operations")
        Updates(host, plan, out).store_last()
    elif operation:
        Updates(host, plan, out).combine_atomically(operation)
    elif row >= plan.count:
        raise NoMatch("the rows are long")
    else:
        Updates(host, plan, out, loops_along_rows(plan)).combine_in_order()


def loops_along_rows(plan: Scatter) -> int:
    """The number of innermost loops that index a dimension of the result each: their iterations are disjoint."""
    count = 0
    indices = indices_of(plan.store) if not plan.slice else []
    for loop in reversed(plan.loops[1:]):
        variable = loop.regions[0].blocks[0].arguments[0]
        others = [element for element in indices if element != variable]
        if len(others) != len(indices) - 1 or any(reads(element, variable) for element in others):
            break
        count += 1
    return count


def atomic_operation(host: Host, plan: Scatter) -> str:
    """The atomic operation that combines; empty if there is none, or if the order matters."""
    if plan.combine is None or str(plan.element_type) not in host.device.atomics:
        return ""
    name = plan.combine.name
    if name in _SUMS_OF and plan.first_is_old:
        name = _SUMS_OF[name]
    ordered = name in COMBINERS and COMBINERS[name].is_rounded and host.choices.deterministic
    return "" if ordered else KIND_OF.get(name, "")


class Updates:
    """The kernels of one scatter.

    An update is an iteration of all loops but the last `inner` ones, which run over its elements.
    """

    def __init__(self, host: Host, plan: Scatter, out: mlir.Value, inner: int = 0) -> None:
        self.host = host
        self.plan = plan
        self.out = out
        outer = len(plan.loops) - inner
        self.inner = plan.loops[outer:]
        self.sizes = plan.sizes[:outer]
        self.count = math.prod(self.sizes)
        self.shape = plan.slice or plan.sizes[outer:]
        self.row = math.prod(self.shape)

    def enter(self, kernel: Kernel, number: Form, element: Sequence[Form] = ()) -> Elements:
        """Set the loop variables to an element of an update, the first one if no indices are given."""
        along = element or [form(0)] * len(self.inner)
        indices = [*cut_up(number, self.sizes), *(along if self.inner else ())]
        for loop, index in zip(self.plan.loops, indices, strict=True):
            kernel.known["scalar", loop.regions[0].blocks[0].arguments[0]] = kernel.at(index)
        return Elements(kernel)

    def origin(self, elements: Elements) -> Form:
        """The offset of the first element of an update in the output."""
        store, shape = self.plan.store, self.out.type.shape
        if store.name == "tensor.insert":
            return flat([form_of(elements.scalar(i)) for i in indices_of(store)], shape)
        offsets, _ = slice_parts(elements, store, 2)
        return flat(offsets, shape)

    def shift(self, element: Sequence[Form]) -> Form:
        """The offset of another element of an update from the first one."""
        if self.inner:
            variables = [loop.regions[0].blocks[0].arguments[0] for loop in self.inner]
            at = dict(zip(variables, element, strict=True))
            return flat([at.get(i, form(0)) for i in indices_of(self.plan.store)], self.out.type.shape)
        if not self.plan.slice:
            return form(0)
        strides = list(self.plan.store.attributes["static_strides"])
        return flat([p * s for p, s in zip(element, strides, strict=True)], self.out.type.shape)

    def value(self, elements: Elements, element: Sequence[Form]) -> mlir.Value:
        """An element of an update."""
        if not self.plan.slice:
            return elements.scalar(self.plan.update)
        kept = kept_dims(self.plan.store, list(self.plan.slice))
        return elements.get(self.plan.update, tuple(p for p, keep in zip(element, kept, strict=True) if keep))

    def combined(self, old: mlir.Value, new: mlir.Value) -> mlir.Value:
        """The old element and an update, combined."""
        op = self.plan.combine
        assert op is not None
        return emit.value(op.name, [old, new] if self.plan.first_is_old else [new, old], old.type)

    def each(self, hint: str, count: int, body: EachBody) -> None:
        """A kernel with a thread for each number."""
        threads = min(THREADS, count)
        with self.host.kernel(hint, (threads,)) as kernel:
            number = kernel.cover(-(-count // threads)) * threads + kernel.thread()
            kernel.guarded([kernel.below(number, count)], lambda: body(kernel, number))

    def each_element(self, hint: str, body: ElementBody, lanes: int = 1) -> None:
        """A kernel with a thread for each element of each update, or the first of `lanes` adjacent ones."""
        shape = [*self.shape[:-1], self.shape[-1] // lanes] if self.shape else []
        total = self.count * self.row // lanes

        def thread(kernel: Kernel, number: Form) -> None:
            update, *element = cut_up(form(Digit(Base(number, total))), [self.count, *shape])
            body(kernel, update, [*element[:-1], element[-1] * lanes] if element else [])

        self.each(hint, total, thread)

    def combine_atomically(self, operation: str) -> None:
        """Combine each element by an atomic operation."""
        assert self.plan.combine is not None
        negates = self.plan.combine.name in _SUMS_OF

        def body(kernel: Kernel, update: Form, element: Sequence[Form]) -> None:
            elements = self.enter(kernel, update)
            at = self.origin(elements) + self.shift(element)
            value = self.value(elements, element)
            if negates:
                zero = kernel.constant(-0.0 if operation == "addf" else 0, value.type)
                value = emit.same_type(f"arith.sub{operation[-1]}", zero, value)
            atomic(kernel, operation, value, kernel.memory(self.out), at)

        self.each_element("scatter", body)

    def store_last(self) -> None:
        """Find the last update of each element, and store it."""
        integer = mlir.IntegerType.get_signless(32)
        total = math.prod(self.out.type.shape)
        last = self.host.array([total], integer)

        def clear(kernel: Kernel, number: Form) -> None:
            kernel.write(kernel.constant(0, integer), kernel.argument(last), number)

        def claim(kernel: Kernel, number: Form) -> None:
            elements = self.enter(kernel, number)
            own = emit.value("arith.index_cast", [kernel.at(number + 1)], integer)
            atomic(kernel, "maxu", own, kernel.argument(last), self.origin(elements))

        lanes = lanes_of(self.shape[-1], self.plan.element_type) if self.shape else 1

        def store(kernel: Kernel, update: Form, element: Sequence[Form]) -> None:
            elements = self.enter(kernel, update)
            origin = self.origin(elements)
            own = emit.value("arith.index_cast", [kernel.at(update + 1)], integer)
            wins = emit.compare("eq", load(kernel, last, origin), own)
            parts = [[*element[:-1], element[-1] + lane] for lane in range(lanes)] if lanes > 1 else [element]

            def body() -> None:
                kernel.lanes = lanes
                kernel.store(self.out, [(origin + self.shift(part), self.value(elements, part)) for part in parts])

            kernel.guarded([wins], body)

        self.each("clear", total, clear)
        self.each("claim", self.count, claim)
        self.each_element("scatter", store, lanes)

    def combine_in_order(self) -> None:
        """Sort the updates by their target; a thread for each element of each target combines all of its updates."""
        integer = mlir.IntegerType.get_signless(32)
        count = self.count
        length = power_above(count + 1)  # at least one without a target ends the last run
        where, which = (self.host.array([length], integer) for _ in range(2))

        def keys(kernel: Kernel, number: Form) -> None:
            kernel.write(emit.value("arith.index_cast", [kernel.at(number)], integer), kernel.argument(which), number)

            def goes() -> mlir.Value:
                update = form(Digit(Base(kernel.at(number), count)))
                return emit.value("arith.index_cast", [kernel.at(self.origin(self.enter(kernel, update)))], integer)

            valid = emit.compare("slt", kernel.at(number), kernel.constant(count))
            key = kernel.choose(valid, goes, lambda: kernel.constant(_NOWHERE, integer), integer)
            kernel.write(key, kernel.argument(where), number)

        self.each("keys", length, keys)
        sort_rows(self.host, [where, which], 1, length, by_all_parts)
        self.each_element("scatter", lambda kernel, run, element: self.take_run(kernel, run, element, where, which))

    def take_run(
        self, kernel: Kernel, run: Form, element: Sequence[Form], where: mlir.Value, which: mlir.Value
    ) -> None:
        """Combine one element of all updates with one target, if this thread is at the first of them."""
        target = load(kernel, where, run)
        start = kernel.at(run)
        at_start = emit.compare("eq", start, kernel.constant(0))
        changes = kernel.choose(
            at_start,
            lambda: kernel.constant(1, mlir.IntegerType.get_signless(1)),
            lambda: emit.compare("ne", load(kernel, where, run - 1), target),
            mlir.IntegerType.get_signless(1),
        )

        def body() -> None:
            memory = kernel.memory(self.out)
            origin = emit.value("arith.index_cast", [target], kernel.index)
            at = kernel.at(form(Digit(Base(origin))) + self.shift(element))
            old = emit.value("memref.load", [memory, at], memory.type.element_type)
            emit.create("memref.store", [self.run(kernel, start, old, target, element, where, which), memory, at])

        kernel.guarded([changes], body)

    def run(
        self,
        kernel: Kernel,
        start: mlir.Value,
        old: mlir.Value,
        target: mlir.Value,
        element: Sequence[Form],
        where: mlir.Value,
        which: mlir.Value,
    ) -> mlir.Value:
        """`while where[j] == target: old = combine(old, update(which[j])); j += 1`."""
        integer = mlir.IntegerType.get_signless(32)
        types = [integer, old.type]
        op = emit.create("scf.while", [emit.value("arith.index_cast", [start], integer), old], types, regions=2)
        with mlir.InsertionPoint(emit.block(op, types, 0)), kernel.scope():
            j, value = op.regions[0].blocks[0].arguments
            here = load(kernel, where, as_form(j, kernel))
            emit.create("scf.condition", [emit.compare("eq", here, target), j, value])
        with mlir.InsertionPoint(emit.block(op, types, 1)), kernel.scope():
            j, value = op.regions[1].blocks[0].arguments
            number = emit.value("arith.index_cast", [load(kernel, which, as_form(j, kernel))], kernel.index)
            elements = self.enter(kernel, form(Digit(Base(number, self.count))), element)
            new = self.combined(value, self.value(elements, element))
            emit.create("scf.yield", [emit.same_type("arith.addi", j, kernel.constant(1, integer)), new])
        return op.results[1]


def as_form(number: mlir.Value, kernel: Kernel) -> Form:
    """A 32-bit integer as an index."""
    return form(Digit(Base(emit.value("arith.index_cast", [number], kernel.index))))


def by_all_parts(kernel: Kernel, a: Values, b: Values) -> mlir.Value:
    """True (i1) if an element is smaller, by its first part or, if that is equal, by its second."""
    less = emit.compare("slt", a[0], b[0])
    same = emit.compare("eq", a[0], b[0])
    return emit.same_type("arith.ori", less, emit.same_type("arith.andi", same, emit.compare("slt", a[1], b[1])))


def atomic(kernel: Kernel, operation: str, value: mlir.Value, memory: mlir.Value, at: Form) -> None:
    """`memref.atomic_rmw`."""
    attribute = emit.i64(KINDS.index(operation))
    emit.value("memref.atomic_rmw", [value, memory, kernel.at(at)], value.type, kind=attribute)
