"""Random programs on images, whose number, or height and width, are dynamic: the numbers of programs for one size, and
derivatives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.sizes import StaticSizeError

PROGRAMS = int(os.environ.get("MLIRML_FUZZ_DYNAMIC", "8"))
BATCHES = (2, 5, 16)
layers = ml.nn.functional

Array = Any
Step = Callable[[Array], Array]


def program(seed: int) -> Callable[[Array], Any]:
    """A random function of images, an array of shape (n, 3, 9, 12)."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    channels, height, width = 3, 9, 12
    while len(steps) < 6:
        choice = int(rng.integers(9))
        if choice <= 2 and min(height, width) > 3:
            filters, size = int(rng.integers(1, 9)), int(rng.integers(1, 4))
            padding, stride = int(rng.integers(2)), int(rng.integers(1, 3))
            w = (rng.standard_normal((filters, channels, size, size)) * 0.3).astype(np.float32)
            steps.append(lambda x, w=w, p=padding, s=stride: layers.conv2d(x, w, padding=p, stride=s))
            channels = filters
            height, width = ((n + 2 * padding - size) // stride + 1 for n in (height, width))
        elif choice == 3 and min(height, width) > 3:
            pool = layers.max_pool2d if rng.integers(2) else layers.avg_pool2d
            steps.append(lambda x, pool=pool: pool(x, 2))
            height, width = height // 2, width // 2
        elif choice == 4:
            w = (rng.standard_normal((channels, 1, 3, 3)) * 0.3).astype(np.float32)
            steps.append(lambda x, w=w, c=channels: layers.conv2d(x, w, padding=1, groups=c))
        elif choice == 5:
            steps.append(lambda x: np.maximum(x, 0.1 * x))
        elif choice == 6:
            steps.append(lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1))
        elif choice == 7:
            steps.append(lambda x: x + np.tanh(x) * x.mean((2, 3), keepdims=True))
        else:
            steps.append(lambda x: x[:, ::-1] + x[:, :, ::-1] * 0.5)

    def function(x: Array) -> Any:
        for step in steps:
            x = step(x)
        return x, x.reshape(x.shape[0], -1).sum(1), x.sum(0)

    return function


def sized_program(seed: int) -> Callable[[Array], Any]:
    """A random function of images of any size, an array of shape (2, 3, h, w)."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    channels, reduced = 3, 1
    while len(steps) < 5:
        choice, stride = int(rng.integers(6)), int(rng.choice([1, 1, 2, 3, 4]))
        stride = stride if reduced * stride <= 4 else 1  # remainders have marks of their own, which must be large
        if choice <= 1:
            filters, size, padding = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(2))
            w = (rng.standard_normal((filters, channels, size, size)) * 0.3).astype(np.float32)
            steps.append(lambda x, w=w, p=padding, s=stride: layers.conv2d(x, w, padding=p, stride=s))
            channels = filters
        elif choice <= 3:
            pool = layers.max_pool2d if rng.integers(2) else layers.avg_pool2d
            options = {"padding": int(rng.integers(2)), "ceil_mode": bool(rng.integers(2)) and reduced * stride <= 2}
            if pool is layers.avg_pool2d:
                options["count_include_pad"] = bool(rng.integers(2))
            size = int(rng.integers(2, 4))
            steps.append(lambda x, f=pool, k=size, s=stride, o=options: f(x, k, stride=s, **o))
        elif choice == 4:
            steps.append(lambda x, s=stride: x[:, :, ::s, ::s][..., ::-1] * 0.5)
        else:
            steps.append(lambda x: np.tanh(x) - x.mean((2, 3), keepdims=True))
        reduced *= stride if choice < 5 else 1

    def function(x: Array) -> Any:
        for step in steps:
            x = step(x)
        return x, x.sum((2, 3))

    return function


def images(n: int, height: int = 9, width: int = 12) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 3, height, width)).astype(np.float32)


def compare(got: Any, want: Any) -> None:
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(theirs).max(initial=0))))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_batches_of_any_size_have_the_numbers_of_one_size(seed: int) -> None:
    function = program(seed)
    compiled, static = ml.compile(function, dynamic={"x": ("n", None, None, None)}), ml.compile(function, dynamic="off")
    for n in BATCHES:
        compare(compiled(images(n)), static(images(n)))
    assert compiled._compiled == 1


@pytest.mark.parametrize("seed", range(PROGRAMS // 2))
def test_derivatives_of_batches_are_those_of_one_size(seed: int) -> None:
    function = program(1000 + seed)
    derived = ml.grad(lambda x: np.sum(np.tanh(function(x)[0])))
    compiled, static = ml.compile(derived, dynamic={"x": ("n", None, None, None)}), ml.compile(derived, dynamic="off")
    for n in BATCHES:
        compare([compiled(images(n))], [static(images(n))])


EXTENTS = ((40, 51), (64, 48), (33, 97))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_images_of_any_height_and_width_have_the_numbers_of_one_size(seed: int) -> None:
    function = sized_program(seed)
    compiled, static = ml.compile(function, dynamic={"x": (None, None, "h", "w")}), ml.compile(function, dynamic="off")
    for height, width in EXTENTS:
        compare(compiled(images(2, height, width)), static(images(2, height, width)))
    # Whether the last window of a pooling fits, with `ceil_mode`, is a condition of the program.
    assert compiled._compiled <= len(EXTENTS)


@pytest.mark.parametrize("seed", range(PROGRAMS // 4))
def test_derivatives_of_images_of_any_height_and_width(seed: int) -> None:
    function = sized_program(1000 + seed)
    derived = ml.grad(lambda x: np.sum(np.tanh(function(x)[0])))
    compiled, static = ml.compile(derived, dynamic={"x": (None, None, "h", "w")}), ml.compile(derived, dynamic="off")
    for height, width in EXTENTS[:2]:
        try:
            found = compiled(images(2, height, width))
        except StaticSizeError as error:
            assert "such a static one" in str(error)
            pytest.skip("the remainder of a quotient of a quotient has no mark of its own")
        compare([found], [static(images(2, height, width))])
