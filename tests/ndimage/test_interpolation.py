"""Arrays between their elements, beside SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import ndimage
from mlirml.ndimage.arguments import PADDINGS

scipy_ndimage = pytest.importorskip("scipy.ndimage")
RNG = np.random.default_rng(0)
VOLUME = RNG.random((4, 5, 6)) * 200
IMAGE = RNG.random((13, 17)) * 200
SHAPES = [(13, 17), (4, 5, 6), (2, 3), (1, 5)]
SKEW = RNG.random((3, 3)) * 0.3


def _points(*shape: int) -> np.ndarray:
    """Points in and around an array, some of them halfway between elements."""
    sizes = np.array(shape)[:, None]
    points: np.ndarray = RNG.random((len(shape), 50)) * 3 * sizes - sizes
    points[:, :5] = np.round(points[:, :5] * 2) / 2
    return points


POINTS = {shape: _points(*shape) for shape in SHAPES}


def resampled(images: Any, x: Any, mode: str, order: int) -> list[Any]:
    """All functions of one module, of an array of 2 or 3 dimensions."""
    rank = x.ndim
    points, matrix = POINTS[x.shape], np.eye(rank) + SKEW[:rank, :rank]
    options: dict[str, Any] = {"mode": mode, "order": order}
    return [
        images.map_coordinates(x, points, cval=1.5, **options),
        images.shift(x, (1.3, -0.6, 0.5)[:rank], cval=3, **options),
        images.shift(x, -2, **options),
        images.zoom(x, (2, 0.7, 1.4)[:rank], **options),
        images.zoom(x, 1.7, grid_mode=True, **options),
        images.rotate(x, 33.0, cval=4, **options),
        images.rotate(x, 90, axes=(0, -1), **options),
        images.rotate(x, -10, reshape=False, **options),
        images.affine_transform(x, matrix, offset=0.3, **options),
        images.affine_transform(x, np.diag(matrix), offset=-0.7, output_shape=(5, 6, 7)[:rank], **options),
        images.affine_transform(x, np.c_[matrix, np.arange(rank)], **options),
    ]


def check(found: list[Any], expected: list[Any], absolute: float) -> None:
    for number, (one, other) in enumerate(zip(found, expected)):
        assert one.dtype == other.dtype and one.shape == other.shape, number
        np.testing.assert_allclose(one + 0.0, other + 0.0, rtol=0, atol=absolute, err_msg=str(number))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", PADDINGS)
def test_real_arrays_are_interpolated_as_scipys(mode: str) -> None:
    # SciPy cuts off the sum that starts its filter of reflected coefficients, which shows in short arrays.
    exact = mode not in ("reflect", "grid-mirror")
    for order in range(6):
        for x in (IMAGE, VOLUME, IMAGE[:2, :3], IMAGE[:1, :5]):
            if exact or order < 2 or x is IMAGE:
                found, expected = (resampled(module, x, mode, order) for module in (ndimage, scipy_ndimage))
                check(found, expected, 1e-2 if mode == "nearest" else 1e-9 if exact else 1e-4)
        for dtype in (np.uint8, np.int16):
            y = IMAGE.astype(dtype)
            found, expected = (resampled(module, y, mode, order) for module in (ndimage, scipy_ndimage))
            check(found, expected, 1)


@pytest.mark.filterwarnings("ignore")
def test_compiled_interpolation_is_scipys_by_its_names() -> None:
    def function(x: Any, y: Any) -> Any:
        few = resampled(scipy_ndimage, x, "grid-constant", 3)[:6:2]
        return resampled(scipy_ndimage, x, "mirror", 0), resampled(scipy_ndimage, y, "constant", 1), few

    y = VOLUME.astype(np.float32)
    for found, expected, absolute in zip(ml.compile(function)(IMAGE, y), function(IMAGE, y), (1e-9, 1e-3, 1e-9)):
        check(found, expected, absolute)


@pytest.mark.parametrize("mode", ["mirror", "reflect", "grid-wrap", "grid-constant"])
def test_coefficients_of_splines_interpolate(mode: str) -> None:
    for order in range(2, 6):
        for count in (1, 2, 5, 40):
            row = RNG.random(count)
            found = ndimage.map_coordinates(row, [np.arange(count)], order=order, mode=mode)
            np.testing.assert_allclose(found, row, rtol=0, atol=1e-14)
    images: list[Any] = [IMAGE, IMAGE.astype(np.float32)]
    for x in images:
        expected = scipy_ndimage.spline_filter(IMAGE, mode="mirror", output=x.dtype)
        eps = np.finfo(x.dtype).eps
        found = ml.compile(lambda x: ndimage.spline_filter(x, output=x.dtype), target="reference")(x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=5000 * eps)


def test_dynamic_coordinates_matrices_and_angles() -> None:
    def moved(x: Any, points: Any, distance: Any, matrix: Any, angle: Any) -> list[Any]:
        return [
            ndimage.map_coordinates(x, points, order=1, cval=-1.0),
            ndimage.shift(x, distance, mode="reflect"),
            ndimage.affine_transform(x, matrix, distance, mode="grid-wrap"),
            ndimage.rotate(x, angle, reshape=False, order=1, mode="wrap"),
        ]

    points = RNG.random((2, 4, 5)) * 20 - 2
    points[0, 0, 0] = np.nan
    arguments = IMAGE, points, np.array([0.4, -1.7]), np.array([[0.9, 0.2], [-0.1, 1.2]]), 25.0
    expected = moved(*arguments)
    check(ml.compile(moved)(*arguments), expected, 1e-9)
    check(ml.compile(moved, target="reference")(*arguments), expected, 1e-9)
    others = [
        scipy_ndimage.map_coordinates(IMAGE, points, order=1, cval=-1.0),
        scipy_ndimage.shift(IMAGE, arguments[2], mode="reflect"),
        scipy_ndimage.affine_transform(IMAGE, arguments[3], arguments[2], mode="grid-wrap"),
        scipy_ndimage.rotate(IMAGE, 25.0, reshape=False, order=1, mode="wrap"),
    ]
    check(expected, others, 1e-9)
    stack = np.stack([IMAGE, IMAGE[::-1]])
    turned = ml.vmap(lambda x: ndimage.rotate(x, 20.0))(stack)
    check(list(turned), [ndimage.rotate(x, 20.0) for x in stack], 1e-9)


def test_derivatives_are_those_of_differences() -> None:
    x = RNG.random((6, 7))
    weights = RNG.random((6, 7))

    def losses(x: Any, distance: Any, angle: Any) -> Any:
        return np.stack([
            np.sum(weights * ndimage.shift(x, distance, mode="nearest")),
            np.sum(weights * ndimage.rotate(x, angle, reshape=False, order=2, mode="mirror")),
            np.sum(weights * ndimage.affine_transform(x, np.array([[1.1, 0.2], [0.1, 0.9]]), distance, order=1)),
        ])  # fmt: skip

    arguments = (x, np.array([0.317, -0.641]), np.float64(17.0))
    directions = [RNG.random(np.shape(a)) for a in arguments]
    for number, direction in enumerate(directions):
        ends = []
        for step in (1e-6, -1e-6):
            ends.append(losses(*(a + step * direction if k == number else a for k, a in enumerate(arguments))))
        found = ml.jacrev(losses, number)(*arguments) * direction
        np.testing.assert_allclose(found.reshape(3, -1).sum(1), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_values_at_coordinates_that_are_not_finite_are_nan() -> None:
    points = np.array([[np.nan, np.inf, 2.0], [1.0, 1.0, 1.0]])
    for order in (0, 1, 3):
        for mode in ("wrap", "mirror", "reflect", "grid-wrap", "grid-constant"):
            found = ndimage.map_coordinates(IMAGE, points, order=order, mode=mode)
            assert np.isnan(found[0]) and np.isfinite(found[2])
            assert np.isnan(found[1]) or mode == "grid-constant"

    def nearest(points: Any) -> Any:
        return [
            ndimage.map_coordinates(IMAGE, points, order=0, mode=mode) for mode in ("nearest", "mirror", "constant")
        ]

    found = ml.compile(nearest)(points)
    np.testing.assert_array_equal(np.isnan(found), [[1, 0, 0], [1, 1, 0], [0, 0, 0]])


def test_booleans_are_true_where_the_spline_is_one() -> None:
    x = np.random.default_rng(0).random((6, 7)) > 0.3
    for found in (ndimage.shift(x, 1.0), ml.compile(lambda x: ndimage.shift(x, 1.0))(x)):
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found[1:, 1:], x[:-1, :-1])
    half = ndimage.shift(x, 0.5, order=1)
    np.testing.assert_array_equal(half[1:, 1:], x[1:, 1:] & x[:-1, 1:] & x[1:, :-1] & x[:-1, :-1])


def test_nothing_is_made_of_nothing() -> None:
    x = np.zeros((0, 3))
    assert ndimage.zoom(x, 2).shape == (0, 6)
    assert ndimage.shift(x, 1).shape == (0, 3)
    assert ndimage.map_coordinates(IMAGE, np.zeros((2, 0))).shape == (0,)
    with pytest.raises(ml.ShapeError, match="there is nothing to interpolate"):
        ndimage.map_coordinates(x, np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ndimage.shift(x, 1, order=6), "order of a spline is 0 to 5"),
        (lambda x: ndimage.map_coordinates(x, np.zeros((3, 4))), "coordinates of shape"),
        (lambda x: ndimage.affine_transform(x, np.eye(5)), "a matrix of shape"),
        (lambda x: ndimage.zoom(x, np.sum(x)), "make the factor static"),
        (lambda x: ndimage.zoom(x, -2.0), "negative size"),
        (lambda x: ndimage.rotate(x, np.sum(x)), "pass `reshape=False`"),
        (lambda x: ndimage.rotate(x, 1.0, axes=(0, -2)), "axes of the plane are equal"),
        (lambda x: ndimage.shift(x, (1, 2, 3)), "3 values of shift for 2 axes"),
        (lambda x: ndimage.shift(x, 1, mode="odd"), "there is no mode 'odd'"),
    ],
)
def test_bad_arguments_are_errors_at_the_users_line(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ml.errors.CaptureError, match=message) as caught:
        ml.compile(call).trace(IMAGE)
    assert caught.value.location is not None and caught.value.location.file.endswith("test_interpolation.py")
