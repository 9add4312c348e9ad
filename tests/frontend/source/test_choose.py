"""Which functions are captured with their loops, functions that call each other, and `ml.loops`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check, same

V = np.arange(1.0, 7.0)


def has_loop(function: Any, *arguments: Any, **options: Any) -> bool:
    return "scf." in ml.compile(function, **options).trace(*arguments).as_text()


def fill(x):
    for i in range(len(x)):
        x[i] = i


def total(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def clipped(x):
    for i in range(len(x)):
        y = x[i]
        if y > 3:
            x[i] = 3


def calls_one(x):
    fill(x)


def sink(x):
    i = len(x) - 1
    while i > 0:
        if x[i] > x[i - 1]:
            x[i], x[i - 1] = x[i - 1], x[i]
        i -= 1


def layers(x, ws):
    for i in range(len(ws)):
        x = np.tanh(x * ws[i])
    return x


def layers_by_while(x, ws):
    i = 0
    while i < len(ws):
        x = np.tanh(x * ws[i])
        i += 1
    return x


def steps(x):
    for _ in range(3):
        x = x + 1
    return x


@pytest.mark.parametrize("function", [fill, total, clipped, calls_one, sink])
def test_loops_over_elements_stay_loops(function: Any) -> None:
    assert has_loop(function, V)
    if function not in (clipped, sink):
        assert not has_loop(function, V, frontend="trace")


@pytest.mark.parametrize(("function", "arguments"), [(layers, (V, [V, V])), (layers_by_while, (V, [V])), (steps, (V,))])
def test_loops_over_layers_are_unrolled(function: Any, arguments: tuple[Any, ...]) -> None:
    assert not has_loop(function, *arguments)
    assert has_loop(steps, V, frontend="loops")


def square_above(x, limit):
    if x > limit:
        return x * x
    return x


def add_rows(a, out):
    for i in range(len(out)):
        out[i] += square_above(a[i, 0], 2.0) + math.sqrt(a[i, 1])


def twice(a, out):
    for _ in range(2):
        add_rows(a, out)


def test_functions_that_are_called() -> None:
    check(twice, np.arange(1.0, 9.0).reshape(4, 2), np.zeros(4))


def test_functions_inside_of_functions() -> None:
    def outer(x, c):
        def scale(y):
            return y * c if y > 2 else y

        for i in range(len(x)):
            x[i] = scale(x[i]) + (lambda z: z if z < 3 else 3.0)(x[i])

    check(outer, V, 2.0)


def test_array_code_calls_loop_functions() -> None:
    @ml.loops
    def running_sum(x, start):
        s = start
        for i in range(len(x)):
            s += x[i]
            x[i] = s
        return s

    def array_code(x):
        y = x * 2
        last = running_sum(y, 1.0)
        return y + 1, last * np.max(y)

    for target in ("cpu", "reference"):
        same(ml.compile(array_code, target)(V), array_code(V), True, target)
    assert running_sum(V.copy(), 0.0) == 21
    assert "scf.for" in ml.compile(array_code).trace(V).as_text()
    assert "scf.for" in ml.compile(running_sum).trace(V, 1.0).as_text()


def test_loops_call_compiled_array_functions() -> None:
    normalise = ml.compile(lambda x: x / np.sum(x))

    def rows(a):
        for i in range(len(a)):
            a[i, :] = normalise(a[i, :])

    a = np.arange(1.0, 7.0).reshape(2, 3)
    compiled, expected = a.copy(), a.copy()
    ml.compile(rows)(compiled)
    rows(expected)
    same(compiled, expected, True, "rows")


def positive(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v * v
    return s


def test_compiled_functions_that_transforms_are_given_keep_their_branches() -> None:
    compiled, x = ml.compile(positive), np.array([2.0, -1.0, 3.0])
    expected = 2 * np.maximum(x, 0)
    for function in (compiled, ml.checkpoint(compiled), lambda x: compiled(x)):
        np.testing.assert_array_equal(ml.grad(function)(x), expected)
    np.testing.assert_array_equal(ml.compile(ml.grad(compiled))(x), expected)
    np.testing.assert_array_equal(ml.vmap(ml.compile(ml.grad(compiled)))(np.stack([x, -x])), [expected, [0, 2, 0]])
    with pytest.raises(ml.TracedBoolError):
        ml.grad(ml.compile(positive, frontend="trace"))(x)


def test_functions_with_custom_derivatives_keep_their_branches() -> None:
    by_tangents, backwards = ml.custom_jvp(positive), ml.custom_vjp(positive)
    by_tangents.defjvp(lambda xs, ts: (by_tangents(*xs), positive(xs[0]) * positive(ts[0])))
    backwards.defvjp(lambda x: (backwards(x), x), lambda x, ct: (x * ct,))
    x = np.array([2.0, -1.0, 3.0])
    for function in (by_tangents, backwards):
        assert ml.compile(function)(x) == positive(x)
        np.testing.assert_array_equal(ml.vmap(function)(np.stack([x, -x])), [13.0, 1.0])
    np.testing.assert_array_equal(ml.grad(backwards)(x), x)
    assert ml.jvp(by_tangents, (x,), (x,))[1] == 13.0**2


def test_independent_rounds_are_marked() -> None:
    def double(x):
        for i in ml.parallel(range(len(x))):
            x[i] *= 2

    check(double, V)
    assert "{mlirml.parallel}" in ml.compile(double).trace(V).as_text()


def test_constants_from_outside() -> None:
    table, factor = np.array([3.0, 1.0, 2.0]), 2

    def look_up(x):
        for i in range(len(x)):
            x[i] = table[i % 3] * factor

    check(look_up, V)


def test_functions_of_numbers() -> None:
    def numbers(x, y):
        for i in range(len(x)):
            a = int(x[i] * 3.7) + round(x[i] * 1.3) + bool(i) + abs(-i)
            b = math.floor(x[i]) + math.hypot(x[i], 2.0) + float(i) + math.log(x[i], 2) + math.atan2(x[i], i)
            y[i] = (
                min(x[i] + a, b, 9.5)
                + max(x[i], 2.5)
                + np.float32(x[i]) / x[i]
                + divmod(i, 2)[1]
                + i**2
                + np.exp(-x[i])
            )

    check(numbers, V, np.zeros(6))
    check(numbers, V.astype(np.float32), np.zeros(6, np.float32))


def collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def power(x, n):
    for _ in range(n):
        x = x * 2
    return x


def test_loops_that_the_data_end_stay_loops() -> None:
    assert has_loop(collatz, 27) and has_loop(power, V, 3)
    assert ml.compile(collatz)(27) == collatz(27) == 111
    np.testing.assert_array_equal(ml.compile(power)(V, 3), V * 8)
    with pytest.raises(ml.TracedBoolError):
        ml.compile(collatz, frontend="trace")(np.int64(27))
