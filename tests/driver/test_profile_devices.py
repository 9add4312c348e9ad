"""Profiles of programs on devices: launches are timed, and have the work of their dispatches."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.processes import COMPILER
from mlirml.driver.profiling.device import Dispatch, dispatches, rows_of
from mlirml.driver.profiling.kernels import Kernel
from mlirml.runtime import _native
from mlirml.targets.measured import MeasuredMachine
from mlirml.targets.registry import portable_targets
from tests.targets.drivers import needs_vulkan

MACHINE = MeasuredMachine("test", 1, {}, {}, 1e-6, 0.0)


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirml.driver.profiling.run.current_machine", lambda: MACHINE)


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = np.maximum(x @ w, 0)
    return x / np.sum(x, axis=1, keepdims=True)


def steps(x: Any, w: Any, n: int) -> Any:
    for _ in range(n):
        x = np.tanh(x @ w)
    return x


def stored(a: Any) -> Any:
    a[0] = a[1] * 2
    return a.sum()


def square(size: int) -> np.ndarray:
    return (np.random.default_rng(3).random((size, size)) / size).astype(np.float32)


@needs_vulkan
def test_launches_have_the_flops_and_bytes_of_their_products() -> None:
    size = 32
    compiled = ml.compile(layers, target="vulkan")
    profile = compiled.profile(square(size), square(size))
    products = [row for row in profile.rows if "matmul" in row.name]
    flops = sum(row.flops or 0 for row in products)
    assert 3 * 2 * size**3 <= flops <= 3 * (2 * size**3 + size**2)
    assert sum(row.calls for row in products) == 3
    assert {row.bytes_moved for row in products} == {row.calls * 3 * 4 * size * size for row in products}
    np.testing.assert_array_equal(profile.results, compiled(square(size), square(size)))
    assert any("waited for" in note for note in profile.notes)


@needs_vulkan
def test_launches_in_loops_are_counted() -> None:
    compiled = ml.compile(steps, target="vulkan", frontend="loops")
    for n in (0, 1, 5):
        profile = compiled.profile(square(64), square(64), np.int32(n))
        assert sum(row.calls for row in profile.rows if "matmul" in row.name) == n
        np.testing.assert_array_equal(profile.results, compiled(square(64), square(64), np.int32(n)))


@needs_vulkan
def test_arrays_on_the_device_are_left_as_they_are() -> None:
    compiled = ml.compile(stored, target="vulkan")
    a = ml.put(square(16), "vulkan")
    profile = compiled.profile(a)
    np.testing.assert_array_equal(a.numpy(), square(16))
    np.testing.assert_array_equal(profile.results.numpy(), compiled(a).numpy())
    assert not np.array_equal(a.numpy(), square(16))


@needs_vulkan
def test_the_trace_of_a_device_is_valid(tmp_path: Path) -> None:
    profile = ml.compile(layers, target="vulkan").profile(square(32), square(32))
    profile.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert len(kernels) == sum(row.timings for row in profile.rows)
    assert all(one["ts"] + one["dur"] <= two["ts"] for one, two in itertools.pairwise(kernels))


@pytest.mark.parametrize("target", [t for t in portable_targets() if t.device != "cpu"], ids=lambda t: t.name)
def test_dispatches_of_every_device_have_their_operations(target: Any) -> None:
    spec = ml.TensorSpec((64, 64), np.float32)
    with COMPILER:
        found = dispatches(target, ml.trace(layers, spec, spec))
    assert [each.is_counted for each in found] == [True] * len(found)
    labels = [kernel.label for each in found for kernel in each.kernels]
    assert "matmul" in labels and "reduction" in labels


def test_kernels_of_one_dispatch_are_one_row() -> None:
    one, other = Dispatch("k1_sum", (), True), Dispatch("k1_sum_rows", (), True)
    table = ["k1_sum_0", "k1_sum_1", "k1_sum_rows", "k2_copy"]
    rows, positions = rows_of(
        [one, other], table, ["a.py:1", "a.py:1", "a.py:2", ""], [(2, 10), (4, 30), (1, 5), (0, 0)]
    )
    assert [(row.name, row.calls, row.timings, row.lines) for row in rows] == [
        ("k1_sum_0", 2, 6, ("a.py:1",)),
        ("k1_sum_rows", 1, 1, ("a.py:2",)),
    ]
    assert positions == {0: 0, 1: 0, 2: 1} and rows[0].seconds == pytest.approx(40e-9)
    assert rows[0].flops is None and rows[0].bytes_moved is None


def test_a_dispatch_with_a_loop_of_kernels_is_not_counted() -> None:
    kernel = Kernel(0, "matmul", 0, [])
    rows, _ = rows_of([Dispatch("k0", (kernel,), False)], ["k0"], ["a.py:1"], [(1, 10)])
    assert (rows[0].name, rows[0].flops, rows[0].lines) == ("matmul", None, ("a.py:1",))


def test_records_belong_to_the_thread_and_end() -> None:
    _native.start_kernel_record(3, 1)
    assert _native.end_kernel_record() == ([(0, 0)] * 3, [])
    assert _native.end_kernel_record() == ([], [])
    with pytest.raises(ValueError, match="negative"):
        _native.start_kernel_record(-1, 0)
