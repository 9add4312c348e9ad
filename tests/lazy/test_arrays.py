"""`ml.Array` outside of compiled functions: gathering, programs by structure, values, errors."""

from __future__ import annotations

import copy
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import mlirml.numpy as mnp
from mlirml import api
from mlirml.lazy import pieces
from tests.runtime.test_device import fake  # noqa: F401


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of what is compiled or loaded from the disk cache."""
    found: list[str] = []
    real = api.Compiled._compile

    def compile(self: Any, *args: Any) -> Any:
        found.append(self._name)
        return real(self, *args)

    monkeypatch.setattr(api.Compiled, "_compile", compile)
    yield found


def same(given: Any, expected: Any) -> None:
    assert isinstance(given, ml.Array)
    assert (given.shape, given.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_array_equal(given.numpy(), expected)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
EXPRESSIONS: list[Callable[[Any], Any]] = [
    lambda x: x + 1, lambda x: 2 - x, lambda x: x @ x.T, lambda x: -x, lambda x: abs(x - 5), lambda x: x > 3,
    lambda x: ~(x > 3), lambda x: x**2, lambda x: divmod(x, 3)[1], lambda x: np.float64(2) * x, lambda x: x + X,
    lambda x: X - x, lambda x: x * [1, 2, 3, 4], lambda x: np.where(x > 3, x, 0), lambda x: np.stack([x, x + 1]),
    lambda x: np.concatenate([x, X]), lambda x: x.sum(0), lambda x: np.sum(x, axis=1, keepdims=True),
    lambda x: x.reshape(4, 3).T, lambda x: x.astype(np.int16), lambda x: np.add.reduce(x), lambda x: x.real,
    lambda x: np.add.accumulate(x, axis=1), lambda x: np.split(x, 2, axis=1)[1], lambda x: x[1], lambda x: x[-1, 2],
    lambda x: x[:, ::-2], lambda x: x[..., None], lambda x: x[[2, 0]], lambda x: x[np.array([True, False, True])],
    lambda x: x[x[:, 0].astype(int) // 4], lambda x: np.linalg.norm(x, axis=1) > 4, lambda x: np.sort(x)[:, 0],
    lambda x: np.einsum("ij,kj->ik", x, x), lambda x: x.flatten(), lambda x: np.zeros_like(x), lambda x: x.mean(),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_an_expression_is_that_of_numpy(number: int) -> None:
    same(EXPRESSIONS[number](ml.array(X)), EXPRESSIONS[number](X))


def test_what_is_not_compiled_is_computed_by_numpy() -> None:
    x = ml.array(X)
    same(x[x > 5], X[X > 5])
    same(np.unique(x // 2), np.unique(X // 2))
    same(np.nonzero(x)[1], np.nonzero(X)[1])


def test_python_sees_values() -> None:
    x = ml.array(X)
    assert float(x.sum()) == 66.0 and int(x[0, 1]) == 1 and bool((x >= 0).all()) and complex(x[0, 2]) == 2
    assert [float(row[0]) for row in x] == [0.0, 4.0, 8.0] and len(x) == 3 and 5.0 in x
    assert f"{x[0, 1]:.2f}" == "1.00" and x.tolist() == X.tolist() and x[0, 3].item() == 3.0
    assert str(x + 0) == str(X) and repr(x[0]) == "Array([0., 1., 2., 3.], dtype=float32, device='cpu')"
    assert [10, 11, 12][ml.array(1) + 1] == 12
    assert (x.T.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((4, 3), 2, 12, 4, 48)
    assert copy.deepcopy(x) is x
    np.testing.assert_array_equal(np.asarray(x * 2), X * 2)
    np.testing.assert_array_equal(np.from_dlpack(x * 2), X * 2)
    with pytest.raises(TypeError):
        hash(x)


def test_nothing_runs_before_a_value_is_needed(compilations: list[str]) -> None:
    x = ml.array(np.arange(5.0))
    y = np.tanh(x * 3.25) + x.sum()
    assert y.is_gathered() and y.shape == (5,) and compilations == []
    y.block()
    assert not y.is_gathered() and len(compilations) == 1


def test_a_loop_compiles_nothing_after_its_first_iterations(compilations: list[str]) -> None:
    x, w = ml.array(np.ones((7, 3))), ml.array(np.full(3, 0.5))
    counts, total = [], 0.0
    for step in range(12):
        if float(np.sum(w)) > 1e6:
            break
        gradient = x.T @ (x @ w - step * 0.25) + x[step % 7]
        w = w - 0.01 * gradient
        total += float(w[step % 3])
        counts.append(len(compilations))
    assert counts[3] == counts[-1] and np.isfinite(total)


OF_NUMBERS: list[Callable[[Any, int], Any]] = [
    lambda x, k: x[k], lambda x, k: x[k : k + 2], lambda x, k: x[:, k], lambda x, k: x[k:, 1], lambda x, k: x[-k - 1],
    lambda x, k: x[1, k : k + 2], lambda x, k: x[::-1][k::-1], lambda x, k: x[k, k : k + 2], lambda x, k: x[None, k],
    lambda x, k: x[k : k + 2, k : k + 2], lambda x, k: x * k, lambda x, k: x**k, lambda x, k: k - x, lambda x, k: x > k,
    lambda x, k: x + k * 100, lambda x, k: x * (k / 2), lambda x, k: np.roll(x, k), lambda x, k: np.full_like(x, k),
    lambda x, k: np.where(x > k, x, k), lambda x, k: np.clip(x, k, 2 * k), lambda x, k: x.reshape(-1, 2 ** (k // 2)),
    lambda x, k: np.repeat(x, k + 1), lambda x, k: np.sum(x, axis=k % 2), lambda x, k: x * np.float32(k),
    lambda x, k: np.eye(4)[k] + x[0], lambda x, k: np.take(x, [k, 0], axis=0), lambda x, k: x[[k, 1]],
    lambda x, k: x % (k + 1),
    lambda x, k: np.diagonal(x, k), lambda x, k: np.tril(x, k), lambda x, k: (x > 3) * k, lambda x, k: (x > 3) ** k,
    lambda x, k: np.linalg.matrix_power(x @ x.T, k), lambda x, k: x // (k + 1), lambda x, k: np.pad(x, k),
    lambda x, k: np.quantile(x, k / 4) * 1.0, lambda x, k: np.float64(k) + x, lambda x, k: x * complex(0, k),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OF_NUMBERS)))
@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_change_from_call_to_call(number: int, dtype: str) -> None:
    host = np.arange(16).reshape(4, 4).astype(dtype)
    x, expression = ml.array(host), OF_NUMBERS[number]
    for k in (0, 1, 2, 1, 3, 0, 2, 3):
        with np.errstate(all="ignore"):
            same(expression(x, k), expression(host, k))


def test_windows_that_move_are_one_program(compilations: list[str]) -> None:
    x = ml.array(np.zeros(40))
    for i in range(38):
        x = x.at[i : i + 2].set(x[i : i + 2] + i).block()
        if i == 4:
            before = len(compilations)
    expected = np.zeros(40)
    for i in range(38):
        expected[i : i + 2] += i
    same(x, expected)
    assert len(compilations) == before


def test_a_value_that_is_still_used_is_computed_once() -> None:
    calls = []
    x = ml.array(np.arange(4.0))
    y = x * 2
    z = y + 1
    calls.append(z.numpy())
    assert not y.is_gathered(), "it is a result of the program, as `y` still refers to it"
    u = y * 3
    del y
    v = u + 1
    same(v, np.arange(4.0) * 6 + 1)
    assert not u.is_gathered()


def test_values_that_nothing_refers_to_are_not_kept() -> None:
    n = 1 << 20
    x = ml.array(np.ones(n))
    gc.collect()
    tracemalloc.start()
    for _ in range(8):
        y = x + 1
        for _ in range(4):
            y = y * 2
        y.block()
    del y
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 3 * n * 8


def test_long_chains_take_memory_for_each_operation_and_few_programs(compilations: list[str]) -> None:
    count = 60_000
    start = ml.array(np.ones(3))
    gc.collect()
    tracemalloc.start()
    x = start
    for _ in range(count // 2):
        x = x * 0.5
        x = x + 1.0
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used / count < 400
    same(x, np.full(3, 2.0))
    assert len(compilations) <= 3
    x = start
    for _ in range(count):
        x = x + 1.0
    del x  # is released without recursion
    assert sys.getrecursionlimit() < count


def test_a_chain_with_other_operations_before_and_after_is_split_where_it_repeats() -> None:
    signatures = np.array([9, 8, 7] + [1, 2, 3] * 3000 + [5, 6])
    assert pieces.repetition(signatures) == (3, 9003, 3)
    assert pieces.repetition(np.arange(5000)) is None


def test_long_chains_are_right_at_the_seams() -> None:
    x, expected, other, kept = ml.array(np.arange(3)), np.arange(3), ml.array(np.arange(3)), []
    for i in range(1500):
        x, expected = (x * 3 + other) % 1000, (expected * 3 + np.arange(3)) % 1000
        if i % 400 == 0:
            kept.append((x, expected))
    same(x, expected)
    for given, wanted in kept:
        assert not given.is_gathered()
        same(given, wanted)


def test_updates_at_an_index() -> None:
    x = ml.array(X)

    def updates(x: Any, at: Callable[[Any], Any]) -> list[Any]:
        return [
            at(x)[0].set(7), at(x)[:, 1].add(x[:, 0]), at(x)[1:, ::2].multiply(2), at(x)[[0, 0], 1].add(1.0),
            at(x)[1, 2].min(-1), at(x)[...].max(3), at(x)[2].get(), at(x)[-1, 1].subtract(1), at(x)[0].divide(2),
        ]  # fmt: skip

    given, compiled = updates(x, lambda x: x.at), ml.compile(lambda x: updates(x, lambda x: x.at))(X)
    for one, other, numpy in zip(given, compiled, updates(X, mnp.at)):
        same(one, other)
        np.testing.assert_array_equal(numpy, other)
    same(x, X)


def test_an_update_in_a_loop_is_one_program(compilations: list[str]) -> None:
    x = ml.array(np.zeros(50))
    for i in range(50):
        x = x.at[i].set(x[i - 1] + i).block()
        if i == 4:
            before = len(compilations)
    same(x, np.cumsum(np.arange(50.0)))
    assert len(compilations) == before


def stored(x: Any) -> None:
    x[0] = 1


STORES: list[Callable[[Any], Any]] = [
    stored, lambda x: x.sort(), lambda x: np.add(x, 1, out=x), lambda x: np.add.at(x, 0, 1), lambda x: x.fill(1),
    lambda x: np.fill_diagonal(x, 0), lambda x: np.put_along_axis(x, np.array([[0]]), 1, 1), lambda x: np.copyto(x, X),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(STORES)))
def test_arrays_do_not_change(number: int) -> None:
    x = ml.array(X)
    with pytest.raises(ml.DTypeError, match="does not change") as error:
        STORES[number](x)
    assert error.value.location is not None and error.value.location.file == __file__
    assert "x.at[index].set" in str(error.value)
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1


def test_arrays_of_numpy_are_copied_when_they_are_read() -> None:
    host = np.ones(3)
    x = ml.array(host)
    y = x + host
    host[:] = 5
    same(y, np.full(3, 2.0))
    out = np.empty(3)
    assert np.add(x, 1, out=out) is out and out.tolist() == [2.0] * 3


def test_a_store_of_a_compiled_function_is_after_what_was_gathered() -> None:
    x = ml.array(np.ones(3))
    y = x + 1
    compiled = ml.compile(stored, frontend="trace")
    compiled(x * 1)  # another array
    grown = ml.compile(grow)
    grown(x)
    same(y, np.full(3, 2.0))
    same(x, np.full(3, 5.0))


def grow(x: Any) -> None:
    x += 4


def test_errors_are_at_the_line_of_the_operation() -> None:
    x, y = ml.array(np.ones(3)), ml.array(np.ones(4))
    line = sys._getframe().f_lineno
    with pytest.raises(ml.ShapeError, match="do not broadcast") as error:
        x + y
    assert error.value.location is not None and error.value.location.line == line + 2
    with pytest.raises(ml.ShapeError):
        np.concatenate([x[None], y])
    with pytest.raises(ml.IndexOutOfBoundsError):
        x[3]
    with pytest.raises(ml.IntegerRangeError):
        ml.array([1], np.uint8) + 300
    with pytest.raises(TypeError):
        x + "text"


def test_errors_of_elements_are_at_the_line_of_the_operation() -> None:
    x, lines = ml.array(np.ones(3)), []
    wrong = []
    for index in (5, -7):
        lines.append(sys._getframe().f_lineno + 1)
        wrong.append(x[ml.array([0, index])] + 1)
    lines.append(sys._getframe().f_lineno + 1)
    wrong.append(np.linalg.inv(x[:, None] * x) @ x)
    for value, line, kind in zip(wrong, lines, (ml.IndexOutOfBoundsError, ml.IndexOutOfBoundsError, ml.LinAlgError)):
        with pytest.raises(kind) as error:
            value.block()
        assert error.value.location is not None
        assert (error.value.location.file, error.value.location.line) == (__file__, line)
        assert value.is_gathered()


def test_arrays_of_two_targets_do_not_mix() -> None:
    with pytest.raises(ml.ArgumentError, match=r"one array is on cpu, another one on cpu, target 'reference'") as error:
        ml.array([1.0]) + ml.array([1.0], target="reference")
    assert error.value.location is not None and error.value.location.file == __file__
    moved = ml.asarray(ml.array([1.0], target="reference"), target="cpu")
    same(moved + ml.array([1.0]), [2.0])


def test_arrays_of_two_devices_do_not_mix(fake: Any) -> None:  # noqa: F811
    there, here = ml.put(np.ones(2), "fake"), ml.array(np.ones(2))
    with pytest.raises(ml.ArgumentError, match=r"one array is on cpu, another one on fake:0"):
        here * there
    with pytest.raises(ml.ArgumentError, match="another one on fake:0"):
        np.stack([here, there])


def test_creation() -> None:
    x = ml.array([[1, 2], [3, 4]], np.float32)
    assert x.dtype == np.float32 and ml.asarray(x) is x and ml.asarray(x, np.float32) is x
    same(ml.asarray([x[0], [5, 6]]), np.array([[1, 2], [5, 6]], np.float64))
    same(ml.compile(lambda x: ml.array([x[0, 0], 2.0]))(x), [1.0, 2.0])
    with pytest.raises(ml.TargetError):
        ml.array([1], target="nowhere")


def test_arrays_are_arguments_of_compiled_functions_and_transforms() -> None:
    x = ml.array(X) + 1
    same(ml.compile(lambda x: x * 2)(x), (X + 1) * 2)
    np.testing.assert_array_equal(ml.grad(lambda x: np.sum(x * x))(x), 2 * (X + 1))
    np.testing.assert_array_equal(ml.vmap(lambda row: row * row[0])(x), (X + 1) * (X[:, :1] + 1))
    scale = ml.array(3.0) + 1
    np.testing.assert_array_equal(ml.compile(lambda x: x * scale)(X), X.astype(np.float64) * 4)


def test_loops_of_this_package_take_arrays() -> None:
    x = ml.array(np.arange(3.0))
    same(ml.fori_loop(0, 4, lambda i, y: y * 2 + i, x), ml.fori_loop(0, 4, lambda i, y: y * 2 + i, np.arange(3.0)))
    total, sums = ml.scan(lambda c, row: (c + row, c * row), x[0], x)
    same(total, 3.0)
    same(sums, [0.0, 0.0, 2.0])


def test_the_array_api_namespace_takes_arrays() -> None:
    x = ml.array(X)
    xp = x.__array_namespace__(api_version="2024.12")
    assert xp is mnp
    same(xp.astype(x, xp.float64), X.astype(np.float64))
    same(xp.permute_dims(xp.abs(x), (1, 0)), X.T)
    same(xp.sort(x, axis=0, descending=True), X[::-1])
    same(xp.matrix_transpose(x), X.T)
    assert xp.asarray(x) is x and isinstance(xp.unstack(x)[0], ml.Array)
    with pytest.raises(ValueError, match="2011"):
        x.__array_namespace__(api_version="2011.1")


def test_flat_has_the_elements_in_c_order() -> None:
    x = np.arange(6.0).reshape(2, 3)
    flat = ml.array(x).flat
    assert (len(flat), float(flat[4]), float(flat[-1])) == (6, 4, 5)
    np.testing.assert_array_equal(flat[1:5:2], x.flat[1:5:2])
    np.testing.assert_array_equal([float(element) for element in flat], list(x.flat))
    np.testing.assert_array_equal(np.asarray(flat), x.ravel())
    for store in (lambda: flat.__setitem__(0, 1.0), lambda: setattr(ml.array(x), "flat", 0.0)):
        with pytest.raises(ml.DTypeError, match="does not change"):
            store()
