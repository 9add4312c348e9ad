"""Devices in a forked child: an error that says what to do, and nothing that waits for threads of the parent."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from mlirml.runtime import cuda
from tests.runtime.test_cuda_device import fake, path  # noqa: F401  (fixtures)
from tests.targets.drivers import needs_vulkan

SCRIPT = """
import gc, os, sys
import numpy as np
import mlirml as ml
kind = sys.argv[1]
if kind == "cuda":
    from mlirml.runtime import cuda
    cuda.LIBRARY = sys.argv[2]
x = np.arange(8, dtype=np.float32)
there = ml.put(x, kind)
compiled = ml.compile(lambda x: x * 2 + 1, target=kind)
if kind == "vulkan":
    compiled(there).numpy()
child = os.fork()
if not child:
    for use in (there.numpy, lambda: ml.put(x, kind), there.device.synchronize, lambda: compiled(x)):
        try:
            use()
            print("no error", flush=True)
        except ml.LaunchError as error:
            print(str(error).replace("\\n", " "), flush=True)
    del there
    gc.collect()
    np.testing.assert_array_equal(ml.compile(lambda x: x * 3)(x), x * 3)
    sys.exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
np.testing.assert_array_equal(there.numpy(), x)
print("child", code)
"""


def check(*arguments: str) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=60)
    *errors, last = run.stdout.splitlines()
    assert last == "child 0", run.stdout + run.stderr
    assert len(errors) == 4
    for error in errors:
        assert "was opened by the parent of this process, and does not survive a fork" in error
        assert 'multiprocessing.get_context("spawn")' in error


@needs_vulkan
def test_a_vulkan_device() -> None:
    check("vulkan")


def test_a_cuda_device(fake: Any) -> None:  # noqa: F811
    check("cuda", cuda.LIBRARY)


@needs_vulkan
def test_a_device_that_only_the_library_was_asked_for() -> None:
    lines = [
        "import os, sys, mlirml as ml",
        "ml.devices()",
        "if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))",
        "try: ml.put(__import__('numpy').ones(3), 'vulkan')",
        "except ml.TargetError as error: sys.exit('survive a fork' not in str(error))",
        "sys.exit(2)",
    ]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], timeout=60).returncode == 0
