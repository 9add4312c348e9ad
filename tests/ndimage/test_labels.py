"""Connected components, measurements of labels and distances of `mlirml.ndimage` beside SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import ndimage

scipy_ndimage = pytest.importorskip("scipy.ndimage")
RNG = np.random.default_rng(0)
SPIRAL = np.array([
    [1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0, 1], [1, 0, 1, 1, 1, 0, 1],
    [1, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1],
])  # fmt: skip
IMAGES = {
    "random": RNG.random((23, 31)) < 0.5, "dense": RNG.random((23, 31)) < 0.62, "volume": RNG.random((5, 6, 7)) < 0.3,
    "line": RNG.random(40) < 0.6, "spiral": SPIRAL, "full": np.ones((3, 4), int), "empty": np.zeros((3, 4), int),
}  # fmt: skip
MEASUREMENTS = ["sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "center_of_mass"]


def runs(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return function, ml.compile(lambda *args: function(*args))


@pytest.mark.parametrize("name", IMAGES)
def test_label(name: str) -> None:
    image = IMAGES[name]
    for structure in (None, np.ones((3,) * image.ndim, int)):
        expected, count = scipy_ndimage.label(image, structure)
        for run in runs(lambda x, structure=structure: ndimage.label(x, structure)):
            found, number = run(image)
            assert found.dtype == np.int32 and int(number) == count
            np.testing.assert_array_equal(found, expected)


def test_label_with_an_output_and_in_batches() -> None:
    images = RNG.random((4, 9, 11)) < 0.5

    def program(x: Any) -> Any:
        output = np.zeros(x.shape, np.uint16)
        return scipy_ndimage.label(x, output=output), output

    for run in (program, ml.compile(program)):
        count, labels = run(images[0])
        assert int(count) == scipy_ndimage.label(images[0])[1] and labels.dtype == np.uint16
        np.testing.assert_array_equal(labels, scipy_ndimage.label(images[0])[0])
    found, counts = ml.vmap(ndimage.label)(images)
    for image, labels, count in zip(images, found, counts):
        np.testing.assert_array_equal(labels, scipy_ndimage.label(image)[0])
        assert int(count) == labels.max()
    with pytest.raises(ml.ShapeError, match="symmetric"):
        ndimage.label(images[0], [[0, 1, 0], [1, 1, 0], [0, 0, 0]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_measurements(dtype: Any) -> None:
    labels, count = scipy_ndimage.label(IMAGES["random"])
    x = (RNG.normal(size=labels.shape) * 100).astype(dtype)
    for index in (None, 1, [3, 1, 2], np.arange(count + 1), np.array([[1, 4], [2, count + 5]]), []):
        names = [name for name in MEASUREMENTS if index is None or np.size(index) or name != "center_of_mass"]
        names = [name for name in names if np.ndim(index) < 2 or name != "center_of_mass"]

        def every(module: Any, x: Any, labels: Any, names: Any = names, index: Any = index) -> list[Any]:
            return [getattr(module, name)(x, labels, index) for name in names]

        expected = every(scipy_ndimage, x, labels)
        for run in runs(lambda x, labels, every=every: every(ndimage, x, labels)):
            for name, one, other in zip(names, run(x, labels), expected):
                other = np.asarray(other)
                assert np.shape(one) == other.shape, name
                if name in ("minimum", "maximum"):
                    assert np.asarray(one).dtype == dtype
                np.testing.assert_allclose(one, other, rtol=2e-5 if dtype == np.float32 else 1e-11, atol=1e-9)


def test_measurements_without_labels() -> None:
    x = RNG.normal(size=(4, 5))
    for name in MEASUREMENTS:
        np.testing.assert_allclose(getattr(ndimage, name)(x), getattr(scipy_ndimage, name)(x), rtol=1e-12)
    np.testing.assert_array_equal(ndimage.histogram(x, -1, 1, 5), scipy_ndimage.histogram(x, -1, 1, 5))
    with pytest.raises(ml.ShapeError, match="without `labels`"):
        ndimage.mean(x, index=[1])
    with pytest.raises(ml.ShapeError, match="twice"):
        ndimage.mean(x, x > 0, [1, 0, 1])


def test_histogram() -> None:
    labels, count = scipy_ndimage.label(IMAGES["random"])
    x = np.round(RNG.normal(size=labels.shape), 1)
    for index in (None, 2, [2, 1, count]):
        expected = scipy_ndimage.histogram(x, -1, 1, 8, labels, index)
        for run in runs(lambda x, labels, index=index: ndimage.histogram(x, -1, 1, 8, labels, index)):
            np.testing.assert_array_equal(run(x, labels), np.stack(expected) if isinstance(index, list) else expected)


def test_derivatives_of_measurements() -> None:
    labels = np.array([[1, 1, 2], [2, 0, 2]])
    x = RNG.normal(size=(2, 3))
    for name in ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum"):

        def total(x: Any, name: str = name) -> Any:
            return np.sum(getattr(ndimage, name)(x, labels, [2, 1]) * np.array([2.0, 3.0]))

        gradient = ml.grad(total)(x)
        for position in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[position] = 1e-6
            difference = (total(x + step) - total(x - step)) / 2e-6
            assert float(gradient[position]) == pytest.approx(float(difference), rel=1e-6, abs=1e-7), name


@pytest.mark.parametrize("structure", [
    [[0, 1, 0], [0, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1], [1, 1, 1], [1, 0, 0]],
    [[0, 0, 0], [1, 1, 1], [0, 0, 0]],
])  # fmt: skip
def test_neighbours_of_some_directions(structure: list[list[int]]) -> None:
    image = RNG.random((33, 29)) < 0.6
    expected, count = scipy_ndimage.label(image, structure)
    for run in runs(lambda x: ndimage.label(x, structure)):
        found, number = run(image)
        assert int(number) == count
        np.testing.assert_array_equal(found, expected)


def test_long_components_in_a_batch_and_in_the_interpreter() -> None:
    snake = np.zeros((31, 20), int)
    snake[::2], snake[1::4, -1], snake[3::4, 0] = 1, 1, 1
    stairs = np.tri(31, 20, dtype=int) ^ np.tri(31, 20, -1, dtype=int)
    comb = np.zeros((31, 20), int)
    for tooth in range(0, 20, 2):
        comb[20 - tooth :, tooth] = 1
    comb[-1] = 1
    images = np.stack([snake, snake[::-1, ::-1], stairs, stairs[:, ::-1], comb, comb[:, ::-1], 1 - snake, 1 - comb])
    expected = [scipy_ndimage.label(image) for image in images]
    found, count = ml.compile(ml.vmap(ndimage.label))(images)
    np.testing.assert_array_equal(found, np.stack([labels for labels, _ in expected]))
    np.testing.assert_array_equal(count, [number for _, number in expected])
    by_interpreter, _ = ml.compile(ndimage.label, target="reference")(comb)
    np.testing.assert_array_equal(by_interpreter, expected[4][0])


@pytest.mark.parametrize("name", [name for name in IMAGES if name != "full"])
def test_distances(name: str) -> None:
    image = ~np.asarray(IMAGES[name], bool)
    if name == "empty":
        image[1, 2] = False
    steps = RNG.uniform(0.5, 2, image.ndim)
    for sampling in (None, steps.tolist()):
        expected = scipy_ndimage.distance_transform_edt(image, sampling)
        for run in runs(lambda x, s=sampling: ndimage.distance_transform_edt(x, s, return_indices=True)):
            found, nearest = run(image)
            np.testing.assert_allclose(found, expected, rtol=1e-13)
            assert nearest.dtype == np.int32 and not np.any(image[tuple(nearest)])
            scale = np.reshape(np.ones(image.ndim) if sampling is None else steps, (-1,) + (1,) * image.ndim)
            apart = np.sqrt(np.sum(((nearest - np.indices(image.shape)) * scale) ** 2, axis=0))
            np.testing.assert_allclose(apart, expected, rtol=1e-13)
    for metric in ("chessboard", "taxicab"):
        expected = scipy_ndimage.distance_transform_cdt(image, metric)
        for run in runs(lambda x, metric=metric: ndimage.distance_transform_cdt(x, metric)):
            found = run(image)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected)
        brute = scipy_ndimage.distance_transform_bf(image, metric)
        np.testing.assert_array_equal(ndimage.distance_transform_bf(image, metric), brute)
    np.testing.assert_allclose(ndimage.distance_transform_bf(image), scipy_ndimage.distance_transform_bf(image))


@pytest.mark.parametrize("shape", [(40, 61), (3, 50, 4), (70,), (1, 30)])
@pytest.mark.parametrize("zeros", [0, 1, 2, 5])
def test_long_distances(shape: tuple[int, ...], zeros: int) -> None:
    """Lower envelopes of parabolas, some of which are infinitely high."""
    rng = np.random.default_rng(zeros)
    x = np.ones(shape, bool)
    x.reshape(-1)[rng.integers(0, x.size, zeros)] = False
    for sampling in (None, [0.3 + axis for axis in range(len(shape))]):
        found, nearest = ml.compile(lambda x, s=sampling: ndimage.distance_transform_edt(x, s, return_indices=True))(x)
        expected = scipy_ndimage.distance_transform_edt(x, sampling) if zeros else np.full(shape, np.inf)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        if zeros:
            assert not np.any(x[tuple(nearest)])
            scale = np.reshape(sampling or np.ones(len(shape)), (-1,) + (1,) * len(shape))
            apart = np.sqrt(np.sum(((nearest - np.indices(shape)) * scale) ** 2, axis=0))
            np.testing.assert_allclose(apart, expected, rtol=1e-13)


def test_long_distances_of_a_batch_and_in_the_interpreter() -> None:
    x = np.ones((3, 21, 17))
    x[0, 3, 4] = x[1, 20, 16] = x[1, 2, 2] = x[2, 0, 5] = 0
    expected = np.stack([scipy_ndimage.distance_transform_edt(image) for image in x])
    found = ml.compile(ml.vmap(lambda image: ndimage.distance_transform_edt(image)))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    by_interpreter = ml.compile(lambda image: ndimage.distance_transform_edt(image), target="reference")(x[0])
    np.testing.assert_allclose(by_interpreter, expected[0], rtol=1e-13)


def test_distances_without_zeros_and_into_arrays() -> None:
    ones = np.ones((3, 4), int)
    assert ml.compile(ndimage.distance_transform_edt)(np.ones((20, 0))).shape == (20, 0)
    assert np.all(np.isinf(ndimage.distance_transform_edt(ones)))
    np.testing.assert_array_equal(ndimage.distance_transform_cdt(ones), scipy_ndimage.distance_transform_cdt(ones))
    ones[1, 1] = 0
    distances, indices = np.zeros((3, 4)), np.zeros((2, 3, 4), np.int32)
    assert ndimage.distance_transform_edt(ones, return_indices=True, distances=distances, indices=indices) is None
    np.testing.assert_array_equal(distances, scipy_ndimage.distance_transform_edt(ones))
    assert np.all(indices == 1)
    with pytest.raises(ml.ShapeError, match="no metric"):
        ndimage.distance_transform_cdt(ones, "diagonal")


@pytest.mark.parametrize("metric", ["chessboard", "taxicab"])
@pytest.mark.parametrize("shape", [(7,), (1, 5), (23, 31), (5, 6, 7), (3, 1, 4, 5)])
@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_steps_from_few_zeros(metric: str, shape: tuple[int, ...], zeros: int) -> None:
    rng = np.random.default_rng(zeros)
    x = np.ones(shape)
    x.reshape(-1)[rng.integers(0, x.size, zeros)] = 0
    expected = scipy_ndimage.distance_transform_cdt(x, metric)
    for function in (ndimage.distance_transform_cdt, ml.compile(ndimage.distance_transform_cdt)):
        found = function(x, metric)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
