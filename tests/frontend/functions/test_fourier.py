"""`np.fft`: values, sizes, axes, derivatives, batches and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import ArgumentError, DTypeError, MlirmlError, ShapeError
from tests.frontend.functions.test_decompositions import check_derivatives, directional, drawn

Function = Callable[..., Any]

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 97, 100, 1000, 1009)
REAL = ("rfft", "ihfft", "rfftn", "rfft2")


def check(function: Function, *args: Any, target: str = "cpu") -> None:
    """The compiled function returns what NumPy does, or raises an error where NumPy does."""
    try:
        expected = function(*args)
    except (ValueError, TypeError, IndexError):
        with pytest.raises(MlirmlError):
            ml.compile(function, target)(*args)
        return
    found = ml.compile(function, target)(*args)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    tolerance = {2: 2e-3, 4: 2e-5, 8: 1e-13}[expected.real.dtype.itemsize]
    if any(x.dtype == np.float16 for x in args):
        tolerance = 2e-3
    limit = tolerance * (1 + float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=limit)


def samples(name: str, dtype: str, *shape: int) -> np.ndarray:
    if dtype in ("int32", "bool", "float16"):
        return (3 * drawn("float64", *shape)).astype(dtype)
    return drawn(dtype, *shape)


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_sizes(name: str, target: str) -> None:
    function = getattr(np.fft, name)
    for size in SIZES if target == "cpu" else SIZES[:8]:
        for dtype in ("float64", "complex128"):
            check(function, samples(name, dtype, 2, size), target=target)


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("size", [4, 8, 16, 32, 64])
def test_many_short_rows(name: str, size: int) -> None:
    """As many at once as a vector has lanes, the last ones fewer; each row is computed by itself."""
    function = getattr(np.fft, name)
    points = size // 2 + 1 if name in ("irfft", "hfft") else size
    for dtype in ("float64", "float32") if name in REAL else ("complex128", "complex64"):
        for rows in (1, 15, 16, 35):
            x = samples(name, dtype, rows, points)
            x[0] *= 1e6
            x[-1] /= 1e6
            found, expected = ml.compile(function)(x), function(x)
            assert found.dtype == expected.dtype
            limit = (1e-14 if x.real.dtype == np.float64 else 4e-6) * np.max(np.abs(expected), axis=1, keepdims=True)
            assert np.all(np.abs(found - expected) <= limit)
            check(lambda x: function(x, norm="ortho"), x)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_dtypes_and_norms(name: str) -> None:
    function = getattr(np.fft, name)
    for dtype in ("float32", "float64", "complex64", "complex128", "int32", "bool", "float16"):
        for norm in (None, "backward", "ortho", "forward"):
            for size in (5, 16):
                check(lambda x, norm=norm: function(x, norm=norm), samples(name, dtype, 3, size))


@pytest.mark.parametrize("name", ONE_AXIS)
def test_cropped_and_padded(name: str) -> None:
    function = getattr(np.fft, name)
    for size in (5, 8):
        x = samples(name, "float64" if name in REAL else "complex128", size, 3)
        for n in (0, 1, 2, 3, 5, 8, 11):
            check(lambda x, n=n: function(x, n, axis=0), x)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_axes(name: str, target: str) -> None:
    function = getattr(np.fft, name)
    for dtype in ("float64", "complex128", "float16"):
        x = samples(name, dtype, 3, 4, 5, 6)
        for axes in ((0,), (1, 2), (2, 1), (3, 0), (-1, -3), (0, 1, 2, 3), (0, 2)):
            check(lambda x, axes=axes: function(x, axes=axes), x, target=target)
        check(lambda x: function(x, s=(3, 8), axes=(1, 3), norm="ortho"), x, target=target)
        check(function, x, target=target)


@pytest.mark.parametrize("size", [4096, 5003, 6000, 6144, 65536])
def test_long_rows(size: int) -> None:
    """Rows that are taken for matrices, one alone and a few, and others."""
    for dtype in ("complex64", "complex128"):
        for shape in ((size,), (3, size), (2, 1, size)):
            x = drawn(dtype, *shape)
            check(np.fft.fft, x)
            check(lambda x: np.fft.ifft(x, norm="ortho"), x)
    check(lambda x: np.fft.fftn(x), drawn("complex128", 2, size))
    check(lambda x: np.fft.fft(x, axis=0), drawn("complex128", size, 2))
    check(lambda x: np.fft.irfft(np.fft.rfft(x)), drawn("float64", 2, size))
    for count in (2 * size, 2 * size + 1):
        check(np.fft.rfft, drawn("float32", count))
        check(lambda x: np.fft.rfft(x, norm="ortho"), drawn("float32", 1, count))
        check(np.fft.ihfft, drawn("float32", count))


def test_more_dimensions_than_the_library_takes() -> None:
    x = drawn("float64", *[2] * 10)
    for function in (np.fft.fftn, np.fft.rfftn):
        check(function, x)
    check(lambda x: np.fft.irfftn(x, [2] * 10, range(10)), np.fft.rfftn(x))
    check(lambda x: np.fft.fft(x, axis=4), x)


def test_frequencies_in_the_middle() -> None:
    x = drawn("complex128", 4, 5, 3)
    for function in (np.fft.fftshift, np.fft.ifftshift):
        for axes in (None, 1, (0, 2), [-1]):
            check(lambda x, f=function, axes=axes: f(x, axes=axes), x)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_derivatives(size: int) -> None:
    real, complex_ = drawn("float64", 3, size), drawn("complex128", 3, size)
    for function in (np.fft.rfft, np.fft.ihfft, np.fft.fft):
        check_derivatives(function, real)
    for function in (
        np.fft.fft, np.fft.ifft, lambda z: np.fft.irfft(z, 2 * size - 1, norm="ortho"),
        lambda z: np.fft.hfft(z, 2 * size - 1),
    ):  # fmt: skip
        check_derivatives(function, complex_)
    check_derivatives(lambda z: np.fft.irfft(z, size), drawn("complex128", 3, size // 2 + 1))


def test_derivatives_along_several_axes() -> None:
    check_derivatives(np.fft.rfft2, drawn("float64", 2, 4, 6))
    check_derivatives(lambda x: np.fft.rfftn(x, axes=(2, 0), norm="ortho"), drawn("float64", 2, 3, 5))
    check_derivatives(lambda z: np.fft.irfft2(z, s=(4, 5)), drawn("complex128", 2, 4, 3))
    check_derivatives(lambda z: np.fft.irfftn(z, axes=(1, 0)), drawn("complex128", 3, 4))
    check_derivatives(np.fft.fftn, drawn("complex128", 2, 3, 4))


def test_second_derivatives() -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.abs(np.fft.rfft(x**2)) ** 4)

    x, d = drawn("float64", 7), drawn("float64", 7, seed=1)
    product = ml.compile(lambda x, d: ml.grad(lambda x: np.sum(ml.grad(loss)(x) * d))(x))(x, d)
    (expected,) = directional(ml.compile(ml.grad(loss)), [x], [d])
    np.testing.assert_allclose(product, expected, rtol=1e-5)


def test_batches() -> None:
    x = drawn("float64", 5, 3, 8)
    np.testing.assert_allclose(ml.compile(ml.vmap(np.fft.rfft2))(x), np.fft.rfft2(x), atol=1e-12)
    gradient = ml.grad(lambda x: np.sum(np.abs(np.fft.rfft2(x)) ** 4))
    expected = np.stack([ml.compile(gradient)(y) for y in x])
    np.testing.assert_allclose(ml.compile(ml.vmap(gradient))(x), expected, rtol=1e-9)


def test_arguments_that_are_views() -> None:
    x = drawn("complex128", 12, 20)
    for view in (x.T, x[::2, ::-3], x.real, x.imag[:, 1:]):
        check(np.fft.fft, view)
        check(np.fft.rfft2, view.real)


def test_in_a_loop_that_stays_one() -> None:
    def heat(u: Any, damping: Any) -> Any:
        for _ in range(500):
            u = np.fft.irfft(np.fft.rfft(u) * damping, 16)
        return u

    u, damping = drawn("float64", 16), np.exp(-0.001 * np.arange(9.0) ** 2)
    np.testing.assert_allclose(ml.compile(heat)(u, damping), heat(u, damping), atol=1e-12)


def test_large_arrays_on_all_threads() -> None:
    for shape in ((300, 500), (40, 50, 60), (1 << 17,)):
        check(np.fft.fftn, drawn("complex128", *shape))
        check(np.fft.rfftn, drawn("float32", *shape))


def test_convolution_by_the_transform() -> None:
    def convolved(a: Any, b: Any) -> Any:
        n = a.shape[0] + b.shape[0] - 1
        return np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)

    a, b = drawn("float64", 30), drawn("float64", 7)
    np.testing.assert_allclose(ml.compile(convolved)(a, b), np.convolve(a, b), atol=1e-12)


def test_out() -> None:
    def stored(x: Any, out: Any) -> Any:
        np.fft.fft(x, out=out)
        return out

    x = drawn("complex128", 3, 8)
    np.testing.assert_allclose(ml.compile(stored)(x, np.zeros_like(x)), np.fft.fft(x), atol=1e-12)
    with pytest.raises(ShapeError, match="`out`"):
        ml.compile(stored)(x, np.zeros((3, 7), complex))


def test_errors() -> None:
    x = np.ones((3, 4))
    for function, error, message in (
        (lambda x: np.fft.fft(x, 0), ShapeError, "invalid number of data points"),
        (lambda x: np.fft.fft(x, axis=2), ShapeError, "out of bounds"),
        (lambda x: np.fft.fftn(x, axes=(0, -2)), ShapeError, "more than once"),
        (lambda x: np.fft.fftn(x, s=(2,), axes=(0, 1)), ShapeError, "1 sizes are given for 2 axes"),
        (lambda x: np.fft.fft(x, norm="half"), ArgumentError, "the norm is None"),
        (lambda x: np.fft.rfft(x * 1j), DTypeError, "takes real numbers"),
        (lambda x: np.fft.irfft(x[:, :1]), ShapeError, "invalid number of data points"),
    ):
        with pytest.raises(error, match=message):
            ml.compile(function)(x)


def test_arrays_of_nothing() -> None:
    for function in (np.fft.fft, np.fft.rfft, np.fft.irfft):
        check(function, np.zeros((0, 4)))
        check(function, np.zeros((4, 0)))


def test_scipys_own_names_compile() -> None:
    scipy_fft: Any = pytest.importorskip("scipy.fft")
    rfft, x = scipy_fft.rfft, drawn("float64", 6, 8)

    def program(x: Any) -> Any:
        return rfft(x, workers=2), scipy_fft.irfft2(scipy_fft.rfft2(x=x) * 2), scipy_fft.fftshift(scipy_fft.fft(x, 5))

    for found, expected in zip(ml.compile(program)(x), program(x), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
