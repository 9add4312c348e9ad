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
import math
from collections.abc import Callable, Sequence
from functools import partial

from mlirml.analysis.ordered_loops import SCATTER, store_of
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.codegen.gpu.elements import Elements, form_of, is_structured, kept_dims, slice_parts
from mlirml.codegen.gpu.index import Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel, is_tensor
from mlirml.codegen.gpu.scans import Scan, SetRow, lower_scan
from mlirml.codegen.gpu.scatters import lower_scatter_in_parallel, match_scatter
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch


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


def bounds_of(op: mlir.Operation) -> list[int]:
    """The constant bounds and step of a loop."""
    found = []
    for operand in list(op.operands)[:3]:
        owner = defining_op(operand)
        if owner is None or owner.name != "arith.constant":
            raise NoMatch("the bounds of a loop are not known")
        found.append(int(owner.attributes["value"].value))
    return found


def body_of_loop(op: mlir.Operation) -> tuple[mlir.Value, list[mlir.Value], list[mlir.Operation]]:
    """The variable, the carried arguments and the operations of a loop."""
    block = op.regions[0].blocks[0]
    variable, *carried = block.arguments
    return variable, carried, block_ops(block)


def set_scalar(kernel: Kernel, value: mlir.Value, index: Form) -> None:
    """Register this index as a loop's variable from here on."""
    kernel.known["scalar", value] = kernel.at(index)


def each_thread(host: Host, hint: str, count: int, body: Callable[[Kernel, Form], None]) -> None:
    """Build a kernel of `count` threads; `body` has the number of each."""
    threads = min(THREADS, max(1, count))
    with host.kernel(hint, (threads,)) as kernel:
        number = kernel.cover(-(-count // threads)) * threads + kernel.thread()
        kernel.guarded([kernel.below(number, count)], lambda: body(kernel, number))


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
        plan = match_scatter(nest, [bounds_of(loop) for loop in nest], stored)
        lower_scatter_in_parallel(host, plan, op.results[0])
        return
    sizes = list(stored.attributes["static_sizes"]) if stored.name == "tensor.insert_slice" else []
    for loop in nest:
        bounds_of(loop)
        host.buffers[body_of_loop(loop)[1][0]] = host.buffers[op.results[0]]

    def thread(kernel: Kernel, number: Form) -> None:
        elements = Elements(kernel)
        point = cut_up(number, sizes)

        def walk(todo: Sequence[mlir.Operation]) -> None:
            if not todo:
                if sizes:
                    store_slice(elements, stored, point, op.results[0])
                else:
                    insert(elements, stored, stored.operands[0], op.results[0])
                return
            low, high, by = bounds_of(todo[0])

            def step(i: Form, _: list[mlir.Value]) -> list[mlir.Value]:
                set_scalar(kernel, body_of_loop(todo[0])[0], i)
                walk(todo[1:])
                return []

            kernel.loop((low, high, by), step)

        walk(nest)

    each_thread(host, "scatter", math.prod(sizes), thread)


def store_slice(elements: Elements, op: mlir.Operation, point: Sequence[Form], out: mlir.Value) -> None:
    """Store one element of a slice."""
    offsets, strides = slice_parts(elements, op, 2)
    kept = kept_dims(op, list(op.attributes["static_sizes"]))
    value = elements.get(op.operands[0], tuple(p for p, keep in zip(point, kept, strict=True) if keep))
    indices = [p * s + o for p, s, o in zip(point, strides, offsets, strict=True)]
    elements.kernel.store(out, [(flat(indices, out.type.shape), value)])


def inner_loop(op: mlir.Operation) -> mlir.Operation | None:
    """The loop along a row, in a loop over rows."""
    return next((inner for inner in body_of_loop(op)[2] if inner.name == "scf.for"), None)


def lower_rows_of_scan(host: Host, op: mlir.Operation, inner: mlir.Operation) -> None:
    """A thread for each row."""
    low, high, _ = bounds_of(op)
    variable = body_of_loop(op)[0]
    with contextlib.suppress(NoMatch):
        lower_scan(host, scan_of(inner, 0, high - low, op.results[0], lambda k, n: set_scalar(k, variable, n + low)))
        return

    def thread(kernel: Kernel, number: Form) -> None:
        set_scalar(kernel, variable, number + low)
        scan_row(Elements(kernel), inner, 0, op.results[0])

    each_thread(host, "scan", high - low, thread)


def lower_single(host: Host, op: mlir.Operation) -> None:
    """Loops along rows without one over rows: a thread for each carried value."""
    bounds_of(op)
    count = len(op.results) - 1
    with contextlib.suppress(NoMatch):
        scans = [scan_of(op, row, 1, op.results[count], lambda kernel, number: None) for row in range(count)]
        for scan in scans:
            lower_scan(host, scan)
        return

    def thread(kernel: Kernel, number: Form) -> None:
        for row in range(count):
            guard = None if count == 1 else kernel.below(number - row, 1)
            above = None if row == 0 else kernel.below(form(row - 1) - number, 0)
            kernel.guarded([guard, above], partial(scan_row, Elements(kernel), op, row, op.results[count]))

    each_thread(host, "scan", count, thread)


def scan_of(op: mlir.Operation, row: int, count: int, out: mlir.Value, set_row: SetRow) -> Scan:
    """The scan of a loop whose iterations can be combined in any grouping; raises NoMatch."""
    return Scan(op, row, count, bounds_of(op), set_row, lambda elements, at, value: insert(elements, at, value, out))


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
    low, high, by = bounds_of(op)

    def step(i: Form, values: list[mlir.Value]) -> list[mlir.Value]:
        set_scalar(kernel, variable, i)
        kernel.known["scalar", carried[row]] = values[0]
        insert(elements, insertion, next_value, out)
        return [elements.scalar(next_value)]

    kernel.loop((low, high, by), step, [elements.scalar(start)])


def insert(elements: Elements, op: mlir.Operation, value: mlir.Value, out: mlir.Value) -> None:
    """Store a scalar at the indices of a `tensor.insert`."""
    indices = [form_of(elements.scalar(index)) for index in list(op.operands)[2:]]
    elements.kernel.store(out, [(flat(indices, out.type.shape), elements.scalar(value))])


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
    sizes = list(stored.attributes["static_sizes"])
    kept = kept_dims(stored, sizes)
    low, high, by = bounds_of(op)
    out = op.results[1]

    def thread(kernel: Kernel, number: Form) -> None:
        elements = Elements(kernel)
        point = cut_up(number, sizes)
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

        kernel.loop((low, high, by), step, [elements.get(op.operands[3], row)])

    each_thread(host, "scan", math.prod(sizes), thread)
