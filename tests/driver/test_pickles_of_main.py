"""Compiled functions of a script go to other processes, whatever starts these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import multiprocessing, sys
import numpy as np
import mlirml as ml

def plain(x):
    return x * 2 + 1

compiled = ml.compile(plain)

@ml.compile
def decorated(x):
    return x * 3 + helper(x)

@ml.compile
def helper(x):
    return x * 0.5

@ml.compile(static_argnums=1)
def with_static(x, n):
    return x * n

class Model:
    def __init__(self):
        self.k = 5.0

    @ml.compile
    def method(self, x):
        return x * self.k

def call(fn, *arguments):
    return float(fn(*arguments))

def calls():
    return [(compiled, 1.0), (decorated, 1.0), (with_static, 1.0, 4), (Model().method, 1.0)]

if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            results = pool.starmap(call, calls())
    else:
        import joblib

        some = [joblib.delayed(fn)(*arguments) for fn, *arguments in calls()]
        some += [joblib.delayed(call)(*arguments) for arguments in calls()]
        results = joblib.Parallel(n_jobs=2, backend=how)(some)
        assert results[:4] == results[4:], results
    assert [float(result) for result in results[:4]] == [3.0, 3.5, 4.0, 5.0], results
    print("all right")
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "loky", "multiprocessing", "threading"])
def test_functions_of_a_script_go_to_other_processes(tmp_path: Path, how: str) -> None:
    if how in ("loky", "multiprocessing", "threading"):
        pytest.importorskip("joblib")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, path, how], capture_output=True, text=True, env=environment, timeout=120)
    assert (done.stderr, done.stdout) == ("", "all right\n")
