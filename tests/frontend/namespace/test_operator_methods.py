"""Operators and properties of the user's classes, whose code makes arrays: they are compiled as other methods are."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([1.0, 2.0, 3.0])


class Vector:
    """A class with operators that make arrays of their own."""

    def __init__(self, x: Any) -> None:
        self.x = np.asarray(x)

    def __add__(self, other: Vector) -> Vector:
        y = np.zeros(3)
        y[:] = self.x + np.asarray(other.x)
        return Vector(y)

    def __rmul__(self, factor: float) -> Vector:
        return Vector(factor * np.array(self.x))

    def __matmul__(self, other: Vector) -> Any:
        return np.sum(np.asarray(self.x) * np.asarray(other.x))

    def __getitem__(self, i: int) -> Any:
        return np.asarray(self.x)[i]

    def __lt__(self, other: Vector) -> Any:
        return np.all(np.asarray(self.x) < np.asarray(other.x))

    @property
    def double(self) -> Any:
        return np.asarray(self.x) * 2

    @double.setter
    def double(self, value: Any) -> None:
        self.x = np.asarray(value) / 2


class Named(Vector):
    """A class that inherits operators."""

    @property
    def total(self) -> Any:
        return np.array([self.x[0], self.x[1:].sum()])


@dataclass
class Quaternion:
    """A dataclass with an operator."""

    parts: Any

    def __mul__(self, other: Quaternion) -> Quaternion:
        a, b, c, d = self.parts
        w, x, y, z = other.parts
        real = a * w - b * x - c * y - d * z
        return Quaternion(np.array([real, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x, a * z + d * w]))


def added(x: Any) -> Any:
    return (Vector(x) + 2.0 * Vector(x * 2)).x


def products(x: Any) -> Any:
    return Vector(x) @ Vector(x + 1) + Vector(x)[1]


def read(x: Any) -> Any:
    return Vector(x).double + Named(x).total.sum()


def stored(x: Any) -> Any:
    v = Named(x)
    v.double = x * 3
    return v.x + v.double


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        v = Vector(x) + Named(x)
        if v[i] > 3:
            total += v.double[i]
        if Vector(x) < v:
            total += 1
    return total


def quaternions(x: Any) -> Any:
    q = Quaternion(np.concatenate((x, x[:1])))
    return (q * q * q).parts


FUNCTIONS = [added, products, read, stored, in_a_loop, quaternions]


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_function(function: Any, frontend: str) -> None:
    before = dict(vars(Vector)), dict(vars(Named)), dict(vars(Quaternion))
    compiled = ml.compile(function, frontend=frontend)
    for x in (X, X + 1):
        np.testing.assert_allclose(compiled(x), function(x))
    assert (dict(vars(Vector)), dict(vars(Named)), dict(vars(Quaternion))) == before
    assert str(compiled.explain()).count("because") == 1  # it is not compiled anew at each call


def test_objects_as_arguments() -> None:
    def total(v: Named, w: Vector) -> Any:
        return (v + w).double * v.total[0]

    compiled = ml.compile(total)
    np.testing.assert_allclose(compiled(Named(X), Vector(X * 2)), total(Named(X), Vector(X * 2)))
    np.testing.assert_allclose(ml.grad(lambda v: np.sum(v.double**2))(Vector(X)).x, 8 * X)


def test_classes_are_as_before_after_an_error() -> None:
    before = dict(vars(Vector))

    def fails(x: Any) -> Any:
        raise RuntimeError(str(Vector(x) @ Vector(x) > 0)[:0])

    with pytest.raises(RuntimeError):
        ml.compile(fails)(X)
    assert dict(vars(Vector)) == before


def test_another_thread_calls_the_methods_themselves() -> None:
    wrong: list[Any] = []
    done = threading.Event()

    def calls() -> None:
        while not done.is_set():
            found = (Vector(X) + Vector(X)).double
            if type(found) is not np.ndarray or not np.array_equal(found, 4 * X):
                wrong.append(found)

    thread = threading.Thread(target=calls)
    thread.start()
    try:
        for function in FUNCTIONS:
            np.testing.assert_allclose(ml.compile(function)(X), function(X))
    finally:
        done.set()
        thread.join()
    assert not wrong
