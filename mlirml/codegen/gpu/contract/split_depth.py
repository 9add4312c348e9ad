"""Products with few results and much depth: several blocks share a tile, each takes a part of the depth.

    partial[part, m, n] = sum over a part of k of a[m, k] * b[k, n]           a block for each part of each tile
    out[m, n] = what is returned, computed from the sum of partial[:, m, n]   a thread for each element

The parts are added in their order, so that the result is the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.gpu.contract.product import Product, has_zero_init
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import Host
from mlirml.codegen.gpu.reads import place_of
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

Store = tuple[mlir.Value, mlir.Value]
_FEWEST = 8
"""Rounds that a part has at least: a part must be longer than what it takes to begin."""


def parts_of(host: Host, blocks: int, rounds: int) -> int:
    """In how many parts of as many rounds the depth is cut, so that the blocks fill the device; 1 for none."""
    wanted = host.facts.fill // max(blocks, 1)
    return max((n for n in range(1, min(wanted, rounds // _FEWEST) + 1) if rounds % n == 0), default=1)


def add_parts(host: Host, product: Product, parts: int, partial: mlir.Value, stores: Sequence[Store]) -> None:
    """The kernel that adds the parts and computes what is returned."""
    shape = product.result.type.shape
    total = math.prod(shape)
    with host.kernel("sum", (host.facts.threads,)) as kernel:
        elements = Elements(kernel)
        threads = host.facts.threads
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
                place = place_of(tensor, product.result, point)
                assert place is not None
                kernel.store(out, [(flat(place, tensor.type.shape), elements.get(tensor, place))])

        kernel.guarded([kernel.below(number, total)], element)


def place_of_part(product: Product, part: Form, point: Sequence[Form]) -> Form:
    """Where an element of a part lies."""
    shape: list[int] = list(product.result.type.shape)
    return part * math.prod(shape) + flat(point, shape)
