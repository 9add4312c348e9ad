"""Every function of `mlirml.nn.functional` with every dtype on every target, against itself on real arrays.

What the functions mean on real arrays is tested by test_against_formulas.py.
"""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

from mlirml.ir.text.dtypes import short_name
from mlirml.nn import functional as F
from mlirml.ops.registry import NN, OpDef
from tests.fuzz.oracle import TARGETS
from tests.nn.samples import SAMPLERS, calls_of
from tests.ops.samples import of_each_group
from tests.ops.test_records import is_refused, numpy_takes, quiet, run
from tests.test_structure import HEAVY

RECORDS = [NN[name] for name in sorted(NN)]
__all__ = ["quiet"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
@of_each_group
def test_record(record: OpDef, target: str, dtypes: list[np.dtype]) -> None:
    calls, failures = [], []
    for dtype in dtypes:
        sampled = calls_of(record, dtype)
        if short_name(dtype) in record.dtypes:
            calls += sampled
        else:
            failures += [
                f"{call}: compiled" for call in sampled[:1] if numpy_takes(call) or not is_refused(call, target)
            ]
    failures += run(record, calls, target) if calls else []
    if failures:
        pytest.fail(f"{record.name} on {target}: {len(failures)} failures\n" + "\n".join(failures[:20]), pytrace=False)


def test_every_record_has_a_sampler_and_a_function() -> None:
    assert sorted(SAMPLERS) == sorted(NN)
    assert sorted(F.__all__) == sorted(NN)


@pytest.mark.parametrize("record", [r for r in RECORDS if r.kind == "nn"], ids=lambda record: record.name)
def test_both_ways_take_the_same_arguments(record: OpDef) -> None:
    theirs = inspect.signature(record.reference).parameters.values()
    ours = record.signature.parameters.values()
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]


def test_importing_is_light() -> None:
    program = "import sys, mlirml.nn.functional; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(loaded.stdout.split()) & set(HEAVY) == set()
