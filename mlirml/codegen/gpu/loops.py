"""Ordered loops, scatters and scans: the computations that do not depend on the order are distributed over threads.

A scatter stores whole rows at positions that it reads: each thread has one element of the rows and runs over all
positions, so that the last store wins, as in the loop. Many updates are distributed too, see `scatters.py`.

    for k in positions:                                     thread e:
        out[i[k], :] += v[k, :]                                 for k in positions: out[i[k], e] += v[k, e]

A scan carries a running sum: each thread has one row. Long rows are scanned as described in `scans.py`.

    for row: for i: sum = sum + x[row, i]; out[row, i] = sum
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from mlirml.analysis.bounds import is_dynamic, size_operand
from mlirml.analysis.ordered_loops import SCATTER, store_of
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.elements import Elements, form_of, is_structured, kept_dims, slice_parts
from mlirml.codegen.gpu.index import Form, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.scans import Scan, SetRow, lower_scan
from mlirml.codegen.gpu.scatters import lower_scatter_in_parallel, match_scatter
from mlirml.codegen.gpu.sizes import (
    Size,
    bounds_of,
    cut,
    each_element,
    flat_index,
    in_kernel,
    length,
    number_on_host,
    on_host,
    product,
    times,
)
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

Body = Callable[[Form, list[mlir.Value]], Sequence[mlir.Value]]
"""The body of a loop: the values of its end, given its variable and the carried ones."""


def lower_loop(host: Host, op: mlir.Operation) -> None:
    """Build the kernel of a scatter or a scan, whose result is in the memory of its init."""
    if SCATTER in op.attributes:
        lower_scatter(host, op)
    elif all(is_tensor(value) for value in op.results):
        inner = inner_loop(op)
        if inner is None:
            lower_columns(host, op)
        else:
            lower_rows_of_scan(host, op, inner)
    else:
        lower_single(host, op)


def initial(op: mlir.Operation) -> mlir.Value:
    """The init of a loop's tensor."""
    return op.operands[len(op.operands) - 1]


def static_bounds(op: mlir.Operation) -> list[int]:
    """The constant bounds and step of a loop; raises NoMatch where one is a size."""
    found = []
    for operand in list(op.operands)[:3]:
        owner = defining_op(operand)
        if owner is None or owner.name != "arith.constant":
            raise NoMatch("the bounds of a loop are dynamic")
        found.append(int(owner.attributes["value"].value))
    return found


def trips_of(host: Host, op: mlir.Operation) -> Size:
    """The trip count of a loop of step 1."""
    low, high, _ = bounds_of(host, op)
    if isinstance(low, int) and isinstance(high, int):
        return high - low
    operands = [emit_size(host, size) for size in (high, low)]
    return on_host(host, ("trips", *operands), lambda: emit.same_type("arith.subi", *operands))


def emit_size(host: Host, size: Size) -> mlir.Value:
    """A size as a value of the function that launches kernels."""
    return on_host(host, ("number", size), lambda: emit.index(size)) if isinstance(size, int) else size


def run_loop(kernel: Kernel, op: mlir.Operation, body: Body, inits: Sequence[mlir.Value] = ()) -> None:
    """The iterations of a loop in a thread."""
    low, high, step = bounds_of(kernel.host, op)
    kernel.loop((in_kernel(kernel, low), in_kernel(kernel, high), step), body, inits)


def body_of_loop(op: mlir.Operation) -> tuple[mlir.Value, list[mlir.Value], list[mlir.Operation]]:
    """The variable, the carried arguments and the operations of a loop."""
    block = op.regions[0].blocks[0]
    variable, *carried = block.arguments
    return variable, carried, block_ops(block)


def set_scalar(kernel: Kernel, value: mlir.Value, index: Form) -> None:
    """Register this index as a loop's variable from here on."""
    kernel.known["scalar", value] = kernel.at(index)


def each_thread(host: Host, hint: str, sizes: Sequence[Size], body: Callable[[Kernel, list[Form]], None]) -> None:
    """Build a kernel of a thread for each point of a box; `body` has the indices of each."""
    count = product(host, sizes)
    if not isinstance(count, int):
        each_element(host, hint, sizes, body)
        return
    threads = min(THREADS, max(1, count))
    with host.kernel(hint, (threads,)) as kernel:
        number = kernel.cover(-(-count // threads)) * threads + kernel.thread()
        kernel.guarded([kernel.below(number, count)], lambda: body(kernel, cut(kernel, number, sizes)))


def lower_scatter(host: Host, op: mlir.Operation) -> None:
    """A thread for each element of the rows that are stored."""
    nest, inner = [op], op
    while True:
        _, _, ops = body_of_loop(inner)
        stored = defining_op(ops[-1].operands[0])
        if stored is None or stored.name != "scf.for":
            break
        nest.append(stored)
        inner = stored
    if stored is None or stored.name not in TENSOR_STORES:
        raise NoMatch("a scatter stores in another way")
    with contextlib.suppress(NoMatch):
        if is_dynamic(op.results[0]) or is_dynamic(stored.operands[0]):
            raise NoMatch("the sizes are dynamic")
        plan = match_scatter(nest, [static_bounds(loop) for loop in nest], stored)
        lower_scatter_in_parallel(host, plan, op.results[0])
        return
    sizes = sizes_of_slice(host, stored) if stored.name == "tensor.insert_slice" else []
    for loop in nest:
        host.buffers[body_of_loop(loop)[1][0]] = host.buffers[op.results[0]]

    def thread(kernel: Kernel, point: list[Form]) -> None:
        elements = Elements(kernel)

        def walk(todo: Sequence[mlir.Operation]) -> None:
            if not todo:
                if sizes:
                    store_slice(elements, stored, point, op.results[0])
                else:
                    insert(elements, stored, stored.operands[0], op.results[0])
                return

            def step(i: Form, _: list[mlir.Value]) -> list[mlir.Value]:
                set_scalar(kernel, body_of_loop(todo[0])[0], i)
                walk(todo[1:])
                return []

            run_loop(kernel, todo[0], step)

        walk(nest)

    each_thread(host, "scatter", sizes, thread)


def sizes_of_slice(host: Host, store: mlir.Operation) -> list[Size]:
    """The sizes of the slice of an `insert_slice`, in the dimensions of the large tensor."""
    sizes = [size_operand(store, dim, 2) for dim in range(len(store.attributes["static_sizes"]))]
    return [size if isinstance(size, int) else number_on_host(host, size) for size in sizes]


def store_slice(elements: Elements, op: mlir.Operation, point: Sequence[Form], out: mlir.Value) -> None:
    """Store one element of a slice."""
    offsets, strides = slice_parts(elements, op, 2)
    kept = kept_dims(op, list(op.attributes["static_sizes"]))
    value = elements.get(op.operands[0], tuple(p for p, keep in zip(point, kept, strict=True) if keep))
    kernel = elements.kernel
    indices = [times(kernel, p, s) + o for p, s, o in zip(point, strides, offsets, strict=True)]
    kernel.store(out, [(flat_index(kernel, out, indices), value)])


def inner_loop(op: mlir.Operation) -> mlir.Operation | None:
    """The loop along a row, in a loop over rows."""
    return next((inner for inner in body_of_loop(op)[2] if inner.name == "scf.for"), None)


def lower_rows_of_scan(host: Host, op: mlir.Operation, inner: mlir.Operation) -> None:
    """A thread for each row."""
    variable = body_of_loop(op)[0]
    with contextlib.suppress(NoMatch):
        first, last, _ = static_bounds(op)
        if is_dynamic(op.results[0]):
            raise NoMatch("the sizes are dynamic")
        lower_scan(
            host, scan_of(inner, 0, last - first, op.results[0], lambda k, n: set_scalar(k, variable, n + first))
        )
        return
    low = bounds_of(host, op)[0]

    def thread(kernel: Kernel, indices: list[Form]) -> None:
        set_scalar(kernel, variable, indices[0] + length(kernel, low))
        scan_row(Elements(kernel), inner, 0, op.results[0])

    each_thread(host, "scan", [trips_of(host, op)], thread)


def lower_single(host: Host, op: mlir.Operation) -> None:
    """Loops along rows without one over rows: a thread for each carried value."""
    count = len(op.results) - 1
    with contextlib.suppress(NoMatch):
        if is_dynamic(op.results[count]):
            raise NoMatch("the sizes are dynamic")
        scans = [scan_of(op, row, 1, op.results[count], lambda kernel, number: None) for row in range(count)]
        for scan in scans:
            lower_scan(host, scan)
        return

    def thread(kernel: Kernel, indices: list[Form]) -> None:
        number = indices[0]
        for row in range(count):
            guard = None if count == 1 else kernel.below(number - row, 1)
            above = None if row == 0 else kernel.below(form(row - 1) - number, 0)
            kernel.guarded([guard, above], partial(scan_row, Elements(kernel), op, row, op.results[count]))

    each_thread(host, "scan", [count], thread)


def scan_of(op: mlir.Operation, row: int, count: int, out: mlir.Value, set_row: SetRow) -> Scan:
    """The scan of a loop whose iterations can be combined in any grouping; raises NoMatch."""
    return Scan(
        op, row, count, static_bounds(op), set_row, lambda elements, at, value: insert(elements, at, value, out)
    )


def scan_row(elements: Elements, op: mlir.Operation, row: int, out: mlir.Value) -> None:
    """Run along a row: `op` carries scalars and, last, the tensor that they are stored into."""
    kernel = elements.kernel
    variable, carried, ops = body_of_loop(op)
    start = op.operands[3 + row]
    first = store_of(initial(op), start)
    if first is not None:
        insert(elements, first, start, out)
    next_value = ops[-1].operands[row]
    insertion = store_of(ops[-1].operands[len(carried) - 1], next_value)
    if insertion is None:
        raise NoMatch("a scan stores in another way")

    def step(i: Form, values: list[mlir.Value]) -> list[mlir.Value]:
        set_scalar(kernel, variable, i)
        kernel.known["scalar", carried[row]] = values[0]
        insert(elements, insertion, next_value, out)
        return [elements.scalar(next_value)]

    run_loop(kernel, op, step, [elements.scalar(start)])


def insert(elements: Elements, op: mlir.Operation, value: mlir.Value, out: mlir.Value) -> None:
    """Store a scalar at the indices of a `tensor.insert`."""
    indices = [form_of(elements.scalar(index)) for index in list(op.operands)[2:]]
    elements.kernel.store(out, [(flat_index(elements.kernel, out, indices), elements.scalar(value))])


def lower_columns(host: Host, op: mlir.Operation) -> None:
    """A thread for each element of the rows that are summed: the loop carries the last row and the result."""
    variable, carried, ops = body_of_loop(op)
    stored = defining_op(ops[-1].operands[len(carried) - 1])
    begun = defining_op(initial(op))
    if len(carried) != 2 or stored is None or stored.name != "tensor.insert_slice":
        raise NoMatch("a scan carries something else")
    made = defining_op(ops[-1].operands[0])
    if made is None or not is_structured(made):
        raise NoMatch("a scan sums in another way")
    kept = kept_dims(stored, list(stored.attributes["static_sizes"]))
    out = op.results[1]

    def thread(kernel: Kernel, point: list[Form]) -> None:
        elements = Elements(kernel)
        row = tuple(p for p, keep in zip(point, kept, strict=True) if keep)
        if begun is not None and begun.name == "tensor.insert_slice":
            store_slice(elements, begun, point, out)

        def step(i: Form, values: list[mlir.Value]) -> list[mlir.Value]:
            set_scalar(kernel, variable, i)
            elements.give(carried[0], row, values[0])
            result = elements.get(ops[-1].operands[0], row)
            elements.give(stored.operands[0], row, result)
            store_slice(elements, stored, point, out)
            return [result]

        run_loop(kernel, op, step, [elements.get(op.operands[3], row)])

    each_thread(host, "scan", sizes_of_slice(host, stored), thread)
