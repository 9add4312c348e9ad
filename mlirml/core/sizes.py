"""Sizes of dimensions that a program is not compiled for: names with bounds, and polynomials of them.

A `Size` is no integer. Arithmetic with integers and other sizes gives sizes. A comparison is answered where the bounds
decide it, and else by the sizes of the call that the program is traced for: the answer becomes a condition of the
program. Anything else that needs the value raises `StaticSizeError`, which names the dimensions.
"""

from __future__ import annotations

import math
import operator
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import ArgumentError, CaptureError

LEAST = 2
"""The least size that a program of dynamic sizes is made for: of 0 and 1 others are made, as 1 broadcasts."""


class StaticSizeError(CaptureError):
    """A dynamic size where the value is needed while the function is traced. `dims` are the names of its dimensions."""

    dims: tuple[str, ...] = ()
    is_pinned = False
    """True if these sizes have no program of dynamic sizes, and others may: as two are equal, or the size is small."""


@dataclass(frozen=True)
class Atom:
    """A variable of polynomials: a dimension divided by its `multiple_of`, or a quotient rounded down.

    `least` and `most` bound its value; `quotient` is numerator and divisor of a quotient.
    """

    name: str
    least: int = LEAST
    most: int | None = None
    multiple_of: int = 1
    quotient: tuple[Size, int] | None = None

    def value(self, values: Mapping[str, int]) -> int:
        """The value for these values of dimensions."""
        if self.quotient is not None:
            numerator, divisor = self.quotient
            return numerator.value(values) // divisor
        return values[self.name] // self.multiple_of

    def at(self, values: Mapping[str, int]) -> Extent:
        """The variable, or its value if that is known."""
        if self.quotient is not None:
            numerator, divisor = self.quotient
            return numerator.at(values) // divisor
        return self.value(values) if self.name in values else Size({(self,): 1})

    def sample(self) -> int:
        """Some value that it can have."""
        number = self.least + 2 + zlib.crc32(self.name.encode()) % 89
        return number if self.most is None else min(number, self.most)

    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions that it is computed from."""
        return self.quotient[0].dims() if self.quotient is not None else (self.name,)

    def __str__(self) -> str:
        return self.name if self.multiple_of == 1 else f"({self.name}/{self.multiple_of})"


Terms = dict[tuple[Atom, ...], int]


class Size:
    """A polynomial of dimensions with integer coefficients. Equal ones have equal hashes."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._hash = hash(frozenset(terms.items()))

    @staticmethod
    def of(terms: Terms) -> Size | int:
        """The polynomial of these terms; an integer if it has no variables."""
        kept = {atoms: factor for atoms, factor in terms.items() if factor}
        if not kept or (len(kept) == 1 and () in kept):
            return kept.get((), 0)
        return Size(kept)

    def value(self, values: Mapping[str, int]) -> int:
        """The value for these values of dimensions."""
        return sum(f * math.prod(atom.value(values) for atom in atoms) for atoms, f in self.terms.items())

    def at(self, values: Mapping[str, int]) -> Extent:
        """The size with some of its dimensions replaced by their values."""
        total: Any = 0
        for atoms, factor in self.terms.items():
            total = total + math.prod([factor, *(atom.at(values) for atom in atoms)])
        found: Extent = total
        return found

    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions in it, each once."""
        return tuple(dict.fromkeys(name for atoms in self.terms for atom in atoms for name in atom.dims()))

    def mark(self) -> int:
        """The number that the size is in tensor types: its value where each variable is a large prime of its own."""
        return sum(f * math.prod(_prime(self, atom) for atom in atoms) for atoms, f in self.terms.items())

    def sample(self) -> int:
        """Some value greater than 1, the same each time."""
        return max(LEAST, sum(f * math.prod(atom.sample() for atom in atoms) for atoms, f in self.terms.items()))

    def limits(self) -> tuple[int | None, int | None]:
        """A lower and an upper bound; None for none."""
        low, high = self._interval()
        terms = _terms(self._above_least())
        first = terms.get((), 0)
        others = [factor for atoms, factor in terms.items() if atoms]
        if all(factor > 0 for factor in others):
            low = first if low is None else max(low, first)
        if all(factor < 0 for factor in others):
            high = first if high is None else min(high, first)
        return low, high

    def _above_least(self) -> Any:
        """The polynomial of what each variable is above its least value."""
        total: Any = 0
        for atoms, factor in self.terms.items():
            total = total + math.prod([factor, *(Size({(atom,): 1}) + atom.least for atom in atoms)])
        return total

    def _interval(self) -> tuple[int | None, int | None]:
        """Bounds of the sum of the terms, each for itself."""
        low: int | None = 0
        high: int | None = 0
        for atoms, factor in self.terms.items():
            least = math.prod(atom.least for atom in atoms)
            tops = [atom.most for atom in atoms]
            most = None if None in tops else math.prod(top for top in tops if top is not None)
            ends = (least, most) if factor > 0 else (most, least)
            low = None if low is None or ends[0] is None else low + factor * ends[0]
            high = None if high is None or ends[1] is None else high + factor * ends[1]
        return low, high

    # Arithmetic.

    def __add__(self, other: Any) -> Any:
        if type(other) is not int and type(other) is not Size:
            return self._as_number("add", self, other)
        found = dict(self.terms)
        for atoms, factor in _terms(other).items():
            found[atoms] = found.get(atoms, 0) + factor
        return Size.of(found)

    def __radd__(self, other: Any) -> Any:
        return self + other if type(other) is int else self._as_number("add", other, self)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Size:
        return self

    def __sub__(self, other: Any) -> Any:
        if type(other) is not int and type(other) is not Size:
            return self._as_number("subtract", self, other)
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other if type(other) is int else self._as_number("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        if type(other) in (tuple, list):
            raise static_needed(self, "repeating a sequence")
        if type(other) is not int and type(other) is not Size:
            return self._as_number("multiply", self, other)
        found: Terms = {}
        for atoms, factor in self.terms.items():
            for others, second in _terms(other).items():
                key = tuple(sorted((*atoms, *others), key=str))
                found[key] = found.get(key, 0) + factor * second
        return Size.of(found)

    def __rmul__(self, other: Any) -> Any:
        return self * other if type(other) in (int, tuple, list) else self._as_number("multiply", other, self)

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is not int and type(other) is not Size:
            return self._as_number("floor_divide", self, other)
        quotient = exact_quotient(self, other)
        if quotient is not None:
            return quotient
        if type(other) is int and other > 0:
            return self._rounded_quotient(other)
        raise static_needed(self, "a quotient of sizes")

    def _rounded_quotient(self, divisor: int) -> Any:
        """The quotient, rounded down, in terms of one of a number that is not negative."""
        low, high = self.limits()
        if (high is not None and high <= 0) or (low is None and not self >= 0):
            return -((-self + divisor - 1) // divisor)
        if low is not None and low < 0:
            more = -(low // divisor)
            return (self + more * divisor) // divisor - more
        most = None if high is None else high // divisor
        atom = Atom(f"{_factor(self)}//{divisor}", (low or 0) // divisor, most, 1, (self, divisor))
        return Size({(atom,): 1})

    def __rfloordiv__(self, other: Any) -> Any:
        if type(other) is int:
            raise static_needed(self, "a division by it")
        return self._as_number("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        if type(other) is not int and type(other) is not Size:
            return self._as_number("remainder", self, other)
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        if type(other) is int:
            if other >= 0 and self > other:
                return other
            if other < 0 and self >= -other:
                return self + other
            raise static_needed(self, "a remainder by it")
        return self._as_number("remainder", other, self)

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - quotient * other

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 < other < 8:
            return math.prod([self] * other)
        return self._as_number("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._as_number("power", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._as_number("true_divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_number("true_divide", other, self)

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _as_number(self, ufunc: str, first: Any, second: Any) -> Any:
        """The operation on the value at run time, as a number of the program that is traced now."""
        return NUMBERS[0](ufunc, (first, second))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        compare = _COMPARISONS.get(ufunc.__name__)
        if compare is not None and all(map(_is_extent, inputs)):
            return compare(*map(_plainly, inputs))
        return NUMBERS[0](ufunc.__name__, inputs)

    # Comparisons.

    def __eq__(self, other: object) -> bool:
        if not _is_extent(other):
            return NotImplemented
        difference = self - _plainly(other)
        if type(difference) is int:
            return difference == 0
        low, high = difference.limits()
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        conditions = current_conditions()
        if conditions is None:
            raise static_needed(difference, f"whether {self} is {other}")
        return conditions.decide_equal(difference, f"whether {self} is {other}")

    def __ne__(self, other: object) -> bool:
        equal: Any = self.__eq__(other)
        return NotImplemented if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        caller = sys._getframe(1)
        if any(is_key(caller) for is_key in KEYS):  # the hash of the value is another one
            raise static_needed(self, "its value as a key of a dict or an item of a set")
        return self._hash

    def __lt__(self, other: Any) -> Any:
        return not self >= other if _is_extent(other) else self._compared("less", other)

    def __le__(self, other: Any) -> Any:
        return not self >= _plainly(other) + 1 if _is_extent(other) else self._compared("less_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self >= _plainly(other) + 1 if _is_extent(other) else self._compared("greater", other)

    def _compared(self, ufunc: str, other: Any) -> Any:
        """The comparison with what is no integer: with a float it is one of integers, else it is made at run time."""
        if type(other) is not float or not math.isfinite(other):
            return self._as_number(ufunc, self, other)
        if ufunc in ("less", "greater_equal"):
            return (self >= math.ceil(other)) == (ufunc == "greater_equal")
        return (self >= math.floor(other) + 1) == (ufunc == "greater")

    def __ge__(self, other: Any) -> Any:
        if not _is_extent(other):
            return self._compared("greater_equal", other)
        difference = self - _plainly(other)
        if type(difference) is int:
            return difference >= 0
        low, high = difference.limits()
        if low is not None and low >= 0:
            return True
        if high is not None and high < 0:
            return False
        conditions = current_conditions()
        if conditions is None:
            raise static_needed(difference, f"whether {self} is at least {other}")
        return conditions.decide_order(difference, f"whether {self} is at least {other}")

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise static_needed(self, "its value")

    __int__ = __index__

    def __float__(self) -> float:
        raise static_needed(self, "its value as a float")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(getattr(int, name, None)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise static_needed(self, f"the result of its `{name}`")

    def __str__(self) -> str:
        shown = ""
        for atoms, factor in self.terms.items():
            by = math.prod(atom.multiple_of for atom in atoms)
            names = [atom.name for atom in atoms] if factor % by == 0 else list(map(str, atoms))
            number = abs(factor) // by if factor % by == 0 else abs(factor)
            sign = "-" if factor < 0 else "+" if shown else ""
            shown += sign + "*".join([*([str(number)] if number != 1 or not names else []), *names])
        return shown

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return Size, (self.terms,)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def _is_extent(x: object) -> bool:
    return type(x) is int or type(x) is Size or isinstance(x, np.integer)


def _plainly(x: Any) -> Any:
    """A number of NumPy's as Python's integer."""
    return int(x) if isinstance(x, np.integer) else x


def _prime(size: Size, atom: Atom) -> int:
    scattered = zlib.crc32(atom.name.encode())
    if atom.quotient is None:
        return _prime_from(FIRST_MARK * 5 // 4 + scattered % (FIRST_MARK * 3 // 4 - _APART))
    # Less than the quotient of the marks, so that slices of so many elements, and windows at them, are in bounds.
    numerator, divisor = atom.quotient
    most = numerator.mark() // divisor
    if most > FIRST_MARK**2:
        raise static_needed(size, "a rounded quotient of it")
    return _prime_from(most - most // 16 - scattered % (most // 16 + 1))


FIRST_MARK = 1 << 18
"""The marks of dimensions are greater, and less than twice this: three of them and a factor of hundreds fit 64 bits."""


_APART = 1 << 10


@cache
def _prime_from(number: int) -> int:
    """The least prime that is at least a number."""
    while not all(number % divisor for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


@dataclass(frozen=True)
class Condition:
    """A condition on the sizes that a program is for: a size is at least 0 ("least"), "zero", or not ("other")."""

    size: Size
    relation: str = "least"

    def holds(self, values: Mapping[str, int]) -> bool:
        """True if it holds for these values of dimensions."""
        value = self.size.value(values)
        return value >= 0 if self.relation == "least" else (value == 0) == (self.relation == "zero")


class Conditions:
    """The comparisons of sizes that a trace has decided by the values of the dimensions in its call."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values
        self.found: dict[Condition, None] = {}

    def decide_order(self, size: Size, why: str) -> bool:
        """True if a size is at least 0 in this call."""
        is_met = size.value(self._values) >= 0
        self._add(Condition(size if is_met else -size - 1), size, why)
        return is_met

    def decide_equal(self, size: Size, why: str) -> bool:
        """False for a size that is not 0 in this call.

        Raises `StaticSizeError` for one that is, as the types of arrays do not tell that two sizes are equal; a
        remainder decides no type.
        """
        is_met = size.value(self._values) == 0
        if is_met and not _is_remainder(size):
            raise _pinned(size, why)
        self._add(Condition(size, "zero" if is_met else "other"), size, why)
        return is_met

    def bounds(self, name: str) -> bool:
        """True if the program is for sizes of a dimension up to some number only."""
        return any(
            condition.relation == "least"
            and condition.size.dims() == (name,)
            and condition.size.limits()[1] is not None
            for condition in self.found
        )

    def _add(self, condition: Condition, size: Size, why: str) -> None:
        self.found[condition] = None
        if len(self.found) > _MOST_CONDITIONS or Condition(-condition.size) in self.found:
            raise _pinned(size, why)


_MOST_CONDITIONS = 64
"""A program with more conditions is taken for one that iterates over the size while it is traced."""


def _is_remainder(size: Size) -> bool:
    """True for a size divided by a number, less the rounded quotient times that, and any number."""
    atom = next((atom for atoms in size.terms for atom in atoms if atom.quotient is not None), None)
    if atom is None or atom.quotient is None:
        return False
    numerator, divisor = atom.quotient
    return any(type(sign * size - numerator + divisor * Size({(atom,): 1})) is int for sign in (1, -1))


def _pinned(size: Size, why: str) -> StaticSizeError:
    error = static_needed(size, why)
    error.is_pinned = True
    return error


def current_conditions() -> Conditions | None:
    """The conditions of the program that is traced now, if it is traced for sizes of a call."""
    return next((found() for found in CONDITIONS), None)


CONDITIONS: list[Callable[[], Conditions | None]] = []
"""The front end's function that returns the conditions of the trace that is running."""

NUMBERS: list[Callable[[str, tuple[Any, ...]], Any]] = []
"""The front end's operation of NumPy on sizes as numbers of the program that is traced."""

LOCATE: list[Callable[[], Any]] = []
"""The front end's function that returns the user's current line."""

KEYS: list[Callable[[FrameType], bool]] = []
"""The front end's function that returns whether a frame that asks for a hash looks up a key of the user's."""

Extent = int | Size
"""The size of a dimension."""


def _terms(x: Any) -> Terms:
    return x.terms if type(x) is Size else {(): x}


def _factor(size: Size) -> str:
    return str(size) if len(size.terms) == 1 else f"({size})"


def exact_quotient(size: Any, divisor: Any) -> Any:
    """`size / divisor` if that is a polynomial, of one term where the divisor has several; None otherwise."""
    if type(size) is int and type(divisor) is int:
        return size // divisor if divisor and size % divisor == 0 else None
    if same(size, divisor):
        return 1
    below = list(_terms(divisor).items())
    if len(below) > 1:  # by a multiple of one term
        candidates = [
            exact_quotient(Size.of({atoms: f}), Size.of(dict(below[:1]))) for atoms, f in _terms(size).items()
        ]
        return next((q for q in candidates if q is not None and same(q * divisor, size)), None)
    ((atoms, by),) = below
    if by == 0:
        return None
    found: Terms = {}
    for others, factor in _terms(size).items():
        left = list(others)
        for atom in atoms:
            if atom not in left:
                return None
            left.remove(atom)
        if factor % by:
            return None
        found[tuple(left)] = factor // by
    return Size.of(found)


def is_size(x: object) -> bool:
    """True for a dynamic size."""
    return type(x) is Size


def same(a: Any, b: Any) -> bool:
    """True if two sizes are equal for all values of the dimensions. It asks for no value."""
    if type(a) is int and type(b) is int:
        return a == b
    return type(a) is type(b) and a.terms == b.terms


def same_shape(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """True if two shapes are equal for all values of the dimensions."""
    return a is b or (len(a) == len(b) and all(map(same, a, b)))


def value_of_size(size: Any, values: Mapping[str, int]) -> int:
    """A size, or an integer, for these values of dimensions."""
    return size.value(values) if type(size) is Size else int(size)


def sampled(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape with some number greater than 1 for each dynamic size, the same each time.

    NumPy's strides have the same structure for all numbers greater than 1.
    """
    return tuple(n.sample() if type(n) is Size else n for n in shape)


def is_dynamic_shape(shape: tuple[Any, ...]) -> bool:
    """True if a size of the shape is not known when the program is compiled."""
    return any(type(n) is Size for n in shape)


def static_needed(size: Size, why: str) -> StaticSizeError:
    """The error for a size whose value is needed."""
    names = size.dims()
    shown = " and ".join(f"`{name}`" for name in names)
    error = StaticSizeError(
        f"the size of dimension {shown} is dynamic, and {why} is needed when the function is traced",
        help=f"leave {shown} out of `dynamic`, so that a program is compiled for each size",
    )
    error.dims = names
    conditions = current_conditions()
    error.is_pinned = conditions is not None and all(map(conditions.bounds, names))
    error.location = next((locate() for locate in LOCATE), None)
    return error


class Dim:
    """A named dimension of dynamic size, for `TensorSpec` and the option `dynamic` of `compile`.

    Dimensions of equal names have equal sizes. Sums, products and quotients of them, such as `2 * n + 1`, are derived
    sizes.

    Parameters:
        name: an identifier.
        min, max: the least and the greatest size, both included; no greatest if None.
        multiple_of: a number that divides every size.

    Raises `ArgumentError` where no size fits.

    >>> import mlirml as ml
    >>> n = ml.Dim("n", min=2, max=512, multiple_of=2)
    >>> n, 2 * n + 1
    (Dim('n', min=2, max=512, multiple_of=2), 2*n+1)
    """

    __slots__ = ("max", "min", "multiple_of", "name")

    def __init__(self, name: str, min: int = 1, max: int | None = None, multiple_of: int = 1) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"Dim: {name!r} is no name of a dimension", help="use an identifier, such as 'batch'")
        for option, number in (("min", min), ("max", max), ("multiple_of", multiple_of)):
            if number is not None and (type(number) is not int or number < (option == "multiple_of")):
                raise ArgumentError(f"Dim: {option}={number!r} of dimension `{name}` is no size")
        first = -(-min // multiple_of) * multiple_of
        if max is not None and first > max:
            raise ArgumentError(
                f"Dim: no size of dimension `{name}` is from {min} to {max} and a multiple of {multiple_of}"
            )
        self.name, self.min, self.max, self.multiple_of = name, min, max, multiple_of

    @property
    def size(self) -> Size:
        """The dimension as a size, for programs of at least `LEAST` elements."""
        least = max(self.min, LEAST)
        by = self.multiple_of
        atom = Atom(self.name, -(-least // by), None if self.max is None else self.max // by, by)
        found = Size.of({(atom,): by})
        assert type(found) is Size
        return found

    def refusal(self, size: int) -> str | None:
        """A message for a size that the dimension cannot have."""
        if size < self.min:
            return f"is {size}, and at least {self.min}"
        if self.max is not None and size > self.max:
            return f"is {size}, and at most {self.max}"
        return f"is {size}, and a multiple of {self.multiple_of}" if size % self.multiple_of else None

    def __repr__(self) -> str:
        default = {"min": 1, "max": None, "multiple_of": 1}
        given = [f", {name}={getattr(self, name)}" for name, value in default.items() if getattr(self, name) != value]
        return f"Dim({self.name!r}{''.join(given)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[Any, ...]:
        return self.name, self.min, self.max, self.multiple_of

    def __add__(self, other: Any) -> Any:
        return self.size + _plain(other)

    def __radd__(self, other: Any) -> Any:
        return self.size + _plain(other)

    def __sub__(self, other: Any) -> Any:
        return self.size - _plain(other)

    def __rsub__(self, other: Any) -> Any:
        return -self.size + _plain(other)

    def __mul__(self, other: Any) -> Any:
        return self.size * _plain(other)

    def __rmul__(self, other: Any) -> Any:
        return self.size * _plain(other)

    def __floordiv__(self, other: Any) -> Any:
        return self.size // _plain(other)


def _plain(x: Any) -> Any:
    return x.size if isinstance(x, Dim) else x
