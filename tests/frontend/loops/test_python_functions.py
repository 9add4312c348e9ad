"""Python's own functions of numbers in loops, and the user's functions that come as values."""

from __future__ import annotations

import cmath
import functools
import math

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

V = np.array([1.5, -1.0, 2.0, -3.0, 4.0])
N = np.array([12, 18, -24, 7, 99980001])


def escape_times(width, height):
    """The Mandelbrot set in Python's complex numbers."""
    out = np.zeros((height, width), np.int32)
    for i in range(height):
        for j in range(width):
            c, z, n = complex(3 * j / width - 2, 3 * i / height - 1.5), 0j, 0
            while abs(z) <= 2 and n < 30:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


def test_complex_numbers_of_python() -> None:
    compiled = ml.compile(escape_times, static_argnums=(0, 1))
    np.testing.assert_array_equal(compiled(16, 9), escape_times(16, 9))


def test_parts_of_a_complex_number_stay_as_they_are() -> None:
    def built(x):
        out = np.zeros(len(x), complex)
        for i in range(len(x)):
            out[i] = complex(x[i], -x[i])
        return out

    check(built, np.array([1.0, np.inf, -0.0, np.nan]))


def test_functions_of_cmath() -> None:
    def values(z):
        out = np.zeros_like(z)
        for i in range(len(z)):
            out[i] = cmath.exp(z[i]) * cmath.sqrt(z[i]) + cmath.phase(z[i]) + abs(cmath.asin(z[i]))
        return out

    check(values, V + 1j, exact=False)


def test_points_of_polar_coordinates() -> None:
    def points(r, angle):
        out = np.zeros(len(r), complex)
        for i in range(len(r)):
            out[i] = cmath.rect(r[i], angle[i]) + cmath.rect(2.0, angle[i]) + cmath.rect(r[i], 0.3)
        return out

    check(points, np.array([1.0, 2.0, 0.0, 3.0]), np.array([0.5, -2.0, 1.0, np.pi]), exact=False)
    found = ml.compile(lambda r, angle: cmath.rect(r, angle))(np.inf, 0.0)
    assert found == cmath.rect(np.inf, 0.0)


def test_any_and_all_of_items() -> None:
    def counted(x):
        peaks = both = 0
        for i in range(1, len(x) - 1):
            if all(x[i] > x[i + k] for k in (-1, 1)):
                peaks += 1
            if any([x[i] > 3, x[i] < -2]):
                both += 1
        return peaks, both, max([x[0], x[1]]), min([x[0], 0.0])

    check(counted, V)


def test_whole_numbers_of_math() -> None:
    def sums(n):
        divisors = multiples = roots = 0
        for i in range(1, len(n)):
            divisors += math.gcd(n[i], n[i - 1])
            multiples += math.lcm(n[i], 4)
            roots += math.isqrt(abs(n[i])) + math.isqrt(abs(n[i]) - 1)
        return divisors, multiples, roots

    check(sums, N)


def test_other_functions_of_math() -> None:
    def sums(x):
        total = 0.0
        near = 0
        for i in range(1, len(x)):
            total += math.erf(x[i]) + math.erfc(x[i]) + math.dist([x[i], 1.0], [x[i - 1], 0.0]) + pow(x[i], 2)
            if math.isclose(x[i] + 1e-12, x[i]) and not math.isclose(x[i], x[i - 1], abs_tol=0.5):
                near += 1
        return total, near

    check(sums, V, exact=False)


def positive(value):
    return value if value > 0 else 0.0


def each(function, x):
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = function(x[i])
    return out


@pytest.mark.parametrize("function", [positive, lambda v: math.sin(v) if v > 0 else v, math.floor])
def test_a_function_given_as_a_value(function) -> None:
    check(functools.partial(each, function), V)


def bisection(function, low, high):
    while high - low > 1e-9:
        middle = (low + high) / 2
        if function(low) * function(middle) <= 0:
            high = middle
        else:
            low = middle
    return low


def found(items, x):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def histogram(x, counts):
    lowest, highest = x.min(), x.max()
    for value in x:
        place = int((value - lowest) / (highest - lowest) * len(counts))
        if place == len(counts):
            place -= 1
        counts[place] += 1


def sieve(limit):
    prime = np.ones(limit, bool)
    prime[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return prime


def test_programs_whose_loops_turn_on_data_need_no_front_end() -> None:
    cube = functools.partial(bisection, lambda v: math.exp(v) - 3)
    assert ml.compile(cube)(0.0, 2.0) == pytest.approx(math.log(3))
    assert ml.compile(found)(np.sort(V), 1.7) == found(np.sort(V), 1.7)
    counts, expected = np.zeros(4, int), np.zeros(4, int)
    ml.compile(histogram)(V, counts)
    histogram(V, expected)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(ml.compile(sieve, static_argnums=0)(120), sieve(120))


@pytest.mark.parametrize(
    "numbers",
    [
        (3, 200, 1000007),
        (-7, 3, -5),
        (7, 0, 1),
        (True, 5, 3),
        (3, -1, 2**61 - 1),
        (12345678901234567, 2**62 + 5, 2**63 - 25),
    ],
)
def test_powers_with_a_modulus(numbers):
    def powers(x, y, size):
        return pow(x, y, size), pow(x % 5 + 2, 3, size), pow(2, y % 3, size)

    def hashed(x, y, size):
        total = 0
        for i in range(3):
            total = (total * 31 + pow(x + i, y % 100, size) % 1000) % 1000003
        return total

    assert ml.compile(powers)(*numbers) == powers(*numbers)
    assert ml.compile(hashed)(*numbers) == hashed(*numbers)


def test_powers_with_a_modulus_fail_as_in_python():
    def power(x, y, size):
        return pow(x, y, size)

    with pytest.raises(ValueError, match="cannot be 0"):
        ml.compile(power)(3, 5, 0)
    with pytest.raises(ValueError, match="not invertible"):
        ml.compile(power)(4, -1, 8)
    for number in (3.0, np.int64(3), N):
        with pytest.raises(TypeError):
            power(number, 5, 7)
        with pytest.raises(ml.DTypeError, match="three arguments"):
            ml.compile(power)(number, 5, 7)
    with pytest.raises(ml.TracedValueError, match=r"`pow\(\)` needs the value"):
        ml.compile(power, frontend="trace")(np.int64(3), 5, 7)


def test_rounding_to_decimals_is_that_of_pythons_floats():
    def rounded(x):
        return round(x, 2), round(x, 1), round(x * 10, ndigits=2), round(x, -2), round(x, 15)

    compiled = ml.compile(rounded)
    for x in (
        1.115,
        -1.115,
        2.675,
        0.125,
        1.005,
        5.015,
        1250.0,
        150.0,
        0.0,
        1e300,
        1e-320,
        np.inf,
        123456789012.345678,
    ):
        assert tuple(map(float, compiled(x))) == rounded(x), x
    for number in range(200):
        assert tuple(map(float, compiled(number / 8 + 0.005))) == rounded(number / 8 + 0.005), number
    x = np.array([1.115, 0.125])
    assert ml.compile(lambda x: round(x[0], 2))(x) == round(x[0], 2) == np.round(x[0], 2)  # a number of NumPy


def test_bits_of_integers():
    def bits(n):
        return n.bit_length(), n.bit_count(), (n // 3).bit_length() / 2

    compiled = ml.compile(bits)
    for n in (0, 1, 5, -1, 255, 256, 2**62, 2**63 - 1, -(2**63)):
        assert compiled(n) == bits(n)

    def of_elements(x):
        total = 0
        for i in range(len(x)):
            total = total * 8 + int(x[i]).bit_length() + int(x[i]).bit_count()
        return total

    check(of_elements, N)
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"`\.to_bytes` of a number"):
        ml.compile(lambda n: n.to_bytes(8, "big"))(3)


class Grid:
    def filled(self, x):
        return np.full(3, x[0]) + np.linspace(x[0], x[1], 3) + np.asarray([x[2]] * 3)

    def table(self, x):
        return np.array([[x[0], x[1]], [x[2], x[0]]], dtype=float)


def test_methods_of_a_function_without_loops_make_arrays_of_numbers():
    check(lambda x: Grid().filled(x), V)
    check(lambda x: Grid().table(x), V)
    check(lambda x: np.array((x.T @ x) * 2.0, dtype=np.float32), V)


def test_numbers_of_arrays_become_python_s():
    def items(x):
        return x.item(1), x.item(-1), x.item((0, 1)), x.item(1, 0), x.sum().item(), x[0, 0].item()

    def lists(x):
        found = x.tolist()
        total = 0
        for row in found:
            row.append(row[0] // 2)
            total += sum(row)
        return found, total, max(max(row) for row in found)

    def promoted(x):
        return np.ones(2, np.float32) * x.max().item(), np.ones(2, np.float32) * x.max()

    for dtype in (np.float64, np.float32, np.int64, np.int16):
        x = np.arange(1, 5).reshape(2, 2).astype(dtype)
        for function in (items, lists, promoted):
            check(function, x)
    assert ml.compile(lambda x: x.tolist())(np.array([True, False])) == [True, False]
    assert ml.compile(ml.grad(lambda x: x.item() ** 2))(np.array([3.0])) == 6


def test_functions_of_whole_numbers():
    def counts(xs):
        total = 0
        for x in xs:
            total += math.factorial(x % 13) - math.comb(int(x) % 60, 29) + math.perm(x % 15, 3) * 2 + math.perm(x % 6)
        return (
            total,
            math.factorial(20 + 0 * int(xs[0])),
            math.comb(int(xs[0]) % 7, 9),
            math.comb(62 + 0 * int(xs[1]), 31),
        )

    check(counts, N)
    with pytest.raises(ValueError, match="not defined for negative values"):
        ml.compile(lambda n: math.factorial(n))(-3)
    with pytest.raises(ml.errors.DTypeError, match="takes integers"):
        ml.compile(lambda x: math.factorial(x), frontend="loops")(2.5)


def test_functions_that_give_several_numbers_and_the_gamma_function():
    def parts(xs):
        total, count = 0.0, 0
        for x in xs:
            fraction, whole = math.modf(x)
            mantissa, exponent = math.frexp(x)
            total += 2 * fraction + whole + 3 * mantissa + math.ldexp(x, exponent % 5)
            count += exponent
        return total, count, math.gamma(xs[0]), math.lgamma(xs[2]), math.lgamma(xs[1] - 0.5)

    check(parts, V * 1.25, exact=False)


def test_comparisons_of_numbers_with_none_and_texts():
    def shifted(x, y):
        if y == None:  # noqa: E711
            return x
        return x + y if None != y else 0.0  # noqa: E711, SIM300

    def both(x):
        count = 0
        for v in x:
            if v == None:  # noqa: E711
                count += 1
            if v != "a":
                count += 2
        return shifted(x[0], None), shifted(x[0], x[1]), count, x[0] == "b"

    check(both, V)
    assert ml.compile(shifted)(2.0, None) == 2.0 and ml.compile(shifted)(2.0, 1.0) == 3.0


def test_functions_that_python_calls_for_items():
    def converted(items, x):
        return list(map(int, items)), sum(map(int, items)), type(x)(2 * x), tuple(map(float, items)), sorted(items)

    found = ml.compile(converted)([2.5, 1.5], 3.25)
    assert found == ([2, 1], 3, 6.5, (2.5, 1.5), [1.5, 2.5])
    assert ml.compile(lambda x, base: int(x, base))("12", 8) == 10
    with pytest.raises(ml.errors.DTypeError, match="with a base takes a text"):
        ml.compile(lambda x: int(x, 8), frontend="loops")(12)


def test_ranges_with_steps_are_reversed():
    def down_and_up(x, n):
        found, total = [], 0.0
        for i in reversed(range(n, -1, -1)):
            total = 0.5 * total + x[i]
        for i in reversed(range(n, 0, -2)):
            total = 0.5 * total - x[i]
        for i in reversed(range(1, n, 3)):
            total = 0.5 * total + 2 * x[i]
        for i in reversed(range(n)):
            found.append(i)
        return total, found

    compiled = ml.compile(down_and_up)
    for n in range(5):
        total, found = compiled(V, n)
        expected, items = down_and_up(V, n)
        assert found == items and abs(total - expected) < 1e-14
    assert ml.compile(down_and_up)(V, -4) == (0.0, [])


@pytest.mark.parametrize("function", [math.perm, math.comb])
def test_numbers_of_choices_are_right_or_too_large_for_64_bits(function):
    def choices(n, k):
        return function(n, k)

    compiled = ml.compile(choices)
    for n in (0, 1, 5, 19, 20, 21, 61, 66, 67, 68, 70):
        for k in (0, 1, 2, 7, 19, 20, 21, 33, 34, 71):
            expected = function(n, k)
            if expected < 1 << 63:
                assert compiled(np.int64(n), np.int64(k)) == expected
            else:
                with pytest.raises(OverflowError, match="more than 64 bits"):
                    compiled(np.int64(n), np.int64(k))


def test_factorials_are_right_or_too_large_for_64_bits():
    compiled = ml.compile(lambda n: math.factorial(n))
    for n in (0, 1, 5, 20):
        assert compiled(np.int64(n)) == math.factorial(n)
    with pytest.raises(OverflowError, match="of more than 20"):
        compiled(np.int64(21))


def sine(x, terms):
    return sum((-1) ** k * x ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(terms))


def exponential(x, terms):
    total = 0.0
    for k in range(terms):
        total += 1 / math.factorial(k) * x**k
    return total


def test_division_by_a_factorial_of_more_than_64_bits():
    assert float(ml.compile(sine)(1.5, 40)) == pytest.approx(math.sin(1.5), rel=1e-15)
    assert float(ml.compile(exponential)(1.5, 100)) == pytest.approx(math.exp(1.5), rel=1e-15)
    assert float(ml.compile(lambda n: 1.0 / math.factorial(n))(170)) == 1.0 / math.factorial(170)
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        ml.compile(exponential)(1.5, 172)
    with pytest.raises(ValueError, match="factorial"):
        ml.compile(lambda n: 1.0 / math.factorial(n))(-1)
    with pytest.raises(ml.DTypeError, match="factorial` takes integers"):
        ml.compile(lambda n: 1.0 / math.factorial(n))(np.float64(2.0))
