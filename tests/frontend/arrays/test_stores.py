"""Stores into arrays: what the result and the caller's arrays hold afterwards is what NumPy leaves there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check

X = np.arange(12.0).reshape(3, 4)
V = np.arange(5.0)


def test_a_new_array_is_filled() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(7)
        y[1:-1] = x
        y[0] = x[0] + 1
        y[-1] = 5
        y += 2
        y *= x[1]
        return y

    check(f, V)


def test_stores_by_every_kind_of_index() -> None:
    def f(x: Any, v: Any) -> Any:
        y = np.zeros((3, 4))
        y[0] = v[:4]
        y[1, 2] = 7
        y[:, 3] = v[:3]
        y[..., 0] = -1
        y[2:0:-1, ::2] = x[1:, :2]
        y[-1, -1:] = v[0]
        y[np.newaxis, 1] = x[2]
        y[()] += 1
        y[...] = y * 2
        y[3:, :] = 9
        return y

    check(f, X, V)


def test_stores_broadcast_and_cast() -> None:
    def f(x: Any) -> Any:
        ints, floats, bools = np.zeros((3, 4), np.int32), np.zeros((3, 4), np.float32), np.zeros((3, 4), bool)
        ints[...] = x * 1.7
        ints[0] = 2.9
        ints[1:, :1] = x[1:, :1] - 4.5
        floats[:] = x[0]
        floats[:, 1:2] = x[:, :1]
        floats[2] = [1, 2, 3, 4]
        floats[1] = np.float64(0.1)
        bools[1] = x[1]
        bools[2] = 3
        floats[0:1] = x[None, 0:1]
        return ints, floats, bools

    check(f, X)


def test_store_of_nested_lists_with_traced_items() -> None:
    def f(x: Any) -> Any:
        y = np.zeros((2, 2))
        y[:] = [[x[0], 1], [2, x[1] * 3]]
        z = np.array([[x[0], x[1]], [x[2], 4.0]])
        z[0] = (x[3], 7)
        return y, z

    check(f, V)


def test_arguments_are_written_back() -> None:
    def f(x: Any, v: Any) -> Any:
        x[1:, 1] = v[:2]
        v *= 2
        return x + v[:4]

    check(f, X, V)


@pytest.mark.parametrize("order", ["C", "F", "strided", "backwards", "transposed"])
def test_arguments_of_every_layout_are_written_back(order: str) -> None:
    array = {
        "C": X.copy(),
        "F": X.copy("F"),
        "strided": np.zeros((6, 8))[::2, ::2],
        "backwards": X.copy()[::-1, ::-1],
        "transposed": X.reshape(4, 3).copy().T,
    }[order]

    def f(x: Any) -> Any:
        x[1] += 10
        x[:, 0] = -1
        return x.sum()

    check(f, array)


def test_a_view_passed_as_an_argument_changes_its_base() -> None:
    def f(x: Any) -> None:
        x[:, 1] = 7

    for target in TARGETS:
        compiled = ml.compile(f, target)
        for _ in range(2):
            base, expected = np.zeros((4, 6)), np.zeros((4, 6))
            assert compiled(base[::2, 1:4]) is None
            f(expected[::2, 1:4])
            np.testing.assert_array_equal(base, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_read_only_arguments_are_not_written(target: str) -> None:
    def f(x: Any) -> Any:
        x[0] = 1
        return x

    compiled = ml.compile(f, target)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            compiled(frozen)
        compiled(np.zeros(3))
    assert frozen[0] == 0
    read = ml.compile(lambda x: x + 1, target)
    np.testing.assert_array_equal(read(frozen), np.ones(3))


@pytest.mark.parametrize("target", TARGETS)
def test_a_written_argument_must_not_repeat_elements(target: str) -> None:
    def f(x: Any) -> None:
        x[0] = 1

    stretched = np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))
    with pytest.raises(ValueError):
        ml.compile(f, target)(stretched)


def test_overlapping_moves_within_an_array() -> None:
    def f(x: Any) -> Any:
        x[1:] = x[:-1]
        x[:-2] += x[2:]
        x[::-1] = x
        x[1:4] = x[3:0:-1]
        return x * 1

    check(f, np.arange(6.0))
    check(lambda x: x.__setitem__((slice(1, None), slice(1, None)), x[:-1, :-1]), X)


def test_augmented_stores_through_slices() -> None:
    def f(x: Any, v: Any) -> Any:
        x[1:-1] += v
        x[0] -= 1
        x[::2] *= x[1::2]
        x[-1] /= 4
        x[2:4] **= 2
        x[1] //= 2
        x[3] %= 3
        return x

    check(f, np.arange(6.0) + 1, np.array([1.0, 2, 3, 4]))


def test_augmented_stores_into_integers() -> None:
    def f(x: Any) -> Any:
        x += 3
        x[1:] -= x[:-1]
        x <<= 1
        x >>= 1
        x &= 13
        x |= 2
        x ^= 5
        x //= 2
        x %= 7
        return x

    check(f, np.arange(6))
    check(f, np.arange(6, dtype=np.uint8))


def test_scalars_taken_from_an_array_are_copies() -> None:
    def f(x: Any) -> Any:
        a = x[0]
        b = x[0, ...]
        x[0] = 9
        a += 1
        return a, b, x

    check(f, V)


def test_names_of_one_array_share_it() -> None:
    def f(x: Any) -> Any:
        y = x
        y += 1
        z = y.copy()
        z[0] = 5
        w = np.asarray(y)
        w[1] = 6
        u = np.array(y)
        u[2] = 8
        return x, y, z, w, u

    check(f, V)


def test_in_place_operators_make_new_values_of_scalars() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        before = total
        total += 1
        first = x[0]
        again = first
        first *= 2
        return total, before, first, again

    check(f, V)


def test_out_fill_copyto_and_their_kin() -> None:
    def f(x: Any, v: Any) -> Any:
        y = np.empty((3, 4))
        result = np.add(x, 1, out=y)
        np.multiply(y, 2, y)
        np.exp(v * 0, out=v)
        y[0].fill(7)
        np.copyto(y[1], x[2])
        np.copyto(y, -1, where=x > 9)
        z = np.zeros(4)
        np.sum(x, axis=0, out=z)
        w = np.zeros(())
        np.max(x, None, w)
        m = np.zeros((3, 3))
        np.matmul(x, x.T, out=m)
        d = np.zeros((3, 3))
        np.dot(x, x.T, out=d)
        c = np.zeros((6, 4))
        np.concatenate([x, x + 1], out=c)
        s = np.zeros((2, 3, 4))
        np.stack([x, x], out=s)
        k = np.zeros((3, 4))
        np.clip(x, 2, 5, out=k)
        x.clip(1, 6, out=x)
        q, r = np.zeros(5), np.zeros(5)
        np.divmod(v + 5, 2, out=(q, r))
        return result, y, z, w, m, d, c, s, k, q, r

    check(f, X, V)


def test_zeros_like_and_its_kin() -> None:
    def f(x: Any) -> Any:
        a, b, c, d = np.zeros_like(x), np.ones_like(x), np.full_like(x, 3), np.empty_like(x)
        a[0] = x[1]
        b[1] += x[0]
        c[:, 0] = 8
        d[...] = a + b
        e = np.zeros_like(x, dtype=np.int8)
        e[0, 0] = 100
        g = np.zeros_like(x, shape=(2,))
        g[1] = 3
        return a, b, c, d, e, g

    check(f, X)
    check(f, X.astype(np.float32))


def test_an_array_made_in_a_loop() -> None:
    def f(x: Any) -> Any:
        y = np.zeros((3, 3))
        for i in range(3):
            for j in np.arange(i + 1):
                y[i, j] = x[i] * x[j]
                y[j, i] = y[i, j]
        for row in y:
            row += 1
        total = 0
        for value in y[0]:
            total = total + value
        return y, total

    check(f, V)


def test_stores_before_and_after_reads() -> None:
    def f(x: Any) -> Any:
        first = x + 0
        view = x[1:]
        x[1] = 50
        second = view * 1
        view[0] = 60
        third = x * 1
        x[...] = 0
        return first, second, third, view, x

    check(f, V)


def test_a_store_into_a_result_does_not_change_the_argument() -> None:
    def f(x: Any) -> Any:
        y = x + 0
        y[0] = 100
        z = +x
        z[1] = 5
        w = x.astype(x.dtype)
        w[2] = 4
        u = np.where(True, x, 0)
        u[3] = 3
        return y, z, w, u

    check(f, V)


def test_stores_into_empty_places() -> None:
    def f(x: Any) -> Any:
        x[3:3] = 5
        x[4:2] += 1
        x[:0] = x[:0]
        return x

    check(f, V)
    check(lambda x: x.__setitem__(slice(None), 3), np.zeros((0, 3)))


def test_swaps() -> None:
    def f(x: Any) -> Any:
        x[0], x[1] = x[1], x[0]
        x[[2]] if False else None
        a, b = x[2:3], x[3:4]
        t = a.copy()
        a[:] = b
        b[:] = t
        return x

    check(f, V)


def test_written_arguments_in_containers() -> None:
    def step(state: dict[str, Any], gradients: list[Any]) -> None:
        for name, gradient in zip(sorted(state), gradients):
            state[name] -= 0.5 * gradient

    check(step, {"w": X.copy(), "b": V.copy()}, [V, X])


def test_the_same_array_written_and_returned() -> None:
    def f(x: Any) -> Any:
        x += 1
        return x, x[0], x.T

    check(f, X)
