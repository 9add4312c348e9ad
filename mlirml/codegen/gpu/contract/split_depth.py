"""Products with few results and large depth: several blocks share a tile, each computes a part of the depth (split-k).

    partial[part, m, n] = sum over a part of k of a[m, k] * b[k, n]           a block for each part of each tile
    out[m, n] = the result, computed from the sum of partial[:, m, n]   a thread for each element

The parts are added in order, so that the result is the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.gpu.contract.product import Product, has_zero_init
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host
from mlirml.codegen.gpu.reads import read_indices
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

Store = tuple[mlir.Value, mlir.Value]
_FEWEST = 8
"""The minimal number of steps of a part: a part must be longer than its prologue."""


def parts_of(host: Host, blocks: int, steps: int) -> int:
    """The number of equal parts that the depth is split into, so that the blocks fill the device; 1 for no split."""
    wanted = host.device.processors // max(blocks, 1)
    return max((n for n in range(1, min(wanted, steps // _FEWEST) + 1) if steps % n == 0), default=1)


def add_parts(host: Host, product: Product, parts: int, partial: mlir.Value, stores: Sequence[Store]) -> None:
    """Build the kernel that adds the parts and computes the results."""
    shape = product.result.type.shape
    total = math.prod(shape)
    with host.kernel("sum", (THREADS,)) as kernel:
        elements = Elements(kernel)
        threads = THREADS
        number = kernel.cover(-(-total // threads)) * threads + kernel.thread()

        def element() -> None:
            index = form(Digit(Base(number, total)))
            point = tuple(cut_up(index, shape))
            value = kernel.load(partial, index)
            name = "arith.addi" if isinstance(value.type, mlir.IntegerType) else "arith.addf"
            for part in range(1, parts):
                value = emit.same_type(name, value, kernel.load(partial, index + part * total))
            if not has_zero_init(product):
                value = emit.same_type(name, value, elements.get(product.op.operands[2], point))
            elements.give(product.result, point, value)
            elements.reduced.add(product.op)
            for tensor, out in stores:
                indices = read_indices(tensor, product.result, point)
                assert indices is not None
                kernel.store(out, [(flat(indices, tensor.type.shape), elements.get(tensor, indices))])

        kernel.guarded([kernel.below(number, total)], element)


def offset_of_part(product: Product, part: Form, point: Sequence[Form]) -> Form:
    """The offset of an element of a part."""
    shape: list[int] = list(product.result.type.shape)
    return part * math.prod(shape) + flat(point, shape)
