"""Operation records by way of WGSL, which wgpu translates for the Vulkan driver here, against NumPy.

A sample of the records, with those whose kernels have forms of their own in WGSL; all with `MLIRML_ALL_CALLS=1`.
"""

from __future__ import annotations

import os

import pytest

from mlirml.ops import OpDef
from tests.ops.test_device_records import RECORDS, chosen, quiet, refused  # noqa: F401
from tests.ops.test_records import run
from tests.targets.drivers import needs_vulkan

pytestmark = needs_vulkan

_ALL = os.environ.get("MLIRML_ALL_CALLS") == "1"
_OWN = ("all", "bitwise_count", "clip", "cos", "fmax", "gcd", "matmul", "power", "remainder", "softmax")
CHOSEN = [r for number, r in enumerate(RECORDS) if _ALL or number % 31 == 5 or r.name in _OWN]


@pytest.mark.parametrize("record", CHOSEN, ids=lambda record: record.name)
def test_record(record: OpDef) -> None:
    calls = chosen(record, "webgpu")
    without = set(map(id, refused(record, calls, "webgpu"))) if calls else set()
    calls = [call for call in calls if id(call) not in without]
    if not calls:
        pytest.skip("computes with 64-bit numbers")
    failures = list(run(record, calls, "webgpu"))
    if failures:
        pytest.fail(f"{record.name}: {len(failures)} failures\n" + "\n".join(failures[:20]), pytrace=False)
