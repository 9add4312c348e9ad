"""Views share memory: stores through one are seen in the others, as deep as they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from tests.fuzz.oracle import check

X = np.arange(24.0).reshape(2, 3, 4)
M = np.arange(12.0).reshape(3, 4)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[:, 1:, ::2],
    "integer": lambda x: x[1],
    "negative step": lambda x: x[::-1, :, ::-2],
    "transpose": lambda x: x.T,
    "transpose of axes": lambda x: x.transpose(1, 0, 2),
    "swapaxes": lambda x: np.swapaxes(x, 0, 2),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "mT": lambda x: x.mT,
    "new axis": lambda x: x[:, None, ..., None],
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "flip": lambda x: np.flip(x, 1),
    "split": lambda x: np.split(x, 2, axis=2)[1],
    "array_split": lambda x: np.array_split(x, 2, axis=1)[0],
    "reshape": lambda x: x.reshape(6, 4),
    "ravel": lambda x: x.ravel(),
    "ellipsis of one element": lambda x: x[1, 2, 3, ...],
    "atleast_2d": lambda x: np.atleast_2d(x[0, 0]),
    "broadcast_arrays of one shape": lambda x: x[0, :, 1:3],
}


@pytest.mark.parametrize("name", VIEWS)
def test_stores_go_both_ways(name: str) -> None:
    take = VIEWS[name]

    def f(x: Any) -> Any:
        y = x * 1  # of a memory order that is known
        y = y.copy()
        view = take(y)
        view += 100
        y[0, 0, 0] = -5
        other = take(y)
        other *= 2
        first = view * 1
        view[...] = view[...] + 1
        return y, view, first

    check(f, X)


@pytest.mark.parametrize("outer", ["slice", "transpose", "negative step", "reshape", "new axis", "flip"])
@pytest.mark.parametrize("inner", ["slice", "transpose", "negative step", "integer", "ravel"])
def test_views_of_views(outer: str, inner: str) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        view = VIEWS[outer](y)
        deeper = VIEWS[inner](view if view.ndim == 3 else view.reshape(2, 3, 4))
        deeper += 10
        y[1, 1, 1] = 77
        return y, view, deeper * 1

    check(f, X)


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("reshape", "ravel")])
def test_stores_through_views_of_arguments(name: str) -> None:
    def f(x: Any) -> Any:
        view = VIEWS[name](x)
        view += 1
        return view * 2

    check(f, X)
    check(f, np.asfortranarray(X))
    check(f, np.zeros((4, 3, 8))[::2, ::-1, ::2] + 1)


def test_reshapes_that_numpy_copies_are_copies() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        flat = y.T.reshape(-1)
        flat += 100
        part = y[:, :2].reshape(-1)
        part[0] = -1
        turned = y[::-1].reshape(12)
        turned *= 0
        kept = y[1:].reshape(-1)
        kept[0] = 55
        return y, flat, part, turned, kept

    check(f, M)


def test_reshapes_that_split_or_add_dimensions_are_views_of_any_array() -> None:
    def f(x: Any, v: Any) -> Any:
        halves = v.reshape(2, 3)
        halves[1] += 10
        column = x[:, None]
        column[0] = 5
        more = x.reshape(3, 2, 2)
        more[..., 0] = 7
        units = x.T.reshape(4, 1, 3, 1)
        units[0] += 1
        return x, v

    check(f, M, np.arange(6.0))
    check(f, np.asfortranarray(M), np.arange(12.0)[::2])
    check(f, np.zeros((6, 8))[::2, ::2], np.arange(6.0)[::-1])


def test_reads_of_ambiguous_reshapes_are_fine() -> None:
    def f(x: Any) -> Any:
        flat = x.reshape(-1)
        z = np.tanh(x.T).reshape(2, 6)
        return flat + 1, z, flat.reshape(4, 3)[0], x.ravel()[3:].sum()

    check(f, M, rtol=1e-15)
    check(f, np.asfortranarray(M), rtol=1e-15)


STORES_INTO_AMBIGUOUS_VIEWS: dict[str, Any] = {
    "reshape of an argument": lambda x: x.reshape(-1).__setitem__(0, 1),
    "ravel of an argument": lambda x: x.ravel().fill(0),
    "reshape of a sum that follows the argument's order": lambda x: (x + 1).reshape(-1).__setitem__(0, 1),
    "reshape of a copy in the argument's order": lambda x: np.copy(x).reshape(-1).__setitem__(0, 1),
    "reshape of zeros in the argument's order": lambda x: np.zeros_like(x).reshape(-1).__setitem__(0, 1),
    "reshape of a conversion": lambda x: x.astype("f4").reshape(-1).__setitem__(0, 1),
    "slice of such a reshape": lambda x: x.reshape(-1)[2:].__setitem__(0, 1),
    "reshape of zeros in Fortran order": lambda x: np.zeros((3, 4), order="F").reshape(-1).__setitem__(0, x[0, 0]),
    "ascontiguousarray of an argument": lambda x: np.ascontiguousarray(x).__setitem__(0, 1),
}


@pytest.mark.parametrize("name", STORES_INTO_AMBIGUOUS_VIEWS)
def test_stores_into_views_that_may_be_copies(name: str) -> None:
    """What the layout of the arguments decides is as in NumPy; what it does not decide is refused."""
    refused = "NumPy may or may not have made a copy"
    for x in (M, np.asfortranarray(M), np.arange(24.0).reshape(3, 8)[:, ::2]):
        try:
            check(STORES_INTO_AMBIGUOUS_VIEWS[name], x)
            assert name != "reshape of zeros in Fortran order"
        except ml.errors.CaptureError as error:
            assert refused in error.message
            assert x is not M or name == "reshape of zeros in Fortran order"


def test_a_view_that_may_be_a_copy_is_read_after_a_store() -> None:
    def f(x: Any) -> Any:
        flat = x.reshape(-1)
        x[0, 0] = 100
        return flat[1:3] + 1

    check(f, M)
    check(f, np.asfortranarray(M))


def test_a_copy_settles_it() -> None:
    def f(x: Any) -> Any:
        flat = x.copy().reshape(-1)
        flat[0] = 100
        other = x.reshape(-1).copy()
        x[0, 0] = 5
        rows = np.ascontiguousarray(np.zeros((2, 2)) + x[0, 0])
        rows[0] = 7
        return x, flat, other, rows

    check(f, np.asfortranarray(M))


def test_broadcast_views_are_read_only() -> None:
    for take in (
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x, (2, 3, 4))[0],
        lambda x: np.broadcast_arrays(x, np.zeros((2, 3, 4)))[0].T,
    ):
        with pytest.raises(ValueError, match="read-only"):
            ml.compile(lambda x, take=take: take(x).__setitem__(0, 1)).trace(M)


def test_a_broadcast_view_sees_later_stores() -> None:
    def f(x: Any) -> Any:
        wide = np.broadcast_to(x[0], (2, 4))
        x[0, 0] = 50
        return wide * 1, wide

    check(f, M)


def test_indexing_gives_numpy_s_shapes() -> None:
    def f(x: Any) -> Any:
        return (
            x[1], x[1, 2], x[1, 2, 3], x[-1, ..., -1], x[..., 0], x[None], x[:, None], x[1, None, 2], x[..., None],
            x[()], x[...], x[1:1], x[5:], x[::-1], x[:, ::-2, 1:3], x[-2:, -1], x[1, 2, 3, ...], x[1:2, 0, None, ::3],
            x[np.int64(1)], x[slice(None, None, 2)], x[(1, slice(0, 2))], x[:, True and 1],
        )  # fmt: skip

    check(f, X)


def test_iteration_and_unpacking() -> None:
    def f(x: Any) -> Any:
        a, b = x
        first, *rest = x[0]
        return a + b, first, rest, [row.sum() for row in x[0]], len(x), list(zip(x[0, 0], x[0, 1]))[1], sum(x[1, 2])

    check(f, X)


def test_attributes_of_arrays() -> None:
    def f(x: Any) -> Any:
        sizes = (*x.shape, x.ndim, x.size, x.itemsize, x.nbytes, len(x), np.shape(x)[1], np.ndim(x), np.size(x, 1))
        return [x * n for n in sizes], x.real, x.conj(), x.T.shape[0] * x, (x.dtype == np.float64) * x

    check(f, M)


def test_methods_are_the_functions() -> None:
    def f(x: Any) -> Any:
        return (
            x.sum(), x.sum(0), x.sum(axis=1, keepdims=True), x.prod(1), x.max(), x.min(0), x.mean(1), x.var(), x.std(0),
            x.any(), x.all(1), x.argmax(), x.argmin(1), x.clip(2, 7), x.clip(min=3), x.round(), x.reshape(4, 3),
            x.reshape((4, -1)), x.transpose(), x.transpose(1, 0), x.transpose((1, 0)), x.ravel(), x.flatten(),
            x.swapaxes(0, 1), x[None].squeeze(), x.dot(x.T), x.astype(np.int8), x.astype("f4"), x.copy(),
            x.sum(0, np.float32), x.mean(0, np.float32, None, True), x.max(0, None, True),
        )  # fmt: skip

    check(f, M, rtol=1e-6)


def test_conversions() -> None:
    x = np.array([0, 1, -1, 2.5, -2.5, 100, 0.1])
    kinds = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
    check(lambda x: [x.astype(k) for k in kinds], x[x >= 0])
    check(lambda x: [x.astype(k) for k in kinds if not k.startswith("u")], x)
    check(lambda x: [x.astype(k) for k in kinds], np.array([-(2**63), -1, 0, 1, 300, 2**53 + 1, 2**63 - 1]))
    check(lambda x: [x.astype(k) for k in kinds], np.array([0, 1, 300, 2**53 + 1, 2**64 - 1], np.uint64))
    check(lambda x: [x.astype(k) for k in kinds], np.array([True, False]))
    check(lambda x: [x.astype(k) for k in ("f2", "f4", "f8")], np.array([np.nan, np.inf, -np.inf, -0.0, 1e-300, 1e300]))
    check(lambda x: x.astype("f8"), np.arange(-1000, 1000, 7).astype(np.float16) / 3)


def test_diagonals_see_later_stores_and_take_none() -> None:
    def f(x: Any) -> Any:
        views = np.diag(x), np.diag(x, k=-1), np.diagonal(x, axis1=1, axis2=0), x.diagonal(1), np.linalg.diagonal(x)
        x[...] = x * 2 + 1
        return views, np.diag(x[0])

    x = np.arange(9.0).reshape(3, 3)
    for target in ("cpu", "reference"):
        for result, expected in zip(flatten(ml.compile(f, target)(x.copy()))[0], flatten(f(x.copy()))[0]):
            np.testing.assert_array_equal(result, expected)

    def store(x: Any) -> Any:
        np.diag(x)[0] = 1
        return x

    with pytest.raises(ml.ShapeError, match="read-only: a diagonal"):
        ml.compile(store)(x.copy())


def test_the_conjugate_of_a_real_array_is_the_array() -> None:
    def f(x: Any) -> Any:
        same, copy = x.conj(), np.conj(x)
        x += 1
        return same, copy

    x = np.arange(3.0)
    for result, expected in zip(ml.compile(f)(x.copy()), f(x.copy())):
        np.testing.assert_array_equal(result, expected)


def test_an_array_with_windows_takes_no_more_stores() -> None:
    def f(x: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, 2)
        x += 1
        return windows

    with pytest.raises(ml.CaptureError, match="sliding_window_view"):
        ml.compile(f)(np.arange(5.0))


def test_positions_of_a_single_key_are_a_scalar() -> None:
    def f(x: Any) -> Any:
        order = np.lexsort((x, x))
        row = order[None]
        row[0] = 2
        return order

    assert ml.compile(f)(np.array(2.0)) == f(np.array(2.0)) == 0


@pytest.mark.parametrize(
    "view",
    [lambda a: np.einsum("ijk->kji", a), lambda a: np.diagonal(a, axis1=0, axis2=2), lambda a: np.swapaxes(a, 0, 1)],
    ids=["einsum", "diagonal", "swapaxes"],
)
def test_results_of_views_in_another_order_have_that_order(view: Any) -> None:
    def f(a: Any) -> Any:
        b = np.abs(view(a)) * 2
        b.T.reshape(-1)[1:] *= 3
        return b

    with pytest.raises(ml.CaptureError, match="may or may not"):
        ml.compile(f)(np.ones((3, 4, 3)))
