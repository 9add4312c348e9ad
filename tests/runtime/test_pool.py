"""Parallel loops: every iteration once, no chunk under the grain, nesting, threads, fork, exit."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from mlirml.core.config import config
from mlirml.runtime import Code, _native, load_object

from .conftest import emit_object

# The context of `mark` points to {int64 hits[], int64 sizes[]}: hits[i] counts runs of iteration i, sizes[i] is the
# size of the chunk that iteration i was in. `nested` runs a whole inner loop for each outer iteration.
LOOPS = """
declare void @mlirml_parallel_for(ptr, i64, i64, i64, ptr)
declare void @mlirml_parallel_for_long(ptr, i64, i64, i64, ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define void @mark(i64 %lo, i64 %hi, ptr %context) {
  %hits = load ptr, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  %sizes = load ptr, ptr %at
  %size = sub i64 %hi, %lo
  br label %loop
loop:
  %i = phi i64 [%lo, %0], [%next, %loop]
  %h = getelementptr i64, ptr %hits, i64 %i
  %old = atomicrmw add ptr %h, i64 1 monotonic
  %s = getelementptr i64, ptr %sizes, i64 %i
  store i64 %size, ptr %s
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done: ret void
}
define void @outer(i64 %lo, i64 %hi, ptr %context) {
  br label %loop
loop:
  %i = phi i64 [%lo, %0], [%next, %loop]
  %first = mul i64 %i, 100
  %last = add i64 %first, 100
  call void @mlirml_parallel_for(ptr @mark, i64 %first, i64 %last, i64 1, ptr %context)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done: ret void
}
define void @nested(i64 %n, ptr %context) {
  call void @mlirml_parallel_for(ptr @outer, i64 0, i64 %n, i64 1, ptr %context)
  ret void
}
define void @in_long_chunks(i64 %n, i64 %grain, ptr %context) {
  call void @mlirml_parallel_for_long(ptr @mark, i64 0, i64 %n, i64 %grain, ptr %context)
  ret void
}
define void @float_control(i64 %lo, i64 %hi, ptr %context) {
  %p = getelementptr i32, ptr %context, i64 %lo
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %end = add i64 %lo, 100000
  br label %spin
spin:
  %i = phi i64 [%lo, %0], [%next, %spin]
  %next = add i64 %i, 1
  store volatile i64 %i, ptr @sink
  %more = icmp slt i64 %next, %end
  br i1 %more, label %spin, label %done
done: ret void
}
@sink = global i64 0
define void @with_float_control(i32 %control, i64 %n, ptr %context) {
  %old = alloca i32
  %new = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  store i32 %control, ptr %new
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  call void @mlirml_parallel_for(ptr @float_control, i64 0, i64 %n, i64 1, ptr %context)
  call void @llvm.x86.sse.ldmxcsr(ptr %old)
  ret void
}
"""

parallel_for = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
    _native.parallel_for_address
)


class Marks:
    """Runs `mark` over a range and holds what it wrote."""

    def __init__(self, code: Code, size: int, start: int = 0) -> None:
        self.body = code.address("mark")
        self.hits, self.sizes = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.start = start
        addresses = [a.ctypes.data - 8 * start for a in (self.hits, self.sizes)]
        self.context = (ctypes.c_int64 * 2)(*addresses)

    def run(self, grain: int) -> Marks:
        parallel_for(self.body, self.start, self.start + len(self.hits), grain, ctypes.addressof(self.context))
        return self


@pytest.fixture(scope="session")
def loops() -> Code:
    return load_object(emit_object(LOOPS))


@pytest.mark.parametrize("grain", [-5, 0, 1, 3, 7, 100, 999, 1000, 5000])
@pytest.mark.parametrize("start", [0, -500, 1 << 40])
def test_each_iteration_runs_once_in_chunks_of_the_grain(loops: Code, grain: int, start: int, all_threads: int) -> None:
    marks = Marks(loops, 1000, start).run(grain)
    assert (marks.hits == 1).all()
    assert marks.sizes.min() >= min(max(grain, 1), 1000)
    chunks = (1 / marks.sizes).sum()
    assert chunks <= 8 * all_threads + 0.001


def test_the_last_chunks_of_a_thread_are_the_shortest(loops: Code, all_threads: int) -> None:
    _native.set_threads(2)
    try:
        sizes = Marks(loops, 3200).run(1).sizes
        equal = Marks(loops, 3200).run(120).sizes  # too long a grain for the shortest chunks
    finally:
        _native.set_threads(0)
    for run in (sizes[:1600], sizes[1600:]):
        assert (run[0], run[-1]) == (300, 100) and (np.diff(run) <= 0).all()
    for run in (equal[:1600], equal[1600:]):
        assert run.min() >= 266 and run.max() <= 267


@pytest.mark.parametrize("grain", [1, 7, 100])
def test_long_chunks_are_four_a_thread(loops: Code, grain: int, all_threads: int) -> None:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    marks = Marks(loops, 1000)
    kind(loops.address("in_long_chunks"))(1000, grain, ctypes.addressof(marks.context))
    assert (marks.hits == 1).all()
    assert marks.sizes.min() >= grain
    assert (1 / marks.sizes).sum() <= 4 * all_threads + 0.001


@pytest.mark.parametrize("size", [0, 1, 2, 3, 12, 13])
def test_small_ranges(loops: Code, size: int, all_threads: int) -> None:
    assert (Marks(loops, size).run(1).hits == 1).all()


def test_an_empty_or_backward_range_runs_nothing() -> None:
    for bounds in [(5, 5), (5, 4), (2**63 - 1, -(2**63))]:
        parallel_for(0, *bounds, 1, 0)


def test_nested_loops_run_inline(loops: Code, all_threads: int) -> None:
    marks = Marks(loops, 5000)
    nested = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(loops.address("nested"))
    nested(50, ctypes.addressof(marks.context))
    assert (marks.hits == 1).all()
    assert (marks.sizes == 100).all()


def test_one_thread_starts_no_worker(loops: Code) -> None:
    _native.set_threads(1)
    try:
        assert _native.get_threads() == 1
        assert (Marks(loops, 1000).run(1).hits == 1).all()
        assert _native.worker_count() == 0
    finally:
        _native.set_threads(0)


def test_threads_change_at_any_time(loops: Code, all_threads: int) -> None:
    for threads in [1, all_threads, 0, 2, 1, 500]:
        _native.set_threads(threads)
        wanted = min(threads or all_threads, all_threads)
        assert _native.get_threads() == wanted
        assert (Marks(loops, 1000).run(1).hits == 1).all()
        assert _native.worker_count() == wanted - 1


def test_loops_use_the_cpus_that_their_thread_may_run_on(loops: Code, all_threads: int) -> None:
    cpus = os.sched_getaffinity(0)
    assert (Marks(loops, 1000).run(1).sizes < 1000).all()

    def pinned() -> None:
        os.sched_setaffinity(0, {min(cpus)})  # of this thread alone
        assert _native.get_threads() == 1
        assert (Marks(loops, 1000).run(1).sizes == 1000).all()

    in_threads(1, pinned)
    assert os.sched_getaffinity(0) == cpus
    assert _native.worker_count() == all_threads - 1
    assert (Marks(loops, 1000).run(1).sizes < 1000).all()


def test_the_pool_grows_with_the_cpus_of_its_callers() -> None:
    result = run_python(
        """
        import os
        import time
        import numpy as np
        import mlirml as ml
        from mlirml.runtime import _native

        cpus = os.sched_getaffinity(0)
        step, x = ml.compile(lambda x: np.tanh(x) + 1), np.ones(1 << 20)
        os.sched_setaffinity(0, {min(cpus)})
        step(x)
        assert _native.worker_count() == 0
        os.sched_setaffinity(0, cpus)
        time.sleep(0.05)  # the pool does not ask for each loop
        np.testing.assert_allclose(step(x), np.tanh(x) + 1)
        assert _native.worker_count() == len(cpus) - 1
        """
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_a_worker_leaves_the_cpu_of_the_caller() -> None:
    """It is put there, as Linux may do when it wakes it.

    Where other programs run, Linux may move the caller away in the meantime, and the worker may run after the loop.
    """
    result = run_python(
        """
        import os
        import time
        import numpy as np
        import mlirml as ml
        from mlirml.runtime import _native

        cpus = os.sched_getaffinity(0)
        _native.set_threads(2)
        step, x = ml.compile(lambda x: np.tanh(x) + 1), np.ones(1 << 20)
        step(x)
        threads = (int(thread) for thread in os.listdir("/proc/self/task"))
        (worker,) = (t for t in threads if "mlirml-worker" in open(f"/proc/self/task/{t}/comm").read())
        wanted = cpus - {min(cpus)}
        for turn in range(1000):
            if turn % 20 == 0:
                os.sched_setaffinity(0, {min(cpus)})
                os.sched_setaffinity(worker, {min(cpus)})
                os.sched_setaffinity(0, cpus)
            time.sleep(0.02)  # the pool does not ask for each loop
            if os.sched_getaffinity(worker) == wanted:
                break
            step(x)
        else:
            raise AssertionError(os.sched_getaffinity(worker))
        """
    )
    assert result.returncode == 0, result.stderr


def test_negative_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        _native.set_threads(-1)


def test_config_reaches_the_pool(all_threads: int) -> None:
    with config.override(threads=1):
        assert _native.get_threads() == 1
    assert _native.get_threads() == all_threads


def in_threads(count: int, work: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_many_python_threads_share_the_pool(loops: Code, all_threads: int) -> None:
    def work() -> None:
        for size in range(1, 400):
            assert (Marks(loops, size).run(1).hits == 1).all()

    in_threads(8, work)


def test_threads_may_change_while_loops_run(loops: Code, all_threads: int) -> None:
    stop = threading.Event()

    def toggle() -> None:
        while not stop.is_set():
            for threads in (1, 0):
                _native.set_threads(threads)

    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        in_threads(
            3, lambda: [Marks(loops, 300).run(1).hits.sum() == 300 or pytest.fail() for _ in range(300)] and None
        )
    finally:
        stop.set()
        toggler.join()


def test_workers_that_sleep_wake_up(loops: Code, all_threads: int) -> None:
    for pause in [0.0, 0.001, 0.02, 0.0, 0.05]:
        time.sleep(pause)
        assert (Marks(loops, 1000).run(1).hits == 1).all()


def test_workers_take_the_callers_float_control(loops: Code, all_threads: int) -> None:
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p)(loops.address("with_float_control"))
    usual, flush = 0x1F80, 0x9FC0
    for control in (usual, flush, usual):
        seen = np.zeros(40, np.uint32)
        run(control, len(seen), seen.ctypes.data)
        written = seen[seen != 0]
        assert len(written) >= all_threads
        assert set((written & ~np.uint32(0x3F)).tolist()) == {control}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(loops: Code, all_threads: int) -> None:
    assert (Marks(loops, 1000).run(1).hits == 1).all()
    child = os.fork()
    if child == 0:
        fine = _native.worker_count() == 0
        fine = fine and bool((Marks(loops, 1000).run(1).hits == 1).all()) and _native.worker_count() == all_threads - 1
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (Marks(loops, 1000).run(1).hits == 1).all()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_while_other_threads_run_loops(loops: Code, all_threads: int) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            Marks(loops, 200).run(1)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if (Marks(loops, 500).run(1).hits == 1).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=60)


def test_the_process_exits_while_threads_run_loops() -> None:
    result = run_python(
        """
        import ctypes, threading
        from mlirml.runtime import _native
        parallel_for = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p)(
            _native.parallel_for_address)
        libc = ctypes.CDLL(None)
        body = ctypes.cast(libc.labs, ctypes.c_void_p).value
        def work():
            while True:
                parallel_for(body, 0, 100000, 1, None)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(1000):
            parallel_for(body, 0, 100000, 1, None)
        print("end")
        """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")
