"""Sum products: a loop that adds up products of slices is one product of the arrays, whose dims it runs through.

Before:
    %s = scf.for %k = %c0 to %c200 step %c1 iter_args(%t = %zeros) -> (tensor<300x400xf32>) {
      %x = tensor.extract_slice %a[%k, 0] [1, 300] [1, 1] : tensor<200x300xf32> to tensor<300xf32>
      %y = tensor.extract_slice %b[%k, 0] [1, 400] [1, 1] : tensor<200x400xf32> to tensor<400xf32>
      %p = linalg.generic {maps = [(i, j) -> (i), (i, j) -> (j), (i, j) -> (i, j)]} ins(%x, %y) { arith.mulf }
      %u = linalg.generic {maps = [(i, j) -> (i, j), ...]} ins(%t, %p) { arith.addf }
      scf.yield %u
    }
After:
    %s = linalg.contract indexing_maps = [(i, j, k) -> (k, i), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]
      ins(%a, %b) outs(%zeros) -> tensor<300x400xf32>

The terms are products of two tensors of different dims, each slices that the loop counts, functions of such slices
element by element, or what the loop does not change, and of numbers. They may be subtracted, and the sum may start from
any tensor. The sums are reassociated: with `exact` only those of integers, which wrap around to the same, are
rewritten. What else the loop carries stays in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import indexing_maps, map_of, reductions_of
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import attempt
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.passes.presence import LOOP_OR_REQUEST
from mlirml.pipelines.tensor.products import networks
from mlirml.pipelines.tensor.products.networks import Dims, Factor

_UNIT = -1
"""The label of a dim of one element that no factor has."""
_FEWEST = 4
_MOST_PARTS = 64
"""The fewest iterations that are worth a product."""
_ADDS, _SUBTRACTS = ("arith.addf", "arith.addi"), ("arith.subf", "arith.subi")
_MULTIPLIES = ("arith.mulf", "arith.muli")


@register(when=LOOP_OR_REQUEST)
class SumProductsPass(Pass):
    """Make loops that add up products of slices products of arrays. With `exact` those of integers only."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for loop in named_operations(module, ("scf.for",))[::-1]:  # inner loops first
            for number in range(len(loop.results)):
                sum_ = attempt(match_sum, loop, number, self.exact)
                if sum_ is None:
                    continue
                with loop.location, mlir.InsertionPoint(loop):
                    build_sum(sum_)
                changed = True
        if changed:
            run_upstream(module, "canonicalize,cse")


@dataclass(frozen=True)
class Part:
    """A tensor from outside of a loop, or slices of it for all iterations, with the label of each dim."""

    value: mlir.Value
    dims: Dims
    offsets: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    count: ClassVar[int] = 1

    def build(self) -> Factor:
        """The tensor at the insertion point."""
        shape = list(self.value.type.shape)
        if not self.sizes or list(self.sizes) == shape:
            return Factor(self.value, self.dims)
        return Factor(emit.extract_slice(self.value, self.offsets, self.sizes, self.sizes, self.strides), self.dims)


@dataclass(frozen=True)
class Computed:
    """The values that an operation computes element by element of parts, for all iterations."""

    op: mlir.Operation
    parts: tuple[Part | Computed, ...]
    dims: Dims

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    def build(self) -> Factor:
        """The results of all iterations, at the insertion point."""
        factors = [part.build() for part in self.parts]
        body = self.op.regions[0].blocks[0]
        element = self.op.results[0].type.element_type
        return Factor(elementwise(factors, self.dims, element, lambda xs: emit.body_again(body, xs)), self.dims)


@dataclass(frozen=True)
class Sum:
    """Result `number` of a loop: its init, to which `add` adds the products of `first` and `second`, or subtracts.

    Labels of dims are those of the result; the next one is that of the iterations.
    """

    loop: mlir.Operation
    number: int
    add: mlir.Operation
    first: tuple[Part | Computed, ...]
    second: tuple[Part | Computed, ...]

    @property
    def type(self) -> mlir.Type:
        return self.loop.results[self.number].type


def match_sum(loop: mlir.Operation, number: int, exact: bool) -> Sum:
    """The sum of products that a result of a loop is; raises `NoMatch` if it is none."""
    type_ = loop.results[number].type
    count = trip_count(loop)
    if not isinstance(type_, mlir.RankedTensorType) or not type_.has_static_shape or not type_.shape:
        raise NoMatch("no tensor")
    if count is None or count < _FEWEST or constant_of(loop.operands[2]) != 1 or 0 in type_.shape:
        raise NoMatch("no loop of known trip count")
    element = type_.element_type
    if not isinstance(element, (mlir.F32Type, mlir.F64Type, mlir.IntegerType)) or str(element) == "i1":
        raise NoMatch("no numbers that are added up as they are")
    if not networks.may_rewrite(element, exact):
        raise NoMatch("not to be reordered")
    block = loop.regions[0].blocks[0]
    total, new = block.arguments[1 + number], block_ops(block)[-1].operands[number]
    if not has_one_use(total) or not has_one_use(new):
        raise NoMatch("the sums in between are used")
    add, term = match_add(defining_op(new), total, block)
    parts = parts_of(term, tuple(range(len(type_.shape))), loop, len(type_.shape))
    return Sum(loop, number, add, *grouped(parts, len(type_.shape)))


def grouped(parts: list[Part | Computed], rank: int) -> tuple[tuple[Part | Computed, ...], tuple[Part | Computed, ...]]:
    """The parts of two factors, which have different dims of the result; numbers go to the second."""
    dims = [frozenset(part.dims) - {rank} for part in parts]
    kept = list(dict.fromkeys(each for each in dims if each))
    if not kept or len(kept) > 2 or frozenset().union(*kept) != frozenset(range(rank)):
        raise NoMatch("no product of two tensors")
    if len(kept) == 2 and (kept[0] <= kept[1] or kept[1] <= kept[0]):
        raise NoMatch("it is a product element by element")
    first = tuple(part for part, each in zip(parts, dims, strict=True) if each == kept[0])
    second = tuple(part for part, each in zip(parts, dims, strict=True) if each != kept[0])
    if not all(any(rank in part.dims for part in group) for group in (first, second)):
        raise NoMatch("a factor is the same in each iteration")
    return first, second


def match_add(op: mlir.Operation | None, total: mlir.Value, block: mlir.Block) -> tuple[mlir.Operation, mlir.Value]:
    """The operation of the body that adds a term to the total, element by element, and the term."""
    if op is None or op.block != block or not is_elementwise(op) or not networks.same_maps(op):
        raise NoMatch("it adds nothing element by element")
    inner, body = networks.body_of(op)
    if len(op.operands) != 3 or len(inner) != 1 or inner[0].name not in (*_ADDS, *_SUBTRACTS):
        raise NoMatch("it computes something else")
    operands, arguments = list(inner[0].operands), list(body.arguments)
    position = 0 if op.operands[0] == total else 1
    if op.operands[position] != total or set(operands) != set(arguments[:2]) or op.operands[1 - position] == total:
        raise NoMatch("it adds something else")
    if inner[0].name in _SUBTRACTS and operands[0] != arguments[position]:
        raise NoMatch("it subtracts the total")
    return inner[0], op.operands[1 - position]


def is_elementwise(op: mlir.Operation) -> bool:
    """True for a `linalg.generic` with one result, which is written in the order of its loops."""
    if op.name != "linalg.generic" or len(op.results) != 1 or any(reductions_of(op)):
        return False
    maps = indexing_maps(op)
    return maps[-1] == mlir.AffineMap.get_identity(maps[-1].n_dims) and all(m.is_projected_permutation for m in maps)


def parts_of(value: mlir.Value, dims: Dims, loop: mlir.Operation, counted: int) -> list[Part | Computed]:
    """The parts that are multiplied to a term, whose dims have these labels; `counted` is that of the iterations."""
    op = defining_op(value)
    if op is not None and op.block == loop.regions[0].blocks[0]:
        if op.name in RESHAPES:
            return parts_of(op.operands[0], reshaped(op, dims), loop, counted)
        if is_elementwise(op) and is_product(op):
            found: list[Part | Computed] = []
            for source, own in zip(op.operands, labels_of(op, dims)):
                found += parts_of(source, own, loop, counted)
                check_count(found)
            return found
    return [part_of(value, dims, loop, counted)]


def check_count(parts: Sequence[Part | Computed]) -> None:
    """Raises `NoMatch` for too many parts, each counted as often as it is used."""
    if sum(part.count for part in parts) > _MOST_PARTS:
        raise NoMatch("it has too many parts")


def part_of(value: mlir.Value, dims: Dims, loop: mlir.Operation, counted: int) -> Part | Computed:
    """A value of an iteration as that of all iterations."""
    block, op = loop.regions[0].blocks[0], defining_op(value)
    if networks.is_invariant(value, block, 0):
        if not isinstance(value.type, mlir.RankedTensorType) or not value.type.has_static_shape or _UNIT in dims:
            raise NoMatch("no tensor of static shape, or one with a dim of one element")
        return Part(value, dims)
    if op is None or op.block != block:
        raise NoMatch("a term changes in another way")
    if op.name in RESHAPES:
        return part_of(op.operands[0], reshaped(op, dims), loop, counted)
    if op.name == "tensor.extract_slice":
        return slices(op, dims, loop, counted)
    if op.name == "tensor.from_elements" and not dims:
        return elements(defining_op(op.operands[0]), loop, counted)
    inner, body = networks.body_of(op) if is_elementwise(op) else ([], block)
    if not inner or not is_plain(body, inner, block):
        raise NoMatch("a term is not computed element by element")
    parts = tuple(part_of(source, own, loop, counted) for source, own in zip(op.operands, labels_of(op, dims)))
    check_count(parts)
    labels = {label for part in parts for label in part.dims}
    if labels - {counted} != set(dims) - {_UNIT}:
        raise NoMatch("it is the same along a dim")
    return Computed(op, parts, tuple(sorted(labels, key=lambda label: (label != counted, label))))


def labels_of(op: mlir.Operation, dims: Dims) -> list[Dims]:
    """The labels of the inputs of an operation element by element, of those of its result."""
    return [tuple(dims[e.position] for e in map_.results) for map_ in indexing_maps(op)[:-1]]


def is_product(op: mlir.Operation) -> bool:
    """True if an operation multiplies its two inputs."""
    inner, body = networks.body_of(op)
    return (
        len(op.operands) == 3
        and [each.name in _MULTIPLIES for each in inner] == [True]
        and (set(inner[0].operands) == set(list(body.arguments)[:2]))
    )


def reshaped(op: mlir.Operation, dims: Dims) -> Dims:
    """The labels of what is reshaped, if that adds or drops dims of one element only."""
    source, result = list(op.operands[0].type.shape), list(op.results[0].type.shape)
    if [n for n in source if n != 1] != [n for n in result if n != 1]:
        raise NoMatch("a reshape that merges or splits dims")
    labels = iter([label for label, size in zip(dims, result, strict=True) if size != 1])
    if any(label != _UNIT for label, size in zip(dims, result, strict=True) if size == 1):
        raise NoMatch("a dim of one element")
    return tuple(_UNIT if size == 1 else next(labels) for size in source)


def is_plain(body: mlir.Block, inner: list[mlir.Operation], around: mlir.Block) -> bool:
    """True if a body without regions and indices reads its inputs and what the loop around does not change."""
    if any(True for _ in body.arguments[len(body.arguments) - 1].uses):
        return False
    known = {*body.arguments, *(result for op in inner for result in op.results)}
    outside = [value for op in inner for value in op.operands if value not in known]
    plain = all(op.name.startswith(("arith.", "math.")) and not op.regions for op in inner)
    return plain and all(networks.is_invariant(value, around, 0) for value in outside)


def slices(op: mlir.Operation, dims: Dims, loop: mlir.Operation, counted: int) -> Part:
    """The slices of an array at the indices of all iterations."""
    sizes, strides = list(op.attributes["static_sizes"]), list(op.attributes["static_strides"])
    if len(sizes) != len(dims) + 1 or _UNIT in dims:
        raise NoMatch("a slice that keeps or drops other dims")
    return windows(op.operands[0], slice_offsets(op), sizes, strides, dims, loop, counted)


def elements(op: mlir.Operation | None, loop: mlir.Operation, counted: int) -> Part:
    """The elements of an array at the indices of all iterations."""
    if op is None or op.name != "tensor.extract":
        raise NoMatch("a number that the loop computes")
    source, *indices = op.operands
    if len(indices) != 1:
        raise NoMatch("an element of an array of several dims")
    return windows(source, list(indices), [1], [1], (), loop, counted)


def windows(
    source: mlir.Value,
    offsets: list[int | mlir.Value],
    sizes: list[int],
    strides: list[int],
    dims: Dims,
    loop: mlir.Operation,
    counted: int,
) -> Part:
    """The slices of an array at the indices of all iterations; `sizes` are those of one of them."""
    block = loop.regions[0].blocks[0]
    found = [d for d, offset in enumerate(offsets) if offset == block.arguments[0]]
    lower, count = constant_of(loop.operands[0]), trip_count(loop)
    if not networks.is_invariant(source, block, 0) or not source.type.has_static_shape:
        raise NoMatch("a slice of what the loop computes")
    if len(found) != 1 or lower is None or count is None:
        raise NoMatch("a slice at another index")
    (at,) = found
    if sizes[at] != 1 or not 0 <= lower <= lower + count <= source.type.shape[at]:
        raise NoMatch("it leaves the array")
    sizes[at], offsets[at], strides[at] = count, lower, 1
    known = tuple(offset for offset in offsets if isinstance(offset, int))
    if len(known) != len(offsets) or min(sizes) < 1:
        raise NoMatch("a slice that is not static")
    return Part(source, (*dims[:at], counted, *dims[at:]), known, tuple(sizes), tuple(strides))


def build_sum(sum_: Sum) -> None:
    """Build the product before the loop, and take the sum out of the loop."""
    loop, number, rank = sum_.loop, sum_.number, len(sum_.type.shape)
    element, init = sum_.type.element_type, loop.operands[3 + number]
    sizes = dict(enumerate([*sum_.type.shape, trip_count(loop) or 0]))
    multiply = "arith.mulf" if isinstance(element, mlir.FloatType) else "arith.muli"
    first, second = (product_of(group, sizes, multiply) for group in (sum_.first, sum_.second))
    result = networks.build_product(first, second, tuple(range(rank)), sizes, element)
    if not networks.is_zero(init) or sum_.add.name not in _ADDS:
        dims = tuple(range(rank))
        add = lambda xs: [emit.same_type(sum_.add.name, xs[0], xs[1])]  # noqa: E731
        result = elementwise([Factor(init, dims), Factor(result, dims)], dims, element, add)
    networks.tell(loop.location, "the products that a loop adds up are one product")
    loop.results[number].replace_all_uses_with(result)
    block = loop.regions[0].blocks[0]
    block_ops(block)[-1].operands[number] = block.arguments[1 + number]


def product_of(parts: tuple[Part | Computed, ...], sizes: dict[int, int], multiply: str) -> Factor:
    """The product of tensors, element by element, at the insertion point."""
    factors = [part.build() for part in parts]
    if len(factors) == 1:
        return factors[0]
    dims = max((factor.dims for factor in factors), key=len)  # each has these, or is a number for each iteration

    def product(xs: list[mlir.Value]) -> list[mlir.Value]:
        result = xs[0]
        for other in xs[1 : len(factors)]:
            result = emit.same_type(multiply, result, other)
        return [result]

    return Factor(elementwise(factors, dims, factors[0].value.type.element_type, product), dims)


def elementwise(
    factors: list[Factor], dims: Dims, element: mlir.Type, body: Callable[[list[mlir.Value]], list[mlir.Value]]
) -> mlir.Value:
    """An operation element by element, in loops with these labels."""
    sizes = {d: n for factor in factors for d, n in zip(factor.dims, factor.value.type.shape, strict=True)}
    maps = [map_of(len(dims), [dims.index(d) for d in factor.dims]) for factor in factors]
    maps.append(mlir.AffineMap.get_identity(len(dims)))
    out = emit.empty(mlir.RankedTensorType.get([sizes[d] for d in dims], element))
    op = emit.generic([factor.value for factor in factors], [out], maps, ["parallel"] * len(dims), body)
    return op.results[0]
