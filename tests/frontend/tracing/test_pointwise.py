"""Pointwise functions are one structured operation, with the numbers and derivatives of those written one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import special, stats
from mlirml.frontend.tracing.pointwise import pointwise

X = np.linspace(0.3, 9.0, 12).reshape(3, 4)


def count(function: Any, *args: Any) -> int:
    """The structured operations of the captured program."""
    return str(ml.compile(function).ir("capture", *args)).count("linalg.generic")


@pytest.mark.parametrize("name", ["gammaln", "gamma", "digamma", "erfcx", "i0", "i1e", "expit", "log_ndtr", "entr"])
def test_functions_of_one_argument(name: str) -> None:
    function = getattr(special, name)
    assert count(lambda x: function(x), X) == 1
    np.testing.assert_allclose(ml.compile(lambda x: function(x))(X), function(X), rtol=1e-14)


def test_numbers_and_smaller_arrays_are_computed_once() -> None:
    a = np.array([0.5, 1.0, 2.0, 7.0])
    function = lambda x, a: special.betaln(x, a)  # noqa: E731
    assert count(function, X, X + 1) == 1
    assert count(function, X, a) > 1  # what depends on `a` alone has a loop over its elements only
    for other in (X + 1, a, 2.5):
        np.testing.assert_allclose(ml.compile(function)(X, other), special.betaln(X, other), rtol=1e-14)


def test_densities() -> None:
    assert count(lambda x: stats.gamma.logpdf(x, 2.5), X) == 1
    for distribution, shapes in ((stats.gamma, (2.5,)), (stats.t, (4.0,)), (stats.beta, (2.0, 3.0))):
        x = X / 10
        found = ml.compile(lambda x, d=distribution, s=shapes: d.logpdf(x, *s))(x)
        np.testing.assert_allclose(found, distribution.logpdf(x, *shapes), rtol=1e-13)


def test_derivatives_are_those_of_the_rules() -> None:
    slope = ml.grad(lambda x: np.sum(special.gammaln(x)))
    np.testing.assert_allclose(slope(X), special.digamma(X), rtol=1e-14)
    second = ml.compile(lambda x: ml.jvp(slope, (x,), (np.ones_like(x),))[1])(X)
    np.testing.assert_allclose(second, special.polygamma(1, X), rtol=1e-13)
    rows = ml.vmap(ml.grad(lambda row: np.sum(special.betaln(row, row + 1))))(X)
    expected = special.digamma(X) + special.digamma(X + 1) - 2 * special.digamma(2 * X + 1)
    np.testing.assert_allclose(rows, expected, rtol=1e-12)


def test_loops_and_branches_around_them() -> None:
    def looped(x: Any) -> Any:
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                total += special.gammaln(x[i, j]) if x[i, j] > 1 else special.expit(x[i, j])
        return total

    np.testing.assert_allclose(ml.compile(looped)(X), looped(X), rtol=1e-13)


@pointwise
def rises(x: Any) -> Any:
    return np.cumsum(np.exp(x), axis=0) + 1


@pointwise
def turned(x: Any) -> Any:
    return (x * 2).T


@pointwise
def until_large(x: Any) -> Any:
    return ml.while_loop(lambda y: np.any(y < 20), lambda y: y * 2, x + 1)


@pointwise
def given(x: Any) -> Any:
    return x


@pytest.mark.parametrize("function", [rises, turned, until_large, given], ids=lambda f: f.__name__)
def test_functions_that_are_not_pointwise_are_right_too(function: Any) -> None:
    for x in (X, X[0, 0]):
        if function is not rises or np.ndim(x):
            np.testing.assert_allclose(ml.compile(lambda x: function(x) * 3)(x), function(x) * 3, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_that_are_dynamic(dtype: str) -> None:
    program = ml.compile(lambda x: special.gammaln(x) + special.i0(x), dynamic={"x": ("n", None)})
    for rows in (1, 3, 5):
        x = np.resize(X, (rows, 4)).astype(dtype)
        np.testing.assert_allclose(
            program(x), special.gammaln(x) + special.i0(x), rtol=1e-5 if x.itemsize < 8 else 1e-13
        )


@pytest.mark.parametrize("view", [lambda a: np.broadcast_to(a, X.shape), lambda a: a[::-1][None, :]])
def test_views_of_arguments_are_used_again_outside(view: Any) -> None:
    def twice(x: Any, a: Any) -> Any:
        wide = view(a)
        return special.betaln(x, wide) + wide, wide * 2

    a = np.array([0.5, 1.0, 2.0, 7.0])
    for found, expected in zip(ml.compile(twice)(X, a), twice(X, a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
