"""Programs as people write them, against NumPy: results, dtypes, shapes, and the arguments that they store into.

Each program is compiled once for a dtype and a target, and called with arguments of several memory layouts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.errors import CaptureError
from tests.fuzz.oracle import TARGETS, assert_same, cloned
from tests.fuzz.real_programs.program import PROGRAMS, Program

for file in sorted(Path(__file__).with_name("real_programs").glob("*.py")):
    importlib.import_module(f"tests.fuzz.real_programs.{file.stem}")


def spaced(array: np.ndarray) -> np.ndarray:
    """Every second element of a larger array, the last axis backwards."""
    large = np.full(tuple(2 * n for n in array.shape), 7, array.dtype)
    view: np.ndarray = large[tuple(slice(None, None, 2) for _ in array.shape)][..., ::-1]
    view[...] = array
    return view


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "spaced": spaced,
}
CASES = [(program, dtype) for program in PROGRAMS.values() for dtype in program.dtypes]


def laid_out(tree: Any, layout: Callable[[np.ndarray], np.ndarray]) -> Any:
    leaves, structure = flatten(tree)
    return structure.unflatten([layout(x) if isinstance(x, np.ndarray) and x.ndim else x for x in leaves])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("program", "dtype"), CASES, ids=[f"{p.name}-{d}" for p, d in CASES])
def test_program(program: Program, dtype: str, target: str) -> None:
    compiled = ml.compile(program.function, target, static_argnums=program.static_argnums)
    for name, layout in LAYOUTS.items():
        original = laid_out(program.arguments(dtype), layout)
        expected_arguments, arguments = cloned(original), cloned(original)
        expected = program.function(*expected_arguments)
        result = compiled(*arguments)
        where = f"{program.name}, {name}"
        assert_same(result, expected, f"{where}: result", program.tolerance(dtype))
        for number, (after, expected) in enumerate(zip(arguments, expected_arguments)):
            if number not in program.static_argnums:
                assert_same(after, expected, f"{where}: argument {number}", program.tolerance(dtype))


def test_rows_are_not_added_to_an_argument() -> None:
    def grow(x: np.ndarray, history: list[list[np.ndarray]]) -> np.ndarray:
        history.append([x.sum()])
        return x

    with pytest.raises(CaptureError, match="other items after the call than before") as caught:
        ml.compile(grow)(np.ones(3), [])
    assert caught.value.location is not None
    assert caught.value.location.function == "grow"
