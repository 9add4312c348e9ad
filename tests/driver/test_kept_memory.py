"""Nothing is kept of a program that nobody has any more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, gc, sys
import numpy as np
import mlirml as ml

class Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
if mallinfo is None:
    sys.exit("glibc is older than 2.33")
mallinfo.restype = Statistics

def used():
    gc.collect()
    found = mallinfo()
    return found.uordblks + found.hblkhd

x, w = np.ones((3, 4)), np.ones((4, 5))

def compile_some(count):
    for k in range(count):
        compiled = ml.compile(lambda x, w: np.tanh(x @ w + float(k)).sum(axis=0))
        compiled(x, w), compiled(x, w)

ml.config.cache = sys.argv[1] == "warm"
compile_some(60)
before = used()
compile_some(60)
print((used() - before) / 60)
"""


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_a_program_that_is_dropped_keeps_no_memory(cache: str, tmp_path: object) -> None:
    environment = {**os.environ, "MLIRML_CACHE_DIR": f"{tmp_path}/cache", "MLIRML_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, cache]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    if "glibc" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stderr == ""
    assert float(done.stdout) < 2000
