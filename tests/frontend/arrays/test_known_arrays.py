"""Arrays whose contents are known while tracing: computed at once, and still arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.fuzz.oracle import check

V = np.arange(5.0)


def test_creation_functions() -> None:
    def f(x: Any) -> Any:
        return (
            np.arange(5) * x, np.arange(1, 10, 2) + x, np.arange(0, 1, 0.2) + x, np.eye(5) @ x, np.identity(5)[1] * x,
            np.linspace(0, 1, 5) * x, np.tri(5) @ x, np.full(5, 2.5) + x, np.ones((2, 5)) * x, np.zeros(5, int) + x,
            np.empty(0) + x[:0], np.array([1, 2, 3, 4, 5]) * x, np.array([[1.5], [2]]) * x, np.asarray([1] * 5) - x,
            np.full((), 3) * x, np.full(5, x[1]), np.logspace(0, 2, 5) * x, np.indices((2, 5))[1] * x,
            np.hanning(5) * x, np.diag(np.arange(5)) @ x, np.zeros(5, dtype=None) + x,
            np.ones_like([1, 2, 3, 4, 5]) * x,
        )  # fmt: skip

    check(f, V, rtol=1e-15)


def test_control_flow_on_known_values() -> None:
    def f(x: Any) -> Any:
        total = x * 0
        for i in np.arange(5):
            if i % 2 == 0 and np.cos(np.pi * i) > 0:
                total = total + x[i] * float(i)
        k = np.arange(3)
        while k.sum() < 20:
            k = k * 2
        assert (k < 100).all()
        return total, x[: int(k[1])], x[k[0] : 3], k.tolist()[2] * x, k[1].item() * x, max(k) * x, sorted(k)[0] * x

    check(f, V)


def test_known_arrays_are_filled_and_read() -> None:
    def f(x: Any) -> Any:
        k = np.zeros((2, 3))
        k[0] = [1, 2, 3]
        before = k * x[0]
        view = k[1]
        view[:] = k[0] * 2
        k[1, 2] += 5
        after = k * x[1]
        k[0, 0] = x[2]
        view[1] = 77
        return before, after, k, view, k.T.sum()

    check(f, V)


def test_a_known_array_written_after_it_was_used() -> None:
    def f(x: Any) -> Any:
        k = np.arange(300.0)
        first = x[0] + k
        k[0] = 500
        second = x[0] + k
        k += 1
        return first, second, k

    check(f, V)


def test_numpy_functions_without_a_record_fold() -> None:
    def f(x: Any) -> Any:
        k = np.arange(5)
        return (
            np.cumsum(k) * x, np.diff(k) + x[1:], np.outer(k, k)[2] * x, np.roll(k, 2) * x, np.repeat(k, 2)[:5] * x,
            np.tile(k, 2)[5:] * x, np.argsort(-k) * x, np.sort(-k) * x, np.linalg.norm(k) * x, np.interp(2.5, k, k) * x,
            np.meshgrid(k, k)[0] @ x, np.unique(k // 2).size * x, np.where(k > 2)[0].sum() * x,
            np.take(k, [4, 0]) * x[0],
        )  # fmt: skip

    check(f, V)


def test_zeros_of_both_signs() -> None:
    constants = [np.array([0.0, -0.0, 0.0]), np.array([-0.0, 0.0, 0.0], np.float32), np.full(3, -0.0), np.zeros(3)]
    check(lambda x: [np.copysign(x, np.array([0.0, -0.0, 0.0])), x * np.array([-0.0, 0.0, 0.0])], np.ones(3))
    check(lambda x: [np.copysign(x, c) for c in constants], np.ones(3))
    many = np.zeros(500)
    many[7] = -0.0
    check(lambda x: np.copysign(x, many), np.ones(500))


def test_known_special_values() -> None:
    def f(x: Any) -> Any:
        k = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
        h = np.array([np.nan, np.inf, -0.0, 6e-8], np.float16)
        return k + 0 * x, np.full(5, np.nan) + x, h, np.full(400, np.nan, np.float32), np.array([-0.0]), k

    check(f, V)


def test_constants_of_every_dtype_and_size() -> None:
    def f(x: Any) -> Any:
        results = []
        for dtype in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"):
            for n in (0, 1, 3, 2000):
                results.append((np.arange(n) * 7 % 11).astype(dtype))
            results.append(np.array(1, dtype))
        return results, x

    check(f, V)


def test_large_known_arrays_are_not_written_into_the_program() -> None:
    text = ml.trace(lambda x: x + np.arange(100_000) * 1.5, np.ones(100_000)).as_text()
    assert len(text) < 5000


def test_captured_arrays_are_read_at_each_call() -> None:
    table, small, scalar = np.arange(1000.0), np.arange(3.0), np.array(2.0)
    turned = np.arange(6.0).reshape(2, 3).T
    compiled = ml.compile(lambda x: (x + table, x[:3] * small, x * scalar, turned @ x[:2]))
    x = np.ones(1000)
    for _ in range(3):
        for given, expected in zip(compiled(x), (x + table, x[:3] * small, x * scalar, turned @ x[:2])):
            np.testing.assert_array_equal(given, expected)
        table += 1
        small *= 2
        scalar += 1
        turned -= 1
    assert "1 signature(s) compiled" in compiled.explain()


def test_captured_arrays_of_every_layout() -> None:
    base = np.arange(24.0).reshape(4, 6)
    arrays = [base, base.T, base[::2, ::3], base[::-1], np.asfortranarray(base), base[1, 2, ...], base[:0]]
    frozen = base.copy()
    frozen.flags.writeable = False
    arrays += [frozen, np.broadcast_to(base[0], (3, 6)), base.astype(np.float16), base > 3]
    check(lambda x: [a * x for a in arrays], np.array(2.0))


def test_a_captured_array_used_twice_is_one_argument() -> None:
    table = np.arange(1000.0)
    text = ml.trace(lambda x: (x + table) * table, np.ones(1000)).as_text()
    assert text.count("%const") == 1 + 2
    assert "%const1" not in text


def test_equal_known_arrays_are_one_argument() -> None:
    def f(x: Any) -> Any:
        ones = np.arange(1000.0) ** 2
        return x + ones, x * np.arange(1000.0) ** 2, np.arange(1000) ** 2, (np.arange(1000.0) ** 2)[::-1] - x

    text = ml.trace(f, np.ones(1000)).as_text()
    assert "%const2" in text
    assert "%const3" not in text
    check(f, np.ones(1000))


def test_equal_known_arrays_are_results_of_their_own() -> None:
    def f(x: Any) -> Any:
        one, other = np.arange(1000.0), np.arange(1000.0)
        one[3] = x[0]
        return one, other, np.arange(1000.0)

    check(f, V)
    results = ml.compile(f)(V)
    assert not np.may_share_memory(results[1], results[2])


def test_histograms_of_one_array_count_in_the_same_bins() -> None:
    def f(x: Any, weights: Any) -> Any:
        return np.histogram(x, 300)[0], np.histogram(x, 300, weights=weights)[0]

    x, weights = np.sin(np.arange(2000.0)), np.arange(2000.0)
    assert ml.compile(f).ir("optimize", x, weights).count("arith.fptosi") == 1
    check(f, x, weights)
