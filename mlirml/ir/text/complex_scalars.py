"""Scalar arithmetic for the bodies of structured operations, written with Python's operators.

`Real` is a float of the body, `Truth` a truth value and `Complex` a pair of floats; each operator appends one
operation. The functions of complex numbers in `dialects/ops/complex_functions.py` are written with them.
"""

from __future__ import annotations

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.ir.text.builder import Body
from mlirml.ir.text.dtypes import mlir_name

_BOOL = np.dtype(np.bool_)


@dataclass(frozen=True)
class Truth:
    """A truth value."""

    block: Body
    name: str
    dtype = _BOOL

    def _op(self, op: str, other: Truth) -> Truth:
        return Truth(self.block, self.block.op(f"arith.{op} {self.name}, {other.name}", "i1"))

    def __and__(self, other: Truth) -> Truth:
        return self._op("andi", other)

    def __or__(self, other: Truth) -> Truth:
        return self._op("ori", other)

    def __xor__(self, other: Truth) -> Truth:
        return self._op("xori", other)

    def __invert__(self) -> Truth:
        return self._op("xori", Truth(self.block, self.block.constant(True, _BOOL)))

    def choose(self, x: Real, y: Real | float) -> Real:
        """x where true, else y."""
        other = x.like(y)
        return Real(
            self.block,
            self.block.op(f"arith.select {self.name}, {x.name}, {other.name}", mlir_name(x.dtype)),
            x.dtype,
        )

    def pick(self, x: Complex, y: Complex) -> Complex:
        """x where true, else y."""
        return Complex(self.choose(x.re, y.re), self.choose(x.im, y.im))


@dataclass(frozen=True)
class Real:
    """A float; Python floats beside it become constants of its dtype."""

    block: Body
    name: str
    dtype: np.dtype

    def like(self, x: Real | float) -> Real:
        """A constant of this dtype; what is no Python number stays itself."""
        return x if isinstance(x, Real) else Real(self.block, self.block.constant(x, self.dtype), self.dtype)

    def apply(self, op: str, *others: Real | float) -> Real:
        """An operation whose operands and result are all of this dtype."""
        names = ", ".join(x.name for x in (self, *map(self.like, others)))
        return Real(self.block, self.block.op(f"{op} {names}", mlir_name(self.dtype)), self.dtype)

    def __add__(self, other: Real | float) -> Real:
        return self.apply("arith.addf", other)

    def __radd__(self, other: float) -> Real:
        return self.like(other) + self

    def __sub__(self, other: Real | float) -> Real:
        return self.apply("arith.subf", other)

    def __rsub__(self, other: float) -> Real:
        return self.like(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self.apply("arith.mulf", other)

    def __rmul__(self, other: float) -> Real:
        return self.like(other) * self

    def __truediv__(self, other: Real | float) -> Real:
        return self.apply("arith.divf", other)

    def __rtruediv__(self, other: float) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return self.apply("arith.negf")

    def __abs__(self) -> Real:
        return self.apply("math.absf")

    def compare(self, predicate: str, other: Real | float) -> Truth:
        """`arith.cmpf` with this predicate."""
        text = f"arith.cmpf {predicate}, {self.name}, {self.like(other).name}"
        return Truth(self.block, self.block.op(text, mlir_name(self.dtype)))

    def __lt__(self, other: Real | float) -> Truth:
        return self.compare("olt", other)

    def __le__(self, other: Real | float) -> Truth:
        return self.compare("ole", other)

    def __gt__(self, other: Real | float) -> Truth:
        return self.compare("ogt", other)

    def __ge__(self, other: Real | float) -> Truth:
        return self.compare("oge", other)

    def same(self, other: Real | float) -> Truth:
        """Equal; false for NaN."""
        return self.compare("oeq", other)

    def differs(self, other: Real | float) -> Truth:
        """Not equal; true for NaN."""
        return self.compare("une", other)

    def is_nan(self) -> Truth:
        """True if this is NaN."""
        return self.compare("uno", self)

    def is_infinite(self) -> Truth:
        """True if this is an infinity."""
        return abs(self).same(np.inf)

    def is_finite(self) -> Truth:
        """True if this is neither NaN nor an infinity."""
        return abs(self) < np.inf

    def is_negative(self) -> Truth:
        """True if the sign bit is set, of -0.0 and NaN too."""
        return self.like(1.0).with_sign(self) < 0.0

    def with_sign(self, other: Real) -> Real:
        """This magnitude with the sign of the other."""
        return self.apply("math.copysign", other)

    def fma(self, factor: Real | float, term: Real | float) -> Real:
        """self * factor + term with one rounding."""
        return self.apply("math.fma", factor, term)

    def larger(self, other: Real) -> Real:
        """The larger one; NaN wins."""
        return self.apply("arith.maximumf", other)

    def smaller(self, other: Real) -> Real:
        """The smaller one; NaN wins."""
        return self.apply("arith.minimumf", other)

    def sqrt(self) -> Real:
        """Square root."""
        return self.apply("math.sqrt")

    def to(self, dtype: np.dtype) -> Real:
        """Converted to another float dtype."""
        return Real(self.block, self.block.cast(self.name, self.dtype, dtype), dtype)


@dataclass(frozen=True)
class Complex:
    """A complex number."""

    re: Real
    im: Real

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parts."""
        return self.re.dtype

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __truediv__(self, other: Complex) -> Complex:
        """Smith's algorithm (Communications of the ACM 5, 1962): no intermediate overflow."""
        wide = abs(other.re) >= abs(other.im)
        large, small = wide.choose(other.re, other.im), wide.choose(other.im, other.re)
        ratio = small / large
        scale = 1.0 / (large + small * ratio)
        one, two = wide.choose(self.re, self.im), wide.choose(self.im, self.re)
        product = one * ratio
        re, im = (one + two * ratio) * scale, wide.choose(two - product, product - two) * scale
        by_zero = large.same(0.0) & small.same(0.0)
        return by_zero.pick(self.scaled(np.inf), Complex(re, im))

    def scaled(self, factor: Real | float) -> Complex:
        """Times a real number."""
        return Complex(self.re * factor, self.im * factor)

    def conjugate(self) -> Complex:
        """The imaginary part negated."""
        return Complex(self.re, -self.im)

    def turned(self) -> Complex:
        """Times i."""
        return Complex(-self.im, self.re)

    def turned_back(self) -> Complex:
        """Times -i."""
        return Complex(self.im, -self.re)

    def is_true(self) -> Truth:
        """True if this is not zero."""
        return self.re.differs(0.0) | self.im.differs(0.0)

    def to(self, dtype: np.dtype) -> Complex:
        """With parts of another float dtype."""
        return Complex(self.re.to(dtype), self.im.to(dtype))

    def like(self, re: Real | float, im: Real | float) -> Complex:
        """A number with parts like this one's."""
        return Complex(self.re.like(re), self.re.like(im))
