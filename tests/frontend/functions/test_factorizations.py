"""Matrices that are large enough for LAPACK: values, batches, derivatives, and programs without the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import FloatOperationError, LinAlgError
from mlirml.frontend.functions.linear_algebra import LAPACK_FROM, LAPACK_STACK_BYTES, LAPACK_STACK_FROM
from mlirml.runtime import HAS_LAPACK
from mlirml.targets import cpu

Function = Callable[..., Any]

needs_lapack = pytest.mark.skipif(not HAS_LAPACK, reason="NumPy is linked to no LAPACK that can be found")
DTYPES = ["float64", "float32", "complex128", "complex64"]
SIZES = [1, 2, 7, LAPACK_FROM - 1, LAPACK_FROM, LAPACK_FROM + 1, 64, 100, 200]


def drawn(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def matrices(dtype: str, *shape: int) -> np.ndarray:
    """Matrices that are far from singular."""
    return drawn(dtype, *shape) + np.asarray(2 * shape[-1] ** 0.5 * np.eye(shape[-1]), dtype)


def definite(a: Any) -> Any:
    return a @ np.swapaxes(a, -1, -2).conj()


def everything(a: Any, b: Any, positive: Any) -> Any:
    return (
        np.linalg.solve(a, b), np.linalg.inv(a), *np.linalg.slogdet(a), np.linalg.cholesky(positive),
        np.linalg.cholesky(positive, upper=True),
    )  # fmt: skip


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-11
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * float(np.max(np.abs(y), initial=0)))


@pytest.fixture
def without_lapack(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where NumPy is linked to another library."""
    monkeypatch.setattr(cpu, "HAS_LAPACK", False)
    yield


@needs_lapack
def test_complex_matrices_of_half_as_many_rows() -> None:
    for size in (LAPACK_FROM // 2 - 1, LAPACK_FROM // 2):
        a = matrices("complex128", size, size)
        compiled = ml.compile(np.linalg.inv)
        assert_close([compiled(a)], [np.linalg.inv(a)], "complex128")
        assert ("LAPACK" in compiled.explain()) == (2 * size >= LAPACK_FROM)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gives_what_numpy_gives_at_every_size(dtype: str) -> None:
    compiled = ml.compile(everything)
    for n in SIZES if dtype == "float64" else SIZES[3:7]:
        a, b = matrices(dtype, n, n), drawn(dtype, n, 3, seed=1)
        args = a, b, definite(a)
        assert_close(compiled(*args), everything(*args), dtype)


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 40])
def test_right_sides_of_any_number(columns: int) -> None:
    n = LAPACK_FROM + 8
    a, b = drawn("float64", n, n), drawn("float64", n, columns, seed=1)  # rows change places
    assert_close([ml.compile(np.linalg.solve)(a, b)], [np.linalg.solve(a, b)], "float64")
    if columns == 1:
        assert_close([ml.compile(np.linalg.solve)(a, b[:, 0])], [np.linalg.solve(a, b[:, 0])], "float64")


def test_no_right_side() -> None:
    a = matrices("float64", LAPACK_FROM, LAPACK_FROM)
    assert ml.compile(np.linalg.solve)(a, np.ones((LAPACK_FROM, 0))).shape == (LAPACK_FROM, 0)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_batches(dtype: str) -> None:
    n = LAPACK_FROM + 3
    a, b = matrices(dtype, 2, 3, n, n), drawn(dtype, 3, n, 2, seed=1)
    args = a, b, definite(a)
    assert_close(ml.compile(everything)(*args), everything(*args), dtype)


def test_arguments_that_are_views() -> None:
    n = LAPACK_FROM + 8
    whole, right = matrices("float64", 2 * n, 2 * n), drawn("float64", 3, 2 * n)
    a, b = whole[::2, ::-2][:, ::-1].T, right[:, ::2].T
    args = a, b, definite(a).T
    assert_close(ml.compile(everything)(*args), everything(*args), "float64")

    def inside(whole: Any, right: Any) -> Any:
        a = whole[::2, 1::2].T
        return np.linalg.solve(a, right[:, ::2].T), np.linalg.inv(a), np.linalg.cholesky(definite(a)[::-1, ::-1])

    assert_close(ml.compile(inside)(whole, right), inside(whole, right), "float64")


def test_arguments_are_left_as_they_are() -> None:
    n = LAPACK_FROM
    a, b = matrices("float64", n, n), drawn("float64", n, 9)
    args = a, b, definite(a)
    copies = [x.copy() for x in args]
    ml.compile(everything)(*args)
    for x, copy in zip(args, copies):
        np.testing.assert_array_equal(x, copy)


def test_results_may_take_the_memory_of_arguments() -> None:
    a = matrices("float64", LAPACK_FROM, LAPACK_FROM)
    expected = np.linalg.inv(a)
    np.testing.assert_allclose(ml.compile(np.linalg.inv, donate_argnums=0)(a.copy()), expected, rtol=1e-9)

    def stored(a: Any) -> None:
        a[...] = np.linalg.inv(a)
        a[...] = np.linalg.cholesky(definite(a))

    found = a.copy()
    ml.compile(stored)(found)
    stored(a)
    np.testing.assert_allclose(found, a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_triangle_of_the_matrix_is_read(dtype: str) -> None:
    positive = definite(matrices(dtype, 40, 40))
    lower, upper = np.tril(positive) + np.triu(np.full((40, 40), np.nan, dtype), 1), np.triu(positive)
    factor = ml.compile(np.linalg.cholesky)(lower)
    np.testing.assert_allclose(factor, np.linalg.cholesky(positive), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(factor, np.tril(factor))
    turned = ml.compile(lambda a: np.linalg.cholesky(a, upper=True))(upper)
    np.testing.assert_allclose(turned, factor.T, rtol=1e-4, atol=1e-4)


def test_singular_matrices() -> None:
    n = LAPACK_FROM + 1
    a = matrices("float64", 3, n, n)
    a[1, :, 4] = 0
    for function in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones((n, 2)))):
        with pytest.raises(LinAlgError, match="Singular matrix"):
            ml.compile(function)(a)
    sign, logarithm = ml.compile(np.linalg.slogdet)(a)
    assert sign[1] == 0 and logarithm[1] == -np.inf and np.linalg.det(a[1]) == ml.compile(np.linalg.det)(a[1]) == 0


def test_a_nan_that_is_made_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "check_nan", True)
    compiled = ml.compile(np.linalg.inv)
    a = matrices("float64", LAPACK_FROM, LAPACK_FROM)
    np.testing.assert_allclose(compiled(a), np.linalg.inv(a), rtol=1e-9, atol=1e-12)
    a[:, 3] = 0
    with pytest.raises((FloatOperationError, LinAlgError), match=r"NaN|Singular"):
        compiled(a)
    a[0, 0] = np.nan
    compiled(a)


def test_matrices_that_are_not_definite() -> None:
    n = LAPACK_FROM + 1
    positive = definite(matrices("float64", 2, n, n))
    positive[0, 5, 5] = -1
    with pytest.raises(LinAlgError, match="Matrix is not positive definite"):
        ml.compile(np.linalg.cholesky)(positive)


def objective(a: Any, b: Any) -> Any:
    factor = np.linalg.cholesky(definite(a) / a.shape[-1] + np.eye(a.shape[-1]))
    _, logarithm = np.linalg.slogdet(a)
    return np.sum(np.linalg.solve(factor, b) ** 2) + np.sum(np.sin(np.linalg.inv(a))) + 0.1 * logarithm


def test_gradient_is_that_of_finite_differences() -> None:
    n = LAPACK_FROM + 3
    a, b = matrices("float64", n, n), drawn("float64", n, 2)
    da, db = drawn("float64", n, n, seed=2), drawn("float64", n, 2, seed=3)
    of_a, of_b = ml.compile(ml.grad(objective, (0, 1)))(a, b)
    h = 1e-5
    slope = (objective(a + h * da, b + h * db) - objective(a - h * da, b - h * db)) / (2 * h)
    np.testing.assert_allclose(np.sum(of_a * da) + np.sum(of_b * db), slope, rtol=1e-6)
    _, moved = ml.compile(lambda p, t: ml.jvp(objective, p, t))((a, b), (da, db))
    np.testing.assert_allclose(moved, slope, rtol=1e-6)


def test_a_batch_is_one_matrix_after_the_other() -> None:
    n = LAPACK_FROM + 1
    a, b = matrices("float64", 3, n, n), drawn("float64", 3, n)
    solved = ml.compile(ml.vmap(np.linalg.solve))
    assert_close([solved(a, b)], [np.stack([np.linalg.solve(x, y) for x, y in zip(a, b)])], "float64")
    shared = ml.compile(ml.vmap(np.linalg.solve, in_axes=(None, 0)))
    assert_close([shared(a[0], b)], [np.stack([np.linalg.solve(a[0], y) for y in b])], "float64")
    gradient = ml.grad(lambda a: np.linalg.slogdet(a)[1] + np.sum(np.linalg.inv(a)[0]))
    expected = [np.stack([ml.compile(gradient)(x) for x in a])]
    assert_close([ml.compile(ml.vmap(gradient))(a)], expected, "float64")


def test_in_loops() -> None:
    a, b = matrices("float64", 40, 40), drawn("float64", 40)

    def iterated(a: Any, b: Any) -> Any:
        x = b
        for i in range(5):
            x = np.linalg.solve(a + i * np.eye(40), x) + b
        return x

    def carried(a: Any, b: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, x: np.linalg.inv(x) @ a, a)

    for function in (iterated, carried):
        assert_close([ml.compile(function)(a, b)], [function(a, b)], "float64")


@pytest.mark.parametrize("target", ["reference", "vulkan"])
def test_other_targets_have_code_of_their_own(target: str) -> None:
    text = ml.compile(np.linalg.inv, target=target).ir("raise", np.eye(LAPACK_FROM, dtype=np.float32))
    assert "mlirml.inverse" not in text and "scf.for" in text


@needs_lapack
def test_the_remark_names_the_routines() -> None:
    compiled = ml.compile(np.linalg.solve)
    compiled(np.eye(LAPACK_FROM), np.ones(LAPACK_FROM))
    assert "recognised: LAPACK's getrf, getrs" in compiled.explain()
    small = ml.compile(np.linalg.solve)
    small(np.eye(LAPACK_FROM - 1), np.ones(LAPACK_FROM - 1))
    assert "LAPACK" not in small.explain()


@needs_lapack
@pytest.mark.parametrize("size", [LAPACK_STACK_FROM // 2 - 1, LAPACK_STACK_FROM // 2])
def test_large_stacks_of_small_complex_matrices(size: int) -> None:
    a = matrices("complex128", LAPACK_STACK_BYTES // (16 * size**2) + 1, size, size)
    compiled = ml.compile(np.linalg.inv)
    assert_close([compiled(a)], [np.linalg.inv(a)], "complex128")
    assert ("LAPACK" in compiled.explain()) == (2 * size >= LAPACK_STACK_FROM)
