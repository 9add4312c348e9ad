"""Arrays whose lengths depend on the data of each iteration, or on a branch: loops stay loops, with one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import CaptureError, ShapeError

from .against_python import check

Z = np.linspace(0, 3, 50)
POINTS = np.random.default_rng(0).standard_normal((40, 3))


def two_arrays(z, w, n):
    for _ in range(n):
        mask = z * w < 4
        z, w = z[mask] * 1.1, w[mask] + 0.1
    return z, w, len(z)


def in_place(z, n):
    z = z.copy()
    lengths = np.zeros(9, int)
    for i in range(n):
        z *= 1.2
        z = z[z < 3]
        lengths[i] = len(z)
    return z, lengths


def until_empty(z):
    z, steps = z + 0, 0
    while len(z):
        z = z[z * 1.5 < 3] * 1.5 + 0.1
        steps += 1
    return steps


def rows(p, n):
    for _ in range(n):
        d = np.sqrt((p**2).sum(axis=1))
        p = p[d < 1.5] * 1.2
    return p


def sieve(n):
    c = np.arange(2, 100)
    out = np.zeros(100, int)
    k = 0
    while len(c) and k < n:
        p = c[0]
        out[k] = p
        k += 1
        c = c[c % p != 0]
    return out, k, c


def different(x, n):
    for _ in range(n):
        x = np.unique(x // 2)
    return x


def select(x, k):
    """The k-th smallest of different numbers."""
    while len(x) > 1:
        p = x[len(x) // 2]
        low = x[x < p]
        if k < len(low):
            x = low
        else:
            if k < len(low) + 1:
                return p
            k -= len(low) + 1
            x = x[x > p]
    return x[0]


def dynamic_from_the_start(x, n):
    y = x[x > 1]
    for _ in range(n):
        y = y[y < 2] * 1.3
    return y.sum(), y


def positions(x, n):
    index = np.arange(len(x))
    for i in range(n):
        index = index[np.flatnonzero(x[index] * (i + 1) < 3)]
    return index


def complex_numbers(c, n):
    z, steps = np.zeros(len(c), complex), np.zeros(len(c), int)
    at = np.arange(len(c))
    for i in range(n):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2
        steps[at[gone]] = i + 1
        np.logical_not(gone, gone)
        z, c, at = z[gone], c[gone], at[gone]
    return steps, z


def exchanged(z, w, n):
    for _ in range(n):
        z, w = w[w < 2.5] * 1.1, z[z < 2.9] + 0.01
    return z, w


def in_nested_loops(z, n):
    total = 0.0
    for i in range(n):
        y = z
        for _ in range(i):
            y = y[y > 0.5] * 0.9
            total += y.sum()
        z = z[1:][z[1:] < 2.9]
    return total, z


def in_a_branch(z, n):
    y = z[z > 1]
    if n > 2:
        y = z[z > 2] * 2
    elif n > 1:
        y = z
    return y, y.sum()


def of_either_length(z, n):
    y = z[z > 1] if n > 2 else z[z < 0.5]
    return y * 2, len(y)


def of_two_dtypes(x, n):
    x = x.astype(np.float32)
    for _ in range(n):
        x = x[x < 2] * np.float32(1.5)
    return x, x.sum()


def parts_on_either_side(x, n):
    y = x.copy()
    for i in range(len(y)):
        part = y[:i] if y[i] > n / 3 else y[i:]
        y[i] = np.sum(part) * 0.1
    return y


@pytest.mark.parametrize("n", [0, 1, 3, 7])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (two_arrays, (Z, Z[::-1].copy())), (rows, (POINTS,)), (sieve, ()), (different, (np.arange(100),)),
        (dynamic_from_the_start, (Z,)), (positions, (Z,)), (in_a_branch, (Z,)), (of_either_length, (Z,)),
        (complex_numbers, (np.linspace(-2, 1, 30) + 0.3j,)), (exchanged, (Z, Z[::-1].copy())),
        (in_nested_loops, (Z,)), (of_two_dtypes, (Z,)), (parts_on_either_side, (Z,)),
    ],
)  # fmt: skip
def test_agrees_with_python(function: Any, arguments: tuple[Any, ...], n: int) -> None:
    check(function, *arguments, n)


def test_stores_into_the_array_that_gets_shorter() -> None:
    check(in_place, Z, 5)


def test_whiles() -> None:
    check(until_empty, Z)
    for k in (0, 30, 98):
        check(select, np.random.default_rng(k).permutation(99) + 0.5, k)


def test_one_program_for_all_trip_counts() -> None:
    compiled = ml.compile(two_arrays)
    text = compiled.ir("capture", Z, Z, 3)
    assert text.count("scf.for") >= 1 and text.count("mlirml.mask_counts") == 1, "one count for both arrays"
    for n in (1, 5, 9):
        for found, expected in zip(compiled(Z, Z, n), two_arrays(Z, Z, n)):
            np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert "1 signature(s) compiled" in compiled.explain()


def test_what_is_in_use_is_copied() -> None:
    """The new array is stored into the buffer of the old one, element by element: no copy of the whole buffer."""
    text = ml.compile(two_arrays).ir("schedule", Z, Z, 3)
    loop = text[text.index("scf.for") : text.index("return")]
    assert "memref.copy" not in loop and "linalg.copy" not in loop


def sum_after(z, w):
    for _ in range(4):
        z = z * w
        z = z[z < 3.0]
    return np.sum(z * z)


def test_gradients_and_batches() -> None:
    z, h = Z[1:], 1e-6
    by_z, by_w = ml.compile(ml.grad(sum_after, argnums=(0, 1)))(z, 1.1)
    np.testing.assert_allclose(by_w, (sum_after(z, 1.1 + h) - sum_after(z, 1.1 - h)) / (2 * h), rtol=1e-6)
    steps = np.eye(len(z)) * h
    expected = [(sum_after(z + s, 1.1) - sum_after(z - s, 1.1)) / (2 * h) for s in steps]
    np.testing.assert_allclose(by_z, expected, rtol=1e-6, atol=1e-6)
    batch = np.stack([z, z * 2, z * 0])
    found = ml.compile(ml.vmap(sum_after, in_axes=(0, None)))(batch, 1.1)
    np.testing.assert_allclose(found, [sum_after(one, 1.1) for one in batch])


def with_another_name(z, n):
    z = z.copy()
    first = z
    for _ in range(n):
        z *= 1.2
        z = z[z < 3]
    return z, first


def of_the_caller(z, n):
    for _ in range(n):
        z *= 1.2
        z = z[z < 3]
    return z


def kept_in_a_list(z, n):
    z = z.copy()
    kept = [z]
    for _ in range(n):
        z += 1
        z = z[z < 3]
    return z, kept[0]


class Holder:
    """An object with an array."""

    def __init__(self, z):
        self.z = z


def held_by_an_object(z, n):
    z = z.copy()
    holder = Holder(z)
    for _ in range(n):
        z += 1
        z = z[z < 3]
    return z, holder.z


@pytest.mark.parametrize("function", [with_another_name, of_the_caller, kept_in_a_list, held_by_an_object])
def test_stores_that_something_else_would_see_are_refused(function: Any) -> None:
    """The first iteration changes an array that something else refers to; later ones do not."""
    with pytest.raises(CaptureError, match="a store into `z`, which is another array in the next iteration"):
        ml.compile(function)(Z.copy(), 3)


def of_another_dtype(x, n):
    y = x[x > 1]
    for _ in range(n):
        y = (y[y > 1] > 2) * 1j
    return y


def test_what_cannot_be_carried() -> None:
    with pytest.raises(ShapeError, match=r"`y` changes its type in the loop: f64\[\?\] before .* c128\[\?\] after it"):
        ml.compile(of_another_dtype)(Z, 3)
