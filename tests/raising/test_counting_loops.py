"""`while` loops that count: which of them become `for`, and what is known of the numbers in them."""

from __future__ import annotations

import copy
import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed


def simple_tokens(text: Any, starts: Any, ends: Any) -> int:
    n = 0
    i = 0
    while i < len(text):
        if text[i] == 32:
            starts[n] = i
            ends[n] = i
            n += 1
        i += 1
    return n


def tokens(text: Any, starts: Any, ends: Any) -> int:
    n = 0
    i = 0
    while i < len(text):
        if text[i] != 32 and (i == 0 or text[i - 1] == 32):
            starts[n] = i
        if text[i] != 32 and (i + 1 == len(text) or text[i + 1] == 32):
            ends[n] = i + 1
            n += 1
        i += 1
    return n


def tokens_in_a_for(text: Any, starts: Any, ends: Any) -> int:
    n = 0
    start = -1
    for i in range(len(text)):
        if text[i] == 32:
            if start >= 0:
                starts[n] = start
                ends[n] = i
                n += 1
                start = -1
        elif start < 0:
            start = i
    if start >= 0:
        starts[n] = start
        ends[n] = len(text)
        n += 1
    return n


def tokens_in_two_whiles(text: Any, starts: Any, ends: Any) -> int:
    n = 0
    i = 0
    while i < len(text):
        if text[i] == 32:
            i += 1
        else:
            j = i
            while j < len(text) and text[j] != 32:
                j += 1
            starts[n] = i
            ends[n] = j
            n += 1
            i = j
    return n


def ids_above(x: Any, ids: Any, unused: Any) -> int:
    n = 0
    for i in range(len(x)):
        if x[i] > 100:
            ids[n] = i
            n += 1
    return n


TOKENISERS = (simple_tokens, tokens, tokens_in_a_for, tokens_in_two_whiles, ids_above)
TEXT = np.frombuffer(b"the quick  brown fox jumps over the lazy dog ", np.uint8)


@pytest.mark.parametrize("frontend", ["loops", "auto"])
@pytest.mark.parametrize("tokeniser", TOKENISERS)
@pytest.mark.parametrize("size", [len(TEXT), 8, 3])
def test_tokenisers_that_fill_arrays(tokeniser: Callable[..., int], frontend: str, size: int) -> None:
    """As in Python; where the arrays are too short, an error that leaves them as they were."""
    same_as_python(tokeniser, (TEXT, np.full(size, -7), np.full(size, -7)), frontend)


@pytest.mark.parametrize("tokeniser", [simple_tokens, tokens, ids_above])
def test_arrays_as_long_as_the_text_are_filled_in_place(tokeniser: Callable[..., int]) -> None:
    """All indices are known to be in bounds, so that no call can fail and nothing is copied."""
    compiled = ml.compile(tokeniser, frontend="loops")
    text = compiled.ir("schedule", TEXT, np.zeros(len(TEXT), np.int64), np.zeros(len(TEXT), np.int64))
    assert "cf.assert" not in text and "memref.copy" not in text
    assert "scf.while" not in text
    assert "mlirml.in_place = array<i64: 1" in text


def same_as_python(function: Callable[..., Any], arguments: tuple[Any, ...], frontend: str = "loops") -> None:
    """Check the result and the stores, or that both raise an `IndexError` and nothing is stored."""
    given, expected = copy.deepcopy(arguments), copy.deepcopy(arguments)
    compiled = ml.compile(function, frontend=frontend)
    try:
        with np.errstate(all="ignore"):
            result = function(*expected)
    except IndexError:
        with pytest.raises(IndexError):
            compiled(*given)
        expected = arguments
    else:
        assert compiled(*given) == result
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def random_loop(rng: random.Random) -> str:
    """A `while` on numbers that go up or down, with loads and stores at them, which may be out of bounds."""
    up = rng.random() < 0.7
    start, limit = (rng.randint(-3, 3), rng.randint(0, 12)) if up else (rng.randint(0, 12), rng.randint(-3, 3))
    step = rng.choice((1, 1, 1, 2, 3))
    test = f"i {rng.choice(('<', '<', '<=') if up else ('>', '>='))} {rng.choice((limit, 'len(x)')) if up else limit}"
    if rng.random() < 0.2:
        test = f"{limit} {'>' if up else '<'} i"
    if rng.random() < 0.3:
        test += f" and {rng.choice(('n < 9', 'x[i] != 3', 'm >= -20'))}"
    lines = [f"    n, m, i = {rng.randint(-1, 2)}, {rng.randint(-1, 4)}, {start}", f"    while {test}:"]
    move = f"        i {'+' if up else '-'}= {step}"
    early = rng.random() < 0.15
    lines += [move] * early
    for _ in range(rng.randint(1, 4)):
        name = rng.choice("nm")
        place = rng.choice(("i", "n", "m", "i + 1", "i - 1", "n - 1", "m + i"))
        value = rng.choice(("i", "n", "x[i]", "m * 2"))
        change = rng.choice((f"{name} += 1", f"{name} -= 1", f"{name} += {rng.randint(-2, 3)}", f"{name} = 0"))
        condition = rng.choice(
            ("x[i] % 2 == 0", "i != 0", f"i != {limit - 1}", "i + 1 == len(x) or x[i + 1] > 2", "n > m")
        )
        kind = rng.random()
        if kind < 0.4:
            lines += [f"        if {condition}:", f"            y[{place}] = {value}", f"            {change}"]
        elif kind < 0.7:
            lines.append(f"        y[{place}] = {value}")
        elif kind < 0.9:
            lines.append(f"        {change}")
        else:
            lines += [f"        if {condition}:", f"            {change}", "        else:", f"            {name} += 1"]
    lines += [move] * (not early)
    return "\n".join(["def f(x, y):", *lines, "    return n, m, i", ""])


def function_of(source: str, seed: int) -> Callable[..., Any]:
    """The function of a source that can be read back."""
    file = f"<counting {seed}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int) -> None:
    check_loop(seed)


@pytest.mark.skipif(not COUNT, reason="MLIRML_FUZZ is not set")
def test_many_random_loops() -> None:
    begin = first_seed()
    for seed in range(begin, begin + COUNT):
        check_loop(seed)


def check_loop(seed: int) -> None:
    rng = random.Random(seed)
    source = random_loop(rng)
    x = np.array([rng.randint(-4, 9) for _ in range(rng.choice((4, 8, 12)))])
    y = np.zeros(rng.choice((4, 12, 16)), np.int64)
    try:
        same_as_python(function_of(source, seed), (x, y))
    except BaseException:
        print(source, x, len(y))
        raise


@pytest.mark.parametrize("limit", [-5, 0, 7, 2**63 - 1])
@pytest.mark.parametrize("step", [1, 3])
def test_limits_that_are_given(limit: int, step: int) -> None:
    """A loop whose limit is known only at run time; one that would go on for ever ends by the other condition."""

    def counted(n: int) -> Any:
        i = 0
        s = 0
        while i < n:
            i += step
            s += i
            if s > 100:
                i = n
        return i, s

    def plain(n: int) -> Any:
        i = 2
        s = 0
        while i < n:
            s += i
            i += step
        return i, s

    assert ml.compile(counted, frontend="loops")(limit) == counted(limit)
    if limit < 100:
        assert ml.compile(plain, frontend="loops")(limit) == plain(limit)
