"""Loops over a small window around each element, against plain Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mlirml as ml


def box(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    s += x[i + di, j + dj]
            out[i, j] = s / 9.0


def widest(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(2, x.shape[0] - 2):
        for j in range(x.shape[1]):
            m = x[i, j]
            for d in range(-2, 3):
                m = max(m, x[i + d, j])
            out[i, j] = m


def weighted_by_place(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    out[i, j] += x[i + di, j + dj] * (di * di - dj)


def in_place(x: np.ndarray, out: np.ndarray) -> None:
    for _ in range(3):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                s = 0.0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        s += x[i + di, j + dj]
                out[i, j] = s / 9.0
        x[:] = out


@pytest.mark.parametrize("program", [box, widest, weighted_by_place, in_place])
def test_windows_of_an_image(program: Callable[[np.ndarray, np.ndarray], None]) -> None:
    x, out = np.random.default_rng(0).random((12, 17)), np.ones((12, 17))
    expected_x, expected = x.copy(), out.copy()
    program(expected_x, expected)
    compiled = ml.compile(program)
    compiled(x, out)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(x, expected_x, rtol=1e-14, atol=1e-14)
    text = compiled.ir("optimize", x, out)
    assert "reduction" not in text


def test_sums_over_pairs_share_their_distances() -> None:
    def pull(x: np.ndarray, y: np.ndarray, fx: np.ndarray, fy: np.ndarray) -> None:
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j:
                    dx, dy = x[j] - x[i], y[j] - y[i]
                    r = np.sqrt(dx * dx + dy * dy)
                    fx[i] += dx / r
                    fy[i] += dy / r

    rng = np.random.default_rng(1)
    x, y, fx, fy = rng.random(30), rng.random(30), np.zeros(30), np.zeros(30)
    expected_x, expected_y = np.zeros(30), np.zeros(30)
    pull(x, y, expected_x, expected_y)
    compiled = ml.compile(pull)
    compiled(x, y, fx, fy)
    np.testing.assert_allclose(fx, expected_x, rtol=1e-11)
    np.testing.assert_allclose(fy, expected_y, rtol=1e-11)
    assert compiled.ir("optimize", x, y, fx, fy).count("math.sqrt") == 1
