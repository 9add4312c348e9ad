"""`mlirml.linalg`: SciPy's functions, compiled and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import linalg
from mlirml.errors import LinAlgError, ShapeError
from tests.frontend.functions.test_decompositions import check_derivatives, drawn, parts

scipy_linalg: Any = pytest.importorskip("scipy.linalg")

DTYPES = ["float64", "complex128"]


def check(function: Callable[..., Any], reference: Callable[..., Any], *args: Any, tolerance: float = 1e-9) -> None:
    """The function equals its reference, compiled and not."""
    expected = parts(reference(*args))
    for run in (function, ml.compile(function)):
        for x, y in zip(parts(run(*args)), expected, strict=True):
            assert np.asarray(x).shape == np.asarray(y).shape and np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (3, 6), (2, 2), (2, 3, 5, 4)])
def test_lu(dtype: str, shape: tuple[int, ...]) -> None:
    a = drawn(dtype, *shape)
    check(linalg.lu, scipy_linalg.lu, a)
    check(lambda a: linalg.lu(a, permute_l=True), lambda a: scipy_linalg.lu(a, permute_l=True), a)
    check(lambda a: linalg.lu(a, p_indices=True), lambda a: scipy_linalg.lu(a, p_indices=True), a)
    check_derivatives(lambda a: linalg.lu(a)[1:], a)
    if len(shape) == 2:
        check(linalg.lu_factor, scipy_linalg.lu_factor, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_solutions_by_lu(dtype: str, trans: int) -> None:
    def ours(a: Any, b: Any) -> Any:
        return linalg.lu_solve(linalg.lu_factor(a), b, trans)

    a, b = drawn(dtype, 6, 6), drawn(dtype, 6, 2)
    for right in (b, b[:, 0]):
        check(ours, lambda a, b: scipy_linalg.lu_solve(scipy_linalg.lu_factor(a), b, trans), a, right)
    check_derivatives(ours, a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(dtype: str, trans: Any, lower: bool, unit: bool) -> None:
    def ours(a: Any, b: Any) -> Any:
        return linalg.solve_triangular(a, b, trans, lower, unit)

    a, b = drawn(dtype, 5, 5), drawn(dtype, 5, 2)
    for right in (b, b[:, 0]):
        check(ours, lambda a, b: scipy_linalg.solve_triangular(a, b, trans, lower, unit), a, right)
    if lower != unit:  # each of the triangles, and of the diagonals
        check_derivatives(ours, a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_matrices(dtype: str) -> None:
    a, b = drawn(dtype, 5, 5), drawn(dtype, 5, 2)
    definite = a @ a.T.conj() + np.eye(5)
    for lower in (False, True):
        check(lambda a, b, s=lower: linalg.cho_solve(linalg.cho_factor(a, s), b), np.linalg.solve, definite, b)
    for factor, tolerance in ((0.01, 1e-12), (1.0, 1e-10), (30.0, 1e-7)):
        check(linalg.expm, scipy_linalg.expm, a * factor, tolerance=tolerance)
    check(linalg.expm, scipy_linalg.expm, np.stack([a * 0.01, a * 3]), tolerance=1e-9)
    check(linalg.sqrtm, scipy_linalg.sqrtm, definite, tolerance=1e-9)
    regular = a + 5 * np.eye(5)
    check(linalg.sqrtm, scipy_linalg.sqrtm, regular, tolerance=1e-9)
    if dtype == "float64":
        check_derivatives(linalg.sqrtm, regular)
    check_derivatives(linalg.expm, a * 2)
    check_derivatives(lambda a, b: linalg.cho_solve(linalg.cho_factor(a + a.T.conj()), b), definite, b)


def test_single_precision() -> None:
    a = drawn("float32", 6, 6)
    check(linalg.expm, scipy_linalg.expm, a, tolerance=1e-4)
    check(linalg.lu, scipy_linalg.lu, a, tolerance=1e-4)


def test_structured_matrices() -> None:
    a, b = drawn("float64", 3, 2), drawn("complex128", 2, 4)
    check(linalg.block_diag, scipy_linalg.block_diag, a, b, a[0])
    check(linalg.toeplitz, scipy_linalg.toeplitz, b[0])
    check(linalg.toeplitz, scipy_linalg.toeplitz, b[0], a[:, 0])


def test_a_root_that_is_not_real() -> None:
    for run in (linalg.sqrtm, ml.compile(linalg.sqrtm)):
        assert np.isnan(run(np.array([[1.0, 2.0], [3.0, -4.0]]))).all()
    beside = np.array([[1.0, 2.0], [3.0, -4.0 + 1j]])
    root = ml.compile(linalg.sqrtm)(beside)
    np.testing.assert_allclose(root @ root, beside, atol=1e-9)


def test_an_exponential_that_is_too_large() -> None:
    assert np.isnan(ml.compile(linalg.expm)(np.eye(2) * -1e11)).all()
    np.testing.assert_allclose(ml.compile(linalg.expm)(np.diag([-1e6, 0.0])), np.diag([0.0, 1.0]), atol=1e-9)


def test_errors() -> None:
    upper = np.triu(np.ones((3, 3)))
    upper[1, 1] = 0
    for run in (linalg.solve_triangular, ml.compile(linalg.solve_triangular)):
        with pytest.raises(LinAlgError, match="singular matrix"):
            run(upper, np.ones(3))
        with pytest.raises(ShapeError, match="3 equations"):
            run(upper, np.ones(2))
    with pytest.raises(ShapeError, match="square matrices"):
        ml.compile(linalg.expm)(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="trans is"):
        ml.compile(lambda a: linalg.solve_triangular(a, a, 3))(np.eye(3))


def test_has_what_numpy_has() -> None:
    for name in np.linalg.__all__:
        assert getattr(linalg, name) is getattr(np.linalg, name)
    assert {*np.linalg.__all__} < {*linalg.__all__}


def test_scipys_own_names_compile() -> None:
    expm, a = scipy_linalg.expm, drawn("float64", 4, 4)

    def program(a: Any) -> Any:
        factor = scipy_linalg.cho_factor(a @ a.T + np.eye(4), overwrite_a=True)
        right = scipy_linalg.solve_triangular(a, a[0], lower=True, check_finite=False)
        return (
            expm(a),
            scipy_linalg.cho_solve(factor, right),
            scipy_linalg.lu(a)[2],
            scipy_linalg.block_diag(a, np.eye(2)),
        )

    for x, y in zip(ml.compile(program)(a), program(a), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_norms_of_empty_matrices_are_zero(compiled: bool) -> None:
    for shape in ((0, 5), (5, 0)):
        for order in (None, "fro", "nuc", 1, 2, np.inf):

            def norm(x: np.ndarray, order: object = order) -> np.ndarray:
                return np.linalg.norm(x, order, axis=(0, 1))

            found = ml.compile(norm)(np.zeros(shape)) if compiled else norm(ml.array(np.zeros(shape)))
            assert float(np.asarray(found)) == 0, (shape, order)


@pytest.mark.parametrize("order", [None, 1, -1, 2, np.inf, -np.inf, "fro"])
def test_the_condition_of_a_singular_matrix_is_infinite(order: Any) -> None:
    for x in (np.ones((2, 2)), np.zeros((3, 3)), np.ones((40, 40)), np.ones((2, 2)) * 1j):
        found, expected = ml.compile(lambda x: np.linalg.cond(x, order))(x), np.linalg.cond(x, order)
        assert found == expected or (found > 1e15 and expected > 1e15), (order, x.shape)
    both = ml.compile(lambda x: np.linalg.cond(x, order))(np.stack([np.ones((2, 2)), np.eye(2)]))
    assert both[0] > 1e15 and np.isclose(both[1], np.linalg.cond(np.eye(2), order))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_no_matrix_is_an_error_of_linear_algebra(compiled: bool) -> None:
    functions = [np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.eigh, np.linalg.svd, np.linalg.cond]
    for function in functions:
        for x in (np.ones(3), np.ones((2, 3)))[: 1 if function in (np.linalg.svd, np.linalg.cond) else 2]:
            with pytest.raises(np.linalg.LinAlgError) as caught:
                ml.compile(function)(x) if compiled else function(ml.array(x))
            assert isinstance(caught.value, ml.ShapeError)


def test_the_condition_of_an_empty_matrix_is_an_error() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="cond is not defined on empty arrays"):
        ml.compile(np.linalg.cond)(np.zeros((0, 0)))


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_least_squares_of_empty_systems(rows: int, columns: int) -> None:
    for b in (np.ones(rows), np.ones((rows, 2))):
        found = ml.compile(np.linalg.lstsq)(np.zeros((rows, columns)), b)
        for one, other in zip(found, np.linalg.lstsq(np.zeros((rows, columns)), b), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacks_of_factors_larger_than_caches(dtype: type) -> None:
    rng = np.random.default_rng(4)
    for n in (7, 12, 16):
        a = rng.standard_normal((3001, n, n)).astype(dtype)
        a = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
        scale = 2e-5 if dtype == np.float32 else 1e-13
        factors = ml.compile(np.linalg.cholesky)(a)
        np.testing.assert_allclose(factors, np.linalg.cholesky(a), rtol=scale, atol=scale * n)
        assert not np.triu(factors, 1).any()


def _matrix(diagonals: np.ndarray, below: int, above: int) -> np.ndarray:
    size, offsets = diagonals.shape[1], range(-below, above + 1)
    return sum(np.diag(diagonals[above - k, max(k, 0) : size + min(k, 0)], k) for k in offsets)  # type: ignore[return-value]


@pytest.mark.parametrize("sides", [(9,), (9, 2)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(("below", "above"), [(1, 1), (2, 1), (1, 3), (0, 2), (2, 0), (0, 0)])
def test_banded_systems(below: int, above: int, dtype: str, sides: tuple[int, ...]) -> None:
    """Rows are exchanged, of one right side and of several, with derivatives of both modes."""

    def solve(ab: Any, b: Any) -> Any:
        return linalg.solve_banded((below, above), ab, b)

    def by_scipy(ab: Any, b: Any) -> Any:
        return scipy_linalg.solve_banded((below, above), ab, b)

    rng = np.random.default_rng(10 * below + above)
    diagonals, moved = (rng.standard_normal((below + above + 1, 9)).astype(dtype) for _ in range(2))
    diagonals = diagonals + (0.5j if dtype == "c16" else 0) * moved
    b, moved_b, weights = (rng.standard_normal(sides) for _ in range(3))
    matrix = _matrix(diagonals, below, above)
    expected = np.linalg.solve(matrix, b)
    for run in (solve, ml.compile(solve), ml.compile(by_scipy)):
        np.testing.assert_allclose(run(diagonals, b), expected, rtol=1e-9)
    tangent = np.linalg.solve(matrix, moved_b - _matrix(moved, below, above) @ expected)
    found = ml.jvp(solve, (diagonals, b), (moved, moved_b))[1]
    np.testing.assert_allclose(found, tangent, rtol=1e-7, atol=1e-9)
    slope = ml.grad(lambda ab, b: np.sum((weights * solve(ab, b)).real), (0, 1))(diagonals, b)
    along = np.sum((slope[0] * moved).real) + np.sum(slope[1] * moved_b)
    np.testing.assert_allclose(along, np.sum((weights * tangent).real), rtol=1e-8)


def test_banded_systems_of_batches_and_many_rows() -> None:
    diagonals = np.random.default_rng(0).standard_normal((3, 5))
    sides = np.random.default_rng(1).standard_normal((3, 5))
    found = ml.vmap(lambda b: linalg.solve_banded((1, 1), diagonals, b))(sides)
    np.testing.assert_allclose(found, linalg.solve_banded((1, 1), diagonals, sides.T).T, rtol=1e-12)
    diagonals, sides = np.tile([[-1.0], [2.5], [-1.0]], 20_000), np.ones(20_000)
    x = ml.compile(lambda ab, b: linalg.solve_banded((1, 1), ab, b))(diagonals, sides)
    np.testing.assert_allclose(x, scipy_linalg.solve_banded((1, 1), diagonals, sides), rtol=1e-12)


def test_bands_that_do_not_fit() -> None:
    with pytest.raises(ml.errors.ShapeError, match="2 diagonals, where"):
        ml.compile(lambda ab, b: linalg.solve_banded((1, 1), ab, b))(np.ones((2, 4)), np.ones(4))
