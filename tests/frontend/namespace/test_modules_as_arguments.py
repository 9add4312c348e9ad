"""Modules among the arguments, as the `xp` of code for several array libraries: static, with compiled functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(1.0, 4.0)


def rows(xp: Any, x: Any, count: int) -> Any:
    y = xp.zeros((count, 3))
    for i in range(count):
        y[i] = x * i + xp.ones(3)
        if xp.sum(y[i]) > 10:
            y[i] = xp.full(3, x[0])
    return xp.concatenate((y, xp.asarray([x, x]))), xp.linalg.norm(x)


def filled(xp: Any, x: Any) -> Any:
    y = xp.zeros(3)
    y[1:] = x[1:]
    return y + xp.pi


def root(library: Any, x: Any) -> Any:
    return library.sqrt(x[1])


def test_numpy_as_an_argument() -> None:
    for found, expected in zip(ml.compile(rows)(np, X, 4), rows(np, X, 4)):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(ml.compile(filled)(np, X), filled(np, X))
    np.testing.assert_array_equal(ml.compile(filled)(x=X, xp=np), filled(np, X))
    np.testing.assert_allclose(ml.grad(lambda xp, x: xp.sum(xp.sin(x)), argnums=1)(np, X), np.cos(X))


def test_each_module_has_a_program() -> None:
    compiled = ml.compile(root)
    for library in (np, math, np):
        assert compiled(library, X) == root(library, X)


def test_a_module_that_an_object_holds() -> None:
    class Model:
        def __init__(self, xp: Any) -> None:
            self.xp, self.weights = xp, np.ones(3)

        def __call__(self, x: Any) -> Any:
            return self.xp.exp(x) @ self.weights

    np.testing.assert_allclose(ml.compile(Model(np))(X), np.exp(X).sum())
    np.testing.assert_allclose(ml.compile(lambda model, x: model(x))(Model(np), X), np.exp(X).sum())


is_one, class_of, show = isinstance, type, print


def by_other_names(x: Any) -> Any:
    found = 1.0 if is_one(x, np.ndarray) and class_of(x) is np.ndarray and not is_one(x, (list, tuple)) else 0.0
    show("x:", x)
    return found + np.sum(x)


def test_builtins_under_other_names(capfd: pytest.CaptureFixture[str]) -> None:
    assert ml.compile(by_other_names)(X) == 7.0
    assert "x: [1. 2. 3.]" in capfd.readouterr().out
