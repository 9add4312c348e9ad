"""Every operation record on each kind of device, in the dtypes that it has, against NumPy.

Drivers take longer to compile a kernel than NumPy takes for all calls: one or two calls of the usual dtypes are made.
With `MLIRML_ALL_CALLS=1` all are.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import mlirml as ml
import tests.ops.array_samples
import tests.ops.composed_samples
import tests.ops.index_samples  # noqa: F401  (all register their samplers)
from mlirml.core.tree import flatten
from mlirml.errors import TargetError
from mlirml.ir.text.dtypes import short_name
from mlirml.ops import OPS, OpDef
from mlirml.targets.vulkan import wide_dtypes
from tests.ops.samples import DTYPES, Call, calls_of
from tests.ops.test_records import is_taken, numpy_takes, run
from tests.targets.drivers import on_devices

RECORDS = [OPS[name] for name in sorted(OPS)]
_USUAL = {
    "vulkan": [np.dtype(name) for name in ("float32", "int32", "bool", "float64")],
    "webgpu": [np.dtype(name) for name in ("float32", "int32", "bool")],
    "cuda": [np.dtype(name) for name in ("float32", "int32", "bool", "float64", "float16", "int64")],
}
_ALL = os.environ.get("MLIRML_ALL_CALLS") == "1"
_DOUBLES = (np.dtype(np.float64), np.dtype(np.complex128))


def lacks(target: str) -> tuple[np.dtype, ...]:
    """The types that kernels for a target lack."""
    has_doubles = target == "cuda" or (
        target == "vulkan" and "f64" in wide_dtypes(ml.device("vulkan").capabilities["features"])
    )
    return () if has_doubles else _DOUBLES


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def chosen(record: OpDef, target: str) -> list[Call]:
    """The calls to make."""
    kinds: dict[str, list[Call]] = {}
    for dtype in DTYPES if _ALL else _USUAL[target]:
        if dtype in lacks(target) or short_name(dtype) in dict(record.gaps) or not is_taken(record, dtype):
            continue
        calls = [call for call in calls_of(record, dtype) if numpy_takes(call) and not has_wide(call, target)]
        kinds.setdefault(short_name(dtype) if _ALL else dtype.kind, []).extend(
            calls if _ALL else calls[: 2 if dtype.kind == "f" else 1]
        )
    return [call for calls in kinds.values() for call in calls]


def has_wide(call: Call, target: str) -> bool:
    """Whether arguments or results are of types that the device lacks."""
    leaves = call.leaves()
    result = call.apply(leaves)
    results = flatten(result)[0]
    arrays = [x for x in leaves if isinstance(x, np.ndarray)]
    return any(np.asarray(x).dtype in lacks(target) for x in [*arrays, *results])


def refused(record: OpDef, calls: list[Call], target: str) -> list[Call]:
    """The calls that compute with a type inside that the device lacks."""
    try:
        compiled = ml.compile(lambda groups: [call.apply(leaves) for call, leaves in zip(calls, groups)], target)
        compiled.ir("offload", [call.leaves() for call in calls])
    except TargetError:
        if len(calls) == 1:
            return calls
        middle = len(calls) // 2
        return refused(record, calls[:middle], target) + refused(record, calls[middle:], target)
    return []


@on_devices
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_record(record: OpDef, target: str) -> None:
    calls = chosen(record, target)
    if not calls:
        pytest.skip("works on 64-bit floats only")
    without = set(map(id, refused(record, calls, target)))
    calls = [call for call in calls if id(call) not in without]
    if not calls:
        pytest.skip("computes with 64-bit floats")
    failures = list(run(record, calls, target))
    if failures:
        pytest.fail(f"{record.name}: {len(failures)} failures\n" + "\n".join(failures[:20]), pytrace=False)
