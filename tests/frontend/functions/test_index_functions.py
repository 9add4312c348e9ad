"""`take`, `put` and their kin, and `x.at`, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check

X = np.arange(24.0).reshape(4, 6)
FAR = np.array([[-9, 7, 30], [0, -1, 5]])


def test_take_in_every_mode() -> None:
    def f(x: Any, i: Any) -> Any:
        modes = [np.take(x, i, axis, mode=mode) for axis in (0, 1, None) for mode in ("clip", "wrap")]
        return (
            modes,
            x.take(i % 4, 0),
            np.take(x, i % 24),
            np.take(x, [1, -1], axis=1),
            np.take(x, 2, axis=-1),
            np.take(x, i[0, 1]),
        )

    for dtype in (np.int64, np.int32, np.int8):
        check(f, X, FAR.astype(dtype))
    check(f, X, np.abs(FAR).astype(np.uint8))


def test_take_into_an_array() -> None:
    def f(x: Any, i: Any, out: Any) -> Any:
        np.take(x, i, 1, out)
        return np.take(x, i, axis=0, mode="clip").sum()

    check(f, X, np.array([0, 5]), np.zeros((4, 2)))


def test_take_of_known_arrays() -> None:
    def f(x: Any, i: Any) -> Any:
        table = np.arange(10) ** 2
        return table.take([1, 2]), np.take(table, i, mode="wrap"), np.take(x, np.arange(3), axis=1)

    check(f, X, FAR)


def test_take_along_axis() -> None:
    def f(x: Any, i: Any) -> Any:
        best = np.argmax(x, axis=1)
        order = np.take_along_axis(x, i[:, :1] % 6, axis=1), np.take_along_axis(x[:2], i[:2] % 6, 1)
        flat = np.take_along_axis(x, i.reshape(-1) % 24, axis=None), np.take_along_axis(x, i[:1, :] % 4 - 2, axis=0)
        return np.take_along_axis(x, best[:, None], axis=-1), order, flat

    check(f, X, np.concatenate([FAR, FAR[::-1]])[:, [0, 1, 2, 0, 1, 2]])


def test_put_and_put_along_axis() -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        np.put(x, i[0] % 24, v)
        np.put(x, i, [1, 2], mode="clip")
        x.put(i, 7, "wrap")
        np.put_along_axis(y, i[:1, :1] % 4, v[0], axis=0)
        np.put_along_axis(y[:2], i % 6, v[:3], 1)
        z = np.zeros((2, 3))
        np.put_along_axis(z, np.argmax(x[:2, :3], axis=1)[:, None], 1, axis=1)
        return y, z

    check(f, X, FAR, -np.arange(1.0, 6.0))
    check(f, X, FAR.astype(np.int8), np.arange(5))


def test_compress_select_and_choose() -> None:
    def f(x: Any, i: Any) -> Any:
        kept = np.compress([True, False, True], x, axis=0), np.compress(np.arange(20) % 3 == 0, x)
        chosen = np.select([x < 3, x > 20, x == 7], [x, -x, 100], 5), np.select([x[0] < 3], [1])
        numbers = np.choose(i % 2, [x[:2, :3], 7]), np.choose(i, [1, 2.5, x[0, :3]], mode="clip")
        return kept, chosen, numbers, np.choose(i, [0, 1, 2], mode="wrap")

    check(f, X, FAR)


def test_diagonals() -> None:
    def f(x: Any, v: Any) -> Any:
        tall, cube = np.zeros((7, 3)), np.zeros((3, 3, 3), np.int64)
        np.fill_diagonal(x, v)
        np.fill_diagonal(tall, [1, 2], wrap=True)
        np.fill_diagonal(cube, x[0, 0])
        wide = tall.T.copy()
        np.fill_diagonal(tall, v[0])
        np.fill_diagonal(wide, v)
        return tall, cube, wide

    check(f, X, np.array([3.0, 5.0]))


def test_putmask() -> None:
    def f(x: Any, m: Any, v: Any) -> Any:
        y = x.copy()
        np.putmask(x, m, v)
        np.putmask(y, y > 12, 0)
        np.putmask(y, m, -y)
        return y

    check(f, X, X % 2 == 0, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))


def test_ix() -> None:
    check(lambda x, i, j: (x[np.ix_(i, j)], x[np.ix_(i, [0, 1])]), X, np.array([1, 3]), np.array([0, -1, 2]))


@pytest.mark.parametrize("target", TARGETS)
def test_at_gives_new_arrays(target: str) -> None:
    def f(x: Any, i: Any, k: Any, m: Any) -> Any:
        return (
            x, x.at[i].set(1), x.at[:, k].add(x[:, 0]), x.at[i, 0].add(1), x.at[1:, ::2].multiply(3), x.at[i].max(9.5),
            x.at[m].set(0), x.at[k, k].subtract(2), x.at[i].min(x[0]), x.at[..., i].get(), x.at[2].get(),
            x.at[x > 3].add(1), x.at[np.array([True, False, True, False])].set(x[:2]), x.at[k].multiply(i[0]),
        )  # fmt: skip

    def expected(x: Any, i: Any, k: Any, m: Any) -> Any:
        def changed(index: Any, function: Any, *values: Any) -> Any:
            y = x.copy()
            y.__setitem__(index, *values) if function is None else function.at(y, index, *values)
            return y

        every = slice(None)
        return (
            x, changed(i, None, 1), changed((every, k), np.add, x[:, 0]), changed((i, 0), np.add, 1),
            changed((slice(1, None), slice(None, None, 2)), np.multiply, 3), changed(i, np.maximum, 9.5),
            changed(m, None, 0), changed((k, k), np.subtract, 2), changed(i, np.minimum, x[0]), x[..., i], x[2],
            changed(x > 3, np.add, 1), changed(np.array([True, False, True, False]), None, x[:2]),
            changed(k, np.multiply, i[0]),
        )  # fmt: skip

    arguments = X, np.array([1, 0, 1]), 2, X % 5 == 0
    given, wanted = ml.compile(f, target)(*arguments), expected(*arguments)
    for one, other in zip(given, wanted, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_at_of_scalars_and_real_arrays() -> None:
    import mlirml.numpy as mnp

    table = np.arange(4.0)

    def f(x: Any, i: Any) -> Any:
        return mnp.at(table)[i].add(x), mnp.at(x)[()].set(3.0)

    for function in (f, ml.compile(f)):
        first, second = function(np.array(2.0), np.array([1, 1]))
        assert first.tolist() == [0, 5, 2, 3]
        assert float(second) == 3
    assert table.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("target", TARGETS)
def test_roll_by_what_is_known_at_run_time(target: str) -> None:
    def rolled(x: Any, k: Any) -> Any:
        y = np.roll(x, (k, 1), axis=(0, -1))
        y[:1] = 7
        return np.roll(x, k), np.roll(x, k, axis=1), y, np.roll(x, -k, axis=(0, 1))

    compiled = ml.compile(rolled, target)
    for x in (np.arange(12.0).reshape(3, 4), np.ones((0, 3)), np.eye(5)[::-1] > 0):
        for k in (2, np.int8(-7), np.uint64(30)):
            expected = rolled(x.copy(), int(k))
            for found, wanted in zip(compiled(x.copy(), k), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


def test_roll_in_a_loop_that_is_not_unrolled() -> None:
    def correlation(x: Any, w: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(len(w)):
            y += np.roll(x, i) * w[i]
        return y

    x, w = np.random.default_rng(0).standard_normal((2, 400))
    np.testing.assert_allclose(ml.compile(correlation)(x[:9], w), correlation(x[:9], w), rtol=1e-12)
