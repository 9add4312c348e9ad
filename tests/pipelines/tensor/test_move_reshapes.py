"""Rows and elements of views, read in each iteration of a loop, against NumPy: no iteration copies the view."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

N = 30
VIEWS: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: x.T,
    "flip": lambda x: x[::-1],
    "flip of a transpose": lambda x: x.T[::-1],
    "transposed flip": lambda x: x[::-1].T,
    "broadcast": lambda x: np.broadcast_to(x[1:2], (50, 40)),
    "diagonals": lambda x: np.broadcast_to(np.diagonal(x), (30, 30)),
    "three axes": lambda x: x.reshape(5, 6, 40).transpose(2, 0, 1)[:, :, 3],
    "every other row": lambda x: x[::2].T,
    "gather": lambda x: x[np.arange(20) * 3 % 7][:, ::2],
    "negative": lambda x: -2 * x,
}
READS: dict[str, Callable[[Any, Any], Any]] = {
    "element": lambda view, i: view[i % 14, i * 7 % 5],
    "element of a row": lambda view, i: view[i % 14][i * 7 % 5],
    "row": lambda view, i: view[i % 14].sum(),
    "part of a row": lambda view, i: np.max(view[i % 14, 1:5:2]),
}


def by_fori_loop(view: Any, read: Any) -> Callable[[Any], Any]:
    return lambda x: ml.fori_loop(0, N, lambda i, total: total + read(view(x), i), 0.0)


def by_while_loop(view: Any, read: Any) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        return ml.while_loop(lambda c: c[0] < N, lambda c: (c[0] + 1, c[1] + read(view(x), c[0])), (0, 0.0))[1]

    return program


def by_plain_loop(view: Any, read: Any) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        total = 0.0
        for i in range(N):
            total += read(view(x), i)
        return total

    return program


def in_a_branch(view: Any, read: Any) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        def add(i: Any, total: Any) -> Any:
            return total + ml.cond(i % 3 == 0, lambda: read(view(x), i), lambda: 0.0)

        return ml.fori_loop(0, N, add, 0.0)

    return program


FORMS = [by_fori_loop, by_while_loop, by_plain_loop, in_a_branch]


def largest_buffer(text: str) -> int:
    """The elements of the largest array that a program allocates."""
    shapes = re.findall(r"memref\.alloca?\(\).*: memref<((?:\d+x)*)[a-z]\w*>", text)
    return max([int(np.prod([int(n) for n in shape.split("x") if n])) for shape in shapes], default=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("view", VIEWS)
def test_iterations_read_what_they_need(view: str, read: str, form: Any) -> None:
    x = np.random.default_rng(0).standard_normal((30, 40))
    program = form(VIEWS[view], READS[read])
    compiled = ml.compile(program)
    np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)
    assert largest_buffer(str(compiled.ir("schedule", x))) <= 64


def test_a_changed_array_is_read_before_the_change() -> None:
    """A view of an array has the elements from before a store in compiled code, where its reader comes later."""

    def program(x: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            x, total = carry
            view = np.negative(x)
            x[i, 1] = total
            return x, total + view[i, 1] + view[2].sum()

        return ml.fori_loop(0, 5, step, (x, 0.0))

    x = np.random.default_rng(1).standard_normal((6, 7))
    for got, expected in zip(ml.compile(program)(x.copy()), program(x.copy()), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_an_array_with_other_readers_is_computed_once() -> None:
    def program(x: Any) -> Any:
        def step(i: Any, total: Any) -> Any:
            y = np.exp(x + total / 100)
            return y[i % 6, 2] / np.sum(y) + y[i % 6].max()

        return ml.fori_loop(0, 9, step, 0.0)

    x = np.random.default_rng(2).standard_normal((6, 7))
    compiled = ml.compile(program)
    np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)
    assert str(compiled.ir("optimize", x)).count("math.exp") <= 2
