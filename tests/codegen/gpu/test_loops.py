"""Kernels of scatters and scans, run on a Vulkan driver and compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("wgpu")
import mlirml as ml
from tests.codegen.gpu.gpu_harness import device, run_traced

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def set_rows(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


def add_rows(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, i, v)
    return x


@pytest.mark.parametrize("function", [set_rows, add_rows])
@pytest.mark.parametrize("row", [(), (5,), (2, 3)])
def test_scatter_keeps_the_order(function: Any, row: tuple[int, ...]) -> None:
    x, i, v = draw(20, *row), np.array([3, 1, 3, -1, 3]), draw(5, *row)
    (result,) = run_traced(function, x, i, v)
    np.testing.assert_array_equal(result, function(x, i, v))


@pytest.mark.parametrize(("shape", "axis"), [((50,), 0), ((9, 30), 1), ((4, 30), 1), ((7, 30), 0), ((3, 5, 6), 1)])
def test_scan_has_the_order_of_numpy(shape: tuple[int, ...], axis: int) -> None:
    x = draw(*shape)
    (result,) = run_traced(lambda x: np.cumsum(x, axis=axis), x)
    np.testing.assert_array_equal(result, np.cumsum(x, axis=axis))


@pytest.mark.parametrize(("shape", "kernels"), [((700,), 1), ((20_001,), 3), ((9, 300), 2), ((3, 9000), 3)])
def test_long_scans_share_rows(shape: tuple[int, ...], kernels: int) -> None:
    x, launches = draw(*shape), list[str]()
    (result,) = run_traced(lambda x: np.cumsum(x, axis=-1), x, launches=launches)
    exact = np.cumsum(x.astype(np.float64), axis=-1)
    assert np.abs(result - exact).max() <= 2 * np.abs(np.cumsum(x, axis=-1) - exact).max()
    assert len(launches) == kernels


def test_long_scans_of_integers_and_nans() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 1000)).astype(np.int32)
    for function in (
        lambda x: np.cumsum(x, axis=1, dtype=np.int32)[:, ::-1],
        lambda x: np.cumprod(x, axis=1, dtype=np.int32),
        lambda x: np.minimum.accumulate(x, axis=1),
    ):
        (result,) = run_traced(function, x)
        np.testing.assert_array_equal(result, function(x))
    y = draw(5000)
    y[[7, 4000]] = np.inf, np.nan
    (result,) = run_traced(lambda x: np.maximum.accumulate(x * 2), y)
    np.testing.assert_array_equal(result, np.maximum.accumulate(y * 2))


def test_running_maxima_of_what_is_computed() -> None:
    x = draw(6, 17)
    (result,) = run_traced(lambda x: np.maximum.accumulate(x * 2, axis=1) + 1, x)
    np.testing.assert_array_equal(result, np.maximum.accumulate(x * 2, axis=1) + 1)


def test_loops_on_the_host_keep_what_kernels_still_read() -> None:
    x = draw(3, 4)
    gradient = ml.compile(ml.grad(lambda x: np.sum(np.cumsum(x, axis=0) ** 2)), target="vulkan")
    total = 2 * np.cumsum(x, axis=0)
    np.testing.assert_allclose(gradient(x), np.cumsum(total[::-1], axis=0)[::-1], rtol=1e-5)


def test_stores_into_slices_wait_for_those_that_read_them() -> None:
    @ml.compile(target="vulkan")
    def shifted(x: Any) -> Any:
        for _ in range(3):
            x[1:] = x[:-1] + x[1:]
        return x * 2

    x = draw(40_000)
    expected = x.copy()
    for _ in range(3):
        expected[1:] = expected[:-1] + expected[1:]
    np.testing.assert_array_equal(shifted(x.copy()), expected * 2)


def test_a_product_accumulated_into_its_own_operand() -> None:
    def function(a: Any, b: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, a: a + a @ b, a)

    a, b = draw(96, 96) / 10, draw(96, 96) / 10
    np.testing.assert_allclose(ml.compile(function, target="vulkan")(a, b), function(a, b), rtol=1e-4, atol=1e-4)


def test_slices_of_changing_length() -> None:
    def triangle(x: Any, n: Any) -> Any:
        y = x.copy()
        for i in range(1, n):
            y[i, :i] = y[i - 1, :i] * 2 + x[i, :i]
        return y

    def centred(x: Any) -> Any:
        for i in range(x.shape[0]):
            x[i] = x[i] - np.mean(x[: i + 1], axis=0)
        return x

    x = draw(20, 30)
    for n in (0, 1, 20):
        np.testing.assert_array_equal(ml.compile(triangle, target="vulkan")(x, np.int32(n)), triangle(x, np.int32(n)))
    np.testing.assert_allclose(ml.compile(centred, target="vulkan")(x.copy()), centred(x.copy()), atol=1e-6)


def test_many_launches_with_numbers() -> None:
    def lu(a):  # type: ignore[no-untyped-def]
        for k in range(a.shape[0]):
            for i in range(k + 1, a.shape[0]):
                a[i, k] /= a[k, k]
            for i in range(k + 1, a.shape[0]):
                for j in range(k + 1, a.shape[0]):
                    a[i, j] -= a[i, k] * a[k, j]

    a = draw(14, 14) + 14 * np.eye(14, dtype=np.float32)
    expected, found = a.copy(), a.copy()
    lu(expected)
    ml.compile(lu, target="vulkan")(found)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("operation", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize(("count", "row"), [(300, ()), (1300, (3,))])
def test_many_updates_give_the_bits_of_the_loop(operation: Any, count: int, row: tuple[int, ...]) -> None:
    def update(x: Any, i: Any, v: Any) -> Any:
        x = x.copy()
        operation.at(x, i, v)
        return x

    x, v = draw(40, *row), draw(count, *row)
    i = np.random.default_rng(1).integers(-40, 40, count)
    with ml.config.override(deterministic=True):
        function = ml.compile(update, target="vulkan")
    np.testing.assert_array_equal(function(x, i, v), update(x, i, v))


@pytest.mark.parametrize("operation", [np.add, np.minimum, np.bitwise_or])
def test_many_updates_of_integers(operation: Any) -> None:
    def update(x: Any, i: Any, v: Any) -> Any:
        x = x.copy()
        operation.at(x, i, v)
        return x

    rng = np.random.default_rng(2)
    x, v = (rng.integers(-99, 99, (n, 3)).astype(np.int32) for n in (40, 700))
    i = rng.integers(0, 40, 700).astype(np.int32)
    np.testing.assert_array_equal(ml.compile(update, target="vulkan")(x, i, v), update(x, i, v))


def test_the_last_of_many_stores_stays() -> None:
    x, v, i = draw(40, 3), draw(900, 3), np.random.default_rng(3).integers(0, 40, 900)
    np.testing.assert_array_equal(ml.compile(set_rows, target="vulkan")(x, i, v), set_rows(x, i, v))


def test_the_gradient_of_a_gather() -> None:
    def loss(x: Any, i: Any) -> Any:
        return np.sum(np.tanh(x[i]) ** 2)

    x, i = draw(50, 4), np.random.default_rng(4).integers(0, 50, 500).astype(np.int32)
    gradient = ml.compile(ml.grad(loss), target="vulkan")
    np.testing.assert_allclose(gradient(x, i), ml.grad(loss)(x, i), rtol=2e-5, atol=1e-6)
    assert "_scatter on" in gradient.explain(x, i)


def test_loops_over_slices_of_changing_length() -> None:
    def solve(a, b, y, x):  # type: ignore[no-untyped-def]
        n = a.shape[0]
        for k in range(n):
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
            for i in range(k + 1, n):
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        for i in range(n):
            y[i] = b[i]
            for j in range(i):
                y[i] -= a[i, j] * y[j]
        for i in range(n - 1, -1, -1):
            w = y[i]
            for j in range(i + 1, n):
                w -= a[i, j] * x[j]
            x[i] = w / a[i, i]

    a, b = draw(30, 30) + 9 * np.eye(30, dtype=np.float32), draw(30)
    results = [a.copy(), b, np.zeros_like(b), np.zeros_like(b)]
    program = ml.compile(solve, target="vulkan")
    program(*results)
    np.testing.assert_allclose(results[3], np.linalg.solve(a, b), rtol=1e-4, atol=1e-5)
    assert "host" not in program.explain(*results).partition("where signature")[2]


def test_a_recursion_over_growing_slices() -> None:
    def durbin(r, y, z):  # type: ignore[no-untyped-def]
        y[0] = -r[0]
        beta, alpha = np.float32(1), -r[0]
        for k in range(1, r.shape[0]):
            beta = (1 - alpha * alpha) * beta
            total = np.float32(0)
            for i in range(k):
                total += r[k - i - 1] * y[i]
            alpha = -(r[k] + total) / beta
            for i in range(k):
                z[i] = y[i] + alpha * y[k - i - 1]
            for i in range(k):
                y[i] = z[i]
            y[k] = alpha

    r = draw(30) / 90
    expected, found = ([r, np.zeros(30, np.float32), np.zeros(30, np.float32)] for _ in range(2))
    durbin(*expected)
    ml.compile(durbin, target="vulkan")(*found)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-6)


SORTED = draw(5, 37)
SORTED[1, 3], SORTED[2, 5], SORTED[3, :9], SORTED[3, 3] = np.nan, np.inf, 0, -0.0
WHOLE = np.random.default_rng(5).integers(0, 99, 1300)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: np.sort(x, axis=1), SORTED),
        (lambda x: np.argsort(x * 2, axis=1, kind="stable"), SORTED),
        (lambda x: np.sort(x, axis=0)[:2], SORTED),
        (lambda x: np.argsort(x, kind="stable"), WHOLE.astype(np.int32)),
        (np.sort, WHOLE.astype(np.uint8)),
        (np.sort, WHOLE.astype(np.float16)),
    ],
)
def test_sorts_on_the_device(function: Any, argument: np.ndarray) -> None:
    program = ml.compile(function, target="vulkan")
    np.testing.assert_array_equal(program(argument), function(argument))
    assert "on the host" not in program.explain()
