"""Partial derivatives of scalar operations, for both modes.

A rule returns for each operand the linear map from a tangent of the operand to the tangent of the result, or None where
the result does not depend on it differentiably. A scalar linear map is its own transpose, so that reverse mode uses the
same maps. Operations that are `inactive` have derivative zero, or no derivative, everywhere.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence

from mlirml.autodiff.arithmetic import add, converted, div, math, mul, neg, number, scaled, select, sub
from mlirml.autodiff.rule_table import RuleTable, scalars
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir

Linear = Callable[[mlir.Value], mlir.Value]
Partials = Sequence["Linear | None"]
Rule = Callable[[mlir.Operation, list[mlir.Value], mlir.Value], Partials]

derivative: RuleTable[Rule] = RuleTable(types=scalars)
"""Decorator: the partials of these operations; `rule(op, operands, result)` builds at the insertion point."""

RULES = derivative.all()
INACTIVE: set[str] = set()


def inactive(*names: str) -> None:
    """Declare that these operations have no derivative."""
    INACTIVE.update(names)


inactive(
    "arith.cmpf", "arith.cmpi", "arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.divsi",
    "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
    "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi", "arith.shrui", "arith.maxsi", "arith.maxui",
    "arith.minsi", "arith.minui", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast",
    "arith.index_castui", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.bitcast",
    "math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc", "math.absi", "math.ctpop", "math.ipowi",
    "math.isnan", "math.isinf", "math.isfinite", "linalg.index", "affine.apply", "affine.min", "affine.max",
)  # fmt: skip


def _times(factor: mlir.Value) -> Linear:
    return lambda t: mul(t, factor)


def _same(t: mlir.Value) -> mlir.Value:
    return t


def _where(condition: mlir.Value, swapped: bool = False) -> Linear:
    def chosen(t: mlir.Value) -> mlir.Value:
        zero = number(t, 0)
        return select(condition, zero, t) if swapped else select(condition, t, zero)

    return chosen


@derivative("arith.addf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_same, _same]


@derivative("arith.subf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_same, neg]


@derivative("arith.mulf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    base = _base_of_power(op)
    if base is not None:
        slope = scaled(x[1 - base], 1.5)
        return [_times(slope) if number == base else None for number in range(2)]
    return [_times(x[1]), _times(x[0])]


def _base_of_power(op: mlir.Operation) -> int | None:
    """The operand x of a product of x and its square root, which is x ** 1.5: at 0 its slope is 0, that of the root is
    infinite.
    """
    for base, other in enumerate(reversed(list(op.operands))):
        root = defining_op(other)
        if root is not None and root.name == "math.sqrt" and root.operands[0] == op.operands[base]:
            return base
    return None


@derivative("math.fma")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_times(x[1]), _times(x[0]), _same]


@derivative("arith.divf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, x[1]), lambda t: neg(mul(div(t, x[1]), r))]


@derivative("arith.negf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [neg]


@derivative("arith.remf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    # The quotient by way of the remainder: near an integer x / y may be rounded to it.
    return [_same, lambda t: neg(mul(t, math("roundeven", div(sub(x[0], r), x[1]))))]


@derivative("arith.extf", "arith.truncf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    # Each mode applies it to a value of the type of the other side.
    return [lambda t: converted(t, x[0].type if t.type == r.type else r.type)]


def _extremum(greater: bool) -> Rule:
    def rule(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
        a, b = x
        ahead, tie = emit.compare("ogt" if greater else "olt", a, b), emit.compare("oeq", a, b)

        def first(t: mlir.Value) -> mlir.Value:
            return select(ahead, t, select(tie, scaled(t, 0.5), number(t, 0)))

        def second(t: mlir.Value) -> mlir.Value:
            return select(ahead, number(t, 0), select(tie, scaled(t, 0.5), t))

        return [first, second]

    return rule


RULES["arith.maximumf"] = RULES["arith.maxnumf"] = _extremum(True)
RULES["arith.minimumf"] = RULES["arith.minnumf"] = _extremum(False)


@derivative("arith.select")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [None, _where(x[0]), _where(x[0], swapped=True)]


@derivative("math.absf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    def signed(t: mlir.Value) -> mlir.Value:
        zero = number(x[0], 0)
        sign = select(emit.compare("ogt", x[0], zero), t, neg(t))
        return select(emit.compare("oeq", x[0], zero), number(t, 0), sign)

    return [signed]


@derivative("math.copysign")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    def signed(t: mlir.Value) -> mlir.Value:
        one = number(t, 1)
        # A zero gets its sign from the other operand, as in the remainder of a multiple, where the derivative is 1.
        is_zero = emit.compare("oeq", x[0], number(x[0], 0))
        return select(is_zero, t, mul(t, mul(math("copysign", one, x[0]), math("copysign", one, x[1]))))

    return [signed, None]


@derivative("math.exp")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_times(r)]


@derivative("math.exp2")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, scaled(r, pymath.log(2)))]


@derivative("math.expm1")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    # Not by the result plus 1, which cancels far to the left.
    return [lambda t: mul(t, math("exp", x[0]))]


@derivative("math.log")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, x[0])]


@derivative("math.log2")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, scaled(x[0], pymath.log(2)))]


@derivative("math.log10")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, scaled(x[0], pymath.log(10)))]


@derivative("math.log1p")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, add(x[0], number(r, 1)))]


@derivative("math.sqrt")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(scaled(t, 0.5), r)]


@derivative("math.rsqrt")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, div(scaled(r, -0.5), x[0]))]


@derivative("math.cbrt")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, scaled(mul(r, r), 3))]


@derivative("math.sin")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, math("cos", x[0]))]


@derivative("math.cos")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: neg(mul(t, math("sin", x[0])))]


@derivative("math.tan")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, add(mul(r, r), number(r, 1)))]


def _one_minus_square(x: mlir.Value) -> mlir.Value:
    one = number(x, 1)
    return mul(sub(one, x), add(one, x))  # exact near 1, where 1 - x * x cancels


@derivative("math.asin")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, math("sqrt", _one_minus_square(x[0])))]


@derivative("math.acos")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: neg(div(t, math("sqrt", _one_minus_square(x[0]))))]


@derivative("math.atan")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, add(mul(x[0], x[0]), number(r, 1)))]


@derivative("math.atan2")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    def over_square(factor: mlir.Value) -> Linear:
        return lambda t: mul(t, div(factor, add(mul(x[0], x[0]), mul(x[1], x[1]))))

    return [over_square(x[1]), lambda t: neg(over_square(x[0])(t))]


@derivative("math.sinh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, math("cosh", x[0]))]


@derivative("math.cosh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, math("sinh", x[0]))]


@derivative("math.tanh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: mul(t, _one_minus_square(r))]


@derivative("math.asinh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, math("sqrt", add(mul(x[0], x[0]), number(r, 1))))]


@derivative("math.acosh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    def scale(t: mlir.Value) -> mlir.Value:
        one = number(r, 1)
        return div(t, mul(math("sqrt", sub(x[0], one)), math("sqrt", add(x[0], one))))

    return [scale]


@derivative("math.atanh")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [lambda t: div(t, _one_minus_square(x[0]))]


def _gauss(x: mlir.Value, factor: float) -> Linear:
    def scale(t: mlir.Value) -> mlir.Value:
        square = mul(x, x)
        lost = math("fma", x, x, neg(square))  # the rounding error, which matters more the larger the square is
        power = math("exp", neg(square))
        # Far out the square is infinite, and its rounding error NaN.
        near = emit.compare("olt", square, number(x, 1024))
        power = math("fma", neg(select(near, lost, number(x, 0))), power, power)
        return mul(t, scaled(power, factor))

    return scale


@derivative("math.erf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_gauss(x[0], 2 / pymath.sqrt(pymath.pi))]


@derivative("math.erfc")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_gauss(x[0], -2 / pymath.sqrt(pymath.pi))]


@derivative("math.powf")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    base, power = x

    def of_base(t: mlir.Value) -> mlir.Value:
        one = number(r, 1)
        slope = mul(power, math("powf", base, sub(power, one)))
        # x ** 0 is 1 everywhere, at 0 and infinity too.
        return mul(t, select(emit.compare("oeq", power, number(r, 0)), number(r, 0), slope))

    def of_power(t: mlir.Value) -> mlir.Value:
        # The limit of x**p log(x) at 0 is 0 for p > 0.
        zero = number(r, 0)
        logarithm = math("log", select(emit.compare("oeq", base, zero), number(r, 1), base))
        return mul(t, mul(r, logarithm))

    return [of_base, of_power]


@derivative("math.fpowi")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    base, power = x

    def of_base(t: mlir.Value) -> mlir.Value:
        less = emit.same_type("arith.subi", power, emit.number(power.type, 1))
        slope = emit.value("math.fpowi", [base, less], r.type)
        factor = emit.value("arith.sitofp", [power], r.type)
        return mul(t, mul(factor, slope))

    return [of_base, None]
