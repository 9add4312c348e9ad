"""QR, singular values, eigenvalues, pseudoinverses and least squares: values, derivatives, batches and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import LinAlgError, NoDerivativeError, ShapeError
from mlirml.frontend.functions import factorizations

Function = Callable[..., Any]

DTYPES = ["float64", "float32", "complex128", "complex64"]
SHAPES = [(5, 5), (7, 4), (4, 7), (1, 1), (2, 3, 5, 4), (40, 33)]


def drawn(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def hermitian(a: Any) -> Any:
    return a + adjoint(a)


def parts(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


def assert_equal(found: Any, expected: Any, dtype: str, name: str = "") -> None:
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-11
    for x, y in zip(parts(found), parts(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        # NumPy computes in f64, and signs of singular vectors and eigenvectors depend on the processor.
        if x.ndim > 1 and (dtype in ("float32", "complex64") or name.startswith(("svd", "eigh"))):
            x, y = np.abs(x), np.abs(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * (1 + float(np.max(np.abs(y), initial=0))))


RECTANGULAR: dict[str, Function] = {
    "qr": np.linalg.qr,
    "qr complete": lambda a: np.linalg.qr(a, "complete"),
    "qr r": lambda a: np.linalg.qr(a, mode="r"),
    "qr raw": lambda a: np.linalg.qr(a, mode="raw"),
    "svd": np.linalg.svd,
    "svd reduced": lambda a: np.linalg.svd(a, full_matrices=False),
    "svd values": lambda a: np.linalg.svd(a, compute_uv=False),
    "svdvals": np.linalg.svdvals,
    "pinv": np.linalg.pinv,
    "norms": lambda a: tuple(np.linalg.norm(a, p, axis=(-2, -1)) for p in (2, -2, "nuc")),
    "rank": lambda a: np.linalg.matrix_rank(a),
}
SQUARE: dict[str, Function] = {
    "eigh": lambda a: np.linalg.eigh(hermitian(a)),
    "eigh of the upper triangle": lambda a: np.linalg.eigh(a, "U"),
    "eigvalsh": np.linalg.eigvalsh,
    "cond": np.linalg.cond,
    "svd of Hermitian matrices": lambda a: np.linalg.svd(hermitian(a), hermitian=True),
    "pinv of Hermitian matrices": lambda a: np.linalg.pinv(hermitian(a), hermitian=True),
    "svd of the lower triangle": lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True),
}


@pytest.mark.parametrize("name", RECTANGULAR)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gives_what_numpy_gives(name: str, dtype: str) -> None:
    function = RECTANGULAR[name]
    for shape in SHAPES if dtype == "float64" else SHAPES[:3]:
        a = drawn(dtype, *shape)
        assert_equal(ml.compile(function)(a), function(a), dtype, name)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gives_what_numpy_gives_of_square_matrices(name: str, dtype: str) -> None:
    function = SQUARE[name]
    for shape in ((4, 4), (2, 3, 5, 5), (1, 1), (33, 33)):
        a = drawn(dtype, *shape)
        assert_equal(ml.compile(function)(a), function(a), dtype, name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_without_symmetry_are_complex(dtype: str) -> None:
    for shape in ((4, 4), (2, 5, 5)):
        a = drawn(dtype, *shape)
        values, vectors = ml.compile(np.linalg.eig)(a)
        wanted = np.result_type(a.dtype, np.complex64)
        assert values.dtype == vectors.dtype == wanted
        expected = np.linalg.eig(a)
        assert_equal((values, vectors), tuple(x.astype(wanted) for x in expected), dtype)
        assert_equal(ml.compile(np.linalg.eigvals)(a), values, dtype)
    upper = np.triu(drawn(dtype, 4, 4))  # real eigenvalues, where NumPy returns real numbers
    assert_equal(ml.compile(np.linalg.eigvals)(upper), np.diagonal(upper).astype(wanted), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 3), (4, 4), (3, 6)])
def test_least_squares(dtype: str, shape: tuple[int, int]) -> None:
    a = drawn(dtype, *shape)
    for b in (drawn(dtype, shape[0]), drawn(dtype, shape[0], 2)):
        found, expected = ml.compile(np.linalg.lstsq)(a, b), np.linalg.lstsq(a, b)
        assert_equal((found[0], found[3]), (expected[0], expected[3]), dtype)
        assert found[2] == expected[2] and found[2].dtype == np.int32
        if shape[0] > shape[1]:
            np.testing.assert_allclose(found[1], np.atleast_1d(expected[1]), rtol=1e-3)
        else:
            assert found[1].shape == (0,)


def test_least_squares_of_lower_rank() -> None:
    a = drawn("float64", 6, 2) @ drawn("float64", 2, 4)
    b = drawn("float64", 6)
    found, expected = ml.compile(np.linalg.lstsq)(a, b), np.linalg.lstsq(a, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    assert found[2] == expected[2] == 2
    np.testing.assert_allclose(found[1], [np.sum((b - a @ expected[0]) ** 2)])  # where NumPy returns none
    np.testing.assert_allclose(ml.compile(lambda a: np.linalg.pinv(a, 1e-10))(a), np.linalg.pinv(a, 1e-10), atol=1e-9)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0), (0, 4, 4)])
def test_matrices_of_nothing(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape)
    for function in (*RECTANGULAR.values(), *([*SQUARE.values(), np.linalg.eigvals] if shape[-1] == shape[-2] else [])):
        try:
            expected = function(a)
        except (ValueError, np.linalg.LinAlgError):  # norms and ranks of nothing
            continue
        for x, y in zip(parts(ml.compile(function)(a)), parts(expected), strict=True):
            assert x.shape == y.shape
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("has_lapack", [False, True])
def test_with_and_without_the_library(target: str, has_lapack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorizations, "HAS_LAPACK", has_lapack and factorizations.HAS_LAPACK)
    a = drawn("float64", 2, 4, 4)
    for name, function in (RECTANGULAR | SQUARE).items():
        assert_equal(ml.compile(function, target=target)(a), function(a), "float64", name)
    values = ml.compile(np.linalg.eigvals, target=target)(a)
    assert_equal(values, np.linalg.eigvals(a).astype(complex), "float64")


def directional(function: Function, args: list[Any], moves: list[Any]) -> list[Any]:
    """Central differences."""
    h = 1e-6
    above = parts(function(*(x + h * d for x, d in zip(args, moves))))
    below = parts(function(*(x - h * d for x, d in zip(args, moves))))
    return [(x - y) / (2 * h) for x, y in zip(above, below)]


def check_derivatives(function: Function, *args: Any) -> None:
    """The forward derivative is that of central differences, and the reverse one fits to it."""
    moves = [drawn(x.dtype.name, *x.shape, seed=7) for x in args]
    _, forward = ml.compile(lambda args, moves: ml.jvp(lambda *xs: parts(function(*xs)), args, moves))(
        tuple(args), tuple(moves)
    )
    expected = directional(function, [*args], moves)
    for x, y in zip(forward, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    weights = [drawn(np.asarray(x).dtype.name, *np.shape(x), seed=8) for x in forward]

    def weighted(*args: Any) -> Any:
        total: Any = 0
        for w, x in zip(weights, parts(function(*args))):
            total = total + np.sum((np.conj(w) * x).real)
        return total

    gradients = ml.compile(ml.grad(weighted, tuple(range(len(args)))))(*args)
    one = sum(np.sum((np.conj(w) * x).real) for w, x in zip(weights, forward))
    other = sum(np.sum((g * d).real) for g, d in zip(gradients, moves))
    np.testing.assert_allclose(one, other, rtol=1e-7)


def in_spectrum(a: Any) -> Any:
    """A function of Hermitian matrices in which the phases of the eigenvectors cancel."""
    values, vectors = np.linalg.eigh(hermitian(a))
    return (vectors * (values**3)[..., None, :]) @ adjoint(vectors), values


def in_singular_values(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * (s**2)[..., None, :]) @ vh, s


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float64", (4, 4)), ("float64", (3, 5)), ("float64", (2, 4, 3)), ("complex128", (5, 3)), ("complex128", (3, 5))],
)
def test_derivatives(dtype: str, shape: tuple[int, ...]) -> None:
    a = drawn(dtype, *shape)
    for function in (np.linalg.qr, np.linalg.svdvals, in_singular_values, np.linalg.pinv):
        check_derivatives(function, a)
    if dtype == "float64":
        check_derivatives(lambda a: np.linalg.svd(a, full_matrices=False), a)
    if len(shape) == 2:
        check_derivatives(lambda a, b: np.linalg.lstsq(a, b)[:2], a, drawn(dtype, shape[0], 2))


@pytest.mark.parametrize(("dtype", "shape"), [("float64", (4, 4)), ("complex128", (2, 3, 3))])
def test_derivatives_of_eigenvalues(dtype: str, shape: tuple[int, ...]) -> None:
    a = drawn(dtype, *shape)
    for function in (in_spectrum, lambda a: np.linalg.eigvalsh(a, "U"), np.linalg.eigvals, np.linalg.eig):
        check_derivatives(function, a)
    if dtype == "float64":
        check_derivatives(lambda a: np.linalg.eigh(hermitian(a)), a)


LOSSES: dict[str, Function] = {
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a @ a.T) ** 1.5),
    "svdvals": lambda a: np.sum(np.linalg.svdvals(a) ** 3),
    "qr": lambda a: np.sum(np.linalg.qr(a)[1] ** 3),
    "pinv": lambda a: np.sum(np.linalg.pinv(a) ** 2),
    "lstsq": lambda a: np.sum(np.linalg.lstsq(a[:, :2], a[:, 2])[0] ** 2),
    "inv": lambda a: np.sum(np.linalg.inv(a) ** 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_second_derivatives(name: str) -> None:
    loss, a, d = LOSSES[name], drawn("float64", 4, 4), drawn("float64", 4, 4, seed=1)
    product = ml.compile(lambda a, d: ml.grad(lambda a: np.sum(ml.grad(loss)(a) * d))(a))(a, d)
    (expected,) = directional(ml.compile(ml.grad(loss)), [a], [d])
    np.testing.assert_allclose(product, expected, rtol=1e-4, atol=1e-4)


def test_equal_eigenvalues_have_derivatives_where_the_vectors_have_none() -> None:
    identity = np.eye(3)
    for function in (np.linalg.eigvalsh, np.linalg.svdvals):
        gradient = ml.compile(ml.grad(lambda a, f=function: np.sum(f(a))))(identity)
        np.testing.assert_allclose(gradient, identity, atol=1e-12)
    moved = ml.compile(lambda a, d: ml.jvp(lambda a: np.linalg.eigh(a)[1], (a,), (d,)))(identity, np.ones((3, 3)))[1]
    assert not np.isfinite(moved).all()


def test_what_is_not_unique_has_no_derivative() -> None:
    for function in (lambda a: np.linalg.qr(a, "complete")[1], lambda a: np.linalg.svd(a)[1]):
        with pytest.raises(NoDerivativeError, match="not unique"):
            ml.compile(ml.grad(lambda a, f=function: np.sum(f(a))))(drawn("float64", 5, 3))


@pytest.mark.parametrize("name", ["qr", "svd", "pinv", "svdvals"])
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_batches(name: str, target: str) -> None:
    function, a = RECTANGULAR[name], drawn("float64", 6, 4, 3)
    expected = tuple(np.stack(x) for x in zip(*(parts(function(x)) for x in a)))
    assert_equal(parts(ml.compile(ml.vmap(function), target)(a)), expected, "float64", name)
    gradient = ml.grad(lambda a: sum(np.sum(np.abs(x)) for x in parts(np.linalg.svdvals(a))))
    assert_equal(ml.compile(ml.vmap(gradient))(a), np.stack([ml.compile(gradient)(x) for x in a]), "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [2, 3, 4, 7, 16])
def test_many_small_matrices(dtype: str, rows: int) -> None:
    """Groups of them have kernels of their own; vectors may have other signs than LAPACK's."""

    def close(found: Any, expected: Any) -> None:
        tolerance = 3e-4 if dtype == "float32" else 1e-11
        scale = 10 + float(np.max(np.abs(expected), initial=0))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)

    def identity(q: Any) -> None:
        close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])))

    for columns in {rows, max(1, rows - 2), min(16, rows + 3)}:
        a = drawn(dtype, 37, rows, columns)
        exact = a.astype(np.float64)
        for mode in ("reduced", "complete"):
            for x, y in zip(ml.compile(lambda a, m=mode: np.linalg.qr(a, m))(a), np.linalg.qr(exact, mode)):
                close(x, y)
        close(ml.compile(lambda a: np.linalg.qr(a, "r"))(a), np.linalg.qr(exact, "r"))
        for full in (False, True):
            u, s, vh = ml.compile(lambda a, f=full: np.linalg.svd(a, f))(a)
            close(s, np.linalg.svdvals(exact))
            close((u[:, :, : s.shape[1]] * s[:, None]) @ vh[:, : s.shape[1]], a)
            identity(u)
            identity(adjoint(vh))
        close(ml.compile(np.linalg.svdvals)(a), np.linalg.svdvals(exact))
    a = drawn(dtype, 37, rows, rows)
    for triangle in ("L", "U"):
        values, vectors = ml.compile(lambda a, t=triangle: np.linalg.eigh(a, t))(a)
        half = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
        whole = half + adjoint(half) + a * np.eye(rows, dtype=dtype)
        close(values, np.linalg.eigvalsh(whole.astype(np.float64)))
        close((vectors * values[:, None]) @ adjoint(vectors), whole)
        identity(vectors)
        close(ml.compile(lambda a, t=triangle: np.linalg.eigvalsh(a, t))(a), values)
    regular = a + np.asarray(3 * np.eye(rows), dtype)
    exact = regular.astype(np.float64)
    close(ml.compile(np.linalg.inv)(regular), np.linalg.inv(exact))
    close(ml.compile(np.linalg.solve)(regular, a[:, :, :2]), np.linalg.solve(exact, a[:, :, :2].astype(np.float64)))
    close(ml.compile(np.linalg.det)(regular) / 3**rows, np.linalg.det(exact) / 3**rows)
    definite = a @ adjoint(a) + np.eye(rows, dtype=dtype)
    close(ml.compile(np.linalg.cholesky)(definite), np.linalg.cholesky(definite.astype(np.float64)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 16])
def test_eigenvectors_of_many_small_matrices(dtype: str, rows: int) -> None:
    a = drawn(dtype, 37, rows, rows)
    values, vectors = ml.compile(np.linalg.eig)(a)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None], rtol=0, atol=tolerance)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=tolerance)
    np.testing.assert_array_equal(np.sort_complex(values), np.sort_complex(values.conj()))
    assert not vectors.imag[np.broadcast_to(values[:, None].imag == 0, vectors.shape)].any()
    distances = np.abs(values[:, :, None] - np.linalg.eigvals(a.astype(np.float64))[:, None])
    assert max(distances.min(1).max(), distances.min(2).max()) < 100 * tolerance
    np.testing.assert_array_equal(ml.compile(np.linalg.eigvals)(a), values)


def test_eigenvectors_of_many_small_matrices_that_are_special() -> None:
    """Shifts by the last rows alone do not converge, eigenvalues are equal or have one vector, rows are not coupled."""
    size, turn = 6, np.array([[0.0, -1.0], [1.0, 0.0]])
    a, q = drawn("float64", size, size), np.linalg.qr(drawn("float64", size, size, seed=1))[0]
    pairs = np.kron(np.eye(3), turn)
    chains = pairs + np.kron(np.eye(3, k=1), np.eye(2))
    steps = np.eye(size, k=1)
    scales = 10.0 ** np.arange(size)
    cases = [
        np.roll(np.eye(size), 1, axis=0), pairs, chains, q @ chains @ q.T, q @ steps @ q.T, np.ones((size, size)),
        q @ (steps + np.eye(size)) @ q.T, a - a.T, a + a.T, q, np.triu(a), np.tril(a), np.zeros((size, size)),
        np.eye(size), a * scales, a * scales[:, None], a * scales / scales[:, None], 1e80 * a, 1e-80 * a,
        np.outer(a[0], a[1]), steps,
    ]  # fmt: skip
    for case in cases:
        stack = np.stack([a, case] * 16)
        values, vectors = ml.compile(np.linalg.eig)(stack)
        expected_values, expected = np.linalg.eig(case)
        residual = np.abs(case @ vectors[1] - vectors[1] * values[1]).max()
        least = np.abs(case @ expected - expected * expected_values).max()
        assert residual <= 10 * max(least, 1e-15 * np.linalg.norm(case))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-13)
        np.testing.assert_array_equal(vectors, np.stack([vectors[0], vectors[1]] * 16))


def test_many_small_symmetric_matrices_ignore_the_other_triangle() -> None:
    a = hermitian(drawn("float64", 20, 4, 4))
    for triangle, other in (("L", np.triu(np.ones((4, 4)), 1)), ("U", np.tril(np.ones((4, 4)), -1))):
        for number in (1e90, np.nan):
            spoilt = np.where(other, number, 1e-9 * a)
            found = ml.compile(lambda a, t=triangle: np.linalg.eigvalsh(a, t))(spoilt)
            np.testing.assert_allclose(found, 1e-9 * np.linalg.eigvalsh(a), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_many_small_matrices_of_extreme_numbers(scale: float) -> None:
    a = drawn("float64", 20, 3, 3)
    for function in (np.linalg.svdvals, np.linalg.eigvalsh, lambda a: np.linalg.qr(a, "r")):
        expected = function(a * scale)
        np.testing.assert_allclose(ml.compile(function)(a * scale), expected, rtol=1e-9, atol=1e-12 * scale)


def test_many_small_matrices_one_of_which_is_special() -> None:
    a = drawn("float64", 20, 4, 4)
    rank_one = a.copy()
    rank_one[7] = np.outer(np.arange(4.0), np.arange(4.0))
    zero = a.copy()
    zero[11] = 0
    for stack in (rank_one, zero):
        u, s, vh = ml.compile(np.linalg.svd)(stack)
        np.testing.assert_allclose((u * s[:, None]) @ vh, stack, atol=1e-12)
        np.testing.assert_allclose(u @ adjoint(u), np.broadcast_to(np.eye(4), u.shape), atol=1e-12)
        np.testing.assert_allclose(ml.compile(np.linalg.det)(stack), np.linalg.det(stack), atol=1e-12)
        q, r = ml.compile(np.linalg.qr)(stack)
        np.testing.assert_allclose(q @ r, stack, atol=1e-12)
        for function in (np.linalg.inv, lambda a: np.linalg.solve(a, a)):
            with pytest.raises(LinAlgError, match="Singular matrix"):
                ml.compile(function)(zero)
    definite = a @ adjoint(a) + np.eye(4)
    definite[3, 2, 2] = -1
    with pytest.raises(LinAlgError, match="not positive definite"):
        ml.compile(np.linalg.cholesky)(definite)
    nan = a.copy()
    nan[5, 1, 1] = np.nan
    inverse, expected = ml.compile(np.linalg.inv)(nan), np.linalg.inv(nan)
    np.testing.assert_array_equal(np.isnan(inverse), np.isnan(expected))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [5, 8, 11, 12, 16])
def test_cholesky_factors_of_many_small_matrices(dtype: str, rows: int) -> None:
    """Whole groups of matrices and those that are left, and all but the lower triangle is ignored."""
    factor = ml.compile(np.linalg.cholesky)
    a = drawn(dtype, 37, rows, rows)
    definite = a @ adjoint(a) + np.eye(rows, dtype=dtype)
    expected = np.linalg.cholesky(definite.astype(np.float64))
    found = factor(np.where(np.tri(rows, dtype=bool), definite, np.array(np.nan, dtype)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=(1e-4 if dtype == "float32" else 1e-12))
    np.testing.assert_array_equal(found, np.tril(found))
    for exponent in (-50, 50) if dtype == "float32" else (-500, 500):
        np.testing.assert_array_equal(factor(np.ldexp(definite, 2 * exponent)), np.ldexp(found, exponent))
    tiny = np.array(1e-44 if dtype == "float32" else 1e-320, dtype)  # its reciprocal is infinite
    np.testing.assert_array_equal(factor(definite * 0 + np.eye(rows, dtype=dtype) * tiny)[:, 0, 0], np.sqrt(tiny))
    for row in (0, rows // 2, rows - 1):
        wrong = definite.copy()
        for spoilt in (-1, 0):
            wrong[20, row, row] = spoilt
            with pytest.raises(LinAlgError, match="not positive definite"):
                factor(wrong)
        wrong[20] = definite[20]
        wrong[20, row, 0] = np.nan  # it depends on the library whether this is an error
        try:
            expected = np.linalg.cholesky(wrong)
        except np.linalg.LinAlgError:
            with pytest.raises(LinAlgError, match="not positive definite"):
                factor(wrong)
        else:
            np.testing.assert_array_equal(np.isnan(factor(wrong)), np.isnan(expected))


def test_cholesky_factors_in_the_memory_of_the_matrices() -> None:
    def stored(a: Any) -> None:
        a[...] = np.linalg.cholesky(a)

    for rows in (7, 8, 16):
        a = drawn("float64", 20, rows, rows)
        definite = a @ adjoint(a) + np.eye(rows)
        expected = np.linalg.cholesky(definite)
        ml.compile(stored)(definite)
        np.testing.assert_allclose(definite, expected, atol=1e-12)


def test_in_a_loop() -> None:
    def powers(a: Any) -> Any:
        q = np.eye(5)
        for i in range(200):
            q, r = np.linalg.qr(a @ q + i)
        return np.abs(np.diagonal(r))

    a = hermitian(drawn("float64", 5, 5))
    np.testing.assert_allclose(ml.compile(powers)(a), powers(a), rtol=1e-8)


@pytest.mark.parametrize("size", [3, 40])
def test_errors_are_those_of_numpy(size: int) -> None:
    zeros, nan = np.zeros((size, size)), np.full((size, size), np.nan)
    cases: list[tuple[Function, np.ndarray]] = [
        (np.linalg.inv, zeros), (np.linalg.inv, nan), (np.linalg.cholesky, zeros), (np.linalg.cholesky, -np.eye(size)),
        (lambda a: np.linalg.solve(a, a), zeros), (np.linalg.eigvals, nan), (np.linalg.svd, nan),
        (np.linalg.pinv, nan), (np.linalg.eigvalsh, nan), (np.linalg.eigvals, np.full((size, size), np.inf)),
    ]  # fmt: skip
    for function, a in cases:
        for argument in (a, np.stack([np.eye(size) * 2, a])):
            try:
                expected, message = function(argument), ""
            except np.linalg.LinAlgError as error:
                message = str(error)
            if message:
                with pytest.raises(LinAlgError) as raised:
                    ml.compile(function)(argument)
                assert raised.value.message == message and isinstance(raised.value, np.linalg.LinAlgError)
                assert raised.value.location is not None
            else:
                for x, y in zip(parts(ml.compile(function)(argument)), parts(expected)):
                    np.testing.assert_array_equal(np.isnan(x), np.isnan(y))


def test_arguments_that_numpy_refuses() -> None:
    for function, message in (
        (lambda a: np.linalg.qr(a, "half"), "the mode is one of"),
        (lambda a: np.linalg.eigh(a[:2]), "square matrices"),
        (lambda a: np.linalg.eigvalsh(a, "X"), "UPLO is"),
        (lambda a: np.linalg.svd(a[0]), "in the last two dimensions"),
        (lambda a: np.linalg.lstsq(a, a[:2]), "right sides of as many rows"),
    ):
        with pytest.raises(ShapeError, match=message):
            ml.compile(function)(np.ones((3, 3)))
