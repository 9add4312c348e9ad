"""Functions of Python's integers, in Python, which are captured: `pow` of three, `math.factorial` and its like."""

from __future__ import annotations

import math
from typing import Any

_LARGEST = (1 << 63) - 1


def power_modulo(base: Any, exponent: Any, modulus: Any) -> Any:
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    size = abs(modulus)
    factor = base % size
    left = exponent
    if exponent < 0:
        # Euclid's algorithm: `factor * inverse` is `common` modulo the size.
        common, rest, inverse, other = factor, size, 1, 0
        while rest != 0:
            quotient = common // rest
            common, rest = rest, common - quotient * rest
            inverse, other = other, inverse - quotient * other
        if common != 1:
            raise ValueError("base is not invertible for the given modulus")
        factor = inverse % size
        left = -exponent
    result = 1 % size
    while left > 0:
        if left % 2 == 1:
            result = _product(result, factor, size)
        factor = _product(factor, factor, size)
        left = left // 2
    if modulus < 0 and result != 0:
        result = result + modulus
    return result


def _product(x: Any, y: Any, size: Any) -> Any:
    """`x * y % size` of numbers below the size, the product of which may have more than 64 bits."""
    if size <= 2147483648:
        return x * y % size
    total = 0
    while y > 0:
        if y % 2 == 1:
            total = total - (size - x) if total >= size - x else total + x
        x = x - (size - x) if x >= size - x else x + x
        y = y // 2
    return total


def factorial(n: Any) -> Any:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise OverflowError("factorial() of more than 20 has more than 64 bits")
    found = 1
    for i in range(2, n + 1):
        found = found * i
    return found


_FACTORIALS = tuple(float(math.factorial(n)) for n in range(171))


def real_factorial(n: Any) -> Any:
    """The factorial as a divisor, which Python makes a float of."""
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 170:
        raise OverflowError("int too large to convert to float")
    return _FACTORIALS[n]


def perm(n: Any, k: Any) -> Any:
    if n < 0 or k < 0:
        raise ValueError("perm() takes no negative integers")
    found = 1
    for i in range(k if k <= n else 0):
        if found > _LARGEST // (n - i):
            raise OverflowError("perm() has more than 64 bits")
        found = found * (n - i)
    return found if k <= n else 0


def comb(n: Any, k: Any) -> Any:
    if n < 0 or k < 0:
        raise ValueError("comb() takes no negative integers")
    found = 1
    for i in range(min(k, max(n - k, 0))):
        # `found * (n - i)` may have more than 64 bits where the quotient has not.
        whole, rest = found // (i + 1), found % (i + 1) * (n - i) // (i + 1)
        if whole > (_LARGEST - rest) // (n - i):
            raise OverflowError("comb() has more than 64 bits")
        found = whole * (n - i) + rest
    return found if k <= n else 0
