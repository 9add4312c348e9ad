"""Filters and morphology of `mlirml.ndimage` beside SciPy's."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import ndimage
from mlirml.ndimage.arguments import PADDINGS
from mlirml.ndimage.rank_filters import comparators

scipy_ndimage = pytest.importorskip("scipy.ndimage")
RNG = np.random.default_rng(0)
IMAGE = RNG.random((13, 17)) * 200
SHAPES = [(13, 17), (1, 5), (2, 3)]
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
ODD = np.array([[1, 0, 1, 1], [0, 1, 0, 1]])
LINE = np.array([0.3, -0.2, 0.5, 0.1, 0.7, 0.25, -0.4])
Call = Callable[..., Any]


def linear(images: Any, x: Any, mode: str) -> list[Any]:
    """Linear filters of one module."""
    return [
        images.correlate1d(x, LINE, axis=0, mode=mode, cval=2.5, origin=1),
        images.convolve1d(x, LINE[:4], mode=mode, cval=1.0, origin=-1),
        images.convolve(x, LINE[:6].reshape(3, 2), mode=mode, cval=1.0, origin=(1, 0)),
        images.correlate(x, np.outer(LINE, LINE), mode=mode),
        images.gaussian_filter(x, 1.3, mode=mode, cval=3),
        images.gaussian_filter(x, [6.0, 0], mode=mode),
        images.gaussian_filter(x, 1.0, order=(3, 0), mode=mode),
        images.gaussian_filter1d(x, 2.0, axis=0, order=1, output=np.float64, mode=mode),
        images.sobel(x, mode=mode),
        images.prewitt(x, axis=0, mode=mode),
        images.laplace(x, mode=mode, axes=(1,)),
        images.gaussian_laplace(x, 1.0, mode=mode),
        images.gaussian_gradient_magnitude(x, 1.0, mode=mode),
        images.uniform_filter(x, 5, mode=mode),
        images.uniform_filter(x, (3, 22), mode=mode, origin=(0, 4)),
        images.uniform_filter1d(x, 1, mode=mode),
    ]


def ordered(images: Any, x: Any, mode: str) -> list[Any]:
    """Filters of the order of elements of one module."""
    return [
        images.maximum_filter1d(x, 4, mode=mode, origin=1, cval=3),
        images.minimum_filter1d(x, 9, axis=0, mode=mode, cval=300.5),
        images.maximum_filter(x, (3, 7), mode=mode, origin=(0, -2)),
        images.minimum_filter(x, footprint=ODD, mode=mode, cval=7),
        images.median_filter(x, 3, mode=mode),
        images.median_filter(x, footprint=CROSS, mode=mode, origin=(1, 0)),
        images.rank_filter(x, -2, 3, mode=mode),
        images.percentile_filter(x, 33.3, (4, 3), mode=mode, cval=9.0),
        images.percentile_filter(x, 100, 2, mode=mode),
        images.grey_dilation(x, (2, 4), mode=mode),
        images.grey_erosion(x, footprint=CROSS, mode=mode),
        images.grey_opening(x, 3, mode=mode),
        images.grey_closing(x, footprint=ODD, mode=mode),
        images.morphological_gradient(x, 3, mode=mode),
    ]


def structured(images: Any, x: Any, mode: str) -> list[Any]:
    """Grey morphology with structures of one module, which SciPy computes otherwise where integers overflow."""
    options = {"structure": CROSS * 3, "origin": (0, 1), "cval": 2, "mode": mode}
    return [images.grey_dilation(x, **options), images.grey_closing(x, **options)]


def check(found: list[Any], expected: list[Any], relative: float) -> None:
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected)):
        assert one.dtype == other.dtype and one.shape == other.shape, number
        if relative:  # integers are cut off, where a sum in another order may be next to an integer
            most = 1 if other.dtype.kind in "iu" else relative * np.abs(other).max(initial=1.0)
            np.testing.assert_allclose(one + 0.0, other + 0.0, rtol=0, atol=most, err_msg=str(number))
        else:
            np.testing.assert_array_equal(one, other, str(number))


@pytest.mark.parametrize("mode", PADDINGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int16])
def test_filters_of_real_arrays_are_scipys(dtype: type, mode: str) -> None:
    eps = 1e-13 if dtype != np.float32 else 1e-5
    for shape in SHAPES:
        x: Any = IMAGE[: shape[0], : shape[1]].astype(dtype)
        check(linear(ndimage, x, mode), linear(scipy_ndimage, x, mode), eps)
        check(ordered(ndimage, x, mode), ordered(scipy_ndimage, x, mode), 0.0)
        if dtype != np.uint8:
            check(structured(ndimage, x, mode), structured(scipy_ndimage, x, mode), eps)


@pytest.mark.parametrize(("dtype", "mode"), [(np.float32, "reflect"), (np.float64, "wrap"), (np.uint8, "constant")])
def test_compiled_filters_are_scipys_by_its_names(dtype: type, mode: str) -> None:
    def filters(x: Any) -> Any:
        return linear(scipy_ndimage, x, mode), ordered(scipy_ndimage, x, mode)

    x: Any = IMAGE.astype(dtype)
    found = ml.compile(filters)(x)
    check(found[0], filters(x)[0], 1e-5 if dtype == np.float32 else 1e-13)
    check(found[1], filters(x)[1], 0.0)


def test_the_interpreter_computes_the_same() -> None:
    def filters(x: Any) -> Any:
        few = slice(4, 9)
        return linear(ndimage, x, "mirror")[few], ordered(ndimage, x, "nearest")[few]

    x = IMAGE[:6, :7]
    for one, other in zip(ml.compile(filters, target="reference")(x), filters(x)):
        check(one, other, 1e-13)


def test_borders_larger_than_the_array_are_extended_repeatedly() -> None:
    x = np.array([[3.0, 1.0], [2.0, 7.0], [0.5, 4.0]])
    for mode in PADDINGS:
        one, other = (module.uniform_filter(x, 31, mode=mode, cval=2.0) for module in (ndimage, scipy_ndimage))
        np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=mode)
    np.testing.assert_array_equal(ndimage.maximum_filter(np.ones((1, 1)), 9, mode="mirror"), [[1.0]])


def test_empty_arrays_stay_empty() -> None:
    x = np.zeros((0, 4), np.float32)
    calls: dict[str, dict[str, Any]] = {
        "gaussian_filter": {"sigma": 1.0}, "uniform_filter": {}, "median_filter": {"size": 3}, "sobel": {},
        "convolve": {"weights": np.ones((2, 2))}, "grey_opening": {"size": 2}, "binary_erosion": {},
    }  # fmt: skip
    for name, options in calls.items():
        function = functools.partial(getattr(ndimage, name), **options)
        found = function(x)
        assert found.shape == (0, 4) and found.dtype == (bool if name == "binary_erosion" else np.float32)
        assert ml.compile(function, target="reference")(x).shape == (0, 4)


def test_binary_morphology_is_scipys() -> None:
    names = ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing")
    structures = [None, CROSS, ODD, np.ones((3, 3)), np.ones((1, 1)), np.zeros((3, 3))]
    for number, structure in enumerate(structures * 3):
        shape = tuple(RNG.integers(1, 14, 2))
        x = RNG.random(shape) > 0.4
        options = {"structure": structure, "iterations": int(RNG.integers(1, 6)), "border_value": number % 2}
        if number % 3:
            options["mask"] = RNG.random(shape) > 0.3
        for name in names:
            expected = getattr(scipy_ndimage, name)(x, **options)
            np.testing.assert_array_equal(getattr(ndimage, name)(x, **options), expected, name)
        if structure is None:
            mask = RNG.random(shape) > 0.4
            expected = scipy_ndimage.binary_propagation(x, mask=mask)
            np.testing.assert_array_equal(ndimage.binary_propagation(x, mask=mask), expected)


def test_compiled_binary_morphology() -> None:
    def morphology(images: Any, x: Any, mask: Any) -> list[Any]:
        return [
            images.binary_erosion(x, iterations=2), images.binary_dilation(x, ODD, iterations=7, mask=mask),
            images.binary_propagation(x, mask=mask), images.binary_fill_holes(mask),
            images.binary_closing(x, border_value=1), images.binary_opening(x),
        ]  # fmt: skip

    x, mask = RNG.random((2, 20, 30)) > np.array([0.9, 0.3])[:, None, None]
    found = ml.compile(lambda x, mask: morphology(scipy_ndimage, x, mask))(x, mask)
    check(found, morphology(scipy_ndimage, x, mask), 0.0)
    for rank, connectivity in itertools.product((0, 1, 2, 3), repeat=2):
        expected = scipy_ndimage.generate_binary_structure(rank, connectivity)
        np.testing.assert_array_equal(ndimage.generate_binary_structure(rank, connectivity), expected)


@pytest.mark.parametrize("count", [1, 2, 5, 9, 12, 25])
def test_selection_networks_find_every_rank(count: int) -> None:
    rows = RNG.integers(0, 10, (count, 500))
    for rank in {0, 1 % count, count // 2, count - 1}:
        found = list(rows)
        for low, high, _, _ in comparators(count, rank):
            found[low], found[high] = np.minimum(found[low], found[high]), np.maximum(found[low], found[high])
        np.testing.assert_array_equal(found[rank], np.sort(rows, axis=0)[rank])


def test_large_windows_are_sorted() -> None:
    expected = scipy_ndimage.median_filter(IMAGE, 9)
    np.testing.assert_array_equal(ml.compile(lambda x: ndimage.median_filter(x, 9))(IMAGE), expected)


def test_outputs_complex_numbers_and_small_floats() -> None:
    into = np.zeros((13, 17), np.int32)
    assert ndimage.gaussian_filter(IMAGE, 2.0, output=into) is into
    np.testing.assert_array_equal(into, scipy_ndimage.gaussian_filter(IMAGE, 2.0, output=np.int32))

    def stored(x: Any) -> Any:
        into = np.zeros(x.shape, np.float32)
        ndimage.sobel(x, output=into)
        return into, ndimage.correlate1d(x, np.array([1j, 2, 1])), ndimage.uniform_filter(x.astype(np.float16), 3)

    into, turned, small = ml.compile(stored, target="reference")(IMAGE)
    np.testing.assert_allclose(into, scipy_ndimage.sobel(IMAGE), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(turned, scipy_ndimage.correlate1d(IMAGE, np.array([1j, 2, 1])), rtol=1e-13)
    assert small.dtype == np.float16
    np.testing.assert_allclose(small, scipy_ndimage.uniform_filter(IMAGE, 3), rtol=2e-3)
    with pytest.raises(ml.ShapeError, match=r"sobel: the output has shape \[3\]"):
        ndimage.sobel(IMAGE, output=np.zeros(3))
    with pytest.raises(ml.DTypeError, match="complex numbers cannot be stored"):
        ndimage.correlate1d(IMAGE, [1j], output=np.float64)


def test_batches() -> None:
    stack = RNG.random((3, 8, 9))

    def filters(x: Any) -> list[Any]:
        grown = ndimage.binary_dilation(x > 0.9, iterations=-1, mask=x > 0.3)
        return [ndimage.gaussian_filter(x, 6.0), ndimage.median_filter(x, 3), grown]

    for found, expected in zip(ml.vmap(filters)(stack), zip(*map(filters, stack))):
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-13)


def test_derivatives_are_those_of_differences() -> None:
    x, direction = RNG.random((8, 9)), RNG.random((8, 9))
    weights = RNG.random((8, 9))

    def losses(x: Any) -> Any:
        found = [
            ndimage.gaussian_filter(x, 6.0), ndimage.median_filter(x, 3), ndimage.maximum_filter(x, 9),
            ndimage.uniform_filter(x, 7), ndimage.gaussian_gradient_magnitude(x, 1.0), ndimage.grey_closing(x, 3),
            ndimage.convolve(x, np.outer(LINE, LINE)),
        ]  # fmt: skip
        return np.stack([np.sum(y * weights) for y in found])

    step = 1e-6
    expected = (losses(x + step * direction) - losses(x - step * direction)) / (2 * step)
    found = np.sum(ml.jacrev(losses)(x) * direction, axis=(1, 2))
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_derivatives_by_the_width_and_the_weights() -> None:
    def loss(sigma: Any, weights: Any, cval: Any) -> Any:
        smooth = ndimage.gaussian_filter(IMAGE, sigma, radius=8)
        return np.sum(ndimage.correlate(smooth, weights, mode="constant", cval=cval) ** 2)

    point = (1.5, LINE[:6].reshape(2, 3), 2.0)
    found = ml.grad(loss, (0, 1, 2))(*point)
    for number, derivative in enumerate(found):
        ends = [[*point[:number], point[number] + step, *point[number + 1 :]] for step in (1e-6, -1e-6)]
        expected = (loss(*ends[0]) - loss(*ends[1])) / 2e-6
        np.testing.assert_allclose(np.sum(derivative), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ndimage.gaussian_filter(x, 2.0, mode="odd"), "there is no mode 'odd'"),
        (lambda x: ndimage.correlate1d(x, [1, 2, 3], origin=2), "invalid origin 2 of a window of 3"),
        (lambda x: ndimage.convolve(x, np.ones(3)), "weights of 1 dimensions for 2 axes"),
        (lambda x: ndimage.correlate1d(x, []), "weights of shape"),
        (lambda x: ndimage.sobel(x, 7), "axis 7 is out of bounds"),
        (lambda x: ndimage.uniform_filter(x, 0), "the window must have elements"),
        (lambda x: ndimage.rank_filter(x, 9, 3), "rank 9 in a window of 9"),
        (lambda x: ndimage.percentile_filter(x, 120, 3), "percentiles lie between"),
        (lambda x: ndimage.median_filter(x), "no size or footprint"),
        (lambda x: ndimage.maximum_filter(x, footprint=np.zeros((2, 2))), "all elements of the footprint are zero"),
        (lambda x: ndimage.gaussian_filter(x, np.sum(x)), "give `radius`"),
        (lambda x: ndimage.gaussian_filter(x, [1.0, 2.0, 3.0]), "3 values of sigma for 2 axes"),
        (lambda x: ndimage.laplace(x, axes=(0, -2)), "an axis is repeated"),
        (lambda x: ndimage.binary_erosion(x, np.ones(3)), "a structure of 1 dimensions for 2 axes"),
        (lambda x: ndimage.binary_erosion(x, mask=np.ones(3)), "a mask of shape"),
        (lambda x: ndimage.maximum_filter(x * 1j, 3), "complex numbers have no order"),
    ],
)  # fmt: skip
def test_bad_arguments_are_errors_at_the_users_line(call: Call, message: str) -> None:
    with pytest.raises(ml.errors.CaptureError, match=message) as caught:
        ml.compile(call).trace(IMAGE)
    assert caught.value.location is not None and caught.value.location.file.endswith("test_filters.py")
