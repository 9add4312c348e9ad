"""Loops that read at computed places: what they carry lies in one workspace, and none of it is mistaken for other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Function = Callable[..., Any]
ROUNDS = 5


def both(i: Any, c: Any, places: Any) -> Any:
    v, u = c
    return np.sin(v) * 0.5 + v[places] * 0.1, np.cos(u) + v[places]


def swapped(i: Any, c: Any, places: Any) -> Any:
    v, u = c
    t = v[places] + u
    return u[places] * 0.5, t - t[places]


def stored(i: Any, c: Any, places: Any) -> Any:
    """An array that is stored into at the places, and one that is computed from it after that."""
    v, u = c
    v[places] = u[::-1] * 0.5
    return v, u + v[places]


def masked(i: Any, c: Any, places: Any) -> Any:
    """Bytes beside the numbers."""
    v, u = c
    positive = v > u
    return np.where(positive[places], v[places], u), np.where(positive, u[places] * 0.5, v)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("body", [both, swapped, stored, masked], ids=lambda f: f.__name__)
def test_gives_what_python_gives(body: Function, kind: type) -> None:
    rng = np.random.default_rng(1)
    v, u, places = (
        rng.standard_normal(333).astype(kind),
        rng.standard_normal(333).astype(kind),
        rng.integers(0, 333, 333),
    )

    def walk(v: Any, u: Any, places: Any) -> Any:
        v, u = ml.fori_loop(0, ROUNDS, lambda i, c: body(i, c, places), (v * kind(1), u * kind(1)))
        return v, u, np.sum(v)

    c = v.copy(), u.copy()
    for i in range(ROUNDS):
        c = body(i, c, places)
    for found, expected in zip(ml.compile(walk)(v, u, places)[:2], c, strict=True):
        np.testing.assert_allclose(found, expected, rtol=200 * np.finfo(kind).eps, atol=200 * np.finfo(kind).eps)


def test_the_vectorizer_is_told_what_is_apart() -> None:
    v, places = np.linspace(0, 1, 64), np.arange(64)

    def walk(v: Any, u: Any, places: Any) -> Any:
        return np.sum(ml.fori_loop(0, ROUNDS, lambda i, c: both(i, c, places), (v, u))[0])

    assert "noalias_scopes" in str(ml.compile(walk).ir("lower", v, v, places))
