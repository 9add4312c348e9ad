"""Derivatives and batches of complex numbers, with the conventions of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
Z, V, CT = (RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4)) for _ in range(3))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "holomorphic": lambda z: np.exp(z) * z + np.sin(z) / (z + 3),
    "conjugates": lambda z: z * np.conj(z) * z + np.real(z) * 1j,
    "products": lambda z: z @ np.conj(z).T @ z,
    "sums": lambda z: z * np.sum(z * z) + np.mean(z, axis=0) * np.sum(z**2, axis=1, keepdims=True),
    "roots": lambda z: np.sqrt(z) * np.log(z) + z**2 + np.abs(z),
    "rearranged": lambda z: np.concatenate([z[1:], np.cumsum(z, 0)[:1]]) * z.T.reshape(3, 4),
    "loops": lambda z: ml.fori_loop(0, 3, lambda i, c: c * z + 1j, z),
    "again": lambda z: ml.checkpoint(lambda t: t * np.exp(t))(z),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_modes_and_differences(name: str) -> None:
    function, step = FUNCTIONS[name], 1e-6
    value, change = ml.jvp(function, (Z,), (V,))
    compiled = ml.compile(function)
    np.testing.assert_allclose(value, compiled(Z), rtol=1e-12)
    difference = (compiled(Z + step * V) - compiled(Z - step * V)) / (2 * step)
    np.testing.assert_allclose(change, difference, rtol=1e-5, atol=1e-7)
    (gradient,) = ml.vjp(function, Z)[1](CT)
    np.testing.assert_allclose(np.sum(gradient * V).real, np.sum(CT * change).real, rtol=1e-10)


# Name: the function, its first and its second derivative.
HOLOMORPHIC: dict[str, tuple[Any, Any, Any]] = {
    "exp": (np.exp, np.exp, np.exp),
    "exp2": (np.exp2, lambda z: np.exp2(z) * np.log(2), lambda z: np.exp2(z) * np.log(2) ** 2),
    "expm1": (np.expm1, np.exp, np.exp),
    "log": (np.log, lambda z: 1 / z, lambda z: -1 / z**2),
    "log10": (np.log10, lambda z: 1 / z / np.log(10), lambda z: -1 / z**2 / np.log(10)),
    "log1p": (np.log1p, lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z), lambda z: -0.25 / z / np.sqrt(z)),
    "reciprocal": (np.reciprocal, lambda z: -1 / z**2, lambda z: 2 / z**3),
    "sin": (np.sin, np.cos, lambda z: -np.sin(z)),
    "cos": (np.cos, lambda z: -np.sin(z), lambda z: -np.cos(z)),
    "tan": (np.tan, lambda z: 1 / np.cos(z) ** 2, lambda z: 2 * np.tan(z) / np.cos(z) ** 2),
    "sinh": (np.sinh, np.cosh, np.sinh),
    "cosh": (np.cosh, np.sinh, np.cosh),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2, lambda z: -2 * np.tanh(z) / np.cosh(z) ** 2),
    "arcsin": (np.arcsin, lambda z: (1 - z**2) ** -0.5, lambda z: z * (1 - z**2) ** -1.5),
    "arccos": (np.arccos, lambda z: -((1 - z**2) ** -0.5), lambda z: -z * (1 - z**2) ** -1.5),
    "arctan": (np.arctan, lambda z: 1 / (1 + z**2), lambda z: -2 * z / (1 + z**2) ** 2),
    "arcsinh": (np.arcsinh, lambda z: (1 + z**2) ** -0.5, lambda z: -z * (1 + z**2) ** -1.5),
    "arctanh": (np.arctanh, lambda z: 1 / (1 - z**2), lambda z: 2 * z / (1 - z**2) ** 2),
    "power": (lambda z: z**1.5, lambda z: 1.5 * z**0.5, lambda z: 0.75 * z**-0.5),
    "two to a power": (lambda z: (2 + 0j) ** z, lambda z: np.log(2) * 2**z, lambda z: np.log(2) ** 2 * 2**z),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions_on_axes_and_where_parts_are_equal(name: str) -> None:
    function, first, second = HOLOMORPHIC[name]
    z = np.array([0.5 + 0j, 0.5j, -0.4j, 0.3 + 0.3j, 0.3 - 0.3j, 0.7 - 0.2j])

    def slope(z: Any) -> Any:
        return ml.jvp(function, (z,), (np.ones(6, complex),))[1]

    @ml.compile
    def derivatives(z: Any, v: Any) -> Any:
        along, twice = ml.jvp(slope, (z,), (v,))
        return along, twice, ml.vjp(function, z)[1](v)[0], ml.vjp(slope, z)[1](v)[0]

    v = np.array([1, 1j, 1 + 1j, 2 - 1j, 1j, 1])
    once, twice, pulled, pulled_twice = derivatives(z, v)
    np.testing.assert_allclose(once, first(z), rtol=1e-12)
    np.testing.assert_allclose(pulled, first(z) * v, rtol=1e-12)
    np.testing.assert_allclose(twice, second(z) * v, rtol=1e-11)
    np.testing.assert_allclose(pulled_twice, second(z) * v, rtol=1e-11)


def test_a_holomorphic_function_is_multiplied_with_its_derivative() -> None:
    slope = (1 + Z) * np.exp(Z)
    np.testing.assert_allclose(ml.jvp(lambda z: z * np.exp(z), (Z,), (V,))[1], slope * V)
    np.testing.assert_allclose(ml.vjp(lambda z: z * np.exp(z), Z)[1](CT)[0], slope * CT)


def test_the_gradient_of_a_real_function_is_the_conjugate_of_its_ascent() -> None:
    np.testing.assert_allclose(ml.grad(lambda z: np.abs(z) ** 2)(1.0 + 2j), 2 - 4j)
    twice = ml.grad(lambda z: np.sum(np.real(ml.grad(lambda w: np.abs(w) ** 4)(z) * (2 + 1j))))(1.0 + 2j)
    step, at = 1e-6, 1.0 + 2j
    slope = [
        np.real(4 * abs(z) ** 2 * np.conj(z) * (2 + 1j)) for z in (at + step, at - step, at + 1j * step, at - 1j * step)
    ]
    np.testing.assert_allclose(twice, (slope[0] - slope[1] - 1j * (slope[2] - slope[3])) / (2 * step), rtol=1e-6)


def test_complex_numbers_within() -> None:
    x = np.linspace(0.3, 1, 3)
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(np.abs(np.exp(1j * x) * x) ** 2))(x), 2 * x)
    np.testing.assert_allclose(ml.jacfwd(lambda x: np.exp(1j * x))(x), np.diag(1j * np.exp(1j * x)), atol=1e-15)


def test_batches() -> None:
    np.testing.assert_allclose(ml.vmap(lambda z: np.exp(z) * np.sum(z))(Z), np.exp(Z) * Z.sum(1, keepdims=True))
    np.testing.assert_allclose(ml.vmap(lambda z: z * Z[0, 0])(np.arange(3.0)), np.arange(3) * Z[0, 0])
    gradients = ml.vmap(ml.grad(lambda z: np.sum(np.abs(z) ** 2)), in_axes=1)(Z)
    np.testing.assert_allclose(gradients, 2 * np.conj(Z).T)


def test_derivatives_of_ones_own() -> None:
    forward, backward = ml.custom_jvp(lambda z: z * z), ml.custom_vjp(lambda z: z * z)
    forward.defjvp(lambda p, t: (p[0] * p[0], 20 * p[0] * t[0]))
    backward.defvjp(lambda z: (z * z, z), lambda z, ct: (20 * z * ct,))
    np.testing.assert_allclose(ml.jvp(forward, (Z,), (V,))[1], 20 * Z * V)
    for function in (forward, backward):
        np.testing.assert_allclose(ml.vjp(function, Z)[1](CT)[0], 20 * Z * CT)
    np.testing.assert_allclose(ml.grad(lambda z: np.abs(ml.stop_gradient(z) * z))(3.0 + 4j), 3 - 4j)
