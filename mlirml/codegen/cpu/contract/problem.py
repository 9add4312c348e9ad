"""A contraction: its iteration dims as batch, m, n and k, and the strided problem that a kernel computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mlirml.analysis import contractions
from mlirml.analysis.structured import indexing_maps
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

CONTRACTIONS = contractions.CONTRACTIONS | {"linalg.batch_reduce_matmul"}
_PRODUCTS = {"arith.mulf": "arith.addf", "arith.muli": "arith.addi"}
CASTS = frozenset(
    "arith." + name for name in ["extf", "extsi", "extui", "fptosi", "fptoui", "sitofp", "truncf", "trunci", "uitofp"]
)
_WIDER = {"f16": "f32", "bf16": "f32", "i8": "i32", "i16": "i32"}
ELEMENTS = frozenset(["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"])


@dataclass(frozen=True)
class Cast:
    """A scalar conversion, `arith.extsi` from `source` to `target`."""

    op: str
    source: str
    target: str


@dataclass(frozen=True)
class Operand:
    """An operand's element type and the conversions to the compute type of the kernel."""

    element: str
    casts: tuple[Cast, ...] = ()


@dataclass(frozen=True)
class Contraction:
    """`out[c] += a[a] * b[b]` over iteration dims of the sizes `sizes`.

    `maps` has the dims that index a, b and out. `batch` are dims of all three, `m` of a and out, `n` of b and out, `k`
    of a and b. `rest` are dims of one operand only (sums of a or b, broadcasts of out). `same`: a and b are one array.
    """

    sizes: tuple[int, ...]
    maps: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    operands: tuple[Operand, Operand, Operand]
    compute: str
    same: bool = False

    def _dims(self, *wanted: bool) -> tuple[int, ...]:
        return tuple(d for d in range(len(self.sizes)) if tuple(d in m for m in self.maps) == wanted)

    @property
    def batch(self) -> tuple[int, ...]:
        return self._dims(True, True, True)

    @property
    def m(self) -> tuple[int, ...]:
        return self._dims(True, False, True)

    @property
    def n(self) -> tuple[int, ...]:
        return self._dims(False, True, True)

    @property
    def k(self) -> tuple[int, ...]:
        return self._dims(True, True, False)

    @property
    def rest(self) -> tuple[int, ...]:
        kinds = (self.batch, self.m, self.n, self.k)
        return tuple(d for d in range(len(self.sizes)) if not any(d in kind for kind in kinds))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of a, b and out."""
        return tuple(tuple(self.sizes[d] for d in dims) for dims in self.maps)


def match_contraction(op: mlir.Operation) -> Contraction:
    """Classify a linalg contraction on tensors or memrefs of static shape; raises `NoMatch`."""
    if op.name not in CONTRACTIONS:
        raise NoMatch(f"{op.name} is no contraction")
    maps = [_projection(m) for m in indexing_maps(op)]
    types = [mlir.ShapedType(value.type) for value in op.operands]
    if any(not t.has_rank or not t.has_static_shape for t in types):
        raise NoMatch("an operand has no static shape")
    sizes: dict[int, int] = {}
    for dims, kind in zip(maps, types, strict=True):
        sizes |= dict(zip(dims, kind.shape, strict=True))
    if len(sizes) != 1 + max(sizes, default=-1):
        raise NoMatch("an iteration dim indexes no operand")
    elements = [str(t.element_type) for t in types]
    compute, casts = _match_body(op, elements)
    operands = tuple(Operand(e, c) for e, c in zip(elements, (*casts, ()), strict=True))
    out = tuple(sizes[d] for d in range(len(sizes)))
    same = op.operands[0] == op.operands[1]
    return Contraction(out, (maps[0], maps[1], maps[2]), (operands[0], operands[1], operands[2]), compute, same)


def _projection(affine_map: mlir.AffineMap) -> tuple[int, ...]:
    if affine_map.n_symbols or not affine_map.is_projected_permutation:
        raise NoMatch(f"the indexing map {affine_map} is no projected permutation")
    return tuple(mlir.AffineDimExpr(expression).position for expression in affine_map.results)


def _match_body(op: mlir.Operation, elements: Sequence[str]) -> tuple[str, tuple[tuple[Cast, ...], tuple[Cast, ...]]]:
    """The compute type and the casts of a and b to it, of a body `yield(out + cast(a) * cast(b))`."""
    block = op.regions[0].blocks[0]
    total = block.operations[len(block.operations) - 1].operands[0].owner
    if not isinstance(total, mlir.OpView | mlir.Operation) or total.name not in _PRODUCTS.values():
        raise NoMatch("the body does not add")
    left, right = total.operands
    product = (right if left == block.arguments[2] else left).owner
    if block.arguments[2] not in (left, right) or not isinstance(product, mlir.OpView | mlir.Operation):
        raise NoMatch("the body does not add to its output")
    if _PRODUCTS.get(product.name) != total.name:
        raise NoMatch(f"the body adds {product.name}")
    chains = dict(_cast_chain(value) for value in product.operands)
    if set(chains) != {0, 1}:
        raise NoMatch("the body does not multiply its two inputs")
    body = elements[2]
    if body not in ELEMENTS or not set(elements) <= ELEMENTS:
        raise NoMatch(f"no kernel for {' x '.join(elements)}")
    widen = (Cast("arith.extf" if "f" in body else "arith.extsi", body, _WIDER[body]),) if body in _WIDER else ()
    return _WIDER.get(body, body), (chains[0] + widen, chains[1] + widen)


def _cast_chain(value: mlir.Value) -> tuple[int, tuple[Cast, ...]]:
    casts: list[Cast] = []
    while not isinstance(value, mlir.BlockArgument):
        op = value.owner
        if op.name not in CASTS or "roundingmode" in op.attributes:
            raise NoMatch(f"the body multiplies a {op.name}")
        casts.insert(0, Cast(op.name, str(op.operands[0].type), str(value.type)))
        value = op.operands[0]
    return value.arg_number, tuple(casts)


@dataclass(frozen=True)
class Axis:
    """A loop of `size` iterations and its element strides in a, b, out, and the operands of an epilogue."""

    size: int
    a: int = 0
    b: int = 0
    c: int = 0
    more: tuple[int, ...] = ()

    def swapped(self) -> Axis:
        return replace(self, a=self.b, b=self.a)


@dataclass(frozen=True)
class Problem:
    """A contraction on strided memory: loops over `outer` and `outer_m` around a matrix product m x n x k.

    The strides of `outer_m` in b are zero. `swapped`: a and b are exchanged so that n is the contiguous dim of the
    output. `same`: a and b are one array.
    """

    outer: tuple[Axis, ...]
    outer_m: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: tuple[Axis, ...]
    a: Operand
    b: Operand
    c: Operand
    compute: str
    swapped: bool
    same: bool = False

    @property
    def symmetric(self) -> bool:
        """True if each matrix product is one of a matrix and its own transpose."""
        if not self.same or self.outer_m or self.a != self.b or self.m.size != self.n.size:
            return False
        return (self.m.a, self.m.b) == (self.n.b, self.n.a) and all(axis.a == axis.b for axis in self.outer + self.k)

    @property
    def k_size(self) -> int:
        return math.prod(axis.size for axis in self.k)

    @property
    def repeats(self) -> int:
        """The number of matrix products."""
        return math.prod(axis.size for axis in self.outer + self.outer_m)

    @property
    def work(self) -> int:
        """The number of multiply-adds."""
        return self.repeats * self.m.size * self.n.size * self.k_size


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an identity layout."""
    return tuple(math.prod(shape[position + 1 :]) for position in range(len(shape)))


def build_problem(
    contraction: Contraction,
    strides: Sequence[Sequence[int]] | None = None,
    more: Sequence[Mapping[int, int]] = (),
) -> Problem:
    """The strided problem of a contraction; identity layouts unless `strides` are given. Raises `NoMatch`.

    `more` has the strides of the operands of an epilogue, by the contraction's dims.
    """
    if any(contraction.sizes[d] > 1 for d in contraction.rest):
        raise NoMatch("an iteration dim indexes one operand only")
    if 0 in contraction.sizes:
        raise NoMatch("a size is zero")
    strides = strides or [row_major(shape) for shape in contraction.shapes]
    by_dim = [dict(zip(dims, steps, strict=True)) for dims, steps in zip(contraction.maps, strides, strict=True)]

    def axes(dims: Sequence[int]) -> list[Axis]:
        found = []
        for d in dims:
            a, b, c = (steps.get(d, 0) for steps in by_dim)
            found.append(Axis(contraction.sizes[d], a, b, c, tuple(steps.get(d, 0) for steps in more)))
        return merge([axis for axis in found if axis.size > 1])

    batch, m, n, k = (axes(dims) for dims in (contraction.batch, contraction.m, contraction.n, contraction.k))
    a, b, c = contraction.operands
    swapped = not any(axis.c == 1 for axis in n) and (any(axis.c == 1 for axis in m) or not n)
    if swapped:
        batch, m, n, k = ([axis.swapped() for axis in group] for group in (batch, n, m, k))
        a, b = b, a
    unit = Axis(1, more=(0,) * len(more))
    inner_m = max(m, key=lambda axis: axis.size, default=unit)
    inner_n = max(n, key=lambda axis: (axis.c == 1, axis.size), default=unit)
    return Problem(
        outer=(*batch, *(axis for axis in n if axis is not inner_n)),
        outer_m=tuple(axis for axis in m if axis is not inner_m),
        m=inner_m,
        n=inner_n,
        k=tuple(k) or (unit,),
        a=a,
        b=b,
        c=c,
        compute=contraction.compute,
        swapped=swapped,
        same=contraction.same,
    )


def merge(axes: list[Axis]) -> list[Axis]:
    """Collapse every pair of axes that is contiguous in all operands; outermost first."""
    axes = sorted(axes, key=lambda axis: (axis.c, axis.a, axis.b, axis.more), reverse=True)
    joined = True
    while joined:
        joined = False
        for outer in axes:
            for inner in axes:
                if outer is not inner and all(
                    high == low * inner.size for high, low in zip(_strides(outer), _strides(inner), strict=True)
                ):
                    axes = [axis for axis in axes if axis is not inner]
                    axes[next(i for i, axis in enumerate(axes) if axis is outer)] = replace(
                        inner, size=outer.size * inner.size
                    )
                    joined = True
                    break
            if joined:
                break
    return axes


def _strides(axis: Axis) -> tuple[int, ...]:
    return axis.a, axis.b, axis.c, *axis.more
