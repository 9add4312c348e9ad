"""The benchmarks on tiny sizes: the workloads are right, the processes talk, the tables say what was measured."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import tables, worker
from benchmarks.rounds import Measured, Peer, environment, measure, start_peers
from benchmarks.startup import Times
from benchmarks.targets import TARGETS
from benchmarks.worker import timed
from benchmarks.workloads import WORKLOADS, error, reference

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_a_quick_run_prints_every_workload() -> None:
    done = run("--peers", "numpy", "--quick", "--repeats", "1", "--only", ",".join(WORKLOADS))
    assert done.returncode == 0, done.stdout + done.stderr
    medians = done.stdout.partition("median time a call")[2].partition("best time a call")[0]
    for name in WORKLOADS:
        row = next(line for line in medians.splitlines() if line.strip().startswith(f"{name} "))
        assert (row.count("x") >= 1 or WORKLOADS[name].transform) and "failed" not in row


def test_a_quick_run_measures_what_a_process_pays_once() -> None:
    done = run("--peers", "numpy", "--quick", "--only", "import,first-call,launch")
    assert done.returncode == 0, done.stdout + done.stderr
    for what in (
        "import mlirml, over NumPy", "first call of digits, cold", "first call of digits, from the disk cache",
        "parallel loop that",
    ):  # fmt: skip
        assert what in done.stdout


def test_a_peer_that_is_not_installed_is_skipped_aloud(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ModuleNotFoundError('No module named numba')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = run("--peers", "numba", "--python", f"numba={python}", "--quick", "--repeats", "1", "--only", "call")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numba: skipped: No module named numba" in done.stdout


@pytest.mark.parametrize("arguments", [["--peers", "tenserflow"], ["--only", "nothing"], ["--repeats", "0"]])
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr


@pytest.mark.parametrize("name", WORKLOADS)
def test_numpy_in_single_precision_is_close_to_the_reference(name: str) -> None:
    workload = WORKLOADS[name]
    arguments = workload.arguments(quick=True)
    if not workload.transform:
        assert error(workload, arguments, workload.function(*arguments), reference(workload, arguments)) < 1e-5
    assert workload.amount(quick=False) >= workload.amount(quick=True)


def test_the_error_of_a_wrong_result_is_infinite() -> None:
    workload, expected = WORKLOADS["call"], np.ones(3)
    assert error(workload, (), np.ones(3, np.float32), expected) == 0
    assert error(workload, (), np.ones(3), expected) == np.inf, "computed in another precision"
    assert error(workload, (), np.ones((3, 1), np.float32), expected) == np.inf
    assert error(workload, (), np.array([1, np.nan, 1], np.float32), expected) == np.inf


def test_a_wrong_result_is_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"numpy": {"error": 1e-7}, "mlirml": {"error": 1e-3}}
    asked = []

    class Fake:
        threads = 1

        def __init__(self, name: str) -> None:
            self.name = name

        def ask(self, do: str, **request: object) -> dict[str, object]:
            asked.append((self.name, do))
            return answers[self.name] if do == "load" else {"samples": [1.0]} if do == "run" else {}

    table = measure([Fake("numpy"), Fake("mlirml")], ["call"], rounds=2, seconds=0, quick=True)  # type: ignore[list-item]
    assert table["call"]["mlirml"].problem == "wrong: error 1.0e-03, NumPy's 1.0e-07"
    assert ("mlirml", "run") not in asked
    assert asked.count(("numpy", "run")) == 2
    assert tables.problems(table) == ["call, mlirml: wrong: error 1.0e-03, NumPy's 1.0e-07"]


def test_the_last_table_is_of_the_best_peer() -> None:
    table = {
        "call": {"numpy": Measured([4.0]), "mlirml": Measured([2.0]), "torch": Measured([3.0], problem="wrong")},
        "softmax": {"numpy": Measured([9.0]), "mlirml": Measured([2.0]), "torch": Measured([1.0])},
        "chain16m": {"numpy": Measured([9.0]), "mlirml": Measured([2.0], problem="failed")},
    }
    beside, line = tables.against_best(table, 1)
    assert [list(column.cells) for column in beside.columns][3:] == [["numpy", "torch"], ["2.00x", "0.50x"]]
    assert line == "2 workloads: lowest 0.50 (softmax), geometric mean 1.00, at or above 1.0 1"


def test_a_worker_that_dies_is_a_failure_and_not_a_hang() -> None:
    (peer,), notes = start_peers(["numpy"], {"numpy": sys.executable}, 1)
    assert notes["numpy"].startswith("numpy ")
    peer.process.kill()
    assert "ended with status -9" in peer.ask("drop")["failure"]
    peer.close()


def test_a_failing_workload_says_why() -> None:
    peer = Peer("numpy", sys.executable, 1)
    try:
        assert "FileNotFoundError" in peer.ask("load", workload="call", arguments="none", expected="none")["failure"]
    finally:
        peer.close()


def test_one_thread_is_one_thread() -> None:
    variables = environment(1)
    assert {variables[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")} == {"1"}
    assert variables["MLIRML_THREADS"] == "1"


def test_samples_of_a_short_call_are_made_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    calls = 0

    def call() -> None:
        nonlocal calls, now
        calls += 1
        now += 1e-6

    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: now))
    samples = timed(call, 0.01)
    assert calls > 100 * len(samples)
    assert samples == pytest.approx([1e-6] * len(samples))


def test_a_long_call_is_sampled_once() -> None:
    samples = timed(lambda: threading.Event().wait(0.02), 0.0)
    assert len(samples) == 1
    assert samples[0] >= 0.02


def figures(seconds: float) -> Measured:
    return Measured([seconds, seconds / 2, seconds * 2])


def test_the_targets_compare_medians() -> None:
    table = {
        "matmul1024": {"numpy": figures(0.02), "mlirml": figures(0.04)},
        "matvec4096": {"numpy": figures(0.03), "torch": figures(0.02), "mlirml": figures(0.01)},
        "softmax": {"numpy": figures(0.03), "mlirml": figures(0.01)},
        "call": {"mlirml": figures(2e-6)},
    }
    times = [
        Times("import mlirml, over NumPy", (0.02, 0.04, 0.05)),
        Times("matmul1024, 1 thread", (0.3,)), Times("matmul1024, 2 threads", (0.2,)),
    ]  # fmt: skip
    values = {t.text: (t.measured(table, {x.name: x for x in times}), t) for t in TARGETS}
    value, target = values["matmul f32 1024, against numpy"]
    assert value == 0.5 and not target.met(0.5) and target.met(0.9)
    value, target = values["matrix times vector 4096, against numpy and torch"]
    assert value == pytest.approx(2), "against the faster one"
    assert values["softmax 4096x2048, against torch"][0] is None, "torch was not measured"
    value, target = values["a call of a compiled add of two f32[8]"]
    assert value == pytest.approx(2) and not target.met(2) and target.met(1.4)
    assert values["import mlirml, over import numpy"][0] == pytest.approx(40)
    assert values["matmul1024, two threads"][0] == pytest.approx(1.5)
    assert values["linear_gelu, two threads"][0] is None


def test_times_are_written_with_three_digits() -> None:
    texts = [tables.time_text(s) for s in (1.5, 0.0123, 999e-6, 12.34e-6, 345e-9)]
    assert texts == ["1.50 s", "12.3 ms", "999 us", "12.3 us", "345 ns"]


def test_the_clock_of_an_import_starts_after_numpy() -> None:
    from benchmarks.startup import import_times

    start = time.perf_counter()
    (found,) = import_times(["numpy", "mlirml"], {"numpy": sys.executable, "mlirml": sys.executable}, 1)
    assert found.name == "import mlirml, over NumPy"
    assert 0 < found.median < time.perf_counter() - start
