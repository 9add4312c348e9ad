"""Gradients through slices: parts beside each other need no sums, parts over each other do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.test_derivatives import close, differences


def weighted(x: Any) -> Any:
    return np.sum(x * np.cos(np.arange(x.size)).reshape(x.shape))


def overwritten(x: Any) -> Any:
    y = x * 1.0
    y[2:4] = x[:2] * x[1:3]
    y[0] = x[1] * x[2]
    y[3:5] = np.sin(x[:2])
    return weighted(y * y)


def over_each_other(x: Any) -> Any:
    y = np.zeros(8)
    y[1:4] = x[:3]
    y[2:6] = x[1:5] * x[:4]
    y[::3] = y[1] * x[3:6]
    return weighted(np.exp(y))


def joined_twice(x: Any) -> Any:
    y = np.concatenate([x[:1], x[1:] * x[:-1]])
    return weighted(np.sin(np.concatenate([y, x]))) + np.sum(y * y)


def in_a_loop(x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        return np.concatenate([x[:1], x[1:] * y[:-1]]) * 0.5 + y * 0.1

    return weighted(ml.fori_loop(0, 4, step, x))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "joined": lambda x: weighted(np.concatenate([x[:2] ** 2, x[1:] * x[:-1], x[::-1] * 3])),
    "joined twice": joined_twice,
    "overwritten": overwritten,
    "over each other": over_each_other,
    "stacked": lambda x: weighted(np.stack([x, x * x, np.sin(x)], axis=1)),
    "read": lambda x: np.sum(x[0] * x[1:3] * x[2:4]) + x[5] * x[0] + np.sum(x[::2] * x[1::2]),
    "in a loop": in_a_loop,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_agree_with_finite_differences(name: str) -> None:
    function = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(6)
    close(ml.compile(ml.grad(function))(x), differences(function, x), 1e-7)


def test_parts_of_a_concatenation_get_slices_of_its_cotangent() -> None:
    text = ml.compile(ml.grad(lambda x: weighted(np.concatenate([np.sin(x), np.cos(x)])))).ir("optimize", np.ones(6))
    assert "tensor.insert_slice" not in text


def test_columns_that_are_read_once_are_not_added_to_zeros() -> None:
    def columns(x: Any) -> Any:
        return np.sum(np.sin(x[:, 0]) * x[:, 1] + x[:, 2])

    text = ml.compile(ml.grad(columns)).ir("optimize", np.ones((6, 4)))
    assert text.count("tensor.insert_slice") == 3 and "tensor.extract_slice %inserted" not in text
