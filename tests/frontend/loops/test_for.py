"""`for` over ranges: bounds, steps, what is carried, what is there after the loop."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.complex64])
def test_sum_from_a_python_zero(dtype: type) -> None:
    def total(x):
        s = 0
        for i in range(len(x)):
            s += x[i]
        return s

    check(total, RNG.integers(-9, 9, 17).astype(dtype))


def test_matmul_is_three_loops_with_nothing_but_the_product_inside() -> None:
    def matmul(a, b, c):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    a, b, c = RNG.random((4, 5)), RNG.random((5, 6)), RNG.random((4, 6))
    check(matmul, a, b, c)
    lines = ml.compile(matmul, frontend="loops").trace(a, b, c).as_text().splitlines()
    found = [line.split(" = ", 1)[-1].split(" ", 1)[0] for line in lines if " = " in line and "constant" not in line]
    product = ["tensor.extract", "tensor.extract", "tensor.extract", "arith.mulf", "arith.addf", "tensor.insert"]
    assert found[-9:] == ["scf.for", "scf.for", "scf.for", *product]


def test_triangle() -> None:
    def triangle(a, n):
        for i in range(a.shape[0]):
            for j in range(i, n):
                a[i, j] = a[i, j] * 2 + i - j

    check(triangle, RNG.random((5, 7)), 7)


@pytest.mark.parametrize("step", [-1, -2, -3, 2, 3, 20])
def test_steps(step: int) -> None:
    def forwards(x):
        for i in range(1, len(x), step):
            x[i] = x[i] + i

    def backwards(x):
        for i in range(len(x) - 1, 0, step):
            x[i] = x[i] + i

    check(backwards if step < 0 else forwards, RNG.random(11))


@pytest.mark.parametrize(("start", "stop"), [(0, 5), (2, 2), (5, 1), (-3, 4)])
def test_bounds_known_at_run_time(start: int, stop: int) -> None:
    def count(x, start, stop):
        for i in range(start, stop):
            x[i] += i
        for i in range(stop, start, -2):
            x[i] -= i

    check(count, RNG.random(8), start, stop)


def test_variables_behind_a_loop() -> None:
    def last(x):
        for i in range(4):
            t = x[i]
        return t, i

    check(last, RNG.random(5))


def test_temporaries_are_not_carried() -> None:
    def squares(x):
        t = 1.5
        for i in range(len(x)):
            t = x[i] * x[i]
            x[i] = t
        for i in range(len(x)):
            t = np.float32(i)
            x[i] += t

    x = RNG.random(5)
    check(squares, x)
    text = ml.compile(squares, frontend="loops").trace(x).as_text()
    assert text.count("-> (tensor<5xf64>) {") == 2


def test_arrays_made_in_a_loop() -> None:
    def local(n):
        a = np.zeros(6)
        b = np.empty((2, 3), dtype=np.int32)
        for i in range(2):
            row = np.ones(3)
            for j in range(3):
                row[j] += j
                b[i, j] = i * 3 + j
                a[b[i, j]] = i + row[j]
        return a, b

    check(local, 3)


def test_views_are_stored_through() -> None:
    def rows(a):
        for i in range(a.shape[0]):
            row = a[i]
            for j in range(len(row)):
                row[j] = row[j] * 2 if row[j] > 0 else -row[j]
            a.T[0, i] = 3

    check(rows, RNG.standard_normal((4, 6)))


def test_array_statements_in_loops() -> None:
    def eliminate(a):
        n = a.shape[0]
        for k in range(n):
            for i in range(k + 1, n):
                a[i, k] = a[i, k] / a[k, k]
                a[i, :] -= a[i, k] * a[k, :]

    check(eliminate, RNG.random((5, 5)) + 5 * np.eye(5), exact=False)


def test_loops_around_stencils() -> None:
    def jacobi(a, b, steps):
        for _ in range(steps):
            for i in range(1, a.shape[0] - 1):
                for j in range(1, a.shape[1] - 1):
                    b[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) / 4
            a[1:-1, 1:-1] = b[1:-1, 1:-1]

    check(jacobi, RNG.random((6, 5)), np.zeros((6, 5)), 3)


def laplace(m):
    if len(m) == 1:
        return m[0, 0]
    s = 0.0
    for j in range(len(m)):
        s += (-1) ** j * m[0, j] * laplace(np.delete(m[1:], j, axis=1))
    return s


def without_each(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.prod(np.delete(x, i)) + np.linalg.norm(x, i + 1)
    return out


def test_indices_that_operations_need_unroll_loops_with_elements() -> None:
    m = RNG.standard_normal((4, 4))
    check(laplace, m)
    np.testing.assert_allclose(ml.grad(laplace)(m), np.linalg.det(m) * np.linalg.inv(m).T, rtol=1e-9)
    check(without_each, RNG.standard_normal(5))


def diagonals(m):
    s = 0.0
    for k in range(3):
        s += m[0, k] * np.sum(np.eye(3, k=k) * m + np.tri(3, k=k - 1) * m[k])
    return s


def test_diagonals_of_new_arrays_at_loop_variables() -> None:
    check(diagonals, RNG.standard_normal((3, 3)))


def test_the_order_of_a_norm_is_static() -> None:
    compiled = ml.compile(lambda x, order: np.linalg.norm(x, order))
    x = RNG.standard_normal(5)
    for order in (1, 2, 3):
        np.testing.assert_allclose(compiled(x, order), np.linalg.norm(x, order))
    with pytest.raises(ml.ShapeError, match="norm: the order must be known when the function is traced"):
        compiled(x, 2.5)
