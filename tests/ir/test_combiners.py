"""The table of combiners agrees with NumPy and with MLIR."""

from __future__ import annotations

import numpy as np
import pytest

from mlirml.dialects.atomics import KINDS, OPERATION_OF
from mlirml.ir.bindings import make_context, mlir
from mlirml.ir.combiners import COMBINERS, UFUNCS, Combiner, combiners_of, evaluate

DTYPES = {"b": [np.bool_], "i": [np.int8, np.int64], "u": [np.uint8, np.uint64], "f": [np.float32, np.float64]}
ROWS = list(COMBINERS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_the_identity_changes_no_element(row: Combiner) -> None:
    for ufunc, letters in row.ufuncs.items():
        for dtype in (each for letter in letters for each in DTYPES[letter]):
            x = np.array([-3, 0, 1, 100]).astype(dtype)
            identity = np.asarray(row.identity(8 * x.itemsize)).astype(dtype)
            assert np.array_equal(getattr(np, ufunc)(x, identity), x)
            assert np.array_equal(getattr(np, ufunc)(identity, x), x)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_an_idempotent_combiner_combines_an_element_twice_as_once(row: Combiner) -> None:
    x = np.array([2, 3, 5])
    assert np.array_equal(getattr(np, row.ufunc)(x, x), x) == row.is_idempotent


def test_a_function_has_one_combiner_for_a_dtype() -> None:
    for ufunc in UFUNCS:
        letters = [letter for row in ROWS for letter in row.ufuncs.get(ufunc, "")]
        assert sorted(letters) == sorted(set(letters))
        assert combiners_of(ufunc).keys() == set(letters)


def test_kinds_are_those_of_mlir() -> None:
    assert set(OPERATION_OF) == {*KINDS} - {"assign"}
    with make_context():
        for row in ROWS:
            if row.several is None:
                assert (
                    str(mlir.Attribute.parse(f"#vector.kind<{row.vector_kind}>")) == f"#vector.kind<{row.vector_kind}>"
                )


def test_a_formula_of_several_operations_is_its_function() -> None:
    functions = {
        "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.maximumf": np.maximum,
        "arith.minnumf": np.fmin, "arith.negf": np.negative, "math.absf": np.abs, "math.exp2": np.exp2,
        "math.log1p": np.log1p,
    }  # fmt: skip
    a, b = np.random.default_rng(0).standard_normal((2, 100))
    row = COMBINERS["logaddexp2"]
    found = evaluate(row.formula, {"a": a, "b": b}, lambda op, *xs: functions[op](*xs), np.float64)
    assert np.allclose(found, np.logaddexp2(a, b), rtol=1e-14)
