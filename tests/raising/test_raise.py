"""Plain Python loops and what they are raised to compute the same numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import mlirml as ml
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import mlir, operations, parse
from mlirml.passes import parse_pipeline
from tests.fuzz.loop_generator import function_of
from tests.raising.loop_text import loop_module

PIPELINE = "canonicalize,cse,mlirml-raise,canonicalize,cse"
N, M = 6, 5


def raised(function: Callable[..., None], arrays: dict[str, np.ndarray]) -> Counter[str]:
    """The operations of a raised function, which has computed what Python does."""
    module = parse(loop_module(function, arrays, {"N": N, "M": M}))
    expected = {name: array.copy() for name, array in arrays.items()}
    function(**expected)
    parse_pipeline(PIPELINE).run(module)
    for got, want in zip(interpret(module, list(arrays.values())), expected.values()):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    return Counter(op.name for op in operations(module.operation))


def random(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.uniform(0.5, 1.5, shape) for name, shape in shapes.items()}


def ijk(A, B, C):
    for i in range(N):
        for j in range(N):
            for k in range(M):
                C[i, j] += A[i, k] * B[k, j]


def ikj(A, B, C):
    for i in range(N):
        for k in range(M):
            for j in range(N):
                C[i, j] += A[i, k] * B[k, j]


def jik(A, B, C):
    for j in range(N):
        for i in range(N):
            for k in range(M):
                C[i, j] += A[i, k] * B[k, j]


def jki(A, B, C):
    for j in range(N):
        for k in range(M):
            for i in range(N):
                C[i, j] += A[i, k] * B[k, j]


def kij(A, B, C):
    for k in range(M):
        for i in range(N):
            for j in range(N):
                C[i, j] += A[i, k] * B[k, j]


def kji(A, B, C):
    for k in range(M):
        for j in range(N):
            for i in range(N):
                C[i, j] += A[i, k] * B[k, j]


@pytest.mark.parametrize("order", [ijk, ikj, jik, jki, kij, kji])
def test_a_product_in_any_order_of_its_loops_is_one_generic(order: Callable[..., None]) -> None:
    ops = raised(order, random(A=(N, M), B=(M, N), C=(N, N)))
    assert ops["scf.for"] == 0 and ops["linalg.generic"] == 1


def softmax(A, C):
    for i in range(N):
        m = A[i, 0]
        for j in range(1, M):
            m = max(m, A[i, j])
        s = 0.0
        for j in range(M):
            e = math.exp(A[i, j] - m)
            C[i, j] = e
            s += e
        for j in range(M):
            C[i, j] = C[i, j] / s


def layer_norm(A, C):
    for i in range(N):
        m = 0.0
        for j in range(M):
            m += A[i, j]
        m = m / 5.0
        v = 0.0
        for j in range(M):
            d = A[i, j] - m
            v += d * d
        r = 1.0 / math.sqrt(v / 5.0 + 0.001)
        for j in range(M):
            C[i, j] = (A[i, j] - m) * r


@pytest.mark.parametrize("rows", [softmax, layer_norm])
def test_numbers_of_rows_become_arrays(rows: Callable[..., None]) -> None:
    ops = raised(rows, random(A=(N, M), C=(N, M)))
    assert ops["scf.for"] == 0 and ops["math.exp"] <= 1


def symm(A, B, C):
    for i in range(M):
        for j in range(N):
            t = 0.0
            for k in range(i):
                C[k, j] += 1.5 * B[i, j] * A[i, k]
                t += B[k, j] * A[i, k]
            C[i, j] = 0.5 * C[i, j] + 1.5 * B[i, j] * A[i, i] + 1.5 * t


def trmm(A, B, C):
    for i in range(M):
        for j in range(N):
            for k in range(i + 1, M):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = 1.5 * B[i, j]


def syrk(A, B, C):
    for i in range(M):
        for j in range(i + 1):
            C[i, j] *= 0.5
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += 1.5 * A[i, k] * A[j, k]


@pytest.mark.parametrize("kernel", [symm, trmm, syrk])
def test_triangles_leave_no_loop(kernel: Callable[..., None]) -> None:
    assert raised(kernel, random(A=(M, M), B=(M, N), C=(M, N)))["scf.for"] == 0


def lu(A):
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] = A[i, k] / A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


def test_rounds_that_need_each_other_stay_around_slices() -> None:
    arrays = random(A=(N, N))
    arrays["A"] += 6 * np.eye(N)
    ops = raised(lu, arrays)
    assert ops["scf.for"] == 1 and ops["linalg.generic"] == 2


def seidel(A):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j]) / 5.0


def test_a_wavefront_is_left_as_it_is() -> None:
    ops = raised(seidel, random(A=(N, N)))
    assert ops["scf.for"] == 2 and ops["linalg.generic"] == 0


def test_modules_without_loops_need_no_isl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "islpy", None)
    module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}")
    parse_pipeline(PIPELINE).run(module)
    assert isinstance(module, mlir.Module)


def doitgen(A, B, t):
    for r in range(N):
        for q in range(N):
            for p in range(M):
                t[p] = 0.0
                for s in range(M):
                    t[p] += A[r, q, s] * B[s, p]
            for p in range(M):
                A[r, q, p] = t[p]


def test_an_array_that_each_round_fills_anew_keeps_no_loop() -> None:
    ops = raised(doitgen, random(A=(N, N, M), B=(M, M), t=(M,)))
    assert ops["scf.for"] == 0


def carried(A, t):
    for i in range(1, N):
        for p in range(M):
            t[p] = t[p] + A[i, p]
        for p in range(1, M):
            A[i, p] = t[p - 1] * t[p]


def test_an_array_that_rounds_hand_on_keeps_its_loop() -> None:
    assert raised(carried, random(A=(N, M), t=(M,)))["linalg.generic"] == 2


def diagonal(A, x):
    for i in range(N - 1):
        A[i + 1, i] = x[i] * 2.0


def test_a_diagonal_is_a_slice_of_the_array_as_one_row() -> None:
    ops = raised(diagonal, random(A=(N, N), x=(N,)))
    assert ops["scf.for"] == 0 and ops["tensor.collapse_shape"] == 1


def band(A, x, y):
    for i in range(2, N - 2):
        for j in range(i - 2, i + 3):
            y[i] += A[i, j] * x[j]


def test_a_band_is_not_made_a_box_of_the_whole_array() -> None:
    ops = raised(band, random(A=(N, N), x=(N,), y=(N,)))
    assert ops["scf.for"] == 0 and ops["arith.select"] == 0


def filtered(A, B):
    for i in range(N):
        before = 0.0
        for j in range(M):
            B[i, j] = 0.5 * A[i, j] + 0.25 * before
            before = B[i, j]
        for j in range(M):
            A[i, j] = B[i, j] + 1.0


def test_numbers_of_rounds_that_stay_are_no_arrays() -> None:
    ops = raised(filtered, random(A=(N, M), B=(N, M)))
    assert ops["scf.for"] == 2 and ops["linalg.generic"] == 1 and ops["tensor.empty"] <= 1


def zeros(size: int) -> np.ndarray:
    return np.zeros(size)


def attention(A, B, C):
    for i in range(N):
        s = zeros(6)
        for j in range(N):
            for d in range(M):
                s[j] += A[i, d] * B[j, d]
        m = s[0]
        for j in range(1, N):
            m = max(m, s[j])
        t = 0.0
        for j in range(N):
            s[j] = math.exp(s[j] - m)
            t += s[j]
        for d in range(M):
            a = 0.0
            for j in range(N):
                a += s[j] * B[j, d]
            C[i, d] = a / t


def test_arrays_made_in_a_loop_become_arrays_of_all_rounds() -> None:
    ops = raised(attention, random(A=(N, M), B=(N, M), C=(N, M)))
    assert ops["scf.for"] == 0


def running(A, C):
    for i in range(N):
        w = zeros(6)
        for j in range(1, M):
            w[j] = w[j - 1] + A[i, j]
            C[i, j] = w[j]


def test_an_array_made_in_a_loop_lives_through_the_loops_in_it() -> None:
    assert raised(running, random(A=(N, M), C=(N, M)))["scf.for"] >= 1


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_sum_of_each_iteration_is_stored_backward(target: str) -> None:
    """The sum is an input that the body extracts by itself, but its indices are none that the program computes."""

    def stored_backward(a, b, c):
        for i in range(2):
            s = 0.0
            for j in range(2):
                s += b[(i * j) % 1, 0]
                a[1 - j] = 3
            c[-1 - i, 0] = s

    expected, found = ([np.ones(shape, np.float32) for shape in ((2,), (1, 1), (2, 1))] for _ in range(2))
    stored_backward(*expected)
    ml.compile(stored_backward, target)(*found)
    for got, want in zip(found, expected):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "changed", ["s, t = t, s", "s, t, u = u + t, s, t - 1", "t = s\n        s = u", "u = s * 2\n        s = t"]
)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_an_inner_loop_starts_from_numbers_that_change_at_once(changed: str, target: str) -> None:
    """The sums go on in the numbers of the outer loop, each of which starts from another one's old value."""
    text = f"""
def program(a, b):
    s, t, u = a[0], a[-1], b[0]
    for i in range(a.shape[0]):
        {changed}
        for j in range(b.shape[0]):
            t += b[j]
            s += a[i]
            u -= s
    return s, t, u
"""
    sums = function_of(text)
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    assert ml.compile(sums, target, frontend="loops")(a, b) == sums(a, b)
