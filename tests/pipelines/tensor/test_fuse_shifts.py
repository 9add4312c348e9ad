"""Elementwise operations with slices put together between them: the same numbers, in few passes over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.ir.bindings import block_ops, operations, parse
from mlirml.pipelines.tensor.fuse_shifts import FuseShiftsPass
from mlirml.pipelines.tensor.stencils.plan import MOST_OPS

Function = Callable[..., Any]


def differences(x: Any, y: Any) -> Any:
    d = np.tanh(x[1:] - x[:-1]) * y[1:]
    return np.concatenate([y[:1], d]) + np.concatenate([d, x[:1]]) * 2


def rolls(x: Any, y: Any) -> Any:
    return np.roll(x * y, 3) - np.roll(np.roll(x, -2) * y, 1)


def stages(x: Any, y: Any) -> Any:
    def slope(v: Any) -> Any:
        return np.concatenate([x[:1], x[1:] * v[:-1]])

    for _ in range(4):
        y = y + 0.1 * slope(y + 0.05 * slope(y))
    return y


def plane(x: Any, y: Any) -> Any:
    u = x.reshape(24, 25) * 2
    v = np.pad(u[1:-1, 1:-1] * 0.5 + u[:-2, 1:-1], ((1, 1), (1, 1)), constant_values=3)
    w = v - np.roll(u, 1, axis=1) * u[:, 4:5] + v[5]
    w[0] = v[1]
    return np.exp(-(w * w)) + u


def kept(x: Any, y: Any) -> Any:
    """What is put together is a result as well, and what it is computed from is summed."""
    d = np.sin(x) * y
    e = np.concatenate([d[2:], y[:2]])
    return e, e * d, np.sum(d), np.where(np.concatenate([d[:1], e[1:]]) > 0.5, x, y)


def columns(x: Any, y: Any) -> Any:
    """Elements that are put in front of each row depend on the row alone."""
    u, v = x.reshape(20, 30), y.reshape(30, 20).T
    return np.concatenate([v[:, :1] * 2, u[:, 1:] - u[:, :-1]], axis=1) * np.concatenate([u[:, 3:], v[:, :3]], axis=1)


def long_chain(x: Any, y: Any) -> Any:
    """Four steps that read neighbours of neighbours."""

    def laplacian(v: Any) -> Any:
        return np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4 * v

    u = x.reshape(24, 25)
    for _ in range(4):
        u = u + 0.001 * laplacian(u**3 - u - 0.5 * laplacian(u))
    return u


PROGRAMS = (differences, rolls, stages, plane, kept, columns)


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(600), rng.standard_normal(600)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gives_what_numpy_gives(function: Function) -> None:
    results = flatten(ml.compile(function)(*arguments()))[0]
    for found, expected in zip(results, flatten(function(*arguments()))[0], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_reference(function: Function) -> None:
    def loss(x: Any, y: Any) -> Any:
        return sum(np.sum(np.cos(r)) for r in flatten(function(x, y))[0])

    gradient = ml.grad(loss, (0, 1))
    expected = ml.compile(gradient, target="reference")(*arguments())
    for found, wanted in zip(ml.compile(gradient)(*arguments()), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_chains_are_cut_into_loops_of_limited_size() -> None:
    """Without a cut, four steps would be one loop that reads 145 places."""
    x, y = arguments()
    compiled = ml.compile(long_chain)
    np.testing.assert_allclose(compiled(x, y), long_chain(x, y), rtol=1e-13, atol=1e-13)
    module = parse(compiled.ir("optimize", x, y))
    with module.context:
        FuseShiftsPass().run(module.operation)
    loops = [op for op in operations(module.operation) if op.name == "linalg.generic"]
    large = [op for op in loops if np.prod(op.results[0].type.shape) > 300]
    sizes = [len(block_ops(op.regions[0].blocks[0])) - 1 for op in large]
    assert len(large) <= 8, "two loops a step"
    assert max(sizes) <= MOST_OPS


def test_a_program_with_too_much_to_choose_from_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arguments()
    text = ml.compile(long_chain).ir("transform", x, y)
    monkeypatch.setattr("mlirml.pipelines.tensor.stencils.plan._MOST_EFFORT", 100)
    module, same = parse(text), parse(text)
    with module.context:
        FuseShiftsPass().run(module.operation)
    assert str(module) == str(same)
