"""Reductions that mlirml-recognise writes in the form of the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.raising.generics import Generic, before_and_after, check, numbers, recognised

ROWS = ["i, k", "i"]


def body(compare: str, dtype: str, first: str = "%a, %o", chosen: str = "%a, %o") -> str:
    return f"%c = arith.cmp{compare}, {first} : {dtype}\n%r = arith.select %c, {chosen} : {dtype}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (body("f ogt", "f64"), "arith.maxnumf"),
        (body("f olt", "f64", "%o, %a"), "arith.maxnumf"),
        (body("f ole", "f64"), "arith.minnumf"),
        (body("f oge", "f64", "%o, %a"), "arith.minnumf"),
    ],
)
def test_extremes_pass_over_nan(text: str, name: str) -> None:
    x, start = numbers((5, 9), "float64", 0), numbers((5,), "float64", 1)
    x[1, 3], x[2, :], start[3], x[4, 0] = np.nan, np.nan, np.nan, np.inf
    generic = Generic("iK", ROWS, text)
    check(generic, [x], [start], native=True)
    assert name in str(recognised(generic.text([x], [start])))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (body("i sgt", "i32"), "arith.maxsi"),
        (body("i sgt", "i32", "%o, %a", "%o, %a"), "arith.maxsi"),
        (body("i sle", "i32", "%o, %a", "%o, %a"), "arith.minsi"),
        (body("i ult", "i32"), "arith.minui"),
    ],
)
def test_extremes_of_integers(text: str, name: str) -> None:
    generic = Generic("iK", ROWS, text)
    x, start = numbers((5, 9), "int32", 0), numbers((5,), "int32", 1)
    check(generic, [x], [start])
    assert name in str(recognised(generic.text([x], [start])))


@pytest.mark.parametrize(
    "text",
    [
        body("f ogt", "f64", "%o, %a", "%o, %a"),  # after NaN, the next number wins
        body("f ogt", "f64", "%a, %o", "%o, %a"),
        body("f ugt", "f64"),
        body("f oeq", "f64"),
    ],
)
def test_what_only_looks_like_an_extreme_stays(text: str) -> None:
    x, start = numbers((5, 9), "float64", 0), numbers((5,), "float64", 1)
    x[1, 3] = np.nan
    generic = Generic("iK", ROWS, text)
    check(generic, [x], [start])
    assert "arith.cmpf" in str(recognised(generic.text([x], [start])))


def test_a_part_of_a_row() -> None:
    """`for j in range(i + 1): if x[i, j] > m[i]: m[i] = x[i, j]`."""
    text = "%i = linalg.index 0 : index\n%k = linalg.index 1 : index\n%m = arith.cmpi sle, %k, %i : index\n"
    text += "%c = arith.cmpf ogt, %a, %o : f64\n%s = arith.select %c, %a, %o : f64\n%r = arith.select %m, %s, %o : f64"
    generic = Generic("iK", ROWS, text)
    x, start = numbers((5, 9), "float64", 0), np.full(5, -np.inf)
    assert check(generic, [x], [start], native=True) == ["linalg.generic"] * 2
    assert "maxnumf" in str(recognised(generic.text([x], [start])))


def test_windows() -> None:
    text = body("f ogt", "f32")
    generic = Generic("cyxIJ", ["c, y * 2 + i, x * 2 + j", "i, j", "c, y, x"], text)
    x, start = numbers((3, 8, 10), "float32", 0), np.full((3, 4, 5), -np.inf, np.float32)
    check(generic, [x], [start], window=(2, 2), native=True)
    after = before_and_after(generic.text([x], [start], (2, 2)), [x, start])[1]
    np.testing.assert_array_equal(after[0], x.reshape(3, 4, 2, 5, 2).max((2, 4)))


@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "addi", "subi", "muli"])
@pytest.mark.parametrize("wanted", [True, False])
def test_masked_sums_combine_in_every_iteration(op: str, wanted: bool) -> None:
    dtype, kind = ("float64", "f64") if op.endswith("f") else ("int32", "i32")
    chosen = "%n, %o" if wanted else "%o, %n"
    text = f"%n = arith.{op} %o, %e : {kind}\n%r = arith.select %c, {chosen} : {kind}"
    text = f"%e = arith.{'divf' if kind == 'f64' else 'xori'} %a, %b : {kind}\n%c = arith.cmp" + (
        f"f ogt, %a, %b : f64\n{text}" if kind == "f64" else f"i sgt, %a, %b : i32\n{text}"
    )
    x, y, start = numbers((5, 9), dtype, 0), numbers((5, 9), dtype, 1), numbers((5,), dtype, 2)
    generic = Generic("iK", ["i, k", "i, k", "i"], text)
    check(generic, [x, y], [start])
    last = str(recognised(generic.text([x, y], [start]))).partition("linalg.yield")[0].strip().splitlines()[-1]
    assert f"arith.{op} %out" in last


def test_a_sum_with_two_outcomes_stays() -> None:
    text = "%n = arith.addf %o, %a : f64\n%c = arith.cmpf ogt, %o, %a : f64\n%r = arith.select %c, %n, %o : f64"
    x, start = numbers((5, 9), "float64", 0), numbers((5,), "float64", 1)
    generic = Generic("iK", ROWS, text)
    check(generic, [x], [start])
    assert "arith.select" in str(recognised(generic.text([x], [start])))


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("wanted", [True, False])
def test_masked_extremes_of_infinities(op: str, wanted: bool) -> None:
    chosen = "%m, %o" if wanted else "%o, %m"
    text = f"%m = arith.{op}numf %o, %a : f64\n%c = arith.cmpf ogt, %b, %z : f64\n%r = arith.select %c, {chosen} : f64"
    text = f"%z = arith.constant 0.0 : f64\n{text}"
    x, y = numbers((6, 40), "float64", 0), numbers((6, 40), "float64", 1)
    x[0, :], x[1, ::2], x[2, 1::3], x[3, :] = np.inf, -np.inf, np.nan, np.nan
    y[4, :], y[5, :] = 1.0, -1.0
    start = np.full(6, -np.inf if op == "max" else np.inf)
    check(Generic("iK", ["i, k", "i, k", "i"], text), [x, y], [start], native=True)
