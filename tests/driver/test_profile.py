"""Profiles: rows name the user's lines, work is exact, results are those of the program, traces nest."""

from __future__ import annotations

import json
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.driver.profiling.profile import Profile, Row
from mlirml.driver.profiling.rows import limited
from mlirml.driver.profiling.text import duration, shown_lines
from mlirml.targets.measured import Level, MeasuredMachine


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirml.driver.profiling.run.current_machine", machine)


RNG = np.random.default_rng(7)


def line_of(text: str) -> str:
    """The `file:line` of the only line of this file that holds a text."""
    found = [
        n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line and "line_of" not in line
    ]
    assert len(found) == 1
    return f"{__file__}:{found[0]}"


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@ml.compile
def two_kernels(a: Any, b: Any) -> Any:
    product = a @ b  # the product
    ordered = np.sort(product, axis=1)  # the sort
    return product, ordered


@ml.compile
def transposed(a: Any) -> Any:
    return a.T.copy()


@ml.compile
def steps(a: Any, b: Any, n: int) -> Any:
    for _ in range(n):
        a = np.tanh(a @ b)  # a step
    return a


@ml.compile
def stencil(a: Any, n: int) -> Any:
    for _ in range(n):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])  # the stencil
    return a


@ml.compile
def layers(a: Any, b: Any) -> Any:
    for _ in range(3):
        a = np.sort(a @ b, axis=1)  # a layer
    return a


@ml.compile
def stored(a: Any) -> Any:
    a[0] = a[1] * 2
    return a.sum()


def rows_with(profile: Profile, line: str) -> list[Row]:
    return [row for row in profile.rows if line in row.lines]


def test_rows_name_the_lines_of_the_user() -> None:
    profile = two_kernels.profile(normal(96, 80), normal(80, 64))
    (product,) = rows_with(profile, line_of("# the product"))
    (ordered,) = rows_with(profile, line_of("# the sort"))
    assert "matmul" in product.name and ordered.name == "sort"
    assert product.calls == ordered.calls == 1
    text = profile.table()
    assert shown_lines(product.lines) in text and "matmul" in text and "rest" in text


def test_flops_of_a_matmul_are_2mnk_and_its_bytes_the_three_matrices() -> None:
    m, n, k = 96, 64, 80
    (row,) = rows_with(two_kernels.profile(normal(m, k), normal(k, n)), line_of("# the product"))
    assert row.flops == 2 * m * n * k
    assert row.bytes_moved == 4 * (m * k + k * n + m * n)
    assert row.dtype == "f32"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_bytes_of_a_copy_are_exact(dtype: Any) -> None:
    a = np.arange(200 * 300).reshape(200, 300).astype(dtype)
    profile = transposed.profile(a)
    assert [row.bytes_moved for row in profile.rows] == [2 * a.nbytes]
    assert [row.flops for row in profile.rows] == [0]


def test_kernels_in_loops_count_their_calls_and_flops() -> None:
    n, size = 7, 128
    profile = steps.profile(normal(size, size) / size, normal(size, size) / size, n)
    found = rows_with(profile, line_of("# a step"))
    assert max(row.calls for row in found) == n
    assert sum(row.flops or 0 for row in found) == n * 2 * size**3
    assert sum(row.functions or 0 for row in found) == n * size**2


def test_calls_are_those_of_the_clocks_where_they_cannot_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ml.LoweringError("no calls in loops")

    monkeypatch.setattr("mlirml.driver.profiling.program._counted", refuse)
    profile = steps.profile(normal(128, 128) / 128, normal(128, 128) / 128, 5)
    assert max(row.calls for row in rows_with(profile, line_of("# a step"))) == 5
    assert any("calls in loops" in note for note in profile.notes)


def test_loops_that_are_tiled_in_time_count_every_step() -> None:
    n, size = 60, 400
    profile = stencil.profile(normal(size, size, dtype=np.float64), n)
    (row,) = [row for row in rows_with(profile, line_of("# the stencil")) if row.flops]
    assert row.calls == n and row.flops == n * 4 * (size - 2) ** 2


def test_equal_kernels_of_one_line_are_one_row() -> None:
    a = normal(64, 64) / 64
    profile = layers.profile(a, a)
    products = [row for row in rows_with(profile, line_of("# a layer")) if "matmul" in row.name]
    assert [(row.calls, row.flops) for row in products] == [(3, 3 * 2 * 64**3)]


def test_a_loop_that_does_not_run_has_no_rows() -> None:
    profile = steps.profile(normal(128, 128), normal(128, 128), 0)
    assert all(row.timings > 0 for row in profile.rows)
    assert rows_with(profile, line_of("# a step")) == []


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_are_those_of_the_program(n: int) -> None:
    a, b = normal(128, 128) / 128, normal(128, 128) / 128
    np.testing.assert_array_equal(steps.profile(a, b, n).results, steps(a, b, n))


def test_arguments_that_the_program_stores_into_are_left_as_they_are() -> None:
    a = normal(64, 32)
    before = a.copy()
    profile = stored.profile(a)
    np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(profile.results, stored(a))
    assert not np.array_equal(a, before)


def test_times_are_those_of_one_run() -> None:
    profile = steps.profile(normal(128, 128) / 128, normal(128, 128) / 128, 4)
    assert 0 < profile.kernel_seconds <= profile.seconds
    assert profile.kernel_seconds + profile.rest_seconds == pytest.approx(profile.seconds)
    assert profile.normal_seconds > 0
    assert json.loads(json.dumps(profile.as_dict()))["rows"][0]["calls"] >= 1


def test_the_trace_is_valid_and_its_events_nest_and_sum_to_the_rows(tmp_path: Path) -> None:
    profile = steps.profile(normal(128, 128) / 128, normal(128, 128) / 128, 4)
    profile.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (call,) = [e for e in events if e.get("cat") == "call"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == sum(row.timings for row in profile.rows)
    last = call["ts"]
    for event in kernels:
        assert event["ts"] >= last and event["dur"] >= 0  # one after the other, none in another
        last = event["ts"] + event["dur"]
    assert last <= call["ts"] + call["dur"] + 1e-6
    assert sum(e["dur"] for e in kernels) == pytest.approx(1e6 * profile.kernel_seconds)


def test_rows_have_the_limit_of_the_machine() -> None:
    (row,) = rows_with(two_kernels.profile(normal(96, 80), normal(80, 64)), line_of("# the product"))
    peak = 100e9 if row.threads == 1 else 200e9
    assert row.flops is not None and row.bound == "compute"
    assert row.limit_seconds == pytest.approx(row.flops / peak)


def test_limits_of_a_busy_machine_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = machine(peaks={"f32": (100e9, 110e9)})
    monkeypatch.setattr("mlirml.driver.profiling.run.current_machine", lambda: busy)
    monkeypatch.setattr("mlirml.driver.profiling.run._native.get_threads", lambda: 2)
    assert any("too low" in note for note in two_kernels.profile(normal(16, 16), normal(16, 16)).notes)


def test_errors_of_arguments_are_those_of_a_call() -> None:
    with pytest.raises(ml.ArgumentError, match="missing a required argument: 'b'"):
        two_kernels.profile(normal(4, 4))
    with pytest.raises(ml.ArgumentError, match="has no elements"):
        two_kernels.profile(ml.TensorSpec((4, 4), np.float32), ml.TensorSpec((4, 4), np.float32))


def test_normal_programs_have_no_clock() -> None:
    spec = ml.TensorSpec((96, 80), np.float32), ml.TensorSpec((80, 64), np.float32)
    assert "mlirml_kernel_begins" not in two_kernels.lower(*spec).as_text()


def machine(**changes: Any) -> MeasuredMachine:
    level = Level(32 << 10, False, (100e9, 200e9), (50e9, 100e9), (80e9, 160e9))
    memory = Level(1 << 40, True, (10e9, 15e9), (5e9, 8e9), (8e9, 12e9))
    values: dict[str, Any] = {"cpu": "test", "threads": 2, "peaks": {"f32": (100e9, 200e9)}}
    values |= {"levels": {"L1": level, "memory": memory}, "call_seconds": 1e-6, "fork_seconds": 1e-6}
    return MeasuredMachine(**(values | changes))


def row(**changes: Any) -> Row:
    values: dict[str, Any] = {"name": "matmul", "lines": ("a.py:1",), "calls": 1, "timings": 1, "seconds": 1.0}
    values |= {"flops": 50_000_000_000, "functions": 0, "bytes_moved": 1_000_000_000, "dtype": "f32", "threads": 1}
    return Row(**(values | changes))


def test_the_limit_is_that_of_arithmetic_or_of_memory() -> None:
    compute = limited(row(), machine())
    assert (compute.bound, compute.share_of_limit) == ("compute", pytest.approx(0.5))
    memory = limited(row(flops=1_000_000), machine())
    assert (memory.bound, memory.share_of_limit) == ("memory", pytest.approx(0.1))
    cached = limited(row(flops=1000, bytes_moved=10_000_000_000, calls=1_000_000), machine())
    assert (cached.bound, cached.share_of_limit) == ("L1", pytest.approx(0.1))
    threads = limited(row(threads=2), machine())
    assert threads.share_of_limit == pytest.approx(0.25)


def test_the_limit_is_not_known_without_measurements_or_work() -> None:
    assert limited(row(), None).share_of_limit is None
    assert limited(row(flops=None, bytes_moved=None), machine()).share_of_limit is None


def test_the_roofline_is_svg_with_a_point_for_each_kernel_that_computes(tmp_path: Path) -> None:
    rows = row(), row(name="sum <of> rows", flops=1_000_000), row(name="copy", flops=0)
    profile = Profile("step", "cpu", rows, 3.0, 3.0, 2, machine=machine())
    profile.roofline(tmp_path / "roofline.svg")
    tree = xml.etree.ElementTree.parse(tmp_path / "roofline.svg")
    names = "{http://www.w3.org/2000/svg}"
    titles = [t.text or "" for t in tree.iter(f"{names}title")]
    assert len(titles) == 2 and "sum <of> rows (a.py:1)" in titles[1]
    texts = [t.text or "" for t in tree.iter(f"{names}text")]
    assert "f32: 200 GFLOP/s" in texts and any(text.startswith("memory: 15 GB/s") for text in texts)


def test_durations_and_lines_are_shown_in_short() -> None:
    assert [duration(s) for s in (2.5, 0.0125, 3e-6, 5e-8)] == ["2.5 s", "12.5 ms", "3 us", "50 ns"]
    assert shown_lines(("/x/a.py:3", "/x/a.py:4", "/x/a.py:9", "/y/b.py:1")) == "a.py:3-4,9 b.py:1"
