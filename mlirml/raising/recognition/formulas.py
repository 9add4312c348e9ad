"""Names for the joint result of several generics: softmax, logsumexp, layer and RMS norm, attention.

    %e = exp(x[i, j] - m[i])            softmax:    e[j] / sum(e[k])
    %s = sum over j of %e[i, j]         logsumexp:  log(sum(e[k])) + m
    %y = %e[i, j] / %s[i]               attention:  sum over j of softmax of a product, times v[j]

The element that a generic computes is expanded to one formula of the elements of arrays, through all producing
generics, with reductions as terms. Two elements are equal if their formulas are, once the reduction index is replaced
by the free one. Conversions between floats and the masks of triangles are ignored. Nothing is replaced: fusing the
generics is left to the passes that schedule them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlirml.analysis.structured import reductions_of
from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.analysis.values import operands_first
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

_LARGEST = 4000
_MOST_FACTORS = 64


class Formula(tuple[Any, ...]):
    """The name of an operation, its attributes, and its operands; equal ones are one object of a `Formulas`.

    It is compared and hashed by its identity, as the hash of a tuple visits shared parts again and again.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Formulas:
    """The formulas of a function's elements. Equal ones are one object."""

    def __init__(self) -> None:
        self._one: dict[tuple[Any, ...], Formula] = {}
        self._elements: dict[tuple[Any, ...], Formula] = {}
        self.masked = False  # a mask of a triangle was ignored

    def make(self, *parts: Any) -> Formula:
        """A formula; the same object for the same parts."""
        if len(self._one) > _LARGEST:
            raise NoMatch("too much to look through")
        if parts not in self._one:
            self._one[parts] = Formula(parts)
        return self._one[parts]

    def element(self, value: mlir.Value, indices: tuple[Any, ...]) -> Formula:
        """The element of a tensor at indices."""
        key = value, indices
        if key not in self._elements:
            op = defining_op(value)
            found = None
            if op is not None and op.name == "linalg.generic":
                found = self.of_generic(op, list(op.results).index(value), indices)
            elif op is not None and op.name == "linalg.fill":
                found = self.scalar(op.operands[0])
            self._elements[key] = found or self.make("element", value, indices)
        return self._elements[key]

    def of_generic(self, op: mlir.Operation, result: int, indices: tuple[Any, ...]) -> Formula | None:
        """An element of the result of a generic; None if its maps are not projections."""
        maps = [mlir.AffineMapAttr(entry).value for entry in op.attributes["indexing_maps"]]
        outs = len(op.operands) - len(op.results)
        dims = plain_dims(maps[outs + result])
        if dims is None or len(op.results) != 1:
            return None
        symbols: dict[int, Any] = {d: ("summed", op, d) for d, reduces in enumerate(reductions_of(op)) if reduces}
        if len(symbols) + len(dims) != maps[0].n_dims:
            return None
        return Body(self, op, maps, symbols | dict(zip(dims, indices))).yielded()

    def scalar(self, value: mlir.Value) -> Formula:
        """A scalar that is the same for all elements."""
        op = defining_op(value)
        if op is not None and op.name == "arith.constant" and isinstance(op.attributes["value"], mlir.FloatAttr):
            return self.make("constant", mlir.FloatAttr(op.attributes["value"]).value)
        if op is not None and op.name == "tensor.extract" and len(op.operands) == 1:
            return self.element(op.operands[0], ())
        return self.make("number", value)

    def replaced(self, formula: Formula, old: Any, new: Any) -> Formula:
        """A formula with another index."""
        known: dict[Formula, Formula] = {}

        def visit(one: Formula) -> Formula:
            if one not in known:
                if one[0] in ("constant", "number"):
                    known[one] = one
                elif one[0] in ("element", "index"):
                    known[one] = self.make(one[0], one[1], tuple(new if p == old else p for p in one[2]))
                else:
                    known[one] = self.make(one[0], one[1], *map(visit, one[2:]))
            return known[one]

        return visit(formula)


class Body:
    """The body of a generic, with the symbols of its loops."""

    def __init__(
        self, formulas: Formulas, op: mlir.Operation, maps: list[mlir.AffineMap], symbols: dict[int, Any]
    ) -> None:
        self.formulas, self.op, self.maps, self.symbols = formulas, op, maps, symbols
        self.block = op.regions[0].blocks[0]
        self.arguments = list(self.block.arguments)
        self.reduced = [d for d, symbol in symbols.items() if symbol == ("summed", op, d)]
        self.known: dict[mlir.Value, Formula] = {}
        self._of_indices: dict[mlir.Value, bool] = {}

    @property
    def out(self) -> mlir.Value:
        return self.arguments[-1]

    def yielded(self) -> Formula:
        """The value that the body yields, or the reduction of it."""
        value = self.unmasked(block_ops(self.block)[-1].operands[0])
        if not self.reduced:
            return self.of(value)
        op = defining_op(value)
        if op is None or len(op.operands) != 2 or self.out not in list(op.operands):
            return self.of(value)
        term = next((v for v in op.operands if v != self.out), self.out)
        start = self.formulas.element(
            self.op.operands[len(self.op.operands) - 1], self.indices(len(self.arguments) - 1)
        )
        if op.name == "arith.addf" and start is not self.formulas.make("constant", 0.0):
            return self.formulas.make("number", self.op.results[0])
        return self.formulas.make("reduce", (op.name, tuple(self.symbols[d] for d in self.reduced)), self.of(term))

    def indices(self, number: int) -> tuple[Any, ...]:
        """The indices of the element of an operand."""
        found: list[Any] = []
        for expression in self.maps[number].results:
            if isinstance(expression, mlir.AffineDimExpr):
                found.append(self.symbols[expression.position])
            else:
                found.append(str(expression))
        return tuple(found)

    def unmasked(self, value: mlir.Value) -> mlir.Value:
        """The value that is selected within a triangular domain; other values unchanged."""
        op = defining_op(value)
        if op is None or op.name != "arith.select" or op.block != self.block:
            return value
        condition, chosen, kept = op.operands
        if kept in self.arguments and self.is_of_indices(condition):
            self.formulas.masked = True
            return self.unmasked(chosen)
        return value

    def is_of_indices(self, value: mlir.Value) -> bool:
        """True if a value depends on the loop indices alone."""
        op = defining_op(value)
        if op is None or op.name in ("linalg.index", "arith.constant") or op.block != self.block:
            return op is not None
        if value not in self._of_indices:
            self._of_indices[value] = all(map(self.is_of_indices, op.operands))
        return self._of_indices[value]

    def of(self, value: mlir.Value) -> Formula:
        """The formula of a value of the body."""
        for each in operands_first(value, self._unknown_operands):
            if each not in self.known:
                self.known[each] = self._of(each)
        return self.known[value]

    def _unknown_operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = defining_op(value)
        if value in self.known or op is None or op.block != self.block or op.name == "arith.select":
            return ()
        return list(op.operands)

    def _of(self, value: mlir.Value) -> Formula:
        if value in self.arguments:
            number = self.arguments.index(value)
            return self.formulas.element(self.op.operands[number], self.indices(number))
        op = defining_op(value)
        if op is None or op.block != self.block:
            return self.formulas.scalar(value)
        if op.name == "arith.constant":
            return self.formulas.scalar(value)
        if op.name == "linalg.index":
            return self.formulas.make("index", 0, (self.symbols[mlir.IntegerAttr(op.attributes["dim"]).value],))
        if op.name in FLOAT_CASTS:
            return self.of(op.operands[0])
        plain = self.unmasked(value)
        if plain != value:
            return self.of(plain)
        detail = str(op.attributes["predicate"]) if "predicate" in op.attributes else ""
        return self.formulas.make(op.name, detail, *map(self.of, op.operands))


def plain_dims(map_: mlir.AffineMap) -> list[int] | None:
    """The loops that index a tensor, one for each dimension; None for any other map."""
    if not all(isinstance(expression, mlir.AffineDimExpr) for expression in map_.results):
        return None
    found = [expression.position for expression in map_.results]
    return found if len(set(found)) == len(found) else None


# The named formulas.


def name_formulas(generics: list[mlir.Operation]) -> Iterator[tuple[mlir.Operation, str]]:
    """The generics whose elements have a name, with that name."""
    if not any(op.name in ("math.exp", "math.sqrt", "math.rsqrt") for g in generics for op in ops_of(g)):
        return
    formulas = Formulas()
    for op in generics:
        try:
            found = name_of(formulas, op)
        except NoMatch:
            return
        if found is not None:
            yield op, found


def ops_of(generic: mlir.Operation) -> list[mlir.Operation]:
    """The operations of a body."""
    return block_ops(generic.regions[0].blocks[0])


def name_of(formulas: Formulas, op: mlir.Operation) -> str | None:
    """The name of the formula that a generic computes, if it has the last step of it."""
    maps = [mlir.AffineMapAttr(entry).value for entry in op.attributes["indexing_maps"]]
    dims = plain_dims(maps[-1])
    if dims is None or len(op.results) != 1:
        return None
    formulas.masked = False
    formula = formulas.of_generic(op, 0, tuple(("place", d) for d in range(len(dims))))
    masked = ", masked" if formulas.masked else ""
    if formula is None:
        return None
    if formula[0] == "reduce":
        return f"attention{masked}" if is_attention(formulas, formula, ()) else None
    own = {inner.name for inner in ops_of(op)}
    if own & {"arith.divf", "arith.mulf"}:
        for part in products_in(formula):
            found = name_of_product(formulas, *factors(formulas, part))
            if found is not None:
                return f"{found}{masked if found in ('softmax', 'attention') else ''}"
    if "math.log" in own and any(is_logsumexp(part) for part in parts_of(formula)):
        return "logsumexp"
    return None


def parts_of(formula: Formula) -> Iterator[Formula]:
    """A formula and its parts, except reduced terms."""
    visited: set[Formula] = set()
    todo = [formula]
    while todo:
        one = todo.pop()
        if one in visited:
            continue
        visited.add(one)
        yield one
        if one[0] not in ("constant", "number", "element", "index", "reduce"):
            todo += one[2:]


def products_in(formula: Formula) -> Iterator[Formula]:
    """The outermost products and quotients in a formula."""
    todo, visited = [formula], set[Formula]()
    while todo:
        one = todo.pop()
        if one in visited:
            continue
        visited.add(one)
        if one[0] in ("arith.mulf", "arith.divf"):
            yield one
        elif one[0] not in ("constant", "number", "element", "index", "reduce"):
            todo += one[2:]


def factors(formulas: Formulas, formula: Formula) -> tuple[list[Formula], list[Formula]]:
    """The factors and the divisors of a formula."""
    found: tuple[list[Formula], list[Formula]] = [], []
    todo = [(formula, 0)]
    while todo:
        one, divides = todo.pop()
        if len(todo) + len(found[0]) + len(found[1]) > _MOST_FACTORS:
            raise NoMatch("too many factors")
        if one[0] in ("arith.mulf", "arith.divf"):
            todo += [(one[3], divides ^ (one[0] == "arith.divf")), (one[2], divides)]
        elif one[0] == "math.rsqrt":
            found[1 - divides].append(formulas.make("math.sqrt", "", one[2]))
        else:
            found[divides].append(one)
    return found


def name_of_product(formulas: Formulas, above: list[Formula], below: list[Formula]) -> str | None:
    """The name of a product with these factors: softmax, attention or a norm."""
    for one in above:
        if one[0] == "math.exp" and any(is_sum_of(formulas, total, one) for total in below):
            return "softmax"
        if one[0] == "reduce" and is_attention(formulas, one, below):
            return "attention"
        for root in below:
            if root[0] == "math.sqrt" and (name := norm_of(formulas, one, root[2])) is not None:
                return name
    return None


def is_sum_of(formulas: Formulas, total: Formula, term: Formula) -> bool:
    """True if a formula is the sum of another one along one of its indices."""
    if total[0] != "reduce" or total[1][0] != "arith.addf" or len(total[1][1]) != 1:
        return False
    return any(formulas.replaced(total[2], total[1][1][0], index) is term for index in indices_in(term))


def indices_in(formula: Formula) -> set[Any]:
    """The indices of the elements in a formula."""
    found: set[Any] = set()
    for one in parts_of(formula):
        if one[0] in ("element", "index"):
            found.update(one[2])
        elif one[0] == "reduce":
            found |= indices_in(one[2])
    return found


def is_attention(formulas: Formulas, total: Formula, below: list[Formula] | tuple[Formula, ...]) -> bool:
    """True for a sum of weights times values, the weights a softmax of products, possibly divided afterwards."""
    if total[1][0] != "arith.addf" or len(total[1][1]) != 1:
        return False
    above, inner = factors(formulas, total[2])
    for weight in above:
        if weight[0] != "math.exp" or not any(is_product_sum(part) for part in parts_of(weight[2])):
            continue
        if any(is_sum_of(formulas, sum_, weight) for sum_ in inner):
            return len(above) > 1
        (index,) = total[1][1]
        for sum_ in below:
            plain = sum_[0] == "reduce" and len(sum_[1][1]) == 1 and sum_[1][0] == "arith.addf"
            if plain and formulas.replaced(sum_[2], sum_[1][1][0], index) is weight:
                return len(above) > 1
    return False


def is_product_sum(formula: Formula) -> bool:
    return bool(formula[0] == "reduce" and formula[1][0] == "arith.addf" and formula[2][0] == "arith.mulf")


def is_logsumexp(formula: Formula) -> bool:
    """`log(sum(exp(...)))`."""
    if formula[0] != "math.log":
        return False
    total = formula[2]
    return bool(total[0] == "reduce" and total[1][0] == "arith.addf" and total[2][0] == "math.exp")


def norm_of(formulas: Formulas, centred: Formula, variance: Formula) -> str | None:
    """Layer norm if a row minus its mean is divided by the root of the mean square, RMS norm if the row itself is."""
    if variance[0] == "arith.addf":
        variance = next((part for part in variance[2:] if part[0] != "constant"), variance)
    total = mean_of(formulas, variance)
    if total is None:
        return None
    (index,) = total[1][1]
    above, below = factors(formulas, total[2])
    if below or len(above) != 2 or above[0] is not above[1]:
        return None
    if not any(formulas.replaced(above[0], index, other) is centred for other in indices_in(centred)):
        return None
    if centred[0] == "arith.subf" and mean_of(formulas, centred[3]) is not None:
        return "layer norm"
    return "RMS norm"


def mean_of(formulas: Formulas, formula: Formula) -> Formula | None:
    """The sum of which a formula is the mean, along one index."""
    above, below = factors(formulas, formula)
    sums = [one for one in above if one[0] == "reduce" and one[1][0] == "arith.addf" and len(one[1][1]) == 1]
    others = [one for one in (*above, *below) if one not in sums]
    return sums[0] if len(sums) == 1 and others and all(one[0] == "constant" for one in others) else None
