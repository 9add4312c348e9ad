"""cond, switch, while_loop, fori_loop and scan give what plain Python gives, compiled and uncompiled."""

from __future__ import annotations

import doctest
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.frontend import control
from tests.fuzz import oracle

TARGETS = ("cpu", "reference")


def same(actual: Any, expected: Any) -> None:
    """Equal structure, shapes and values; dtypes where the expected leaf is an array."""
    got, tree = flatten(actual)
    wanted, other = flatten(expected)
    assert tree == other
    for a, e in zip(got, wanted):
        assert np.shape(a) == np.shape(e)
        if isinstance(e, (np.ndarray, np.generic)):
            assert a.dtype == e.dtype
        exact = np.asarray(e).dtype.kind in "biu"
        np.testing.assert_allclose(
            np.asarray(a, complex), np.asarray(e, complex), rtol=0 if exact else 1e-6, atol=0 if exact else 1e-12
        )


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """Compiled for each target a function gives what it gives uncompiled."""
    expected = function(*arguments)
    for target in TARGETS:
        same(ml.compile(function, target=target)(*arguments), expected)


def test_fori_loop_with_static_and_traced_bounds() -> None:
    def power(x: Any, n: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, c: c * x, ml.fori_loop(1, n, lambda i, c: c + x / i, x))

    x = np.linspace(0.5, 1.5, 6).reshape(2, 3)
    for n in (0, 1, 2, 7):
        check(power, x, n)


def test_fori_loop_counts_as_range_does() -> None:
    def numbers(lower: Any, upper: Any) -> Any:
        return ml.fori_loop(lower, upper, lambda i, c: (c[0] * 10 + i, c[1] + 1), (0, 0))

    for bounds in ((2, 6), (-3, 2), (5, 5), (6, 2)):
        expected = 0
        for i in range(*bounds):
            expected = expected * 10 + i
        assert numbers(*bounds)[0] == expected
        check(numbers, *bounds)
        check(numbers, *map(np.int32, bounds))


def test_while_loop() -> None:
    def collatz(n: Any) -> Any:
        step = lambda c: (ml.cond(c[0] % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, c[0]), c[1] + 1)  # noqa: E731
        return ml.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    assert collatz(27) == 111
    for n in (1, 2, 27):
        check(collatz, n)


def test_cond_runs_one_branch() -> None:
    def safe(x: Any) -> Any:
        return ml.cond(np.all(x > 0), lambda x: (np.log(x), "a" and 1.0), lambda x: (x * 0, 2.0), x)

    check(safe, np.array([1.0, 2.0]))
    check(safe, np.array([1.0, -2.0]))


def test_switch_clamps_its_index() -> None:
    def choose(i: Any, x: Any) -> Any:
        return ml.switch(i, [np.sin, lambda x: x + 1, lambda x: x], x)

    for i in (-5, 0, 1, 2, 3, 99):
        check(choose, i, np.arange(3.0))
        check(choose, np.uint8(i % 256), np.arange(3.0))


def test_scan_collects_rows() -> None:
    def running(xs: Any) -> Any:
        return ml.scan(lambda s, x: (s + x, {"sum": s + x, "twice": 2 * x}), np.zeros(3), xs)

    check(running, np.arange(15.0).reshape(5, 3))


def test_scan_in_reverse_with_trees_of_xs() -> None:
    def f(a: Any, b: Any) -> Any:
        return ml.scan(lambda s, x: (s * x["a"] + x["b"].sum(), (s, None)), 1.0, {"a": a, "b": b}, reverse=True)

    check(f, np.linspace(0.5, 1, 4), np.arange(8.0).reshape(4, 2))


def test_scan_by_length_only_and_without_a_carry() -> None:
    check(lambda x: ml.scan(lambda c, _: (c * x, c), 1.0, length=5), 1.5)
    check(lambda xs: ml.scan(lambda c, x: (c, np.sin(x)), None, xs), np.arange(4.0))
    check(lambda xs: ml.scan(lambda c, x: (c + x, None), 0.0, xs), np.arange(4.0))
    check(lambda xs: ml.scan(lambda c, x: (None, None), None, xs), np.arange(4.0))


def test_no_round_and_one_round() -> None:
    step = lambda c, x: (c + x.sum(), (c, x * 2, c > 0))  # noqa: E731
    add = lambda i, c: c + 1  # noqa: E731
    for rounds in (0, 1):
        check(lambda xs: ml.scan(step, 1.0, xs), np.ones((rounds, 3)))
        check(lambda xs: ml.scan(step, 1.0, xs, reverse=True), np.ones((rounds, 3)))
        check(lambda x, n: ml.fori_loop(0, n, lambda i, c: c + 1, x), np.ones(3), rounds)
    check(lambda x: (ml.fori_loop(0, 0, add, x), ml.fori_loop(0, 1, add, x)), np.ones(3))
    for limit in (3, 4):
        check(lambda x, limit: ml.while_loop(lambda c: np.sum(c) < limit, lambda c: c + 1, x), np.ones(3), limit)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float16, ml_dtypes.bfloat16])
def test_dtypes(dtype: Any) -> None:
    def f(x: Any, xs: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            vector, number = c
            return (np.maximum(vector, row), row[0]), (number, vector)

        return ml.scan(step, (x, x[0]), xs)

    rows = np.array([[0, 1, 0], [3, 0, 1], [1, 5, 0]]).astype(dtype)
    check(f, rows[0], rows)
    check(lambda x, n: ml.while_loop(lambda c: c[1] < n, lambda c: (c[0] | (c[0] > 0), c[1] + 1), (x > 0, 0)), rows, 2)


def test_stores_into_what_a_loop_carries() -> None:
    def sieve(n: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            c[0] += i
            c[1:] *= 2
            return c

        start = np.ones(4)
        result = ml.fori_loop(0, n, body, start)
        return start, result

    check(sieve, 3)


def test_an_init_keeps_its_contents() -> None:
    x = np.zeros(3)

    def body(i: Any, c: Any) -> Any:
        c[0] = i
        return c

    assert ml.fori_loop(0, 3, body, x)[0] == 2
    assert ml.compile(lambda x: ml.fori_loop(0, 3, body, x))(x)[0] == 2
    assert x[0] == 0


def test_what_changes_places() -> None:
    def fibonacci(x: Any, n: Any) -> Any:
        return ml.fori_loop(0, n, lambda i, c: (c[1], c[0] + c[1]), (x, 2 * x))

    for n in (0, 1, 2, 9):
        check(fibonacci, np.arange(4.0), n)
    for n in (0, 1, 5):
        check(lambda x, n: ml.fori_loop(0, n, lambda i, c: (c[2], c[0], c[1]), (x, x + 1, x + 2)), np.arange(4.0), n)
        check(
            lambda x, n: ml.while_loop(lambda c: c[2] < n, lambda c: (c[1], c[0], c[2] + 1), (x, -x, 0)), np.ones(3), n
        )


def test_closures_read_arrays_from_outside() -> None:
    table = np.arange(12.0).reshape(3, 4)

    def f(x: Any) -> Any:
        scale = np.exp(x)
        inner = lambda c, row: (c * scale + row, table @ c)  # noqa: E731
        return ml.scan(inner, np.zeros(4), table)

    check(f, np.linspace(0, 1, 4))


def test_numbers_take_the_dtype_that_they_meet() -> None:
    f = ml.compile(lambda xs: ml.scan(lambda s, x: (s + x, s), 0, xs))
    for dtype in (np.float32, np.int16, np.float64):
        total, sums = f(np.ones(3, dtype))
        assert total.dtype == dtype and sums.dtype == dtype
    assert ml.compile(lambda: ml.fori_loop(0, 3, lambda i, c: c * 0.5, 1))() == 0.125


def test_the_loop_variable_is_a_python_number() -> None:
    def f(x: Any, n: Any) -> Any:
        return ml.fori_loop(0, 100, lambda i, c: c + i, x), ml.fori_loop(0, n, lambda i, c: c + i, x)

    check(f, np.ones(3, np.int16), np.int16(4))
    check(f, np.ones(3, np.float32), 4)


def test_nested_loops() -> None:
    def table(x: Any, n: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            total = ml.fori_loop(0, n, lambda i, s: s + row * i, c)
            count = ml.while_loop(lambda k: k * k < np.sum(total), lambda k: k + 1, 0)
            return ml.cond(count > 3, lambda t: t / 2, lambda t: t, total), (
                count,
                ml.scan(lambda s, y: (s + y, s), 0.0, row),
            )

        return ml.scan(outer, np.zeros(3), x)

    check(table, np.arange(12.0).reshape(4, 3), 3)


def test_complex_numbers() -> None:
    def julia(c: Any, z: Any) -> Any:
        grown, counts = ml.fori_loop(0, 4, lambda i, s: (s[0] * s[0] + c, s[1] + (np.abs(s[0]) < 2)), (z, 0 * z.real))
        last, rows = ml.scan(lambda s, x: (s * 1j + x, (s, x * c)), 0, z)
        number = ml.while_loop(lambda s: np.abs(s) < 4, lambda s: s * (1 + 1j), c)
        return grown, counts, last, rows, number, ml.cond(np.abs(c) > 1, lambda: z + c, lambda: z * 2)

    z = np.linspace(-1, 1, 5) + 1j * np.linspace(0.2, -0.4, 5)
    check(julia, np.complex128(-0.4 + 0.6j), z)
    check(julia, np.complex64(1.4 + 0.6j), z.astype(np.complex64))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallel_loops_in_a_loop(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(u: Any, v: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, c: (np.cos(c[1]) + np.mean(c[0], axis=0), np.sin(c[0]) * i), (u, v))

    monkeypatch.setattr(ml.config, "threads", threads)
    u = np.sin(np.arange(180_000.0)).reshape(300, 600)
    text = str(ml.compile(f).ir("schedule", u, u))
    assert "mlirml.parallel_for" in text and text.count("memref.copy") == text.count("memref.alloc") == 0
    same(ml.compile(f)(u, u + 1), f(u, u + 1))


def test_a_long_loop_costs_no_memory() -> None:
    import tracemalloc

    def f(x: Any, n: Any) -> Any:
        step = lambda c: (ml.cond(c[1] % 2 == 0, lambda a: a * 2, lambda a: a / 2, c[0]), c[1] + 1)  # noqa: E731
        return ml.while_loop(lambda c: c[1] < n, step, (x, 0))

    compiled = ml.compile(f)
    compiled(np.ones(4), 3)
    tracemalloc.start()
    for _ in range(2000):
        compiled(np.ones(4), 3)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 10_000
    assert compiled(np.ones(4), 1_000_000)[1] == 1_000_000


def test_the_reference_target_stores_rows_in_place() -> None:
    # Copies of all rows in each iteration would move 70 GB.
    compiled = ml.compile(lambda xs: ml.scan(lambda c, x: (c + x, c), np.zeros(1000), xs), target="reference")
    start = time.perf_counter()
    last, rows = compiled(np.ones((3000, 1000)))
    assert time.perf_counter() - start < 10
    assert last[0] == 3000 and (rows[:, 5] == np.arange(3000)).all()


def test_a_position_out_of_bounds_in_a_loop() -> None:
    sums = ml.compile(lambda x, n: ml.fori_loop(0, n, lambda i, c: c + x[i], 0.0))
    assert sums(np.arange(4.0), 4) == 6
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 4"):
        sums(np.arange(4.0), 5)


def test_what_is_the_same_in_each_round_is_computed_once() -> None:
    def f(x: Any, w: Any, m: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            scale = np.exp(w * 2) + np.sum(m @ m.T, axis=0)
            return np.tanh(c * scale + row), scale * row

        return ml.scan(body, x, m)

    m = np.linspace(-1, 1, 9).reshape(3, 3)
    check(f, m[0], m[1], m)
    before, inside = str(ml.compile(f).ir("optimize", m[0], m[1], m)).split("scf.for")
    assert "math.exp" in before and "linalg.contract" in before
    assert "math.exp" not in inside and "linalg.contract" not in inside and "math.tanh" in inside


def test_the_examples_of_the_docstrings() -> None:
    done = doctest.testmod(control)
    assert done.attempted >= 15 and done.failed == 0


def test_a_loop_that_never_runs_does_not_trace_its_body() -> None:
    def empty(x: Any, start: Any) -> Any:
        return ml.fori_loop(0, x.shape[0], lambda i, s: s + x[i, 7].astype(complex), start), start

    check(empty, np.zeros(0), np.float32(2))
    check(empty, np.zeros(0), 3)


def test_branches_give_views_of_different_strides() -> None:
    def pick(x: Any, y: Any) -> Any:
        return ml.cond(np.any(x), lambda a, b: a, lambda a, b: b, y, -y), ml.cond(
            np.any(x), lambda a, b: a, lambda a, b: b, y[:, ::2], y[:, 2:]
        )

    y = np.arange(12.0).reshape(3, 4)
    for x in (1.0, 0.0):
        check(pick, np.array(x), y)
        check(pick, np.array(x), y + 1j)


def test_a_branch_that_is_known_gives_an_array_of_its_own() -> None:
    def pick(x: Any) -> Any:
        known = np.arange(4)
        first = ml.switch(np.argmin(known), [lambda a: a, lambda a: a + a], known)
        second = ml.cond(True, lambda a: a, lambda a: a + a, x)
        known[1:] = 7
        x[:] = 3
        return first, second

    oracle.check(pick, np.arange(3.0))
