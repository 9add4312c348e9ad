"""Forks, exits and Ctrl-C while threads compile or programs run, each in a process of its own, with a limit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core import processes

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A process that a shell has started in the background ignores SIGINT, and so do its children.
BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
import mlirml as ml
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(program, *arguments)`: the end of a Python program without a cache, in which `ml` and `np` are known."""

    def run(program: str, *arguments: str, timeout: float = 120, **variables: str) -> Any:
        environment = {**os.environ, "MLIRML_CACHE": "0", "PYTHONWARNINGS": "ignore::DeprecationWarning", **variables}
        path = tmp_path / "program.py"
        path.write_text(f"{BEGINNING}{program}")
        command = [sys.executable, str(path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout)

    return run


THREADS_THAT_COMPILE = """
def compile_forever(number):
    n = 0
    while not stopped:
        n += 1
        ml.compile(lambda x, w: np.tanh(x @ w + n).sum(axis=number % 2))(np.ones((3 + n, 4)), np.ones((4, 5)))

stopped = False
threads = [threading.Thread(target=compile_forever, args=(number,), daemon=True) for number in range(2)]
for thread in threads:
    thread.start()
"""

FORKS = f"""{THREADS_THAT_COMPILE}
for k in range(12):
    time.sleep(0.03 * k)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        result = ml.compile(lambda x: np.cos(x) + k)(np.ones(3))
        os._exit(0 if np.allclose(result, np.cos(1) + k) else 1)
    assert os.waitpid(child, 0)[1] == 0, k
stopped = True
for thread in threads:
    thread.join()
assert ml.compile(lambda x: x + 1)(1.0) == 2
print("all right")
"""


def test_a_child_forked_while_others_compile_compiles(run: Run) -> None:
    done = run(FORKS)
    assert (done.stderr, done.stdout) == ("", "all right\n")


LOST = """
from mlirml.core import processes
processes.PATIENCE = 0.2

def slow(x):
    inside.set()
    finish.wait()
    return x + 1

inside, finish = threading.Event(), threading.Event()
known = ml.compile(lambda x: x * 2)
known(np.ones(3)), known(np.ones(3))
thread = threading.Thread(target=lambda: ml.compile(slow)(1.0))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    assert known(np.ones(3)).sum() == 6
    try:
        ml.compile(lambda x: x + 1)(1.0)
    except ml.errors.TargetError as error:
        print(error, flush=True)
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
finish.set()
thread.join()
assert ml.compile(lambda x: x + 1)(1.0) == 2
"""


def test_a_fork_does_not_wait_for_ever_and_its_child_says_so(run: Run) -> None:
    done = run(LOST)
    assert done.stderr == ""
    assert "this process was forked while another thread compiled" in done.stdout
    assert "help: compile before the fork" in done.stdout


FORK_IN_A_FUNCTION = """
def forks(x):
    sys.child = os.fork()
    return x + 1

assert ml.compile(forks)(1.0) == 2
if sys.child == 0:
    os._exit(0 if ml.compile(lambda x: x * 3)(2.0) == 6 else 1)
print(os.waitpid(sys.child, 0)[1])
"""


def test_a_function_may_fork_while_it_is_traced(run: Run) -> None:
    done = run(FORK_IN_A_FUNCTION)
    assert (done.stderr, done.stdout) == ("", "0\n")


FORK_DURING_A_LOOP = """
def work(x):
    return ml.fori_loop(0, 400, lambda i, s: np.sin(s) + i, x)

x = np.ones(1 << 18)
compiled = ml.compile(work)
compiled.executable(x)
thread = threading.Thread(target=compiled, args=(x,))
thread.start()
time.sleep(0.2)
begun = time.monotonic()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if np.isfinite(ml.compile(lambda x: np.cos(x) + 1)(x)).all() else 1)
print(os.waitpid(child, 0)[1])
thread.join()
"""


def test_a_child_forked_while_another_thread_runs_a_loop_has_threads_of_its_own(run: Run) -> None:
    done = run(FORK_DURING_A_LOOP, MLIRML_THREADS="2")
    assert (done.stderr, done.stdout) == ("", "0\n")


FORK_DURING_THE_REFERENCE = """
def long(x):
    return ml.fori_loop(0, 1 << 40, lambda i, s: np.sin(s) + i, x)

compiled = ml.compile(lambda x: x * 2, "reference")
compiled(np.ones(3))
threading.Thread(target=ml.compile(long, "reference"), args=(np.ones(3),), daemon=True).start()
time.sleep(2)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if (compiled(np.ones(3)) == 2).all() else 1)
print(os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


def test_a_child_forked_while_the_reference_target_runs_runs_programs(run: Run) -> None:
    done = run(FORK_DURING_THE_REFERENCE)
    assert (done.stderr, done.stdout) == ("", "0\n")


AT_EXIT = f"""{THREADS_THAT_COMPILE}
def call_forever():
    compiled, x = ml.compile(lambda x: x + 1), np.ones(200000)
    while True:
        compiled(x)

threading.Thread(target=call_forever, daemon=True).start()
time.sleep(float(sys.argv[1]))
print("end")
"""


@pytest.mark.parametrize("seconds", ["0", "0.05", "0.2", "0.3", "0.4", "0.5", "0.7", "1"])
def test_threads_that_compile_at_the_exit_leave_no_message(run: Run, seconds: str) -> None:
    done = run(AT_EXIT, seconds)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "end\n")


def test_threads_in_native_code_at_the_exit_leave_no_message(run: Run) -> None:
    program = """
from mlirml.runtime import Dispatcher

def endless(args, kwargs):
    while True:
        args = (*args[:1], time.time())

for _ in range(16):
    threading.Thread(target=Dispatcher(endless), args=(1.0, [2.0]), daemon=True).start()
time.sleep(0.3)
print("end")
"""
    done = run(program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "end\n")


ENDLESS = """
def forever(x):
    return ml.while_loop(lambda s: s[0] > -1.0, lambda s: (s[0] + 1.0, s[1] * 0.5), (x, x))

def forever_in_python(x):
    while x[0] > -1.0:
        x[0] += 1.0

def of_arrays(x):
    return ml.while_loop(lambda s: s[0][0] > -1, lambda s: (s[0] + 1, s[1] @ s[1]), (np.ones(4) * x, np.eye(200)))

def counted(n):
    return ml.fori_loop(0, n, lambda i, s: s * 0.5 + i, 1.0)

def long(x):
    return ml.fori_loop(0, 10**12, lambda i, s: s * 0.5 + i, x)

def long_inside(x):
    return ml.fori_loop(0, 3, lambda i, s: ml.fori_loop(0, 10**12, lambda j, t: t * 0.5 + j, s), x)

def counted_in_python(x, n):
    s = 0.0
    for i in range(n):
        for j in range(4):
            s = s * 0.5 + x[j]
    return s

def long_with_arrays(x):
    return ml.fori_loop(0, 10**9, lambda i, s: np.sin(s) + i, np.ones(1000) * x)

arguments = {forever_in_python: [np.ones(2)], counted: [10**12], counted_in_python: [np.ones(4), 10**12]}
fn = globals()[sys.argv[1]]
compiled, values = ml.compile(fn), arguments.get(fn, [1.0])
compiled.executable(*values)
for _ in range(2):
    begun = time.monotonic()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        compiled(*values)
    except KeyboardInterrupt:
        print("interrupted", "late" if time.monotonic() - begun > 1.3 else "")
assert ml.compile(lambda x: x + 1)(1.0) == 2
"""
ENDLESS_FUNCTIONS = (
    "forever", "forever_in_python", "of_arrays", "counted", "long", "long_inside", "counted_in_python",
    "long_with_arrays",
)  # fmt: skip


@pytest.mark.parametrize("function", ENDLESS_FUNCTIONS)
def test_ctrl_c_ends_a_loop(run: Run, function: str) -> None:
    done = run(ENDLESS, function, timeout=60)
    assert (done.stderr, done.stdout) == ("", "interrupted \ninterrupted \n")


ENDLESS_IN_THREADS = """
def halvings(x, out):
    for i in range(len(x)):
        k = x[i]
        while k > 0.0:
            k = k * 0.5 + 1.0
        out[i] = k

compiled, n = ml.compile(halvings, frontend="loops"), 100000
assert "parallel_for" in compiled.ir("lower", np.ones(n), np.ones(n))
compiled.executable(np.ones(n), np.ones(n))
for endless in (slice(n // 2, None), slice(0, n // 2), slice(n - 1, None), slice(0, 1), slice(None)):
    x, out = np.arange(-float(n), 0), np.zeros(n)
    x[endless] = 1
    begun = time.monotonic()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        compiled(x, out)
    except KeyboardInterrupt:
        print("interrupted", "late" if time.monotonic() - begun > 1.3 else "")
    x = -np.abs(x)
    compiled(x, out)
    assert np.array_equal(x, out)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_the_parts_of_all_threads(run: Run, threads: str) -> None:
    done = run(ENDLESS_IN_THREADS, timeout=60, MLIRML_THREADS=threads)
    assert (done.stderr, done.stdout) == ("", "interrupted \n" * 5)


HANDLERS = """
def forever(x):
    return ml.while_loop(lambda s: s > -1.0, lambda s: s + 1.0, x)

seen = []

def handler(number, frame):
    seen.append(float(ml.compile(lambda x: ml.fori_loop(0, x, lambda i, s: s + i, 0.0))(5)))  # polls, too
    if len(seen) == 3:
        raise ValueError("enough")

def in_threads(x, out):
    for i in range(len(x)):
        k = x[i]
        while k > 0.0:
            k = k * 0.5 + 1.0
        out[i] = k

function = globals()[sys.argv[1]]
arguments = [1.0] if function is forever else [np.ones(100000), np.ones(100000)]
compiled = ml.compile(function)
compiled.executable(*arguments)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3, 0.5)
try:
    compiled(*arguments)
except ValueError as error:
    print(error, seen)
"""


@pytest.mark.parametrize("function", ["forever", "in_threads"])
def test_handlers_run_and_may_go_on(run: Run, function: str) -> None:
    done = run(HANDLERS, function, timeout=60)
    assert (done.stderr, done.stdout) == ("", "enough [10.0, 10.0, 10.0]\n")


@pytest.mark.parametrize(
    "lower, upper, step", [(0, 0, 1), (5, 2, 1), (0, 3, 1), (-7, 12, 5), (3, 2**21 + 5, 1), (0, 2**22, 3)]
)
def test_loops_in_chunks_have_all_their_iterations(lower: int, upper: int, step: int) -> None:
    def count(lower: Any, upper: Any) -> Any:
        total, last = 0, -1
        for i in range(lower, upper, step):
            total += i % 7
            last = i
        return total, last

    total, last = ml.compile(count, frontend="loops")(lower, upper)
    every = np.arange(lower, upper, step)
    assert (total, last) == ((every % 7).sum(), every[-1] if len(every) else -1)


def test_what_is_dropped_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Weight(np.ndarray):
        pass

    def dropped() -> weakref.ref[Any]:
        weight = np.ones(3).view(Weight)
        weight.self = weight  # type: ignore[attr-defined]  # only a collection finds it
        ml.compile(lambda x: x + 1)(np.ones(3))
        return weakref.ref(weight)

    found = dropped()
    gc.collect(1)  # by now it is in the oldest generation
    assert found() is not None
    monkeypatch.setattr(processes, "_COLLECTION_SHARE", 0)
    ml.compile(lambda x: x + 2)(np.ones(3))
    assert found() is None
