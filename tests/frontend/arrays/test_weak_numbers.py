"""Python numbers, NumPy scalars and arrays of no dimension at each place of NumPy's functions.

What becomes of them differs from function to function, so NumPy itself says what is right: whether the call is an
error, and else the numbers, the dtype, and whether it gives a scalar or an array.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from tests.fuzz.oracle import check


def _calls(text: str) -> list[str]:
    return [call.strip() for call in text.replace("\n", ";").split(";") if call.strip()]


# `n` is the number, `x` an array, `v` the same as a vector, `k` positions, `m` a mask.
CALLS = _calls("""
np.clip(n, x, x); np.clip(n, None, x); np.clip(x, n, n); np.clip(x, None, n); np.clip(x, n, x); np.clip(n, n, x)
np.clip(x, min=n); x.clip(max=n); np.where(m, n, x); np.where(m, x, n); np.where(m, n, n); np.where(n, x, x)
np.isclose(n, x); np.isclose(x, n); np.isclose(x, x, n); np.isclose(x, x, atol=n); np.allclose(x, n)
np.maximum(n, x); np.fmin(x, n); np.copysign(n, x); np.arctan2(x, n); np.power(n, x); np.float_power(x, n)
np.hypot(n, x); np.nextafter(x, n); np.heaviside(n, x); np.divmod(n, x); np.logaddexp(n, x); np.round(n, 1)
np.concatenate([v, [n]]); np.stack([v[0], n]); np.hstack([n, v]); np.append(v, n); np.append(n, v); np.insert(v, 1, n)
np.full(2, n); np.full_like(x, n); np.full_like(n, v[0]); np.full(2, n, dtype=x.dtype); np.pad(v, 1, constant_values=n)
np.searchsorted(np.sort(v), n); np.digitize(n, np.sort(v)); np.select([x > 1], [n], x); np.select([m], [x], n)
np.choose(k, [n, x]); np.choose(k, [x, n]); np.interp(n, np.sort(v), v); np.interp(v, np.sort(v), v, n)
np.linspace(n, x, 3); np.linspace(x, n, 3); np.linspace(0, n, 3); np.sum(x, initial=n); np.max(x, initial=n)
np.percentile(v, n); np.quantile(v, 0.5); np.percentile(n, 50); np.percentile(v, [2]); np.median(n); np.average(n)
np.dot(v, n); np.outer(n, v); np.inner(v, n); np.tensordot(n, v, 0); np.kron(v, n); np.einsum(',i->i', n, v)
np.multiply.outer(n, v); np.add.outer(v, n); np.meshgrid(n, v); np.broadcast_to(n, (3,)); np.trapezoid(v, dx=n)
np.ediff1d(v, n); np.diff(v, prepend=n); np.polyval(v, n); np.polyval([n], v); np.convolve(v, n); np.isin(n, v)
np.gradient(v, n); np.unwrap(v, period=n); np.nan_to_num(x, nan=n); np.std(v, ddof=n); np.var(v, mean=n)
np.var(v, correction=n); np.nanmax(n); np.nanmedian(n); np.nan_to_num(n); np.sinc(n); np.sum(n); np.mean(n)
np.real(n) * x; np.imag(n) + x; np.abs(n) + x; n * 2 + x; (n + n) * x; -n * x; x + n; n - x; x // n; n ** x; x < n
np.max(n) + x; np.sqrt(n) * x; np.cumsum(n) + x; np.array(n) + x; np.array([n, v[0]]); np.array(n, x.dtype)
np.add(x, n, dtype='f8'); np.r_[v, n]; np.cov(n); np.bincount(k, minlength=3, weights=np.stack([n, n, n]))
np.ldexp(x, k) + n
""")
STORES = _calls("""
x += n; x *= n; x[...] = n; v[0] = n; v[1:] = n; v[m] = n; v[k] = n; x.fill(n); np.copyto(x, n); np.putmask(v, m, n)
np.put(v, k, n); np.add.at(v, k, n); np.minimum(x, n, out=x); np.fill_diagonal(v, n)
np.put_along_axis(v, k, n, 0)
""")
NUMBERS: tuple[Any, ...] = (True, 3, 2.5, 1 + 2j, np.float32(2), np.array(2))
ARRAYS = (np.array([1, 2, 3], np.int8), np.array(2, np.float16))
# What is refused by intention: complex numbers where order counts, and integers that may not fit when the program runs.
GAPS = ("not compiled for complex numbers", "may not fit", "counted by a real number", "must be a float")
MASK, PLACES = np.array([True, False, True]), np.array([0, 1, 0])


def _function(call: str, scalars: list[bool], literal: Any = None) -> Callable[..., Any]:
    """The call as a function of an array and the number, or with a number that it finds as it is."""
    lines = [
        f"def function(x{'' if literal is not None else ', n'}):",
        "    v = x if np.ndim(x) else np.stack([x, x, x])",
        *([f"    {call}", "    result = x, v"] if call in STORES else [f"    result = {call}"]),
        "    scalars.append(np.isscalar(result))",
        "    return result",
    ]
    names: dict[str, Any] = {"np": np, "scalars": scalars, "m": MASK, "k": PLACES, "n": literal, "__name__": "user"}
    exec("\n".join(lines), names)
    function: Callable[..., Any] = names["function"]
    return function


def _outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error by which it is refused."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            return error


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _difference(captured: Any, expected: Any) -> str:
    if isinstance(expected, Exception):
        return "" if isinstance(captured, Exception) else f"accepted, and NumPy says {expected}"
    if isinstance(captured, Exception):
        return "" if any(gap in str(captured) for gap in GAPS) else f"refused: {captured}"
    kinds = [(spec.dtype, spec.shape) for spec in captured.outputs]
    wanted = [(np.asarray(leaf).dtype, np.shape(leaf)) for leaf in flatten(expected)[0]]
    return "" if kinds[: len(wanted)] == wanted else f"{kinds}, expected {wanted}"


@pytest.mark.parametrize("call", [*CALLS, *STORES])
def test_numbers_are_what_they_are_in_numpy(call: str) -> None:
    found = []
    for n, x in itertools.product(NUMBERS, ARRAYS):
        scalars: list[bool] = []
        expected = _outcome(lambda n=n, x=x, s=scalars: _function(call, s)(_copy(x), _copy(n)))
        for literal in (None, n):
            asked: list[bool] = []
            compiled = ml.compile(_function(call, asked, literal), "reference")
            arguments = (x,) if literal is not None else (x, n)
            captured = _outcome(lambda c=compiled, a=arguments: c.trace(*map(_copy, a)))
            difference = _difference(captured, expected)
            if not difference and asked != scalars and not isinstance(captured, Exception):
                difference = f"a scalar: {asked}, expected {scalars}"
            if difference:
                found.append(f"x = {x!r}, n = {n!r}{'' if literal is None else ' as a literal'}: {difference}")
    assert not found, "\n".join([call, *found])


def test_values_of_what_takes_numbers_at_run_time() -> None:
    x = np.array([[1.0, 4.0, 2.5], [3.0, -2.0, 8.0]])

    def f(x: Any, n: Any, s: Any) -> Any:
        spreads = (
            np.var(x, ddof=n),
            np.std(x, axis=1, correction=s),
            np.var(x, mean=2.0),
            np.var(x, 0, where=x > 0, ddof=s),
        )
        turned = np.unwrap(np.array([0, 3, 7, 4, 10]) * n, period=8), np.unwrap(x, period=s)
        return (
            spreads,
            turned,
            np.percentile(x, n),
            np.quantile(x, s / 2),
            np.isclose(x, n, s, atol=n),
            np.clip(n, s, x),
        )

    check(f, x, 1, np.float32(0.5), rtol=1e-14)


def test_percentiles_of_halves_are_found_in_doubles() -> None:
    x = np.arange(5000).astype(np.float16)
    check(lambda x, q: (np.percentile(x, q), np.quantile(x, q / 100), np.percentile(x, 33.3)), x, 33.3)


def test_integers_are_copied_into_unsigned_ones() -> None:
    def f(x: Any, n: Any) -> Any:
        np.copyto(x, 3)
        np.copyto(x[1:], n)
        return x

    check(f, np.zeros(3, np.uint8), 7)
