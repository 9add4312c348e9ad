"""Programs on each kind of device that there is, against the CPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.runtime.device import device
from tests.fuzz.oracle import cloned
from tests.targets.drivers import on_devices

pytestmark = on_devices


def samples(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_a_chain_of_elementwise_operations_runs(target: str) -> None:
    x, y = samples(1000), samples(1000) + 1
    result = ml.compile(lambda x, y: np.tanh(x * y) + 1, target=target)(x, y)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, np.tanh(x.astype("f8") * y) + 1, atol=1e-6)


def test_kernels_see_what_others_wrote(target: str) -> None:
    x, w, b = samples(30, 40), samples(40, 20), samples(20)
    result = ml.compile(lambda x, w, b: np.sum(np.maximum(x @ w + b, 0), axis=0), target=target)(x, w, b)
    np.testing.assert_allclose(result, np.sum(np.maximum(x.astype("f8") @ w + b, 0), axis=0), rtol=1e-5)


def test_remainders_of_any_quotient_are_exact(target: str) -> None:
    rng = np.random.default_rng(0)
    x, y = ((rng.standard_normal(4096) * 2.0 ** rng.integers(-120, 120, 4096)).astype(np.float32) for _ in range(2))
    x[:6], y[:6] = [np.inf, 1, 5, -0.0, 3e38, -7.5], [1, 0, np.inf, 3, 1e-38, 1e-40]
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(ml.compile(np.fmod, target=target)(x, y), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_large_unsigned_indices_are_not_negative(dtype: type, target: str) -> None:
    most = np.iinfo(dtype).max
    table, indices = samples(most + 1), np.array([0, 1, most // 2, most // 2 + 1, most - 1, most], dtype)
    np.testing.assert_array_equal(ml.compile(lambda t, i: t[i], target=target)(table, indices), table[indices])


NARROW: dict[str, Any] = {
    "f32": lambda x: x.astype(np.float32),
    "u64": lambda x: x.astype(np.uint64) * np.uint64(3),
    "i64": lambda x: x.astype(np.int64) - 7,
    "u32": lambda x: x.astype(np.uint32) + 1,
    "u16": lambda x: x.astype(np.uint16) * np.uint16(3),
    "wrapped": lambda x: (
        (x * x.dtype.type(3)).astype(np.int64),
        (x + x) // 7,
        (x + x) > 9,
        (x * x).astype(np.float32),
    ),
    "order": lambda x: (x > 100, np.maximum(x, 99), np.argmax(x), x.max(), x.min()),
    "quotients": lambda x: (x // 7, x % 7, x >> 1),
    "sums": lambda x: (x.sum(), x.mean(), x.cumsum()),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_integers_have_their_own_signs(name: str, dtype: Any, target: str) -> None:
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    x = np.array([0, 1, 100, 127, 60, most, most // 2 + 1, most - 1, least, least + 3], dtype)
    found, expected = ml.compile(NARROW[name], target=target)(x), NARROW[name](x)
    for mine, theirs in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - np.mean(x, -1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, -1, keepdims=True) + 1e-5) * gain + bias


def ten_operations(x: Any, y: Any) -> Any:
    return np.exp(-np.abs(np.sin(x) * y + 2) / 3) - np.sqrt(np.abs(y)) + x * x


def store(x: Any, y: Any) -> Any:
    x[2:5] = y * 2
    x[0] = 7
    return x + 1


def recurrence(x: Any) -> None:
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 0.5 + x[i]


def filtered(x: Any) -> Any:
    y, state = np.zeros_like(x), np.float32(1)
    for i in range(x.shape[0]):
        state = state * np.float32(0.9) + x[i]
        y[i] = state
    return y


def summed_by_place(x: Any, places: Any) -> Any:
    sums = np.zeros(4, np.float32)
    for i in range(x.shape[0]):
        sums[places[i]] += x[i]
    return sums


def sweep_in_place(x: Any) -> None:
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = (x[i - 1, j] + x[i, j - 1]) / 2


def halved(x: Any) -> Any:
    return ml.while_loop(lambda s: np.sum(s) > 1.0, lambda s: s * 0.5, np.abs(x))


def rounds(x: Any) -> Any:
    return ml.fori_loop(0, 10, lambda i, s: s * 0.9 + i, x)


def branch(x: Any) -> Any:
    return ml.cond(np.sum(x) > 0, lambda y: y * 2, lambda y: -y, x)


INDICES = np.array([3, 1, -1, 5])
PROGRAMS: list[tuple[Any, tuple[Any, ...], int]] = [
    (softmax, (samples(33, 70),), 1),
    (layer_norm, (samples(20, 64), samples(64), samples(64)), 1),
    (ten_operations, (samples(1000), samples(1000)), 1),
    (lambda x, w, b: np.tanh(x @ w + b), (samples(33, 40), samples(40, 21), samples(21)), 1),
    (lambda x: x[1:, ::2] * 2 + x[:-1, 1::2], (samples(9, 8),), 1),
    (lambda x, y: np.concatenate([x * 2, y + 1], axis=1), (samples(4, 5), samples(4, 3)), -1),
    (lambda x, s, b, h: np.where(b, x * s, -x) * h, (samples(5, 3), 2.5, True, np.float16(2)), 1),
    (lambda x: x * np.array([1, 2, 3], np.float32), (samples(5, 3),), 1),
    (lambda x: (x, x * 2, x), (samples(5, 3),), 1),
    (lambda x: np.sort(x * 2) + 1, (samples(5, 40),), 5),
    (lambda x, i: x[i] * 2, (samples(20, 4), INDICES), 2),
    (lambda x: x * 2, (samples(0, 3),), 0),
    (rounds, (samples(50),), 10),
    (recurrence, (samples(30),), 2),
    (filtered, (samples(300),), -1),
    (summed_by_place, (samples(300), np.arange(300) % 3), -1),
    (sweep_in_place, (samples(9, 8),), -1),
    (lambda *xs: np.hstack([xs[n] + xs[n - 1] for n in range(20)]), tuple(samples(6) + n for n in range(20)), -1),
    (halved, (samples(50),), -1),
    (branch, (samples(50),), -1),
    (store, (samples(8, 3), samples(3, 3)), -1),
    (
        ml.value_and_grad(lambda w, x, y: np.mean((np.tanh(x @ w) - y) ** 2)),
        (samples(6, 3), samples(9, 6), samples(9, 3)),
        -1,
    ),
]
"""Functions, arguments, and the launches of a call, -1 where they are many."""


@pytest.mark.parametrize(("function", "arguments", "launches"), PROGRAMS, ids=[str(n) for n in range(len(PROGRAMS))])
def test_a_program_does_what_it_does_on_the_cpu(
    function: Any, arguments: tuple[Any, ...], launches: int, target: str
) -> None:
    native: Any = device(target).driver
    given, other = cloned(arguments), cloned(arguments)
    before = native.native.launches
    result = ml.compile(function, target=target)(*given)
    if launches >= 0:
        assert native.native.launches - before == launches
    expected = ml.compile(function, target="cpu")(*other)
    for one, two in zip(flatten((result, given))[0], flatten((expected, other))[0], strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-5)


def test_results_stay_on_the_device_of_the_arguments(target: str) -> None:
    x = samples(64, 64)
    step = ml.compile(lambda x: np.tanh(x @ x) * 0.5, target=target)
    native: Any = device(target).driver.native  # type: ignore[attr-defined]
    there = ml.put(x, target)
    step(there)
    moved = native.bytes_in, native.bytes_out
    for _ in range(5):
        there = step(there)
    assert isinstance(there, ml.Array)
    assert (native.bytes_in, native.bytes_out) == moved
    expected = x.astype("f8")
    for _ in range(5):
        expected = np.tanh(expected @ expected) * 0.5
    np.testing.assert_allclose(there.numpy(), expected, atol=1e-4)


def submissions(native: Any) -> int:
    """How often work was handed to the device; CUDA's streams take each launch by itself."""
    return getattr(native, "submissions", 0)


def test_a_thousand_launches_are_made_without_waiting(target: str) -> None:
    x = samples(20_000)
    program = ml.compile(lambda x: ml.fori_loop(0, 1000, lambda i, s: s * 0.99 + i, x), target=target)
    native: Any = device(target).driver.native  # type: ignore[attr-defined]
    program(x)
    before = native.launches, submissions(native)
    result = program(x)
    assert native.launches - before[0] == 1000
    assert submissions(native) - before[1] < 10
    np.testing.assert_allclose(result, ml.compile(program.fn)(x), rtol=1e-5)


def test_explain_says_what_runs_where(target: str) -> None:
    def scaled(x: Any, s: Any) -> Any:
        return np.tanh(x) * s

    program = ml.compile(scaled, target=target)
    program(samples(1000), 2.0)
    told = program.explain()
    assert "kernel k0_" in told
    assert f"on {target}:0, for" in told
    assert "test_device_programs.py:" in told
    assert "argument 1 stays on the host: it is one number" in told
    assert "moves 4000 bytes in and 4000 out" in told
    assert "a call launches 1 kernel\n" in told


def test_iterations_of_an_unrolled_loop_share_their_kernels(target: str) -> None:
    def centres(x: Any, c: Any) -> Any:
        for _ in range(6):
            nearest = np.argmin(np.sum((x[:, None] - c) ** 2, -1), 1)
            one = (nearest[:, None] == np.arange(len(c))).astype(np.float32)
            c = (one.T @ x) / np.maximum(np.sum(one, 0), 1)[:, None]
        return c

    x, c = samples(200, 4), samples(3, 4)
    program = ml.compile(centres, target=target)
    np.testing.assert_allclose(program(x, c), centres(x, c), rtol=1e-4)
    told = program.explain()
    assert 3 <= told.count(", 6 times") == told.count("kernel k")


def test_explain_says_what_stays_on_the_host(target: str) -> None:
    def function(x: Any) -> Any:
        y = ml.fori_loop(0, 10, lambda i, y: y * 2 + x, x)
        return ml.while_loop(lambda s: np.sum(s) < 100, lambda s: s + 1, y)

    program = ml.compile(function, target=target)
    program(samples(20_000))
    told = program.explain()
    assert ", 10 times" in told
    assert "how many launches a call makes depends on what it computes" in told
    assert "4 bytes move to the host and 0 back, in each iteration of a loop" in told


def test_a_loop_of_small_kernels_stays_on_the_host(target: str) -> None:
    def flipped(spins: Any, sites: Any, chances: Any) -> Any:
        spins, energy = spins.copy(), np.float32(0)
        for t in range(len(sites)):
            change = 2 * spins[sites[t]] * (spins[sites[t] - 1] + spins[(sites[t] + 1) % len(spins)])
            if change <= 0 or chances[t] < np.exp(-change):
                spins[sites[t]] = -spins[sites[t]]
                energy += change
        return np.tanh(spins * 0.5), energy

    rng = np.random.default_rng(0)
    spins, sites = np.sign(samples(12)), rng.integers(0, 12, 700).astype(np.int32)
    arguments = spins, sites, rng.random(700).astype(np.float32)
    program = ml.compile(flipped, target=target)
    native: Any = device(target).driver.native  # type: ignore[attr-defined]
    program(*arguments)
    before = native.launches
    result = program(*arguments)
    assert native.launches - before <= 2
    for one, two in zip(result, flipped(*arguments), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)
    assert "a loop is computed on the host, for " in program.explain()
    assert "it is faster there than about 700 launches" in program.explain()


def test_a_while_loop_of_small_kernels_stays_on_the_host(target: str) -> None:
    def solved(a: Any, b: Any) -> Any:
        x, r = np.zeros_like(b), b
        p, square = b, b @ b
        while square > 1e-9:
            ap = a @ p
            x, r = x + square / (p @ ap) * p, r - square / (p @ ap) * ap
            p, square = r + (r @ r) / square * p, r @ r
        return x * 2

    m, b = samples(6, 6), samples(6)
    a = m @ m.T + 6 * np.eye(6, dtype=np.float32)
    program = ml.compile(solved, target=target)
    np.testing.assert_allclose(program(a, b), 2 * np.linalg.solve(a.astype("f8"), b), rtol=1e-3, atol=1e-5)
    assert "a loop is computed on the host, for " in program.explain()


def test_a_loop_of_the_host_that_fails_leaves_its_arguments(target: str) -> None:
    def scattered(x: Any, places: Any) -> Any:
        total = np.float32(0)
        for i in range(len(places)):
            x[places[i]] += 1
            total += x[places[i] - 1]
        return total

    x, places = samples(8), np.arange(600, dtype=np.int32) % 8
    program = ml.compile(scattered, target=target)
    given, expected = x.copy(), x.copy()
    assert program(given, places) == pytest.approx(scattered(expected, places), rel=1e-4)
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    assert "a loop is computed on the host, for " in program.explain()
    places[500] = 8
    given = x.copy()
    with pytest.raises(IndexError):
        program(given, places)
    np.testing.assert_array_equal(given, x)


def test_waiting_for_each_kernel_gives_the_same(target: str) -> None:
    x, driver = samples(16, 16), device(target).driver
    compiled = ml.compile(lambda x: np.tanh(np.tanh(x @ x) @ x), target=target)
    compiled(x)
    native: Any = driver
    before = submissions(native.native)
    with ml.config.override(sync=True):
        found = compiled(x)
    assert target == "cuda" or submissions(native.native) - before >= 2
    np.testing.assert_array_equal(found, compiled(x))


def step(w: Any, state: Any, i: Any) -> Any:
    x, v = state
    return np.tanh(x @ w) + v * 0.5, v * 0.9 + i


@pytest.mark.parametrize("count", [0, 1, 2, 7, 10])
@pytest.mark.parametrize("dynamic", [False, True])
def test_loops_whose_arrays_change_places(target: str, count: int, dynamic: bool) -> None:
    x, v, w = samples(9, 9), samples(9, 9) + 1, samples(9, 9) / 4

    def run(x: Any, v: Any, w: Any, n: Any) -> Any:
        return ml.fori_loop(0, n if dynamic else count, lambda i, state: step(w, state, i), (x, v))

    expected = (x.astype("f8"), v.astype("f8"))
    for i in range(count):
        expected = step(w, expected, i)
    for found, want in zip(ml.compile(run, target=target)(x, v, w, count), expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_arrays_change_places_in_nested_loops(target: str) -> None:
    x = samples(6, 8)

    def inner(i: Any, x: Any) -> Any:
        return ml.fori_loop(0, 3, lambda j, y: y[::-1] * 0.5 + y + j, x) + i

    found = ml.compile(lambda x: ml.fori_loop(0, 5, inner, x), target=target)(x)
    expected = x.astype("f8")
    for i in range(5):
        for j in range(3):
            expected = expected[::-1] * 0.5 + expected + j
        expected = expected + i
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_store_into_an_array_copies_nothing_to_the_host(target: str) -> None:
    def double(x: Any) -> None:
        x[:] = x * 2

    program = ml.compile(double, target=target)
    x = ml.put(samples(100), target)
    program(x)
    before = device(target).driver.native.bytes_out  # type: ignore[attr-defined]
    program(x)
    assert device(target).driver.native.bytes_out == before  # type: ignore[attr-defined]
    np.testing.assert_array_equal(x.numpy(), samples(100) * 4)


def test_a_loop_carries_one_value_twice(target: str) -> None:
    x, y, z = samples(6, 6), samples(6, 6) + 1, samples(6, 6) - 1

    def body(i: Any, s: Any) -> Any:
        both = s[0] * 0.5 + s[1]
        return both, both, s[2] * 0.1 + i

    found = ml.compile(lambda x, y, z: ml.fori_loop(0, 4, body, (x, y, z)), target=target)(x, y, z)
    expected: Any = (x, y, z)
    for i in range(4):
        expected = body(i, expected)
    for one, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)


def test_a_store_into_an_array_without_dimensions(target: str) -> None:
    def grow(x: Any, n: Any) -> Any:
        n[...] = n * 2 + x[0]
        return x * n

    x, n = samples(5), np.array(3, np.float32)
    expected_n = n.copy()
    expected = grow(x, expected_n)
    found = ml.compile(grow, target=target)(x, n)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(n, expected_n, rtol=1e-6)


def test_a_loop_carried_number_is_several_results(target: str) -> None:
    def sums(x: Any) -> Any:
        total = ml.scan(lambda c, row: (c + row, c * row), x[0], x)[0]
        again = np.take(total, total.astype(np.int64), mode="wrap")
        return total, again, np.full_like(total, 2), np.squeeze(total)

    x = np.arange(70, dtype=np.float32)
    for found, expected in zip(ml.compile(sums, target=target)(x), (2415, 2415, 2, 2415), strict=True):
        assert found == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 2), (5, 8), (2, 130)])
def test_arrays_are_filled(target: str, dtype: str, shape: tuple[int, int]) -> None:
    def fill(x: Any, indices: Any) -> Any:
        x[:] = 3
        x[indices % 2] = x[0, 0] + x[1, 1]
        return x[:, ::-2]

    x = np.ones(shape, getattr(ml_dtypes, dtype, dtype))
    found = ml.compile(fill, target=target)(x, np.array([3]))
    assert found.dtype == x.dtype and found.shape == (shape[0], shape[1] // 2)
    assert np.all(x[0] == 3) and np.all(x[1] == 6)
    np.testing.assert_array_equal(found.astype(np.float64), x[:, ::-2].astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_and_signs_of_zeros_stay(target: str, dtype: type) -> None:
    def shown(x: Any) -> Any:
        return x - x, x * 0, 0 * x, x + (-x), 0 - x, x + 0, (x + 1e8) - 1e8, x / x

    x = np.array([np.inf, -np.inf, np.nan, 1.5, 0.0, -0.0], dtype)
    with np.errstate(all="ignore"):
        expected = shown(x)
    for found, wanted in zip(ml.compile(shown, target=target)(x), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1, 4), (1, 1)])
def test_vectors_of_rows_are_multiplied(target: str, shape: tuple[int, ...]) -> None:
    def product(x: Any) -> Any:
        v = (x + x).reshape(-1)
        return v @ v, v @ (x - 1).reshape(-1), -v

    x = samples(*shape)
    for found, expected in zip(ml.compile(product, target=target)(x), product(x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_positions_are_compared(target: str, dtype: type) -> None:
    def capped(x: Any) -> Any:
        position = np.searchsorted(np.sort(x, None), x)
        return position, position > 0, np.where(position > 2, 2, position), np.argmax(x, axis=1) > 0

    x = np.array([[3, 1, 1], [3, 1, 2]], dtype)
    for found, expected in zip(ml.compile(capped, target=target)(x), capped(x), strict=True):
        np.testing.assert_array_equal(found, expected)
