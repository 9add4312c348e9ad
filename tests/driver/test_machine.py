"""The measured machine: kept by processor, read without a compiler, never a part of generated code."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.driver import machine as driver_machine
from mlirml.targets.llvm import measure_machine
from mlirml.targets.machine import named
from mlirml.targets.measured import (
    DeviceCosts,
    Level,
    MeasuredMachine,
    keep,
    machine_key,
    measured_machine,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(ml.config, "cache", True)
    return tmp_path / "cache"


def some_machine(threads: int = 2, **changes: Any) -> MeasuredMachine:
    l1 = Level(32 << 10, False, (100e9, 200e9), (50e9, 90e9), (80e9, 160e9))
    memory = Level(0, True, (10e9, 15e9), (5e9, 8e9), (8e9, 12e9))
    values: dict[str, Any] = {"cpu": "test", "threads": threads, "peaks": {"f32": (100e9, 190e9)}}
    values |= {"levels": {"L1": l1, "memory": memory}, "call_seconds": 1e-6, "fork_seconds": 2e-6}
    values |= {"devices": (DeviceCosts("gpu:0", 1e-5, 2e-6, 1e9, 2e9),), "key": machine_key(threads)}
    return MeasuredMachine(**(values | changes))


def test_what_is_kept_is_read_again() -> None:
    assert measured_machine(2) is None
    assert keep(some_machine(2)) and keep(some_machine(1))
    assert measured_machine(2) == some_machine(2)
    assert measured_machine(1) == some_machine(1)
    assert measured_machine(3) is None


def test_measurements_of_another_processor_or_version_are_not_used() -> None:
    keep(some_machine(key={**machine_key(2), "cpu": "another"}))
    assert measured_machine(2) is None
    keep(some_machine(key={**machine_key(2), "version": 0}))
    assert measured_machine(2) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"2": 5}', b'{"2": {"cpu": "x"}}', b"\xff"])
def test_a_damaged_file_is_as_none_and_is_replaced(folder: Path, content: bytes) -> None:
    keep(some_machine())
    (folder / "machine.json").write_bytes(content)
    assert measured_machine(2) is None
    assert keep(some_machine()) and measured_machine(2) == some_machine()


def test_without_a_cache_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "cache", False)
    assert not keep(some_machine())
    assert measured_machine(2) is None and not folder.exists()


def test_limits_depend_on_threads_and_sizes() -> None:
    found = some_machine()
    assert [found.peak("f32", threads) for threads in (1, 2, 8)] == [100e9, 190e9, 190e9]
    assert found.peak("f16") == 100e9 and found.peak("i64") == 0
    assert found.bandwidth_for(30 << 10, 1) == ("L1", 100e9)
    assert found.bandwidth_for(60 << 10, 1) == ("memory", 10e9)
    assert found.bandwidth_for(60 << 10, 2) == ("L1", 200e9)
    assert found.rate_of("L3") == 0


def test_threads_that_do_not_add_up_are_noted() -> None:
    assert not some_machine().was_busy
    assert some_machine(peaks={"f32": (100e9, 120e9)}).was_busy
    assert not some_machine(1, peaks={"f32": (100e9, 100e9)}).was_busy


def test_the_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def measure(threads: int) -> MeasuredMachine:
        times.append(threads)
        return some_machine(threads)

    monkeypatch.setattr(measure_machine, "measure", measure)
    monkeypatch.setattr(driver_machine, "_devices", lambda: iter(some_machine().devices))
    driver_machine._known.cache_clear()
    first = driver_machine.current_machine()
    assert driver_machine.current_machine() == first and len(times) == 1
    assert driver_machine.current_machine(again=True) == first and len(times) == 2
    driver_machine._known.cache_clear()
    assert driver_machine.current_machine() == first and len(times) == 2  # from the folder


def test_kernels_of_measurements_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = named("host")
    elements, threads = 4096, 2
    copy = measure_machine.compiled(measure_machine.memory_text("copy", processor, elements, threads), processor)
    source, target = np.arange(elements, dtype=np.float32), np.zeros(elements, np.float32)
    copy([np.array([2, elements // 2, 3]), source], [target])
    np.testing.assert_array_equal(source, target)
    read = measure_machine.compiled(measure_machine.memory_text("read", processor, elements, threads), processor)
    sums = np.zeros(64 * threads, np.float32)
    read([np.array([2, elements // 2, 1]), source], [sums])
    assert sums.reshape(2, 64).sum(axis=1) == pytest.approx(source.reshape(2, -1).sum(axis=1))
    f32 = next(each for each in measure_machine.arithmetics(processor) if each.dtype == "f32")
    chains, repeats = 4, 5
    add = measure_machine.compiled(measure_machine.arithmetic_text(f32, chains, threads), processor)
    add([np.array([2, repeats]), np.full(f32.lanes, 0.5, np.float32)], [sums])
    assert np.all(sums.reshape(2, 64)[:, : f32.lanes] == chains * repeats * 0.25)


def test_measuring_gives_numbers_of_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_machine, "_LEAST_NANOSECONDS", 50_000)
    monkeypatch.setattr(measure_machine, "_SECONDS", 0.0)
    monkeypatch.setattr(measure_machine, "_TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(measure_machine, "_MOST_BYTES", 8 << 20)
    found = measure_machine.measure()
    assert {"f32", "f64"} <= {*found.peaks} and {"L1", "L2", "memory"} <= {*found.levels}
    rates = [rate for level in found.levels.values() for rate in (*level.read, *level.write, *level.copy)]
    assert all(np.isfinite(rate) and rate > 0 for rate in (*rates, *found.peaks["f32"], found.call_seconds))
    assert MeasuredMachine.from_dict(json.loads(json.dumps(found.as_dict()))) == found


def test_sampling_ends_when_nothing_gets_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5e6, 4e6, 2e6, *[3e6] * 100])

    class Scripted(measure_machine.Probe):
        def sample(self) -> int:
            taken = next(times)
            self.nanoseconds = min(self.nanoseconds, taken)
            return int(taken)

    probe = Scripted(lambda repeats: None, amount=4.0)
    measure_machine.sample_in_turn([probe], 60.0)
    assert probe.rate == pytest.approx(4.0 / 2e-3)
    assert len([*times]) == 103 - 3 - measure_machine._STEADY


def test_generated_code_does_not_depend_on_measurements() -> None:
    @ml.compile
    def step(a: Any, b: Any) -> Any:
        return np.tanh(a @ b)

    spec = ml.TensorSpec((64, 64), np.float32)
    before = step.lower(spec, spec).emit("asm"), step.target.fingerprint()
    keep(replace(some_machine(), peaks={"f32": (1.0, 1.0)}))
    assert (step.lower(spec, spec).emit("asm"), step.target.fingerprint()) == before


def test_measurements_are_read_without_a_compiler() -> None:
    code = "import sys, mlirml.targets.measured as m; m.measured_machine(1); print('torch_mlir' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
