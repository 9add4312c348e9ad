"""The compiler's libraries are loaded ahead: in a thread, once, and not for programs that the cache holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import threading
import numpy as np
import mlirml as ml

started = []
start = threading.Thread.start
threading.Thread.start = lambda self: (started.append(self.name), start(self))[1]

def double(x):
    started.append("traced")
    return x + x

ml.compile(double)(np.ones(3))
ml.compile(lambda x: x * 3)(np.ones(3))
print(*(name for name in started if name in ("traced", "mlirml-preload")))
"""


def threads(folder: Path, **variables: str) -> str:
    settings = {**os.environ, "MLIRML_CACHE_DIR": str(folder), "MLIRML_CACHE": "1", "MLIRML_THREADS": "2", **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=settings, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_libraries_are_loaded_while_the_function_is_traced(tmp_path: Path) -> None:
    expected = "mlirml-preload traced" if len(os.sched_getaffinity(0)) > 1 else "traced"
    assert threads(tmp_path, MLIRML_CACHE="0") == expected
    assert threads(tmp_path / "none yet") == expected


def test_a_program_from_the_cache_loads_none_of_them(tmp_path: Path) -> None:
    threads(tmp_path)
    assert threads(tmp_path) == "traced"


def test_one_thread_stays_one(tmp_path: Path) -> None:
    assert threads(tmp_path, MLIRML_CACHE="0", MLIRML_THREADS="1") == "traced"
