"""The tuner: what it finds is used where it is asked for, its processes may fail, and without it nothing changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.cpu.contract.attribute import to_words
from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.errors import ArgumentError, TuningWarning
from mlirml.tuning import processes, program, search
from mlirml.tuning.processes import Failed, Worker, Workers
from mlirml.tuning.store import Row, opened

DIRECT = to_words(Schedule("direct", 4, 2, 4, 1, 24, 40, 20))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path) -> Iterator[None]:
    program._warned.clear()
    with ml.config.override(cache=True, cache_dir=str(tmp_path / "cache"), threads=1, tune_seconds=2.0):
        yield


def arguments(rows: int = 40, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return tuple(generator.standard_normal(s).astype(dtype) for s in ((rows, 24), (24, 20), (20,)))  # type: ignore[return-value]


def dense(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def clusters(fn: Any, *args: Any) -> list[search.Cluster]:
    compiled = ml.compile(fn)
    return program.clusters_of(compiled.target, compiled.trace(*args))


def keep(fn: Any, *args: Any, words: str = DIRECT) -> None:
    """Write a schedule for each contraction of a function, as if it had been found."""
    target = ml.compile(fn).target
    with opened() as file:
        for cluster in clusters(fn, *args):
            names = program.machine_name(target), program.kernels_version()
            file.save(Row(cluster.key, *names, "matmul", cluster.shape, cluster.dtype, words, 1e-6, 2e-6, 3))


def test_a_search_finds_a_schedule_and_keeps_it() -> None:
    x, w, b = arguments(64)
    tuned = ml.compile(dense, tune=True)
    np.testing.assert_allclose(tuned(x, w, b), dense(x, w, b), rtol=1e-5, atol=1e-5)
    with opened() as file:
        (row,) = file.rows()
    assert row.shape == "64x24 24x20 -> 64x20" and row.dtype == "f32" and row.operation == "matmul+elementwise"
    assert row.tried > 3 and row.seconds <= row.default_seconds
    assert row.machine == program.machine_name(tuned.target) and row.version == program.kernels_version()


def test_a_search_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def found(target: Any, wanted: Any, seconds: float, *more: Any) -> dict[str, Row]:
        calls.append([cluster.key for cluster in wanted])
        keep(dense, *arguments())
        return program.stored(target, calls[-1])

    monkeypatch.setattr(program, "tune", found)
    x, w, b = arguments()
    for _ in range(2):
        tuned = ml.compile(dense, tune=True)
        np.testing.assert_allclose(tuned(x, w, b), dense(x, w, b), rtol=1e-5, atol=1e-5)
    assert len(calls) == 1
    assert "mr = 2" in tuned.ir("schedule", x, w, b) or "contract_direct" in tuned.ir("schedule", x, w, b)


def test_a_stored_schedule_is_part_of_the_pipeline_and_of_the_key() -> None:
    args = arguments()
    plain, stored = ml.compile(dense), ml.compile(dense, tune="stored")
    before = stored._target_for(stored.trace(*args), "stored")
    assert before.fingerprint() == plain.target.fingerprint()
    keep(dense, *args)
    after = stored._target_for(stored.trace(*args), "stored")
    assert after.fingerprint() != before.fingerprint()
    assert f"/{DIRECT}" in dict(after.stages)["schedule"]
    assert plain._target_for(plain.trace(*args), "off") is plain.target
    assert plain.ir("lower", *args) != stored.ir("lower", *args)
    np.testing.assert_allclose(stored(*args), plain(*args), rtol=1e-5, atol=1e-5)
    assert "tuned schedules: 1" in stored.explain() and "tuned" not in plain.explain()


def test_without_the_tuner_the_file_makes_no_difference() -> None:
    args = arguments()
    before = ml.compile(dense).lower(*args).emit("asm")
    keep(dense, *args)
    assert ml.compile(dense).lower(*args).emit("asm") == before
    assert ml.compile(dense, tune=False).lower(*args).emit("asm") == before
    with ml.config.override(tune="stored"):
        assert ml.compile(dense).lower(*args).emit("asm") != before
        assert ml.compile(dense, tune=False).lower(*args).emit("asm") == before


def test_a_schedule_holds_for_the_same_contraction_of_another_program() -> None:
    x, w, b = arguments()
    keep(dense, x, w, b)

    def other(x: Any, w: Any, b: Any, y: Any) -> Any:
        return np.sum(dense(y, w, b), axis=0), dense(x, w, b)

    compiled = ml.compile(other, tune="stored")
    assert DIRECT in dict(compiled._target_for(compiled.trace(x, w, b, x[:3]), "stored").stages)["schedule"]
    for found, expected in zip(compiled(x, w, b, x[:3]), other(x, w, b, x[:3]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_clusters_have_keys_by_operation_shape_and_dtype() -> None:
    x, w, b = arguments()
    (one,) = clusters(dense, x, w, b)
    (same,) = clusters(lambda p, q, r: np.maximum(p @ q + r, 0), x, w, b)
    (plain,) = clusters(lambda x, w, b: x @ w, x, w, b)
    (longer,) = clusters(dense, *arguments(41))
    (wide,) = clusters(dense, *arguments(dtype=np.float64))
    assert one.key == same.key
    assert len({one.key, plain.key, longer.key, wide.key}) == 4
    assert plain.operation == "matmul" and one.operation == "matmul+elementwise"


@pytest.mark.parametrize(
    "words", [to_words(Schedule("stream")), to_words(Schedule("packed", pairs=32)), to_words(Schedule("symmetric"))]
)
def test_a_schedule_that_does_not_fit_is_left_out(words: str) -> None:
    args = arguments()
    keep(dense, *args, words=words)
    with ml.config.override(processor="sse4.1"):
        keep(dense, *args, words=words)
        compiled = ml.compile(dense, tune="stored")
        np.testing.assert_allclose(compiled(*args), dense(*args), rtol=1e-5, atol=1e-5)


def test_a_program_that_was_tuned_starts_without_the_compiler() -> None:
    text = f"""
import sys
import numpy as np
import mlirml as ml
ml.config.cache_dir, ml.config.threads = {ml.config.cache_dir!r}, 1
def dense(x, w, b):
    return np.maximum(x @ w + b, 0)
x, w, b = np.ones((40, 24), np.float32), np.ones((24, 20), np.float32), np.ones(20, np.float32)
assert ml.compile(dense, tune="stored")(x, w, b)[0, 0] == 25
print("torch_mlir" in sys.modules)
"""
    keep(dense, *arguments())
    first, second = (subprocess.run([sys.executable, "-c", text], capture_output=True, text=True) for _ in range(2))
    assert (first.stdout, second.stdout) == ("True\n", "False\n"), first.stderr + second.stderr


@pytest.mark.parametrize("given", ["always", 3, "off!"])
def test_tune_takes_three_values(given: Any) -> None:
    with pytest.raises(ArgumentError, match="tune="):
        ml.compile(dense, tune=given)


def test_tune_is_for_the_cpu() -> None:
    with pytest.raises(ArgumentError, match='tune is for the target "cpu"'):
        ml.compile(dense, target="reference", tune=True)
    with ml.config.override(tune="search"):
        assert ml.compile(dense, target="reference").tune == "off"
        assert ml.compile(dense).tune == "search"


# The processes that measure.


def test_a_worker_that_takes_too_long_is_ended_and_replaced() -> None:
    (cluster,) = clusters(dense, *arguments())
    with Workers(1) as workers:
        (worker,) = workers.all
        worker.open(cluster.text)
        worker.ask(20.0, do="make", name=0, schedule="")
        with pytest.raises(Failed, match="took longer than"):
            worker.ask(0.0, do="time", names=[0], seconds=1.0, limit=0.0)
        worker.ask(20.0, do="make", name=0, schedule="")
        assert min(worker.ask(20.0, do="time", names=[0], seconds=0.01, limit=0.0)["samples"][0]) > 0


def test_a_worker_that_is_killed_is_replaced() -> None:
    (cluster,) = clusters(dense, *arguments())
    with Workers(1) as workers:
        (worker,) = workers.all
        worker.open(cluster.text)
        worker.ask(20.0, do="make", name=0, schedule="")
        assert worker._process is not None
        worker._process.kill()
        with pytest.raises(Failed, match="the worker ended"):
            worker.ask(20.0, do="make", name=1, schedule=DIRECT)
        worker.ask(20.0, do="make", name=0, schedule="")
        worker.ask(20.0, do="make", name=1, schedule=DIRECT)


def test_a_candidate_that_cannot_be_made_is_refused() -> None:
    (cluster,) = clusters(dense, *arguments())
    with Workers(1) as workers:
        (worker,) = workers.all
        worker.open(cluster.text)
        worker.ask(20.0, do="make", name=0, schedule="")
        with pytest.raises(Failed, match="is no schedule"):
            worker.ask(20.0, do="make", name=1, schedule="kernel=none")
        with pytest.raises(Failed, match="there is no symmetric kernel"):
            worker.ask(20.0, do="make", name=1, schedule=to_words(Schedule("symmetric")))


def test_other_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlirml.tuning.worker import Bench

    (cluster,) = clusters(dense, *arguments())
    bench = Bench(cluster.text)
    assert bench.make(0, "") is None
    assert bench.make(1, DIRECT) is None
    bench.expected[0][0, 0] += 1e-3
    assert "differ" in str(bench.make(2, DIRECT))
    assert sorted(bench.programs) == [0, 1]


def test_a_search_survives_workers_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Worker.ask
    count = 0

    def failing(self: Worker, patience: float, **request: Any) -> dict[str, Any]:
        nonlocal count
        count += request["do"] == "make" and request["name"] == 1
        if count % 3 == 2 and request["do"] == "make" and self._process is not None:
            count += 1
            self._process.kill()
        return asked(self, patience, **request)

    monkeypatch.setattr(Worker, "ask", failing)
    x, w, b = arguments(30)
    compiled = ml.compile(dense)
    found = program.tune(compiled.target, clusters(dense, x, w, b), 3.0)
    (row,) = found.values()
    assert row.tried > 3


def test_a_default_that_cannot_be_measured_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.sys, "executable", "/bin/false")
    x, w, b = arguments(30)
    with pytest.warns(TuningWarning, match="is not tuned: the worker ended"):
        result = ml.compile(dense, tune=True)(x, w, b)
    np.testing.assert_allclose(result, dense(x, w, b), rtol=1e-5, atol=1e-5)


def test_candidates_are_in_the_same_order_each_time() -> None:
    (cluster,) = clusters(dense, *arguments())
    machine = ml.compile(dense).target.processor
    assert machine is not None and cluster.problem is not None
    orders = [[search.Candidates(cluster.problem, machine, 1).next() for _ in range(1)] for _ in range(2)]
    many = search.Candidates(cluster.problem, machine, 1)
    found = [many.next() for _ in range(40)]
    assert orders[0][0] == orders[1][0] == found[0]
    assert len({*found}) == len(found)


def test_a_pickled_function_keeps_the_option() -> None:
    import pickle

    compiled = ml.compile(np.matmul, tune="stored")
    assert pickle.loads(pickle.dumps(compiled)).tune == "stored"
