"""Masks and initial values of reductions that are known only at run time; arguments drawn at random."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

X = np.array([[1.0, -2.0, np.nan], [4.0, 5.5, -0.0]])
MASK = np.array([[True, False, False], [True, True, True]])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_a_mask_leaves_elements_out(name: str) -> None:
    function = getattr(np, name)
    check(lambda x, mask: (function(x, where=mask), function(x, axis=1, where=mask[0])), X, MASK, rtol=1e-15)


def test_extrema_under_a_mask_start_from_the_initial_value() -> None:
    check(lambda x, mask, start: np.max(x, 0, None, False, start, mask), X, MASK, np.float64(2.0))
    check(lambda x, mask: x.min(axis=1, initial=7, where=mask), X, MASK)


def test_the_initial_value_may_be_traced() -> None:
    check(lambda x, start: (np.sum(x, initial=start), np.prod(x, axis=0, initial=start)), X, np.float32(3.0))
    check(lambda x, start: np.add.reduce(x, initial=start), np.arange(5), np.int64(4))


def test_methods_take_masks() -> None:
    check(lambda x, mask: (x.sum(where=mask), x.mean(axis=0, where=mask), x.any(where=mask)), X, MASK)


def test_arrays_are_sorted_in_place() -> None:
    def order(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x.sort(axis=0)
        y[1:].sort(kind="stable")
        return x + 1

    zeros = np.array([3.0, -0.0, np.nan, 0.0, -0.0, -1.0])
    check(order, X.T.copy(), zeros)


def test_sorting_in_descending_order() -> None:
    import mlirml.numpy as mnp

    zeros = np.array([[3.0, -0.0, np.nan, 0.0, -0.0, -1.0]] * 20)
    np.testing.assert_array_equal(mnp.argsort(zeros, descending=True)[0], [2, 0, 1, 3, 4, 5])
    check(lambda x: (mnp.sort(x, descending=True), mnp.argsort(x, axis=0, descending=True)), zeros)
    check(lambda x: mnp.topk(x[:, :5], 2), zeros)


def test_a_sort_feeds_and_is_fed_by_fused_loops() -> None:
    x = np.random.default_rng(0).normal(size=(40, 33))
    check(lambda x: np.sort(x * 2 + 1, axis=1)[:, ::-1] - np.sort(x[:, 3:20], axis=0).mean(), x, rtol=1e-14)
    check(lambda x: (np.sort(x), np.sort(x), np.argsort(x.T)), x)


def test_averages_with_the_sum_of_the_weights() -> None:
    weights = np.array([1.0, 2.0, 0.5])
    check(lambda x: np.average(x, 1, returned=True), X[:, :2], rtol=1e-15)
    check(lambda x, w: np.average(x, axis=1, weights=w, returned=True), X[1:], weights, rtol=1e-15)


def test_names_of_linear_algebra() -> None:
    a = np.arange(18.0).reshape(2, 3, 3)
    check(lambda a: (np.linalg.matmul(a, a), np.linalg.trace(a), np.linalg.diagonal(a, offset=1)), a)
    check(lambda a: (np.linalg.cross(a, a[::-1]), np.linalg.outer(a[0, 0], a[0, 1]), np.matrix_transpose(a)), a)
    check(lambda a: (np.linalg.tensordot(a, a, axes=3), np.array_equiv(a, a[:1]), np.astype(a, np.float32)), a)


def test_ranges_between_values_known_at_run_time() -> None:
    check(lambda s: (np.linspace(0, s, 5), np.linspace(s, -s, 4, endpoint=False)), np.float64(2.5), rtol=1e-15)
    check(lambda s: np.linspace(s, 2 * s, 3, retstep=True), np.float32(2.5), rtol=1e-6)
    check(lambda n: np.linspace(0.0, 1.0, 4) * n + np.arange(4), np.float64(3.0))


def test_points_of_a_gradient_may_be_traced() -> None:
    points, table = np.array([0.0, 1.0, 3.0, 3.5, 6.0]), np.arange(20.0).reshape(4, 5) ** 2
    check(lambda x, at: (np.gradient(x, at, axis=1), np.gradient(x, 0.5, at, edge_order=2)), table, points, rtol=1e-13)
    check(lambda x, at: np.gradient(x, at, axis=1), table, np.arange(5), rtol=1e-13)
    check(lambda x, step: np.gradient(x, step), table, np.float64(0.5), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_bins_between_the_extremes_of_the_data(dtype: str) -> None:
    values = np.random.default_rng(5).normal(0, 40, (9, 30)).round(1)
    values = np.abs(values).astype(dtype)
    with np.errstate(all="ignore"):
        check(lambda x: (*np.histogram(x), *np.histogram(x, 7, density=True)), values, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
@pytest.mark.parametrize("bins", [1, 10, 37])
@pytest.mark.parametrize("limits", [None, (-2.0, 5.0), (0.1, 0.4), (-1, 8)])
def test_elements_at_the_edges_of_equal_bins(dtype: str, bins: int, limits: tuple[float, float] | None) -> None:
    rng = np.random.default_rng(bins)
    values = np.concatenate([rng.normal(2, 4, 100).round(1), np.linspace(-2, 5, 38), np.linspace(0.1, 0.4, 11)])
    values = np.abs(values).astype(dtype) if dtype == "u1" else values.astype(dtype)
    if limits is not None and dtype[0] == "f":
        values[:3] = np.nan, np.inf, -np.inf
    check(lambda x: np.histogram(x, bins, limits), values, rtol=1e-15 if dtype != "f4" else 1e-6)


@pytest.mark.parametrize("scale", [1e-316, 1e-305, 1e-160, 1e160, 1e307])
@pytest.mark.parametrize("limits", [None, (-3.0, 4.0)])
def test_bins_of_very_small_and_large_elements(scale: float, limits: tuple[float, float] | None) -> None:
    values = np.random.default_rng(5).normal(size=100).round(1) * scale
    given = None if limits is None else (limits[0] * scale, limits[1] * scale)
    check(lambda x: np.histogram(x, 19, given), values, rtol=1e-15)


def test_equal_bins_are_not_searched_and_edges_not_read() -> None:
    values = np.random.default_rng(5).normal(size=1000)
    text = ml.compile(lambda x: np.histogram(x, 1000)[0]).ir("optimize", values)
    assert "tensor.extract %inserted_slice" not in text


def test_bins_of_a_histogram_are_not_checked() -> None:
    values = np.random.default_rng(5).normal(size=1000)
    text = ml.compile(lambda x: np.histogram(x, 1000, (-5, 5))[0]).ir("optimize", values)
    assert "cf.assert" not in text and "arith.minui" not in text


def test_many_bins_of_weights_are_those_of_numpy() -> None:
    values, weights = np.random.default_rng(5).normal(size=(2, 9000))
    check(lambda x, w: (np.histogram(x, 100)[0], np.histogram(x, 100, weights=w)[0]), values, weights, rtol=1e-12)
    text = ml.compile(lambda x: np.histogram(x, 100)[0]).ir("optimize", values)
    assert "tensor<9000xi32>" in text


def test_bins_are_converted_as_short_integers_without_avx512() -> None:
    values = np.random.default_rng(5).normal(size=1000)
    for processor, short in (("avx2", True), ("avx512", False)):
        with ml.config.override(processor=processor):
            text = ml.compile(lambda x: np.histogram(x, 1000)[0]).ir("schedule", values)
        assert ("arith.fptosi" in text and "f64 to i32" in text) == short


def test_bins_of_equal_elements_and_of_none() -> None:
    check(np.histogram, np.full(5, 3.0))
    check(np.histogram, np.full(5, 3))
    check(np.histogram, np.zeros(0))


def test_edges_of_bins_may_be_traced() -> None:
    values = np.concatenate([np.random.default_rng(6).normal(size=50), [0.0, 1.0, -1.0, np.nan]])
    edges = np.array([-1.0, 0.0, 0.25, 1.0])
    check(lambda x, e: np.histogram(x[:-1], e), values, edges)
    check(lambda x, e: (np.digitize(x, e), np.digitize(x, e[::-1])), values, edges)
    check(lambda x, e: (np.digitize(x, e, right=True), np.digitize(x, e[::-1], right=True)), values, edges)


def test_histograms_of_weights() -> None:
    values = np.random.default_rng(7).normal(size=(5, 8))
    check(lambda x, w: np.histogram(x, 5, (-2, 2), weights=w), values, np.abs(values), rtol=1e-14)
    check(lambda x, w: np.histogram(x, 5, weights=w), values, np.arange(40).reshape(5, 8))
