"""Numbers that are not finite, empty arrays and single elements: SciPy's and NumPy's results, or an error at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import mlirml as ml
from mlirml import linalg, stats


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


SPECTRA = {
    "svd": np.linalg.svd, "svdvals": np.linalg.svdvals, "pinv": np.linalg.pinv, "eigh": np.linalg.eigh,
    "eigvalsh": np.linalg.eigvalsh, "lstsq": lambda a: np.linalg.lstsq(a, np.ones(a.shape[0]), rcond=None),
}  # fmt: skip


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_spectra_of_matrices_that_are_not_finite_are_an_error(name: str, value: float, target: str) -> None:
    """LAPACK's iteration does not end for some, such as the first of these."""
    compiled = ml.compile(SPECTRA[name], target)
    for shape, position in (((4, 3), 6), ((3, 3), 0), ((40, 40), 5 * 40 + 3)):
        if "eig" in name and shape[0] != shape[1]:
            continue
        a = np.random.default_rng(0).standard_normal(shape)
        a.flat[position] = value
        with pytest.raises(np.linalg.LinAlgError):
            compiled(a)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_no_matrix_with_minus_infinity_on_the_diagonal_is_positive_definite(target: str, dtype: Any) -> None:
    for n in (1, 2, 9, 40):
        a = np.eye(n, dtype=dtype)
        a[n - 1, n - 1] = -np.inf
        with pytest.raises(np.linalg.LinAlgError):
            ml.compile(np.linalg.cholesky, target)(a)


def test_the_triangle_that_is_not_read_may_hold_anything() -> None:
    a = np.random.default_rng(0).standard_normal((5, 5))
    for uplo, hidden in (("L", np.triu_indices(5, 1)), ("U", np.tril_indices(5, -1))):
        given = a.copy()
        given[hidden] = np.nan
        expected = np.linalg.eigvalsh(a, uplo)  # type: ignore[arg-type]
        found = ml.compile(lambda a, uplo=uplo: np.linalg.eigvalsh(a, uplo))(given)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def empty(*shape: int) -> np.ndarray:
    return np.zeros(shape)


@pytest.mark.parametrize("compiled", [False, True])
def test_systems_without_equations_or_right_sides(compiled: bool) -> None:
    def every(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        lower = linalg.cho_factor(a, True)
        return [
            *linalg.lu(a), *linalg.lu_factor(a), linalg.lu_solve(linalg.lu_factor(a), b), linalg.cho_solve(lower, b),
            linalg.solve_triangular(a, b), linalg.solve_triangular(c, d), linalg.lu_solve(linalg.lu_factor(c), d),
        ]  # fmt: skip

    given = empty(0, 0), empty(0, 2), 2 * np.eye(3), empty(3, 0)
    a, b, c, d = given
    expected = [
        *scipy.linalg.lu(a), *scipy.linalg.lu_factor(a), b, b, b, scipy.linalg.solve_triangular(c, d), d,
    ]  # fmt: skip
    found = (ml.compile(every) if compiled else every)(*given)
    assert [x.shape for x in found] == [x.shape for x in expected]


@pytest.mark.parametrize("compiled", [False, True])
def test_densities_of_nan_are_nan(compiled: bool) -> None:
    def densities(x: Any) -> Any:
        return stats.dirichlet.logpdf(x, np.array([1.5, 2.0, 0.5]))

    x = np.array([[0.2, np.nan, 0.2, np.nan], [0.3, 0.3, 0.9, np.nan]])
    found = (ml.compile(densities) if compiled else densities)(x)
    assert np.isnan(found).tolist() == [False, True, False, True]
    assert found[0] == pytest.approx(scipy.stats.dirichlet.logpdf(x[:, 0], [1.5, 2.0, 0.5])) and found[2] == -np.inf
