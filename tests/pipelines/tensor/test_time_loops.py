"""Loops over time steps: arrays that change places or are computed anew each round cost no copies, and stay right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Step = Callable[[Any, Any], Any]


def blur(a: Any) -> Any:
    return np.float32(0.25) * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def swap(i: Any, c: Any) -> Any:
    a, b = c
    b[1:-1, 1:-1] = blur(a)
    return b, a


def store_and_copy_back(i: Any, c: Any) -> Any:
    a, b = c
    b[1:-1, 1:-1] = blur(a)
    a[1:-1, 1:-1] = b[1:-1, 1:-1]
    return a, b


def update(i: Any, c: Any) -> Any:
    a, b = c
    a[1:-1, 1:-1] = blur(a)
    return a, b


def update_both(i: Any, c: Any) -> Any:
    a, b = c
    new_a, new_b = blur(a) * b[1:-1, 1:-1], blur(b) + a[1:-1, 1:-1]
    a[1:-1, 1:-1] = np.tanh(new_a)
    b[1:-1, 1:-1] = np.tanh(new_b)
    return a, b


def whole(i: Any, c: Any) -> Any:
    a, b = c
    return np.tanh(a[::-1] - b * i), b


def back_and_forth(i: Any, c: Any) -> Any:
    a, b = c
    b[1:-1, 1:-1] = blur(a)
    a[1:-1, 1:-1] = blur(b)
    return a, b


def read_again(i: Any, c: Any) -> Any:
    a, b = c
    b[1:-1, 1:-1] = blur(a)
    a[1:-1, 1:-1] = b[1:-1, 1:-1]
    return a, np.tanh(b + a * i)


def edges(i: Any, c: Any) -> Any:
    a, b = c
    a[1:-1, 1:-1] = blur(a)
    a[0, :] = a[1, :]
    a[:, 0] = a[:, 1]
    return a, b


def moving(i: Any, c: Any) -> Any:
    a, b = c
    a[1 : 1 + 3, 1:4] = b[2:5, 2:5] + a[2:5, 0:3]
    return b, a


def leapfrog(i: Any, c: Any) -> Any:
    a, b = c
    a[1:] -= np.float32(0.5) * (b[1:] - b[:-1])
    b[:-1] -= np.float32(0.5) * (a[1:] - a[:-1])
    return a, b


STEPS = (leapfrog, swap, store_and_copy_back, update, update_both, whole, back_and_forth, read_again, edges, moving)


def state(count: int = 2) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((6, 9)).astype(np.float32) for _ in range(count)]


def assert_close(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("rounds", [1, 7])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_time_loops_give_what_python_gives(step: Step, rounds: int) -> None:
    def run(a: Any, b: Any) -> Any:
        return ml.fori_loop(1, 1 + rounds, step, (a, b))

    assert_close(ml.compile(run)(*state()), run(*state()))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_any_number_of_rounds_known_at_run_time(step: Step) -> None:
    def run(a: Any, b: Any, n: Any) -> Any:
        return ml.fori_loop(1, 1 + n, step, (a, b))

    compiled = ml.compile(run)
    for rounds in (-2, 0, 1, 2, 5, 8):
        assert_close(compiled(*state(), rounds), run(*state(), rounds))


def rotate(i: Any, c: Any) -> Any:
    old, now, new = c
    new[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - old[1:-1, 1:-1] + np.float32(0.1) * blur(now)
    return now, new, old


@pytest.mark.parametrize("rounds", [2, 5, 9])
def test_three_arrays_rotate(rounds: int) -> None:
    def run(a: Any, b: Any, c: Any) -> Any:
        return ml.fori_loop(0, rounds, rotate, (a, b, c))

    assert_close(ml.compile(run)(*state(3)), run(*state(3)))


@pytest.mark.parametrize("step", [swap, store_and_copy_back, update], ids=lambda step: step.__name__)
def test_a_time_step_is_one_sweep(step: Step) -> None:
    """Two copies in front of the loop, and in it one loop nest a step."""

    def run(a: Any) -> Any:
        return ml.fori_loop(0, 10, step, (a, a.copy()))[0]

    with ml.config.override(processor="avx512,l2=2M"):
        text = ml.compile(run).ir("schedule", np.ones((300, 300), np.float32))
    main = text[text.index("@main(") :]
    assert main.count("mlirml.parallel_for") == 2 and main.count("scf.for") == 3, main


def test_slices_are_updated_in_place() -> None:
    """Two sweeps a step, though each array was read at other places before."""

    def run(a: Any, b: Any) -> Any:
        return ml.fori_loop(0, 10, leapfrog, (a, b))

    with ml.config.override(processor="avx512,l2=2M"):
        text = ml.compile(run).ir("schedule", *[np.ones((300, 300), np.float32)] * 2)
    assert text.count("func.call") == 2, text
