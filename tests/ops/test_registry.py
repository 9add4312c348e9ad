"""Tables of op records: complete to whoever reads them, though modules are imported when their records are needed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import mlirml.ops
from mlirml.ops import BY_FUNCTION, BY_METHOD, OPS


def test_the_tables_are_complete() -> None:
    listed = set(OPS), set(BY_FUNCTION), set(BY_METHOD)
    folder = Path(mlirml.ops.__path__[0])
    for file in folder.rglob("*.py"):
        importlib.import_module(".".join(("mlirml.ops", *file.relative_to(folder).with_suffix("").parts)))
    of_nn = {function for function, record in BY_FUNCTION.items() if record.kind in ("nn", "composite")}
    assert (set(OPS), set(BY_FUNCTION) - of_nn, set(BY_METHOD)) == (listed[0], listed[1] - of_nn, listed[2])


PROGRAM = """
import sys
import numpy as np
import mlirml as ml

def late():
    return {m.removeprefix("mlirml.ops.") for m in sys.modules} & {
        "sorting", "statistics", "complex.records", "complex.functions"
    }

x = np.array([[3.0, 1.0], [2.0, 5.0]])
print(np.array_equal(ml.compile(lambda x: np.tanh(np.sum(x @ x, 1)))(x), np.tanh(np.sum(x @ x, 1))), sorted(late()))
print(np.array_equal(ml.compile(np.median)(x), np.median(x)), "statistics" in late(), "complex.records" in late())
print(np.array_equal(ml.compile(lambda x: x * x)(x + 2j), (x + 2j) * (x + 2j)), "complex.records" in late())
"""


def test_modules_are_imported_when_their_records_are_needed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True []", "True True False", "True True"]
