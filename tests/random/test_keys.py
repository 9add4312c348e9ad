"""Keys and bits: published vectors, the same numbers on every target, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random
from mlirml.random.threefry import enciphered
from tests.fuzz.oracle import TARGETS

ONES = 0xFFFFFFFF
# Random123 1.09, tests/kat_vectors: key, counter, result.
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "result"), VECTORS)
@pytest.mark.parametrize("compiled", [False, True])
def test_threefry_gives_the_published_words(key: Any, counter: Any, result: Any, compiled: bool) -> None:
    words = [np.array([word], np.uint32) for word in (*key, *counter)]
    function = ml.compile(enciphered) if compiled else enciphered
    assert [int(word[0]) for word in function(*words)] == [*result]


def test_split_gives_the_keys_of_jax() -> None:
    assert random.split(random.key(0)).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]


def test_a_key_is_the_words_of_its_seed() -> None:
    for seed in (0, 7, 1 << 40, -1, (1 << 64) - 1):
        words = [(seed >> 32) & ONES, seed & ONES]
        assert random.key(seed).tolist() == words
        array = np.array(seed, np.uint64 if seed >= 0 else np.int64)
        assert random.key(array).tolist() == words
        assert ml.compile(random.key)(array).tolist() == words


def draws(key: Any) -> Any:
    keys = random.split(key, 7)
    grid = random.split(random.fold_in(keys[0], 9), (2, 3))
    folded = random.fold_in(keys[1], np.int64(3))
    return (
        grid, folded, random.bits(folded, (3, 5)), random.bits(keys[2], (), np.uint64),
        random.bits(keys[3], 7, np.uint8), random.bits(keys[4], (0, 2)), random.uniform(keys[5], (4, 2)),
        random.uniform(keys[6], 9, np.float32, low=-2, high=3),
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_draws_the_same_bits(target: str) -> None:
    key = random.key(42)
    for expected, found in zip(draws(key), ml.compile(draws, target=target)(key), strict=True):
        assert found.dtype == expected.dtype and np.array_equal(found, expected)


def test_the_number_of_threads_changes_nothing() -> None:
    drawn = []
    for threads in (1, 2, 3):
        with ml.config.override(threads=threads):
            drawn.append(ml.compile(lambda key: random.normal(key, (300, 1000)))(random.key(1)))
    assert all(np.array_equal(drawn[0], other) for other in drawn[1:])


def test_keys_are_mapped_and_carried_through_loops() -> None:
    keys = random.split(random.key(3), 5)
    expected = np.stack([random.bits(key, (4,)) for key in keys])
    assert np.array_equal(ml.vmap(lambda key: random.bits(key, (4,)))(keys), expected)

    @ml.compile
    def walk(key: Any) -> Any:
        total = np.zeros(3, np.uint32)
        for i in range(10):
            total ^= random.bits(random.fold_in(key, i), (3,))
        return total

    assert np.array_equal(walk(keys[0]), walk.fn(keys[0]))

    def folded(key: Any, n: Any) -> Any:
        return ml.fori_loop(0, n, lambda i, x: x ^ random.bits(random.fold_in(key, i), (3,)), np.zeros(3, np.uint32))

    loop = ml.compile(lambda keys, n: ml.vmap(folded, in_axes=(0, None))(keys, n))
    assert np.array_equal(loop(keys, 4), [folded(key, 4) for key in keys])


WRONG = {
    "an int": (lambda: random.bits(0), r"a key is an array u32\[2\], not of type int"),
    "floats": (lambda: random.bits(np.zeros(2)), r"a key is u32\[2\], got f64\[2\]"),
    "several": (lambda: random.split(random.split(random.key(0))), r"takes one key, u32\[2\], got u32\[2,2\]"),
    "a long one": (lambda: random.bits(np.zeros(3, np.uint32)), r"a key is u32\[2\], got u32\[3\]"),
    "a float seed": (lambda: random.key(1.5), "the seed must be an integer, got 1.5"),
    "a large seed": (lambda: random.key(1 << 64), "does not fit 64 bits"),
    "signed bits": (lambda: random.bits(random.key(0), (), np.int32), "must be an unsigned integer, not int32"),
    "negative sizes": (lambda: random.bits(random.key(0), (2, -1)), "sizes cannot be negative"),
    "sizes that are floats": (lambda: random.bits(random.key(0), (2.5,)), "the shape must be integers"),
    "negative data": (lambda: random.fold_in(random.key(0), -1), r"at least 0 and below 2\*\*32"),
    "integers asked of uniform": (lambda: random.uniform(random.key(0), 3, np.int32), "must be a float, not int32"),
    "parameters": (lambda: random.normal(random.key(0), (2,), loc=np.zeros(3)), "do not broadcast"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_errors_show_the_line(name: str, compiled: bool) -> None:
    function, message = WRONG[name]
    with pytest.raises(ml.CaptureError, match=message) as caught:
        (ml.compile(function) if compiled else function)()
    assert caught.value.location is not None and caught.value.location.file == __file__


def test_a_key_that_is_used_twice_gives_a_warning() -> None:
    def twice(key: Any) -> Any:
        first = random.normal(key, (3,))
        return first + random.uniform(key, (3,))

    line = twice.__code__.co_firstlineno
    with pytest.warns(ml.errors.KeyReuseWarning, match=rf"test_keys.py:{line + 1} already") as caught:
        ml.compile(twice)(random.key(0))
    assert caught[0].filename == __file__ and caught[0].lineno == line + 2

    def unrolled(key: Any) -> Any:
        return [random.normal(random.split(key)[0]) for _ in range(2)]

    with pytest.warns(ml.errors.KeyReuseWarning):
        ml.compile(unrolled)(random.key(0))


def test_a_key_that_is_used_twice_outside_of_compiled_functions() -> None:
    def twice(key: Any) -> Any:
        first = random.normal(key, (3,))
        return first + random.uniform(key, (3,))

    line = twice.__code__.co_firstlineno
    with pytest.warns(ml.errors.KeyReuseWarning, match=rf"test_keys.py:{line + 1} already") as caught:
        twice(random.key(0))
    assert caught[0].filename == __file__ and caught[0].lineno == line + 2
    keys = random.split(random.key(0), 3)
    random.normal(keys[1])
    with pytest.warns(ml.errors.KeyReuseWarning, match="already"):
        random.split(keys[1])


def test_keys_that_are_not_the_same_one(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    for number in range(3):
        random.normal(random.fold_in(random.key(0), number))
        random.normal(random.key(0))  # an equal one, made anew
    key = random.key(0)
    random.multivariate_normal(key, np.zeros(2), np.eye(2))  # made of other functions
    key[:] = random.key(1)
    random.normal(key)
    for one in random.split(random.key(0), 5):
        random.truncated_normal(one, -1, 1)
    assert not [w for w in recwarn if w.category is ml.errors.KeyReuseWarning]


def in_a_for_loop(key: Any) -> Any:
    return ml.fori_loop(0, 5, lambda i, x: x + random.normal(key, (2,)), np.zeros(2))


def in_a_scan(key: Any) -> Any:
    return ml.scan(lambda total, x: (total + random.normal(key, (2,)), x), np.zeros(2), np.ones(3))


def in_a_while(key: Any) -> Any:
    x = np.zeros(2)
    while x[0] < 100:
        x += random.uniform(key, (2,)) + 1
    return x


def in_a_nest(key: Any) -> Any:
    out = np.zeros((300, 300, 2))
    for i in range(300):
        own = random.fold_in(key, i)
        for j in range(300):
            out[i, j] = random.normal(own, (2,))
    return out


def of_a_constant(key: Any) -> Any:
    out = np.zeros((300, 2))
    for i in range(300):
        out[i] = random.normal(random.key(3), (2,))
    return out


@pytest.mark.parametrize("function", [in_a_for_loop, in_a_scan, in_a_while, in_a_nest, of_a_constant])
def test_a_key_that_each_iteration_uses_gives_a_warning(function: Any) -> None:
    with pytest.warns(ml.errors.KeyReuseWarning, match="each iteration draws the same numbers") as caught:
        ml.trace(function, random.key(0))
    (found,) = [w for w in caught if w.category is ml.errors.KeyReuseWarning]
    assert found.filename == __file__ and 0 < found.lineno - function.__code__.co_firstlineno < 8


def test_a_loop_that_is_unrolled_gives_one_warning() -> None:
    with pytest.warns(ml.errors.KeyReuseWarning) as caught:
        ml.trace(lambda key: [random.normal(key) for _ in range(5)], random.key(0))
    assert len(caught) == 1


def of_its_row(keys: Any) -> Any:
    out = np.zeros((300, 2))
    for i in range(300):
        out[i] = random.normal(keys[i], (2,))
    return out


def of_the_iteration(keys: Any) -> Any:
    out = np.zeros((300, 2))
    for i in range(300):
        out[i] = random.normal(random.fold_in(keys[0], i), (2,))
    return out


def carried(keys: Any) -> Any:
    key, out = keys[0], np.zeros((300, 2))
    for i in range(300):
        key, own = random.split(key)
        out[i] = random.normal(own, (2,))
    return out


def stored(keys: Any) -> Any:
    out = np.zeros((300, 2))
    for i in range(300):
        out[i] = random.normal(keys[0], (2,))
        keys[0] = random.fold_in(keys[0], i)
    return out


def carried_by_scan(keys: Any) -> Any:
    return ml.scan(lambda total, key: (total + random.normal(key, (2,)), total), np.zeros(2), keys)


@pytest.mark.parametrize("function", [of_its_row, of_the_iteration, carried, stored, carried_by_scan])
def test_a_key_of_each_iteration_gives_no_warning(function: Any, recwarn: pytest.WarningsRecorder) -> None:
    ml.trace(function, random.split(random.key(0), 300))
    assert not [w for w in recwarn if w.category is ml.errors.KeyReuseWarning]


def test_keys_that_are_used_once_give_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    def once(key: Any, choose: Any) -> Any:
        first, second = random.split(key)
        drawn = ml.cond(choose, lambda: random.normal(first), lambda: random.uniform(first))
        return drawn + random.gamma(second, 2.0) + random.poisson(random.fold_in(key, 1), 3.0)

    ml.compile(once)(random.key(0), True)
    assert not [w for w in recwarn if w.category is ml.errors.KeyReuseWarning]


SHARED = {
    "captured": lambda key, keys, x: ml.vmap(lambda x: x + random.normal(key))(x),
    "an argument": lambda key, keys, x: ml.vmap(lambda key, x: x + random.normal(key), in_axes=(None, 0))(key, x),
    "split before": lambda key, keys, x: ml.vmap(lambda x: x + random.normal(keys[0]))(x),
    "split by each": lambda key, keys, x: ml.vmap(lambda x: x + random.normal(random.split(key)[0]))(x),
    "known": lambda key, keys, x: ml.vmap(lambda x: x + random.normal(random.key(3)))(x),
}
OWN = {
    "mapped": lambda key, keys, x: ml.vmap(lambda key, x: x + random.normal(key))(keys, x),
    "folded": lambda key, keys, x: ml.vmap(lambda i, x: x + random.normal(random.fold_in(key, i)))(np.arange(4), x),
    "chosen": lambda key, keys, x: ml.vmap(lambda i, x: x + random.normal(keys[i]))(np.arange(4), x),
    "after": lambda key, keys, x: ml.vmap(np.sin)(x) + random.normal(key, (4,)),
    "a derivative": lambda key, keys, x: ml.jacfwd(lambda x: x * random.normal(key, (4,)))(x),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_key_that_all_examples_share_is_warned_of(name: str) -> None:
    given = random.key(1), random.split(random.key(2), 4), np.ones(4)
    with pytest.warns(ml.errors.KeyReuseWarning, match="all examples draw the same numbers"):
        found = ml.compile(SHARED[name])(*given)
    assert len(set(found)) == 1
    with pytest.warns(ml.errors.KeyReuseWarning, match="all examples draw the same numbers"):
        SHARED[name](*given)


@pytest.mark.parametrize("name", OWN)
def test_keys_of_each_example_are_not_warned_of(name: str, recwarn: pytest.WarningsRecorder) -> None:
    given = random.key(1), random.split(random.key(2), 4), np.ones(4)
    found = ml.compile(OWN[name])(*given)
    assert len(set(found.reshape(-1))) >= 4
    assert not [w for w in recwarn if w.category is ml.errors.KeyReuseWarning]
