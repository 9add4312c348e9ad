"""Poolings with padding: sums and extremes over windows with an `if` that restricts them to the input.

Before, in a body over c, y, x, i, j:
    %inside = y * 2 + i < 8 and x * 2 + j < 8
    %v = tensor.extract %image[%c, select(%inside, y * 2 + i, 0), select(%inside, x * 2 + j, 0)]
    %s = arith.select %inside, out + %v, out
After:
    %p = tensor.pad %image low[0, 0, 0] high[0, 1, 1] { tensor.yield 0 }
    %r = linalg.generic {maps = [... -> (c, y * 2 + i, x * 2 + j), ... -> (i, j), ... -> (c, y, x)]}
        ins(%p, %window) outs(%zeros) { arith.addf %out, %in }

This is the form of poolings that kernels take. Windows without padding have it from the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.structured import map_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.combiners import COMBINERS, Combiner
from mlirml.passes import NoMatch
from mlirml.raising.recognition.extreme import is_number, kept_nan, match_extreme
from mlirml.raising.recognition.nest import Nest, loop_of_dims
from mlirml.raising.recognition.terms import read_terms
from mlirml.raising.recognition.windows import Window, build_window, match_window, read_access, without_units


@dataclass(frozen=True)
class Pooling:
    """The window, the combiner, and the padding value."""

    window: Window
    combiner: Combiner
    filler: mlir.Attribute
    keeps_nan: bool

    @property
    def description(self) -> str:
        """The name of the operation in remarks."""
        return f"a {self.combiner.word} over padded windows"


def match_pooling(nest: Nest) -> Pooling:
    """The pooling that a generic computes; raises `NoMatch` for other generics."""
    loop_of_dims(nest.maps[-1])
    type_ = nest.yields[0].type
    keeps_nan = False
    try:
        extreme = match_extreme(nest)
        value, masks, combiner, keeps_nan = extreme.value, extreme.masks, extreme.combiner, extreme.keeps_nan
        filler = emit.identity(combiner, type_)
    except NoMatch:
        terms = read_terms(nest)
        if len(terms) != 1 or len(terms[0].factors) != 1 or terms[0].negative or terms[0].factors[0].divides:
            raise NoMatch("no sum of elements") from None
        (factor,), masks = terms[0].factors, terms[0].masks
        value = factor.value
        if factor.casts:
            raise NoMatch("the elements are converted") from None
        combiner = COMBINERS["arith.addf" if isinstance(type_, mlir.FloatType) else "arith.addi"]
        filler = emit.number_attribute(type_, 0)
    access = read_access(nest, value)
    if access.number is not None or not access.is_sliding or access.casts:
        raise NoMatch("the elements are not picked in a window")
    window = match_window(nest, access, masks)
    taps = {d for pair in window.terms for d in pair if nest.reduction[d]}
    if taps != {d for d in range(nest.rank) if nest.reduction[d]}:
        raise NoMatch("a loop is reduced that is none of the window's")
    return Pooling(window, combiner, filler, keeps_nan)


def build_pooling(nest: Nest, pooling: Pooling) -> mlir.Value:
    """The structured operation, with an operand in the shape of the window."""
    start = nest.inits[0]
    type_ = start.type.element_type
    image, terms = without_units(build_window(pooling.window, type_, pooling.filler), pooling.window.terms)
    taps = [d for pair in terms for d in pair if nest.reduction[d]]
    shape = emit.empty(mlir.RankedTensorType.get([nest.sizes[d] for d in taps], type_))
    maps = [window_map(nest.rank, terms), map_of(nest.rank, taps), nest.maps[-1]]
    kinds = ["reduction" if reduced else "parallel" for reduced in nest.reduction]
    result = emit.generic(
        [image, shape], [start], maps, kinds, lambda b: [emit.same_type(pooling.combiner.op, b[2], b[0])]
    ).results[0]
    return kept_nan(start, result) if pooling.keeps_nan and not is_number(start) else result


def window_map(rank: int, terms: Sequence[dict[int, int]]) -> mlir.AffineMap:
    """The map of an operand whose dimensions are sums of loops with factors."""
    results = []
    for pair in terms:
        expression: mlir.AffineExpr = mlir.AffineConstantExpr.get(0)
        for d, factor in pair.items():
            expression = expression + mlir.AffineDimExpr.get(d) * factor
        results.append(expression)
    return mlir.AffineMap.get(rank, 0, results)
