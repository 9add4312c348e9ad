"""Tables of op records: complete to whoever reads them, though modules are imported when their records are needed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import mlirml.dialects.ops
from mlirml.dialects.ops import BY_FUNCTION, BY_METHOD, OPS


def test_the_tables_are_complete() -> None:
    listed = set(OPS), set(BY_FUNCTION), set(BY_METHOD)
    for file in Path(mlirml.dialects.ops.__path__[0]).glob("*.py"):
        importlib.import_module(f"mlirml.dialects.ops.{file.stem}")
    of_nn = {function for function, record in BY_FUNCTION.items() if record.kind in ("nn", "composite")}
    assert (set(OPS), set(BY_FUNCTION) - of_nn, set(BY_METHOD)) == (listed[0], listed[1] - of_nn, listed[2])


PROGRAM = """
import sys
import numpy as np
import mlirml as ml

def late():
    return {m.rpartition(".")[2] for m in sys.modules if m.startswith("mlirml.dialects.ops.")} & {
        "sorting", "statistics", "complex", "complex_functions"
    }

x = np.array([[3.0, 1.0], [2.0, 5.0]])
print(np.array_equal(ml.compile(lambda x: np.tanh(np.sum(x @ x, 1)))(x), np.tanh(np.sum(x @ x, 1))), sorted(late()))
print(np.array_equal(ml.compile(np.median)(x), np.median(x)), "statistics" in late(), "complex" in late())
print(np.array_equal(ml.compile(lambda x: x * x)(x + 2j), (x + 2j) * (x + 2j)), "complex" in late())
"""


def test_modules_are_imported_when_their_records_are_needed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True []", "True True False", "True True"]
