"""Marked sizes: in tensor types, a dynamic size is a large number that no other size of the program divides or equals.

A dimension is a prime (`Size.mark`), and a derived size the value of its polynomial: passes over tensors, derivatives
and fusion among them, see static shapes that are equal exactly where sizes are, and `mlirml-free-sizes` makes them
dynamic again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MARKS = "mlirml.marked_sizes"
"""Attribute of @main: the marks of the sizes in the table, in its order."""

LEAST_MARK = 1 << 13
"""A smaller number is no mark: those of dimensions are greater than 1 << 18, those of their quotients smaller."""
_NEAR = 256
"""A number that differs by at most this from a multiple of a mark may come from the mark."""


class UnknownSizeError(Exception):
    """A number in the program that may come from a mark, and is no product of marks."""


class Marks:
    """The marks of a program, and products of them."""

    def __init__(self, marks: Sequence[int]) -> None:
        self._numbers = dict(sorted(((mark, i) for i, mark in enumerate(marks)), reverse=True))
        self._known: dict[int, tuple[int, tuple[int, ...]]] = {}

    @property
    def least_part(self) -> int:
        """The least number that could be computed from a mark, such as its half."""
        return min(self._numbers, default=LEAST_MARK) * 2 // 5

    def factors(self, number: int) -> tuple[int, tuple[int, ...]]:
        """A size as a static factor and the numbers of the dynamic ones; raises `UnknownSizeError`."""
        if -LEAST_MARK < number < LEAST_MARK:
            return number, ()
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._factors(number)
        return found

    def _factors(self, number: int) -> tuple[int, tuple[int, ...]]:
        if number in self._numbers:
            return 1, (self._numbers[number],)
        for mark, i in self._numbers.items():
            if number % mark == 0:
                factor, rest = self.factors(number // mark)
                return factor, (i, *rest)
        if self.is_near(number):
            raise UnknownSizeError(f"a size is {self.described(number)}")
        return number, ()

    def described(self, number: int) -> str:
        """A number near a multiple of a mark, for an error message, which does not show marks."""
        factor, rest = min(
            ((round(number / mark), number - round(number / mark) * mark) for mark in self._numbers),
            key=lambda pair: abs(pair[1]),
        )
        times = "a dynamic size" if factor == 1 else f"{factor} times a dynamic size"
        return times if not rest else f"{times} {'plus' if rest > 0 else 'minus'} {abs(rest)}"

    def is_near(self, number: int, distance: int = _NEAR) -> bool:
        """True if a number is a mark, a multiple of one, or differs from these by at most `distance`."""
        if -LEAST_MARK < number < LEAST_MARK:
            return False
        return any(min(number % mark, -number % mark) <= distance for mark in self._numbers)


def collides(marks: Iterable[int], static: Iterable[int]) -> bool:
    """True if marks are equal, or a static size could be taken for one."""
    listed = list(marks)
    found = Marks(listed)
    return (
        len(set(listed)) < len(listed) or any(mark < LEAST_MARK for mark in listed) or any(map(found.is_near, static))
    )
