"""`mlirml.ndimage` against SciPy: modes, dtypes, borders, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import ndimage
from mlirml.errors import ArgumentError, DTypeError, ShapeError

scipy_ndimage: Any = pytest.importorskip("scipy.ndimage")
RNG = np.random.default_rng(0)
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")
IMAGE = RNG.standard_normal((7, 9))
WEIGHTS = RNG.standard_normal((3, 4))

FILTERS: dict[str, Callable[[Any, Any, str], Any]] = {
    "correlate1d": lambda m, x, mode: m.correlate1d(x, [1.0, 2.0, -3.0, 0.5], 0, mode=mode, cval=1.5, origin=-1),
    "convolve1d": lambda m, x, mode: m.convolve1d(x, [1.0, 2.0, -3.0, 0.5], mode=mode, cval=1.5, origin=1),
    "correlate": lambda m, x, mode: m.correlate(x, WEIGHTS, mode=mode, cval=2.0, origin=(1, 0)),
    "convolve": lambda m, x, mode: m.convolve(x, WEIGHTS, mode=mode, cval=2.0, origin=(0, -1)),
    "many weights": lambda m, x, mode: m.convolve(x, np.outer(np.arange(9.0), np.arange(8.0) - 3), mode=mode),
    "gaussian_filter": lambda m, x, mode: m.gaussian_filter(x, (1.2, 0.5), mode=mode, truncate=3.0),
    "gaussian derivatives": lambda m, x, mode: m.gaussian_filter(x, 1.0, (1, 3), mode=mode),
    "gaussian_filter1d": lambda m, x, mode: m.gaussian_filter1d(x, 1.5, 0, 2, mode=mode, radius=4),
    "uniform_filter": lambda m, x, mode: m.uniform_filter(x, (3, 4), mode=mode, origin=(0, 1)),
    "uniform_filter1d": lambda m, x, mode: m.uniform_filter1d(x, 5, 0, mode=mode),
    "sobel": lambda m, x, mode: m.sobel(x, 0, mode=mode),
    "prewitt": lambda m, x, mode: m.prewitt(x, mode=mode),
    "laplace": lambda m, x, mode: m.laplace(x, mode=mode),
    "gaussian_laplace": lambda m, x, mode: m.gaussian_laplace(x, 1.1, mode=mode),
    "gaussian_gradient_magnitude": lambda m, x, mode: m.gaussian_gradient_magnitude(x, 1.1, mode=mode),
    "minimum_filter": lambda m, x, mode: m.minimum_filter(x, (3, 4), mode=mode, cval=0.1, origin=(0, 1)),
    "maximum_filter": lambda m, x, mode: m.maximum_filter(x, footprint=np.eye(3), mode=mode),
    "median_filter": lambda m, x, mode: m.median_filter(x, 3, mode=mode),
    "rank_filter": lambda m, x, mode: m.rank_filter(x, -3, (2, 4), mode=mode),
    "percentile_filter": lambda m, x, mode: m.percentile_filter(x, 20, footprint=[[1, 0, 1], [1, 1, 0]], mode=mode),
    "grey_opening": lambda m, x, mode: m.grey_opening(x, (2, 3), mode=mode),
    "grey_closing": lambda m, x, mode: m.grey_closing(x, footprint=[[1, 0], [1, 1]], mode=mode),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    """In all modes by one program; uncompiled for an image that is smaller than the window."""

    def every(x: Any) -> Any:
        return [FILTERS[name](ndimage, x, mode) for mode in MODES]

    for x, run in ((IMAGE, ml.compile(every)), (IMAGE, every), (IMAGE[:2, :3], every), (IMAGE[:1, :1], every)):
        for found, mode in zip(run(x), MODES):
            expected = FILTERS[name](scipy_ndimage, x, mode)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=f"{name} {mode} {x.shape}")


def test_dtypes() -> None:
    def filters(x: Any) -> Any:
        return (
            ndimage.correlate1d(x, [1.0, 2.0, 0.25]),
            ndimage.median_filter(x, 3),
            ndimage.sobel(x, output=np.float64),
        )

    for dtype in (np.float32, np.uint8, np.int32):
        x = (IMAGE * 10 + 100).astype(dtype)
        for run in (ml.compile(filters), filters):
            expected = (
                scipy_ndimage.correlate1d(x, [1.0, 2.0, 0.25]), scipy_ndimage.median_filter(x, 3),
                scipy_ndimage.sobel(x, output=np.float64),
            )  # fmt: skip
            for one, other in zip(run(x), expected):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_axes() -> None:
    x = RNG.standard_normal((3, 5, 6))
    for run in (lambda m: m.gaussian_filter(x, 1.0, axes=(0, 2)), lambda m: m.convolve(x, WEIGHTS, axes=(2, 0))):
        np.testing.assert_allclose(run(ndimage), run(scipy_ndimage), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1])
def test_interpolation(order: int) -> None:
    at = RNG.uniform(-12, 20, (2, 40))
    at = np.where(np.abs(at % 0.5) < 1e-3, at + 0.1, at)
    modes = ("reflect", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant")

    def every(x: Any, at: Any) -> Any:
        return [ndimage.map_coordinates(x, at, order=order, mode=mode, cval=2.5) for mode in modes]

    for run in (ml.compile(every), every):
        for found, mode in zip(run(IMAGE, at), modes):
            expected = scipy_ndimage.map_coordinates(IMAGE, at, order=order, mode=mode, cval=2.5)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=mode)


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "shift": lambda m, x: m.shift(x, (1.3, -0.6), order=1, mode="nearest"),
    "zoom": lambda m, x: m.zoom(x, (2.0, 0.5), order=1),
    "zoom of a grid": lambda m, x: m.zoom(x, 3, order=0, mode="grid-constant", grid_mode=True),
    "rotate": lambda m, x: m.rotate(x, 33.0, order=1),
    "rotate in place": lambda m, x: m.rotate(x, -20.0, reshape=False, order=1, mode="reflect"),
    "affine": lambda m, x: m.affine_transform(x, [[0.9, 0.2], [-0.1, 1.1]], (0.5, -0.25), (6, 5), order=1),
    "homogeneous": lambda m, x: m.affine_transform(x, [[0.9, 0.2, 1.0], [-0.1, 1.1, 0.3]], order=1, mode="mirror"),
    "diagonal": lambda m, x: m.affine_transform(x, [0.5, 2.0], 0.3, order=1),
}


@pytest.mark.parametrize("name", MOVES)
def test_moved_arrays(name: str) -> None:
    run = MOVES[name]
    expected = run(scipy_ndimage, IMAGE)
    for found in (run(ndimage, IMAGE), ml.compile(lambda x: run(ndimage, x))(IMAGE)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_functions_of_scipy_compile() -> None:
    def program(x: Any) -> Any:
        return scipy_ndimage.gaussian_filter(x, 1.0) + scipy_ndimage.median_filter(x, size=3)

    np.testing.assert_allclose(ml.compile(program)(IMAGE), program(IMAGE), rtol=1e-10)


@pytest.mark.parametrize("name", ["gaussian_filter", "convolve", "gaussian_gradient_magnitude", "median_filter"])
def test_derivatives(name: str) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.sin(FILTERS[name](ndimage, x, "mirror")))

    direction = RNG.standard_normal(IMAGE.shape)
    step = 1e-6
    found = np.sum(ml.grad(loss)(IMAGE) * direction)
    assert found == pytest.approx(
        (loss(IMAGE + step * direction) - loss(IMAGE - step * direction)) / (2 * step), rel=1e-5
    )


def test_derivatives_in_weights_coordinates_and_batches() -> None:
    at = RNG.uniform(0.1, 5.9, (2, 8))
    gradient = ml.grad(lambda at: np.sum(ndimage.map_coordinates(IMAGE, at, order=1)))(at)
    step = 1e-6
    for i in range(2):
        moved = at.copy()
        moved[i] += step
        change = (ndimage.map_coordinates(IMAGE, moved, order=1) - ndimage.map_coordinates(IMAGE, at, order=1)) / step
        np.testing.assert_allclose(gradient[i], change, rtol=1e-4, atol=1e-6)
    weights = ml.grad(lambda w: np.sum(ndimage.correlate(IMAGE, w, mode="constant")))(np.ones((3, 3)))
    assert weights[1, 1] == pytest.approx(IMAGE.sum())
    batch = np.stack([IMAGE, 2 * IMAGE])
    found = ml.vmap(lambda x: ndimage.gaussian_filter(x, 1.0))(batch)
    np.testing.assert_allclose(found[1], 2 * scipy_ndimage.gaussian_filter(IMAGE, 1.0), rtol=1e-10)


def test_bad_arguments() -> None:
    with pytest.raises(DTypeError, match="real numbers"):
        ndimage.sobel(IMAGE + 1j)
    with pytest.raises(ArgumentError, match="orders 0 and 1"):
        ndimage.map_coordinates(IMAGE, np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="2 dimensions"):
        ndimage.map_coordinates(IMAGE, np.zeros((3, 3)), order=1)
    with pytest.raises(ArgumentError, match="origin"):
        ndimage.correlate1d(IMAGE, [1.0, 2.0], origin=4)
    with pytest.raises(ArgumentError, match="mode"):
        ndimage.laplace(IMAGE, mode="edge")
    with pytest.raises(ShapeError, match="weights"):
        ndimage.convolve(IMAGE, [1.0, 2.0])
    with pytest.raises(ArgumentError, match="rank"):
        ndimage.rank_filter(IMAGE, 9, 3)
    for x in (np.zeros((0, 3)), np.zeros((3, 0))):
        assert ndimage.gaussian_filter(x, 1.0).shape == x.shape
