"""Mistakes in loops and branches: carries that change, branches that differ, stores and arrays that get lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3, np.float32)


def check(function: Callable[..., Any], expected: str, *arguments: Any, eager: bool = False) -> None:
    """Assert what compiling shows, and that the same is shown uncompiled."""
    check_error(lambda: ml.compile(function)(*arguments or (X,)), expected)
    if eager:
        check_error(lambda: function(*arguments or (X,)), expected)


def another_dtype(x: Any) -> Any:
    def body(i: Any, carry: Any) -> Any:
        return {"w": carry["w"] * np.float64(2), "n": carry["n"] + 1}

    return ml.fori_loop(0, 3, body, {"w": x, "n": 0})


def another_shape(x: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        return np.stack([carry, carry]), None

    return ml.scan(body, x, x)


def another_structure(x: Any) -> Any:
    return ml.while_loop(
        lambda c: np.sum(c[0]) < 9,
        lambda c: (c[0], c[1], c[1]),
        (x, x),
    )


def different_branches(x: Any) -> Any:
    return ml.cond(np.all(x > 0), lambda x: {"a": x, "b": x}, lambda x: {"a": x, "b": x > 0}, x)


def different_structures(x: Any) -> Any:
    return ml.cond(np.all(x > 0), lambda x: (x, x), lambda x: x, x)


def test_a_carry_that_changes_its_dtype() -> None:
    check(
        another_dtype,
        """
        mlirml.DTypeError: fori_loop: the carry changes its type, carry['w']: f32[3] in, f64[3] out
          --> test_control_flow.py:25:16 (body)
            |
         25 |         return {"w": carry["w"] * np.float64(2), "n": carry["n"] + 1}
            |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: convert what is returned, `.astype(np.float32)`, or start with an array of dtype float64
        """,
        eager=True,
    )


def test_a_carry_that_changes_its_shape() -> None:
    check(
        another_shape,
        """
        mlirml.ShapeError: scan: the carry changes its type, carry: f32[3] in, f32[2,3] out
          --> test_control_flow.py:32:16 (body)
            |
         32 |         return np.stack([carry, carry]), None
            |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: shapes are fixed when the function is compiled: reshape or broadcast what is returned
        """,
        eager=True,
    )


def test_a_carry_that_changes_its_structure() -> None:
    check(
        another_structure,
        """
        mlirml.CaptureError: while_loop: the body returns a carry of another structure
          --> test_control_flow.py:40:19 (<lambda>)
            |
         40 |         lambda c: (c[0], c[1], c[1]),
            |                   ^^^^^^^^^^^^^^^^^^
           = note: expected carry[0], carry[1]
           = note: returned carry[0], carry[1], carry[2]
           = help: return the same containers, with the same keys, in the same order
        """,
        eager=True,
    )


def test_branches_of_different_types() -> None:
    check(
        different_branches,
        """
        mlirml.DTypeError: cond: the branches differ in type, result['b']: f32[3] in `true_fn`, bool[3] in `false_fn`
          --> test_control_flow.py:46:73 (<lambda>)
            |
         46 |     return ml.cond(np.all(x > 0), lambda x: {"a": x, "b": x}, lambda x: {"a": x, "b": x > 0}, x)
            |                                                                         ^^^^^^^^^^^^^^^^^^^^
           = help: convert what is returned, `.astype(np.float32)`
        """,
    )


def test_branches_of_different_structures() -> None:
    check(
        different_structures,
        """
        mlirml.CaptureError: cond: `false_fn` returns another structure than `true_fn`
          --> test_control_flow.py:50:63 (<lambda>)
            |
         50 |     return ml.cond(np.all(x > 0), lambda x: (x, x), lambda x: x, x)
            |                                                               ^
           = note: expected result[0], result[1]
           = note: returned result
           = help: return the same containers, with the same keys, in the same order
        """,
    )


def store_outside(x: Any) -> Any:
    total = np.zeros(3)

    def body(i: Any, c: Any) -> Any:
        total[0] += 1
        return c

    ml.fori_loop(0, 3, body, x)
    return total


def store_in_a_branch(x: Any) -> Any:
    def fill(y: Any) -> Any:
        y[0] = 1
        return y

    return ml.cond(np.all(x > 0), fill, lambda y: y, x)


def store_in_a_condition(x: Any) -> Any:
    def go(c: Any) -> Any:
        c[0] = 1
        return c[0] < 3

    return ml.while_loop(go, lambda c: c + 1, x)


def test_a_store_into_an_array_from_outside() -> None:
    check(
        store_outside,
        """
        mlirml.CaptureError: a store into an array from outside of the body of `ml.fori_loop`
          --> test_control_flow.py:134:9 (body)
             |
         134 |         total[0] += 1
             |         ^^^^^^^^
           = help: pass the array in and return its new value, or store into a `.copy()`
        """,
    )


def test_a_store_into_the_operand_of_a_branch() -> None:
    check(
        store_in_a_branch,
        """
        mlirml.CaptureError: a store into an array from outside of a branch of `ml.cond`
          --> test_control_flow.py:143:9 (fill)
             |
         143 |         y[0] = 1
             |         ^^^^
           = help: pass the array in and return its new value, or store into a `.copy()`
        """,
    )


def test_a_store_into_the_carry_of_a_condition() -> None:
    check(
        store_in_a_condition,
        """
        mlirml.CaptureError: a store into the carry inside of the condition of `ml.while_loop`
          --> test_control_flow.py:151:9 (go)
             |
         151 |         c[0] = 1
             |         ^^^^
           = help: take a `.copy()` first, and store into that
        """,
    )


def keep(x: Any) -> Any:
    kept = []

    def body(i: Any, c: Any) -> Any:
        kept.append(c * 2)
        return c + 1

    ml.fori_loop(0, 3, body, x)
    return kept[0] + 1


def return_kept(x: Any) -> Any:
    kept = []
    ml.scan(lambda c, row: (kept.append(row) or c, None), 0.0, x)
    return kept[0]


def test_an_array_that_outlives_its_round() -> None:
    check(
        keep,
        """
        mlirml.LeakedTracerError: a traced array (f32[3]) from the body of `ml.fori_loop` is used outside of it
          --> test_control_flow.py:207:12 (keep)
             |
         207 |     return kept[0] + 1
             |            ^^^^^^^^^^^
           = help: return it from there; do not keep it in a list, a closure or an attribute
        """,
    )


def test_an_array_that_is_returned_from_another_region() -> None:
    check(
        return_kept,
        """
        mlirml.LeakedTracerError: a traced array (f32[]) from the body of `ml.scan` is used outside of it
          --> test_control_flow.py:213:12 (return_kept)
             |
         213 |     return kept[0]
             |            ^^^^^^^
           = help: return it from there; do not keep it in a list, a closure or an attribute
        """,
    )


def test_a_condition_of_several_elements() -> None:
    check(
        lambda x: ml.while_loop(lambda c: c > 0, lambda c: c - 1, x),
        """
        mlirml.ShapeError: while_loop: the condition must be one number, got bool[3]
          --> test_control_flow.py:246:43 (<lambda>)
             |
         246 |         lambda x: ml.while_loop(lambda c: c > 0, lambda c: c - 1, x),
             |                                           ^^^^^
           = help: join the elements with `np.all` or `np.any`; to select element by element use `np.where`
        """,
    )


def test_a_body_that_returns_no_pair() -> None:
    check(
        lambda x: ml.scan(lambda c, row: c + row, 0.0, x),
        """
        mlirml.CaptureError: scan: the body must return a pair (carry, y), got an array
          --> test_control_flow.py:260:42 (<lambda>)
             |
         260 |         lambda x: ml.scan(lambda c, row: c + row, 0.0, x),
             |                                          ^^^^^^^
           = help: return `carry, None` where there is nothing to collect
        """,
    )


def test_sequences_of_different_lengths() -> None:
    check(
        lambda x: ml.scan(lambda c, row: (c, row), 0.0, {"a": x, "b": x[:2]}),
        """
        mlirml.ShapeError: scan: sequences of different lengths, 3 of xs['a'] and 2 of xs['b']
          --> test_control_flow.py:274:19 (<lambda>)
             |
         274 |         lambda x: ml.scan(lambda c, row: (c, row), 0.0, {"a": x, "b": x[:2]}),
             |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_no_length() -> None:
    check(
        lambda x: ml.scan(lambda c, row: (c, None), x),
        """
        mlirml.ShapeError: scan: the number of iterations is not known
          --> test_control_flow.py:287:19 (<lambda>)
             |
         287 |         lambda x: ml.scan(lambda c, row: (c, None), x),
             |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass `length=` where there are no `xs`
        """,
    )


def test_a_length_that_is_traced() -> None:
    check(
        lambda x, n: ml.scan(lambda c, row: (c, None), x, length=n),
        """
        mlirml.CaptureError: scan: `length` must be known when the function is compiled
          --> test_control_flow.py:301:22 (<lambda>)
             |
         301 |         lambda x, n: ml.scan(lambda c, row: (c, None), x, length=n),
             |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: use `ml.fori_loop`, whose bounds may be arrays, or make the argument static (`static_argnums`)
        """,
        X,
        3,
    )


def test_a_bound_that_is_no_integer() -> None:
    check(
        lambda x: ml.fori_loop(0, x[0], lambda i, c: c, x),
        """
        mlirml.DTypeError: fori_loop: `upper` must be an integer, got f32[]
          --> test_control_flow.py:317:19 (<lambda>)
             |
         317 |         lambda x: ml.fori_loop(0, x[0], lambda i, c: c, x),
             |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: convert it with `.astype(int)`
        """,
    )


def test_a_loop_variable_that_may_not_fit() -> None:
    check(
        lambda x, n: ml.fori_loop(0, n, lambda i, c: c + i, x),
        """
        mlirml.DTypeError: a value computed from Python integers is narrowed to i8, and may not fit
          --> test_control_flow.py:331:54 (<lambda>)
             |
         331 |         lambda x, n: ml.fori_loop(0, n, lambda i, c: c + i, x),
             |                                                      ^^^^^
           = help: convert it, `np.asarray(n).astype(np.int8)`, or pass the argument as a NumPy scalar
        """,
        X.astype(np.int8),
        3,
    )


def test_python_control_flow_in_a_body() -> None:
    def body(i: Any, c: Any) -> Any:
        return c if c[0] > 0 else c + 1

    check(
        ml.compile(lambda x: ml.fori_loop(0, 3, body, x), frontend="trace"),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_control_flow.py:347:21 (body)
             |
         347 |         return c if c[0] > 0 else c + 1
             |                     ^^^^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`
        """,
    )


def another_function(x: Any) -> Any:
    def body(i: Any, carry: Any) -> Any:
        return carry[0] * 2, np.cos

    return ml.fori_loop(0, 3, body, (x, np.sin))[0]


def another_name(x: Any) -> Any:
    return ml.cond(np.all(x > 0), lambda: {"x": x, "mode": "mean"}, lambda: {"x": x, "mode": x})["x"]


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x


def an_object(x: Any) -> Any:
    return ml.fori_loop(0, 3, lambda i, carry: carry, (x, Counter()))[0]


def test_a_function_in_the_carry_that_changes() -> None:
    check(
        another_function,
        """
        mlirml.CaptureError: fori_loop: carry[1] is static and differs: `sin`, then `cos`
          --> test_control_flow.py:364:16 (body)
             |
         364 |         return carry[0] * 2, np.cos
             |                ^^^^^^^^^^^^^^^^^^^^
           = help: functions and strings belong to the program; choose between functions with `ml.cond` or `ml.switch`
        """,
        eager=True,
    )


def test_a_name_that_differs_between_branches() -> None:
    check(
        another_name,
        """
        mlirml.CaptureError: cond: result['mode'] is static and differs: 'mean', then a value
          --> test_control_flow.py:370:77 (<lambda>)
             |
         370 |     return ml.cond(np.all(x > 0), lambda: {"x": x, "mode": "mean"}, lambda: {"x": x, "mode": x})["x"]
             |                                                                             ^^^^^^^^^^^^^^^^^^^
           = help: functions and strings belong to the program; choose between functions with `ml.cond` or `ml.switch`
        """,
    )


def test_an_object_with_attributes_in_the_carry() -> None:
    check(
        an_object,
        """
        mlirml.DTypeError: carry[1] is a Counter: only arrays, numbers and containers of them can be passed on
          --> test_control_flow.py:383:12 (an_object)
             |
         383 |     return ml.fori_loop(0, 3, lambda i, carry: carry, (x, Counter()))[0]
             |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
