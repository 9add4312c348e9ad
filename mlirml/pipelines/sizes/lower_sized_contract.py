"""Lower sized contract: products and convolutions on memrefs of dynamic sizes become calls of vector kernels.

Before:
    linalg.matmul ins(%a, %b : memref<?x64xf32>, memref<64x40xf32>) outs(%c : memref<?x40xf32>)
After:
    %a0, %ao, %as:2, %at:2 = memref.extract_strided_metadata %a
    ...
    scf.parallel (%chunk) = ... {
      call @contract_sized_f32(%a0, %b0, %c0, %ao1, %at#0, %at#1, ..., %rows, %c40, %c64)
    }

    func.func private @contract_sized_f32(%a0: memref<f32>, ..., %m: index, %n: index, %k: index) {
      ... vector.fma ...
    }

A kernel has one loop of rows, one of columns, along which the elements of the output are adjacent, and one of the sum,
in a convolution over the channels: other loops go around the call. The outermost of these, or else the rows, go in
parallel chunks. What does not have these three is left to `mlirml-lower-sized`.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.memref_sizes import fold_dims
from mlirml.analysis.structured import indexing_maps
from mlirml.codegen.cpu.contract.sized import COLUMNS, NEITHER, ROWS, SizedKernel
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, named_operations, operations, parse
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION
from mlirml.pipelines.sizes.chunks import UNITS, in_chunks
from mlirml.targets.machine import Processor

_BITS = {"f32": 32, "f64": 64, "i32": 32, "i64": 64}
_HEIGHTS = {16: (6, 3, 1), 32: (12, 4, 1)}
_NARROW = 4
"""A product of fewer static columns is left to loops."""
_FLOPS_PER_NS = 32
_TILES = 8
"""The tiles of rows that read the same elements of b one after another, at least."""
_COLUMNS = 512
"""The columns of the output to which several products are added one after another, at most."""
_FEW = 4
"""Of a batch of fewer matrices the rows are distributed among threads."""


@register(when=(*ANY_CONTRACTION, "linalg.conv"))
class LowerSizedContractPass(Pass):
    """Replace contractions by calls of kernels whose sizes are arguments, for a processor."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        if not self.processor.vector_bits:
            return
        kernels: dict[str, str] = {}
        names = {op.name for op in operations(module) if op.name.startswith("linalg.conv_")}
        for op, match in matched(match_product, named_operations(module, (*CONTRACTIONS, *names))):
            kernel = self.kernel(match)
            kernels.setdefault(kernel.name, kernel.text())
            with op.location, mlir.InsertionPoint(op):
                Call(op, match, kernel.name, kernel.heights[0]).build()
            op.erase()
        add_functions(module, list(kernels.values()), main_function(module).location)
        fold_dims(module)

    def kernel(self, match: Product) -> SizedKernel:
        machine = self.processor
        lanes, heights = machine.vector_bits // _BITS[match.element], _HEIGHTS[machine.vector_registers]
        return SizedKernel(match.element, lanes, heights, match.adjacent, machine.has_fma)


@dataclass(frozen=True)
class Product:
    """The operands of a contraction as a, b and c, and the loops m, n and k of the kernel; `outer` are the others."""

    operands: tuple[mlir.Value, mlir.Value, mlir.Value]
    maps: tuple[tuple[Subscript, ...], ...]
    m: int
    n: int
    k: int
    outer: tuple[int, ...]
    element: str
    adjacent: str


def match_product(op: mlir.Operation) -> Product:
    """Match a contraction with rows, columns and a sum; raises `NoMatch`."""
    if not all(isinstance(value.type, mlir.MemRefType) for value in op.operands):
        raise NoMatch("an operand is no memref")
    element = str(op.operands[2].type.element_type)
    if element not in _BITS or any(str(value.type.element_type) != element for value in op.operands):
        raise NoMatch("the elements are not numbers of one type")
    check_body(op)
    maps = [subscripts_of(map_) for map_ in indexing_maps(op)]
    a, b, c = map(loops_of, maps)
    if any(terms != {d: 1} for terms, d in zip(maps[2], c)):
        raise NoMatch("a subscript of the output is no loop")
    operands = list(op.operands)
    if not c or (c[-1] in a and c[-1] in b):
        raise NoMatch("the output has no columns")
    if c[-1] in a:
        a, b, operands, maps = b, a, [operands[1], operands[0], operands[2]], [maps[1], maps[0], maps[2]]
    rows = [d for d in c if d in a and d not in b]
    sums = [d for d in a if d in b and d not in c]
    if c[-1] not in b or not rows or not sums or set(a) | set(b) != set(a + b + c) or set(c) - set(a + b):
        raise NoMatch("it has no rows, columns and sum")
    if any(d not in c and not (d in a and d in b) for d in a + b):
        raise NoMatch("a sum goes over one operand alone")
    if last_stride(operands[2]) != 1:
        raise NoMatch("the elements of a row of the output are not adjacent")
    kind = operands[2].type
    if not kind.is_dynamic_dim(kind.rank - 1) and kind.shape[-1] < _NARROW:
        raise NoMatch("the output is narrow")
    m, n, k = rows[-1], c[-1], sum_of_kernel(sums, operands[0], maps[0], maps[1])
    outer = tuple(dict.fromkeys(d for d in c + a if d not in (m, n, k)))
    adjacent = NEITHER
    if last_stride(operands[1]) == 1:
        adjacent = ROWS if maps[1][-1].get(n) == 1 else COLUMNS if maps[1][-1] == {k: 1} else NEITHER
    return Product(tuple(operands), tuple(maps), m, n, k, outer, element, adjacent)


def sum_of_kernel(sums: list[int], a: mlir.Value, of_a: tuple[Subscript, ...], of_b: tuple[Subscript, ...]) -> int:
    """The loop of the sum that the kernel runs: the last that both operands index alone, such as the channels of a
    convolution, or the last of a window if there is one channel.
    """
    alone = [d for d in sums if {d: 1} in of_a and {d: 1} in of_b]
    if not alone:
        return sums[-1]
    at = of_a.index({alone[-1]: 1})
    has_one = not a.type.is_dynamic_dim(at) and a.type.shape[at] == 1
    return sums[-1] if has_one and {sums[-1]: 1} in of_a else alone[-1]


def check_body(op: mlir.Operation) -> None:
    """Raise `NoMatch` unless the body adds a product of its inputs to the output."""
    block = op.regions[0].blocks[0]
    x, y, total = list(block.arguments)
    ops = block_ops(block)
    result = defining_op(ops[-1].operands[0])
    names = [op.name for op in ops[:-1]]
    if result is None or names not in (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"]):
        raise NoMatch("it is no sum of products")
    if {*ops[0].operands} != {x, y} or {*result.operands} != {total, ops[0].results[0]}:
        raise NoMatch("it is no sum of products")


Subscript = dict[int, int]
"""A sum of loops with factors."""


def subscripts_of(map_: mlir.AffineMap) -> tuple[Subscript, ...]:
    """The subscripts of a map, each loop in one of them; raises `NoMatch` for another map."""
    found = tuple(terms_of(expression) for expression in map_.results)
    if len(loops_of(found)) < sum(map(len, found)):
        raise NoMatch("a loop is in two subscripts")
    return found


def terms_of(expression: mlir.AffineExpr) -> Subscript:
    """The loops in a subscript, with their factors; raises `NoMatch` for one that is no sum of them."""
    if isinstance(expression, mlir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, mlir.AffineAddExpr):
        first, second = terms_of(expression.lhs), terms_of(expression.rhs)
        if not first.keys() & second.keys():
            return first | second
    if isinstance(expression, mlir.AffineMulExpr):
        loop, factor = expression.lhs, expression.rhs
        if isinstance(loop, mlir.AffineDimExpr) and isinstance(factor, mlir.AffineConstantExpr) and factor.value > 0:
            return {loop.position: factor.value}
    raise NoMatch("a subscript is no sum of loops")


def loops_of(subscripts: tuple[Subscript, ...]) -> tuple[int, ...]:
    """The loops in subscripts, in their order."""
    return tuple(dict.fromkeys(d for terms in subscripts for d in terms))


def last_stride(value: mlir.Value) -> int:
    """The stride of the last dimension."""
    strides, _ = value.type.get_strides_and_offset()
    return int(strides[-1]) if strides else 1


class Call:
    """Builds the call of a kernel and the loops around it."""

    def __init__(self, op: mlir.Operation, match: Product, name: str, height: int) -> None:
        self.op, self.match, self.name, self.height = op, match, name, height
        self.first: mlir.Value | None = None  # the first row of those that are computed
        self.sizes: dict[int, mlir.Value] = {}
        self.parts: list[tuple[mlir.Value, mlir.Value, dict[int, mlir.Value]]] = []

    def build(self) -> None:
        """Emit loops and call at the insertion point."""
        for operand, subscripts in zip(self.match.operands, self.match.maps, strict=True):
            self.parts.append(self.metadata(operand, subscripts))
        self.zero, self.one = emit.index(0), emit.index(1)
        m, n, k, outer = self.match.m, self.match.n, self.match.k, self.match.outer
        row = emit.times(self.sizes[n], self.sizes[k])
        row = emit.same_type("arith.ceildivsi", emit.times(row, UNITS), emit.index(_FLOPS_PER_NS // 2))
        if outer and outer[0] in loops_of(self.match.maps[2]) and self.is_long(outer[0]):
            cost = emit.same_type("arith.muli", row, self.sizes[m])
            for d in outer[1:]:
                cost = emit.same_type("arith.muli", cost, self.sizes[d])
            in_chunks(self.sizes[outer[0]], [cost], self.matrices)
        else:
            for d in outer:
                row = emit.same_type("arith.muli", row, self.sizes[d])
            in_chunks(self.sizes[m], [row], self.rows, _TILES * self.height)

    def is_long(self, d: int) -> bool:
        """False for a loop of few iterations."""
        size = constant_of(self.sizes[d])
        return size is None or size >= _FEW

    def matrices(self, lower: mlir.Value, upper: mlir.Value) -> None:
        """The products of a part of the outermost loop."""
        first, *others = self.match.outer
        emit.for_loop(lower, upper, self.one, lambda i, _: self.nest(tuple(others), {first: i}))

    def rows(self, lower: mlir.Value, upper: mlir.Value) -> None:
        """The products of a part of the rows."""
        self.first = lower
        self.sizes = {**self.sizes, self.match.m: emit.same_type("arith.subi", upper, lower)}
        self.nest(self.match.outer, {})

    def metadata(
        self, operand: mlir.Value, subscripts: tuple[Subscript, ...]
    ) -> tuple[mlir.Value, mlir.Value, dict[int, mlir.Value]]:
        """The pointer, the offset, and the stride of each loop of an operand."""
        index, rank = mlir.IndexType.get(), len(subscripts)
        pointer = mlir.MemRefType.get([], operand.type.element_type)
        types = [pointer, index, *[index] * (2 * rank)]
        base, offset, *rest = emit.create("memref.extract_strided_metadata", [operand], types).results
        strides = {}
        for d, terms in enumerate(subscripts):
            for dim, factor in terms.items():
                strides[dim] = emit.times(rest[rank + d], factor) if factor != 1 else rest[rank + d]
            (dim, factor), *others = terms.items()
            if factor == 1 and not others and dim not in self.sizes:
                dynamic = operand.type.is_dynamic_dim(d)
                name, at = "memref.dim", [operand, emit.index(d)] if dynamic else []
                self.sizes[dim] = emit.value(name, at, index) if dynamic else emit.index(operand.type.shape[d])
        return base, offset, strides

    def nest(self, loops: tuple[int, ...], indices: dict[int, mlir.Value]) -> None:
        """The loops around the call; those that add to the output run for a part of its columns that fits the cache."""
        if not loops:
            self.call(indices)
            return
        n = self.match.n
        if n not in indices and loops[0] not in loops_of(self.match.maps[2]):
            columns, step = self.sizes[n], emit.index(_COLUMNS)

            def part(j: mlir.Value, _: list[mlir.Value]) -> None:
                self.sizes[n] = emit.same_type("arith.minsi", emit.same_type("arith.subi", columns, j), step)
                self.nest(loops, {**indices, n: j})

            emit.for_loop(self.zero, columns, step, part)
            self.sizes[n] = columns
            return

        def body(i: mlir.Value, _: list[mlir.Value]) -> None:
            self.nest(loops[1:], {**indices, loops[0]: i})

        emit.for_loop(self.zero, self.sizes[loops[0]], self.one, body)

    def call(self, indices: dict[int, mlir.Value]) -> None:
        m, n, k = self.match.m, self.match.n, self.match.k
        indices = indices if self.first is None else {**indices, m: self.first}
        offsets = [self.offset(part, indices) for part in self.parts]
        (_, _, a), (_, _, b), (_, _, c) = self.parts
        numbers = [offsets[0], a[m], a[k], offsets[1], b[k], b[n], offsets[2], c[m]]
        arguments = [*(part[0] for part in self.parts), *numbers, *(self.sizes[d] for d in (m, n, k))]
        emit.create("func.call", arguments, (), {"callee": mlir.FlatSymbolRefAttr.get(self.name)})

    def offset(
        self, part: tuple[mlir.Value, mlir.Value, dict[int, mlir.Value]], indices: dict[int, mlir.Value]
    ) -> mlir.Value:
        """The offset of an operand for these indices of the outer loops."""
        _, total, strides = part
        for d, i in indices.items():
            if d in strides:
                total = emit.same_type("arith.addi", total, emit.same_type("arith.muli", i, strides[d]))
        return total


def add_functions(module: mlir.Operation, texts: list[str], location: mlir.Location) -> None:
    """Append functions to a module; their operations have one location."""
    if texts:
        parsed = parse("\n".join(texts), module.context)
        body = module.regions[0].blocks[0]
        for function in block_ops(parsed.operation.regions[0].blocks[0]):
            for op in operations(function):
                op.location = location
            function.detach_from_parent()
            body.append(function)
