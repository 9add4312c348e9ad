"""Every function with a record under another library's name: values, derivatives and batches, from its record."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.ir.text.dtypes import from_short_name
from mlirml.ops.functions import PACKAGES, FunctionRecord, records_of
from tests.library.samples import SAMPLERS, Sample, samples_of
from tests.ops.samples import of_each_group
from tests.targets.drivers import needs_vulkan

pytest.importorskip("scipy")

RECORDS = [record for package in PACKAGES for record in records_of(package).values()]
of_each_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.package}.{record.name}")
TARGETS = ["cpu", "reference", pytest.param("vulkan", marks=needs_vulkan)]
ON_DEVICES = ("f32",)
"""The dtypes for which kernels are made in these tests, as drivers take long for each."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def expected_of(record: FunctionRecord, sample: Sample, dtype: str) -> list[Any]:
    """What the other library gives; for floats of 16 bits, which it has not, from those of 32 bits."""
    arrays = sample.arrays()
    if dtype not in ("f16", "bf16"):
        return sample.call(record.reference, [x.copy() for x in arrays])
    narrow = next(x.dtype for x in arrays if x.dtype.itemsize == 2)
    wide = [x.astype(np.float32) if x.dtype.itemsize == 2 else x for x in arrays]
    return [np.asarray(x).astype(narrow) for x in sample.call(record.reference, wide)]


def check(record: FunctionRecord, dtype: str, found: list[Any], expected: list[Any]) -> None:
    """The results are those expected, up to rounding; integers cut from floats may be the next one."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape, (dtype, one.shape, other.shape)
        floats = {"f16": 1e-3, "bf16": 8e-3, "f32": 1.2e-7, "c64": 1.2e-7}.get(dtype, 2.3e-16)
        largest = np.max(np.abs(other), initial=1.0) if other.dtype.kind != "b" else 1
        limit = 1 if other.dtype.kind in "iu" else record.tolerance * floats * float(largest)
        np.testing.assert_allclose(one + 0.0, other + 0.0, rtol=0, atol=limit, err_msg=f"{record.name} {dtype}")


@pytest.mark.parametrize("target", TARGETS)
@of_each_record
@of_each_group
def test_values(record: FunctionRecord, target: str, dtypes: list[np.dtype]) -> None:
    """Of each dtype, compiled for a target, and uncompiled, beside the other library."""
    calls = [
        (dtype, sample)
        for dtype in record.dtypes
        if from_short_name(dtype) in dtypes and (target != "vulkan" or dtype in ON_DEVICES)
        for sample in samples_of(record, dtype)
    ]
    if not calls:
        pytest.skip("has no form of 32 bits" if target == "vulkan" else "takes no such dtype")

    def every(groups: list[list[Any]]) -> list[Any]:
        return [sample.call(record.function, arrays) for (_, sample), arrays in zip(calls, groups)]

    compiled = ml.compile(every, target)([sample.arrays() for _, sample in calls])
    for (dtype, sample), found in zip(calls, compiled):
        expected = expected_of(record, sample, dtype)
        check(record, dtype, found, expected)
        if target == "cpu":
            plain = sample.call(record.function, sample.arrays())
            check(record, dtype, plain, expected)
            assert [np.asarray(x).dtype for x in found] == [np.asarray(x).dtype for x in plain], dtype


def moved_arrays(record: FunctionRecord, sample: Sample) -> list[int]:
    """The numbers of the arrays of floats in whose parameters the function has derivatives."""
    function = sample.member(record.function)
    names = [*inspect.signature(function).parameters]
    if "args" in names:
        names = ["arrays"] if names == ["args"] else ["x", *record.function.shapes]
    assert set(record.derivatives) <= {*names, "zi", "loc", "scale"}, names
    given = dict(zip(names, sample.args)) | sample.options
    if "arrays" in names:
        given["arrays"] = sample.args
    return [
        number
        for number, array in enumerate(sample.arrays())
        if array.dtype.kind == "f"
        and any(array is x for name in record.derivatives if name in given for x in flatten(given[name])[0])
    ]


@of_each_record
def test_derivatives(record: FunctionRecord) -> None:
    """In all parameters of the record, forward beside differences and reverse beside forward."""
    rng = np.random.default_rng(0)
    for sample in samples_of(record, "f64") if record.derivatives else []:
        arrays = sample.arrays()
        moved = moved_arrays(record, sample)
        assert moved, sample.args

        def of_moved(*given: Any, arrays: Any = arrays, moved: Any = moved, sample: Any = sample) -> list[Any]:
            every = list(arrays)
            for number, array in zip(moved, given):
                every[number] = array
            found = sample.call(record.function, every)
            return [x for x in found if x.dtype.kind in "fc"]

        point = [arrays[number] for number in moved]
        direction = [rng.standard_normal(x.shape) for x in point]
        step = 1e-5
        ends = [of_moved(*(x + sign * step * v for x, v in zip(point, direction))) for sign in (1, -1)]
        slopes = [(a - b) / (2 * step) for a, b in zip(*ends)]
        weights = [rng.standard_normal(x.shape) for x in slopes]

        def total(*given: Any, f: Any = of_moved, weights: Any = weights) -> Any:
            return sum(np.sum(np.real(x) * w) for x, w in zip(f(*given), weights))

        def both(*point: Any, f: Any = of_moved, t: Any = total, direction: Any = direction) -> Any:
            return ml.jvp(f, point, direction)[1], ml.grad(t, tuple(range(len(point))))(*point)

        tangents, gradients = ml.compile(both, "reference")(*point)
        for found, expected in zip(tangents, slopes, strict=True):
            assert np.isfinite(expected).all()
            scale = 1 + float(np.max(np.abs(expected), initial=0))
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * scale, err_msg=record.name)
        forward = sum(float(np.sum(np.real(x) * w)) for x, w in zip(tangents, weights))
        reverse = sum(float(np.sum(g * v)) for g, v in zip(gradients, direction))
        assert reverse == pytest.approx(forward, rel=1e-8, abs=1e-8), record.name


@of_each_record
def test_batches(record: FunctionRecord) -> None:
    """`vmap` over all arrays is the function of each element."""
    dtype = "f32" if "f32" in record.dtypes else record.dtypes[0]
    sample = samples_of(record, dtype)[0]
    arrays = sample.arrays()
    if not arrays:
        return
    batch = [np.stack([x, (x * x.dtype.type(0.875)).astype(x.dtype) if x.dtype.kind in "fc" else x]) for x in arrays]
    found = ml.vmap(lambda *given: sample.call(record.function, list(given)))(*batch)
    for number in range(2):
        expected = sample.call(record.function, [x[number] for x in batch])
        check(record, dtype, [x[number] for x in found], expected)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_has_a_record_and_a_sampler(package: str) -> None:
    records = records_of(package)
    assert [name for name in records if (package, name) not in SAMPLERS] == []
    if package not in ("numpy.linalg", "numpy.fft", "mlirml.linalg"):
        assert sorted(records) == sorted(importlib.import_module(package).__all__)
    for record in records.values():
        assert record.doc or package == "mlirml.stats", record.name
