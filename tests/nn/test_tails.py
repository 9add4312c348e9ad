"""Activations and their derivatives keep their relative accuracy far from 0, where a naive formula cancels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import mlirml as ml
import mlirml.nn.functional as F
import mlirml.numpy
from mlirml.targets.machine import processor as machine_processor


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def gelu_tanh(x: Any) -> Any:
    return x * logistic(2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3))


# What is computed, its value and derivative, and the errors in units of eps that are allowed for both.
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any] | None, float, float]] = {
    "gelu": (F.gelu, lambda x: x * normal(x), lambda x: normal(x) + x * density(x), 3, 8),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), gelu_tanh, None, 1500, 0),
    "silu": (F.silu, lambda x: x * logistic(x), lambda x: logistic(x) * (1 + x * logistic(-x)), 3, 8),
    "log_sigmoid": (F.log_sigmoid, lambda x: -softplus(-x), lambda x: logistic(-x), 3, 4),
    "softplus": (lambda x: F.softplus(x, threshold=100), softplus, logistic, 3, 4),
    "logaddexp": (lambda x: np.logaddexp(x, 0), softplus, logistic, 3, 4),
    "mish": (
        F.mish,
        lambda x: x * mp.tanh(softplus(x)),
        lambda x: mp.tanh(softplus(x)) + x * logistic(x) / mp.cosh(softplus(x)) ** 2,
        4,
        8,
    ),
    "elu": (F.elu, lambda x: x if x > 0 else mp.expm1(x), lambda x: mp.exp(min(x, 0)), 2, 2),
    "expm1": (np.expm1, mp.expm1, mp.exp, 2, 2),
    "erfc": (mlirml.numpy.erfc, mp.erfc, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 4, 4),
    "sigmoid": (F.sigmoid, logistic, lambda x: logistic(x) * logistic(-x), 3, 4),
}
# Zeros of the derivatives, near which they cannot be relatively exact.
ZEROS = (-0.7517915, -1.1924, -1.2784645)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(("dtype", "first"), [(np.float64, -30.0), (np.float32, -10.0)])
@pytest.mark.parametrize("name", CASES)
def test_relative_errors(name: str, dtype: Any, first: float, target: str) -> None:
    function, value, derivative, allowed, allowed_of_derivative = CASES[name]
    xs = np.concatenate([np.linspace(first, -first, 101), np.linspace(-2, 2, 41)])
    eps, least = float(np.finfo(dtype).eps), 1e3 * float(np.finfo(dtype).tiny)
    xs = xs[[all(abs(x - zero) > 0.3 for zero in ZEROS) for x in xs]].astype(dtype)

    def check(given: Any, exact: Callable[[Any], Any], bound: float) -> None:
        with mp.workprec(250):
            for x, found in zip(xs, given):
                true = exact(mpf(float(x)))
                if abs(true) > least:
                    assert abs(mpf(float(found)) - true) <= bound * eps * abs(true), (x, found)

    check(ml.compile(function, target)(xs), value, allowed)
    if derivative is not None:
        pullback = ml.compile(lambda x: ml.grad(lambda y: np.sum(function(y)))(x), target)
        pushed = ml.compile(lambda x: ml.jvp(function, (x,), (np.ones_like(x),))[1], target)
        check(pullback(xs), derivative, allowed_of_derivative)
        check(pushed(xs), derivative, allowed_of_derivative)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_ends_of_gelu(approximate: str) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        xs = np.array([np.inf, 1e4, -1e4, -0.0, 0.0, np.nan], dtype)
        expected = np.array([np.inf, 1e4, -0.0, -0.0, 0.0, np.nan], dtype)
        given = ml.compile(lambda x: F.gelu(x, approximate=approximate))(xs)
        assert np.array_equal(given, expected, equal_nan=True)
        assert np.array_equal(np.signbit(given[:5]), np.signbit(expected[:5]))


@pytest.mark.parametrize("processor", ["avx512", "avx2", "sse4.1"])
def test_gelu_is_one_function_of_its_argument(processor: str) -> None:
    """Where products are fused, the rounded argument of erfc and its correction are not computed."""
    xs = np.concatenate([np.linspace(-13, 13, 50_001), np.geomspace(1e-8, 1, 500), -np.geomspace(1e-8, 1, 500)])
    xs = xs.astype(np.float32)
    with ml.config.override(processor=processor):
        function = ml.compile(lambda x: F.gelu(x))
        text = function.ir("lower", xs)
    assert ("mlirml.normal_tail.f32" in text) == ("mlirml.erfc.f32" not in text) == (processor != "sse4.1")
    if processor == "avx512" and not machine_processor().has_avx512:
        pytest.skip("this processor has no AVX-512")
    with ml.config.override(processor=processor):
        given = ml.compile(lambda x: F.gelu(x))(xs)
    exact = F.gelu(xs.astype(np.float64))
    assert np.all(np.abs(given - exact) <= 3 * np.finfo(np.float32).eps * np.abs(exact))
