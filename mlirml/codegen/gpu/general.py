"""General kernels: a thread computes an element, reductions are sequential loops in it.

Before (a kernel function on tensors):
    %s = linalg.generic {..., ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%z : tensor<4xf32>) {...}
    %r = linalg.generic {..., ["parallel"]} ins(%s : tensor<4xf32>) outs(%out : tensor<4xf32>) {...}
After: one launch for each reduction, and one for the remaining results:
    gpu.func @k_reduce(%x : memref<32xf32>, %s : memref<4xf32>) kernel {...}
    gpu.func @k_2_elementwise(%s : memref<4xf32>, %out : memref<4xf32>) kernel {...}
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from mlirml.analysis.bounds import is_dynamic
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.ordered_loops import SCATTER, is_ordered
from mlirml.analysis.structured import indexing_maps, is_contraction, sizes_of
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.contract.double_cores import check_double_cores, lower_double_contract
from mlirml.codegen.gpu.contract.multiply_add import check_multiply_add, lower_multiply_add
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.sized_tiles import is_pointwise, lower_sized_product, match_sized_product
from mlirml.codegen.gpu.contract.tensor_cores import check_tensor_cores, lower_tensor_contract
from mlirml.codegen.gpu.contract.tiles import lower_contract, match_contract
from mlirml.codegen.gpu.elements import Elements, apply, is_structured, out_map
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.loops import initial, lower_loop
from mlirml.codegen.gpu.neighbours import get_all
from mlirml.codegen.gpu.outs import (  # fmt: skip
    before_reshapes,
    body_of,
    carried_outs,
    depends_on_outs,
    is_used,
    returned,
)
from mlirml.codegen.gpu.rows import lower_rows, match_rows
from mlirml.codegen.gpu.sizes import each_element, extents, flat_index, has_dynamic_sizes, temporary
from mlirml.codegen.gpu.slices import (
    Chain,
    chain_of,
    fill_tensor,
    lower_chain,
    lower_chains,
    reads_late,
    versions_read,
    whole_copy,
)
from mlirml.codegen.gpu.sorts import lower_sort
from mlirml.codegen.gpu.streamed.fma import lower_streamed
from mlirml.codegen.gpu.streamed.mma import lower_tensor_streamed
from mlirml.codegen.gpu.streamed.plan import Plan, match_streamed
from mlirml.codegen.gpu.transforms import lower_transform
from mlirml.codegen.gpu.transpose import lower_transposition, match_transposition
from mlirml.codegen.tile.attention import lower_tile_attention
from mlirml.codegen.tile.contract import lower_tile_contract
from mlirml.codegen.tile.rows import lower_tile_rows
from mlirml.dialects.mlirml import OF_DEVICES, SORTS
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]
"""A tensor, and the tensor whose memory it is written into."""


def lower_general(host: Host, function: mlir.Operation) -> None:
    """Build launches for all computations of a function."""
    destinations = dict[mlir.Value, mlir.Value]()
    chains = [chain for value, out in returned(function) if (chain := chain_of(value, out)) is not None]
    dynamic = has_dynamic_sizes(function)
    for value, out in returned(function):
        destinations.setdefault(before_reshapes(value), out)
    for op in reversed(body_of(function)):
        if is_ordered(op) and (result := op.results[len(op.results) - 1]) in destinations:
            base = begun(op)
            made = defining_op(base)
            if made is not None and is_ordered(made) and sum(1 for _ in base.uses) == 1:
                destinations.setdefault(base, destinations[result])
    for op in body_of(function):
        if is_ordered(op):
            lower_ordered(host, op, destinations)
            continue
        if op.name in OF_DEVICES:
            assign(host, op.results[0], destinations)
            with op.location:
                (lower_sort if op.name in SORTS else lower_transform)(host, op)
            continue
        carried = carried_outs(op)
        stored = [
            n
            for n, result in enumerate(op.results)
            if carried and is_used(result) and (n in carried or depends_on_outs(op, n, carried))
        ]
        if not stored or (dynamic and is_only_stored(op, chains)):
            continue
        with op.location:
            if dynamic:
                if not lower_tiles(host, op, returned(function)):
                    lower_unknown(host, op, stored, destinations)
                continue
            for n in stored:
                assign(host, op.results[n], destinations)
            lower_one(host, op, stored)
    if dynamic:
        lower_dynamic_rest(host, function, chains)
        return
    lower_rest(host, function, [chain.out for chain in chains])
    lower_chains(host, chains)


def is_only_stored(op: mlir.Operation, chains: Sequence[Chain]) -> bool:
    """True if the only use of a reduction is a store into a slice, whose kernel then computes it."""
    users = [use.owner.operation for result in op.results for use in result.uses]
    return len(users) == 1 and any(users[0] == insert for chain in chains for insert in chain.inserts)


def lower_tiles(host: Host, op: mlir.Operation, stores: Sequence[Store]) -> bool:
    """Lower a contraction in a function with dynamic sizes, and what is computed from its elements; True if it is one.

    Other results are computed later, from its memory.
    """
    if host.choices.naive:
        return False
    try:
        product = match_sized_product(host, op)
    except NoMatch:
        return False
    outs = [out for _, out in stores]
    alone = all(is_pointwise(value, product) for value, _ in stores) and all(
        set(versions_read(value, outs, host)) <= {out} for value, out in stores
    )
    if not alone:
        temporary(host, op.results[0])
        memory = host.buffers.pop(op.results[0])
        lower_sized_product(host, product, [(op.results[0], memory)])
        host.buffers[op.results[0]] = memory
        return True
    lower_sized_product(host, product, stores)
    for value, out in stores:
        host.buffers[value] = host.buffers[out]
    return True


def lower_unknown(
    host: Host, op: mlir.Operation, stored: Sequence[int], destinations: dict[mlir.Value, mlir.Value]
) -> None:
    """Lower a reduction in a function with dynamic sizes."""
    for n in stored:
        result = op.results[n]
        if result in destinations and not is_read_by_others(destinations[result], op):
            host.buffers[result] = host.buffers[destinations[result]]
        else:
            temporary(host, result)
        fill_tensor(host, result)


def is_read_by_others(out: mlir.Value, op: mlir.Operation) -> bool:
    """True if another operation than `op` reads the old contents of the memory of a result."""
    users = [use.owner.operation for use in out.uses]
    return any(user.name != "func.return" and user != op for user in users) or len(users) > 1


def lower_ordered(host: Host, op: mlir.Operation, destinations: dict[mlir.Value, mlir.Value]) -> None:
    """Lower a scatter or a scan, in memory that contains its init."""
    result = op.results[len(op.results) - 1]
    start = initial(op)
    with op.location:
        base = begun(op)
        out = destinations.get(result)
        if base in host.buffers and out is not None and out in (base, destinations.get(base, start)):
            host.buffers[result] = host.buffers[base]
        else:
            assign(host, result, destinations)
            if not starts_empty(op):
                if is_dynamic(result):
                    lower_whole(host, [(start, result)])
                else:
                    lower_elementwise(host, result.type.shape, [(start, result)])
        lower_loop(host, op)


def begun(loop: mlir.Operation) -> mlir.Value:
    """The init of a loop, without the first store of a scan, which the scan kernel does itself."""
    value = initial(loop)
    op = None if SCATTER in loop.attributes else defining_op(value)
    while op is not None and op.name in TENSOR_STORES:
        value = op.operands[1]
        op = defining_op(value)
    return value


def starts_empty(loop: mlir.Operation) -> bool:
    """True if the init of a loop is an uninitialised tensor."""
    op = defining_op(begun(loop))
    return op is not None and op.name == "tensor.empty"


def lower_one(host: Host, op: mlir.Operation, stored: Sequence[int]) -> None:
    """The kernel of one reduction, by the best schedule that supports it."""
    results = [op.results[n] for n in stored]
    if not try_fused(host, [op], [(result, result) for result in results]):
        lower_reduction(host, op, stored)


def try_fused(host: Host, reductions: Sequence[mlir.Operation], stores: Sequence[Store]) -> bool:
    """Build one kernel for reductions and all stores, if a schedule supports them; True if one did."""
    if host.choices.naive:
        return False
    if len(reductions) == 1:
        with contextlib.suppress(NoMatch):
            product = match_contract(reductions[0], stores)
            lower_product(host, product, stores)
            return True
    if len(reductions) > 2 and is_contraction(reductions[-1]):
        with contextlib.suppress(NoMatch):
            lower_tile_attention(host, reductions[-1], stores)
            return True
    if [is_contraction(op) for op in reductions[:2]] == [True, False]:
        with contextlib.suppress(NoMatch):
            lower_tile_rows(host, reductions, stores)
            return True
    if len(reductions) > 1 and any(map(is_contraction, reductions)):
        with contextlib.suppress(NoMatch):
            lower_scores(host, match_streamed(reductions, stores))
            return True
        with contextlib.suppress(NoMatch):
            lower_apart(host, reductions, stores)
            return True
    with contextlib.suppress(NoMatch):
        lower_rows(host, match_rows(reductions, stores))
        return True
    return False


def lower_scores(host: Host, plan: Plan) -> None:
    """The kernel of streamed scores, on tensor cores if they support the factors; raises NoMatch."""
    with contextlib.suppress(NoMatch):
        lower_tensor_streamed(host, plan)
        return
    lower_streamed(host, plan)


def lower_apart(host: Host, reductions: Sequence[mlir.Operation], stores: Sequence[Store]) -> None:
    """The kernels of a product, and of reductions of rows that read it from memory; raises NoMatch."""
    first, *rest = reductions
    problem = match_rows(rest, stores)
    product = match_contract(first, [(first.results[0], first.results[0])])
    temporary(host, product.result)
    lower_product(host, product, [(product.result, product.result)])
    lower_rows(host, problem)


def lower_product(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """The kernel of a contraction, by the best schedule that supports it."""
    with contextlib.suppress(NoMatch):
        lower_tile_contract(host, product, stores)
        return
    for check, lower in (
        (check_tensor_cores, lower_tensor_contract),
        (check_multiply_add, lower_multiply_add),
        (check_double_cores, lower_double_contract),
    ):
        try:
            check(host, product)
        except NoMatch:
            continue
        lower(host, product, stores)
        return
    lower_contract(host, product, stores)


def assign(host: Host, value: mlir.Value, destinations: dict[mlir.Value, mlir.Value]) -> None:
    """Assign the memory of the returned tensor to `value`, or a temporary."""
    if value in destinations:
        host.buffers[value] = host.buffers[destinations[value]]
    else:
        temporary(host, value)


def lower_reduction(host: Host, op: mlir.Operation, stored: Sequence[int]) -> None:
    """A thread for each parallel point; outputs with all loops are stored during the reduction."""
    sizes = sizes_of(op)
    carried = carried_outs(op)
    if 0 in [sizes[d] for n in carried for d in dims_of(op, n)]:
        return
    reduced = [d for d in range(len(sizes)) if any(d not in dims_of(op, n) for n in carried)]
    parallel = [d for d in range(len(sizes)) if d not in reduced]
    shape = [sizes[d] for d in parallel]
    results = list(op.results)
    first_out = len(op.operands) - len(results)
    arguments = list(op.regions[0].blocks[0].arguments)[first_out:]
    with host.kernel("reduce", (THREADS,)) as kernel:
        elements = Elements(kernel)

        def at_point(indices: Sequence[Form]) -> None:
            start = dict(zip(parallel, indices, strict=True))
            point = [start.get(d, form(0)) for d in range(len(sizes))]
            inits = [elements.get(op.operands[first_out + n], apply(out_map(op, n), point)) for n in carried]
            found = walk(point, reduced, inits)
            for n, value in zip(carried, found, strict=True):
                if n not in stored:
                    continue
                element = flat(apply(out_map(op, n), point), results[n].type.shape)
                kernel.store(results[n], [(element, value)])

        def walk(point: Sequence[Form], todo: Sequence[int], values: list[mlir.Value]) -> list[mlir.Value]:
            if not todo:
                return step(point, values)
            first, *rest = todo

            def body(i: Form, inner: list[mlir.Value]) -> list[mlir.Value]:
                return walk([i if d == first else dim for d, dim in enumerate(point)], rest, inner)

            return kernel.loop((0, sizes[first], 1), body, values)

        def step(point: Sequence[Form], values: list[mlir.Value]) -> list[mlir.Value]:
            given = {arguments[n]: value for n, value in zip(carried, values, strict=True)}
            yields = elements.run(op.regions[0].blocks[0], point, elements.arguments(op, point, given))
            for n in stored:
                if n not in carried:
                    element = flat(apply(out_map(op, n), point), results[n].type.shape)
                    kernel.store(results[n], [(element, yields[n])])
            return [yields[n] for n in carried]

        each_point(kernel, shape, at_point)


def dims_of(op: mlir.Operation, number: int) -> list[int]:
    """The loops that index a result."""
    return [e.position for e in out_map(op, number).results if isinstance(e, mlir.AffineDimExpr)]


def each_point(kernel: Kernel, shape: Sequence[int], body: Callable[[Sequence[Form]], None]) -> None:
    """A thread for each point of a box: `body(indices)` within the guard."""

    total = math.prod(shape)
    number = thread_number(kernel, total)

    def point() -> None:
        body(cut_up(form(Digit(Base(number, total))), shape))

    kernel.guarded([kernel.below(number, total)], point)


def thread_number(kernel: Kernel, total: int) -> Form:
    """The number of a thread in a grid of at least `total` threads."""
    threads = math.prod(kernel.threads)
    return kernel.cover(-(-total // threads)) * threads + kernel.thread()


def lower_rest(host: Host, function: mlir.Operation, later: Sequence[mlir.Value]) -> None:
    """One launch for all returned tensors of one shape that are not in memory yet, except for those in `later`."""
    shapes: dict[tuple[int, ...], list[Store]] = {}
    for value, out in returned(function):
        source = before_reshapes(value)
        if out in later or (source in host.buffers and host.buffers[source] == host.buffers[out]):
            continue
        shapes.setdefault(tuple(value.type.shape), []).append((value, out))
    for shape, stores in shapes.items():
        if 0 not in shape:
            lower_elementwise(host, shape, stores)
            for value, out in stores:
                host.buffers.setdefault(value, host.buffers[out])


def lower_dynamic_rest(host: Host, function: mlir.Operation, chains: Sequence[Chain]) -> None:
    """The returned tensors of a function with dynamic sizes that are not in memory yet.

    Each launch overwrites the memory of some results, whose old contents others may be computed from: these go first.
    Where two wait for each other, one of them is computed in separate memory, and copied at the end.
    """
    pending: list[list[Store] | Chain] = [*chains]
    later = [chain.out for chain in chains]
    for value, out in returned(function):
        source = before_reshapes(value)
        if out in later or (source in host.buffers and host.buffers[source] == host.buffers[out]):
            continue
        fellow = next((p for p in pending if isinstance(p, list) and computes_both(p[0][0], value)), None)
        if fellow is None:
            pending.append([(value, out)])
        else:
            fellow.append((value, out))
    copies: list[tuple[mlir.Value, mlir.Value]] = []
    while pending:
        outs = [{*outs_of(item)} for item in pending]
        read = [{*old_outs_read(host, item, function)} for item in pending]
        free = [n for n in range(len(pending)) if not any(outs[n] & r for i, r in enumerate(read) if i != n)]
        number = free[0] if free else 0
        item = pending.pop(number)
        if free and not (isinstance(item, Chain) and reads_late(host, item)):
            lower_chain(host, item) if isinstance(item, Chain) else lower_whole(host, item)
        else:
            stores = [(item.value, item.out)] if isinstance(item, Chain) else item
            copies += [(whole_copy(host, value), out) for value, out in stores]
    with function.location, mlir.InsertionPoint(host.end):
        for memory, out in copies:
            emit.create("memref.copy", [memory, host.flat(out)])


def computes_both(value: mlir.Value, other: mlir.Value) -> bool:
    """True if one operation computes the elements of two results at the same point."""
    op = defining_op(value)
    if op is None or op != defining_op(other) or not is_structured(op) or carried_outs(op):
        return False
    first, second = (out_map(op, list(op.results).index(v)) for v in (value, other))
    return bool(first == second)


def outs_of(item: list[Store] | Chain) -> list[mlir.Value]:
    """The arguments whose memory a launch overwrites."""
    return [item.out] if isinstance(item, Chain) else [out for _, out in item]


def old_outs_read(host: Host, item: list[Store] | Chain, function: mlir.Operation) -> list[mlir.Value]:
    """The arguments for results whose old contents tensors are computed from."""
    values = [op.operands[0] for op in item.inserts] if isinstance(item, Chain) else [value for value, _ in item]
    outs = [out for _, out in returned(function)]
    return [out for value in values for out in versions_read(value, outs, host)]


def lower_whole(host: Host, stores: Sequence[Store]) -> None:
    """Tensors of one dynamic size: a thread for each element of them."""

    def body(kernel: Kernel, indices: list[Form]) -> None:
        elements = Elements(kernel)
        found = [elements.get(value, tuple(indices)) for value, _ in stores]
        for (_, out), element in zip(stores, found, strict=True):
            kernel.store(out, [(flat_index(kernel, out, indices), element)])

    with (defining_op(stores[0][0]) or host.function).location:
        each_element(host, "elementwise", extents(host, stores[0][1]), body)
    for value, out in stores:
        host.buffers.setdefault(value, host.buffers[out])


def lower_elementwise(host: Host, shape: Sequence[int], stores: Sequence[Store]) -> None:
    """Tensors of one shape: a thread computes adjacent elements of 16 bytes."""
    if len(stores) == 1 and not host.choices.naive:
        with contextlib.suppress(NoMatch):
            plan = match_transposition(host, *stores[0])
            with (defining_op(plan.value) or host.function).location:
                lower_transposition(host, plan)
            return
    total = math.prod(shape)
    lanes = 1 if host.choices.naive else lanes_of(shape, stores)
    owner = defining_op(stores[-1][0])
    with (owner or host.function).location, host.kernel("elementwise", (THREADS,)) as kernel:
        elements = Elements(kernel)
        kernel.lanes = lanes
        number = thread_number(kernel, total // lanes)

        def point() -> None:
            thread = form(Digit(Base(number, total // lanes)))
            points = neighbours(thread, shape, lanes)
            for value, out in stores:
                found = get_all(elements, value, points)
                numbers = [flat(indices, shape) for indices in points]
                kernel.store(out, list(zip(numbers, found, strict=True)))

        kernel.guarded([kernel.below(number, total // lanes)], point)


def neighbours(thread: Form, shape: Sequence[int], lanes: int) -> list[tuple[Form, ...]]:
    """The points that a thread computes: in a row, if rows are a multiple of a thread's work."""
    if not shape or shape[-1] % lanes:
        return [tuple(cut_up(thread * lanes + lane, shape)) for lane in range(lanes)]
    *row, chunk = cut_up(thread, [*shape[:-1], shape[-1] // lanes])
    return [(*row, chunk * lanes + lane) for lane in range(lanes)]


def lanes_of(shape: Sequence[int], stores: Sequence[Store]) -> int:
    """The number of adjacent elements that a thread computes."""
    lanes = max(1, min(16 // max(element_bytes(out.type.element_type) for _, out in stores), 8))
    row = math.prod(shape) if all(is_flat(value) for value, _ in stores) else (shape[-1] if shape else 1)
    while row % lanes:
        lanes //= 2
    return lanes


def is_flat(value: mlir.Value) -> bool:
    """True if each element only depends on elements with the same row-major index."""
    todo, seen = [value], set[mlir.Value]()
    while todo:
        value = todo.pop()
        op = defining_op(value)
        if value in seen or op is None or not is_tensor(value):
            continue
        seen.add(value)
        if op.name in ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast"):
            todo.append(op.operands[0])
        elif op.name not in ("linalg.fill", "tensor.empty", "tensor.splat"):
            if not is_structured(op) or carried_outs(op):
                return False
            maps = indexing_maps(op)
            body = op.regions[0].blocks[0]
            if any(inner.operation.name in ("linalg.index", "tensor.extract") for inner in body.operations):
                return False
            for operand, map_ in zip(op.operands, maps, strict=True):
                if is_tensor(operand) and map_.n_dims and map_ != mlir.AffineMap.get_identity(map_.n_dims):
                    return False
                todo.append(operand)
    return True
