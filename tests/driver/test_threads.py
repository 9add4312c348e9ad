"""One compiled function, many threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import mlirml as ml

THREADS = 8


def together(call: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """The results of `call(0)`, `call(1)`, ... from threads that start at the same moment."""
    start = Barrier(threads)

    def run(number: int) -> Any:
        start.wait()
        return call(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def step(x: Any, scale: Any) -> Any:
    return {"y": np.exp(x) * scale, "sum": x.sum(axis=0)}


def check_step(x: np.ndarray, scale: float, result: Any) -> None:
    np.testing.assert_allclose(result["y"], np.exp(x) * scale, rtol=1e-14)
    np.testing.assert_allclose(result["sum"], x.sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_first_calls_race(target: str) -> None:
    compiled = ml.compile(step, target)
    inputs = [np.full((5, 20), number, np.float64) for number in range(THREADS)]
    results = together(lambda number: compiled(inputs[number], float(number)))
    for number, result in enumerate(results):
        check_step(inputs[number], number, result)
    assert "1 signature(s) compiled" in compiled.explain()


def test_first_calls_of_other_shapes_race() -> None:
    compiled = ml.compile(step)
    inputs = [np.full((3, 4 + number // 2), number, np.float64) for number in range(THREADS)]

    def call(number: int) -> list[Any]:
        return [compiled(inputs[(number + k) % THREADS], 2.0) for k in range(THREADS)]

    for number, results in enumerate(together(call)):
        for k, result in enumerate(results):
            check_step(inputs[(number + k) % THREADS], 2.0, result)
    assert "3 signature(s) compiled" in compiled.explain()  # of two sizes, and of all others


def by_size(x: Any) -> Any:
    return x * 2 if x.shape[0] > 6 else x + 1


def test_first_calls_of_sizes_with_other_conditions_race() -> None:
    compiled = ml.compile(by_size, dynamic={"x": ("n",)})
    inputs = [np.arange(3.0 + number) for number in range(THREADS)]
    for number, result in enumerate(together(lambda number: compiled(inputs[number]))):
        np.testing.assert_array_equal(result, by_size(inputs[number]))
    assert "2 signature(s) compiled" in compiled.explain()


def test_many_calls_at_once() -> None:
    """Every thread changes an array of its own; large ones use the thread pool, which the calls share."""
    compiled = ml.compile(lambda x, y: x.__iadd__(np.sqrt(y)))

    def call(number: int) -> np.ndarray:
        rows = 2000 if number % 2 else 3
        x, y = np.zeros((rows, 64)), np.full((rows, 64), float(number * number))
        for _ in range(30):
            compiled(x, y)
        return x

    for number, x in enumerate(together(call)):
        np.testing.assert_array_equal(x, np.full(x.shape, 30.0 * number))


def test_calls_while_another_thread_compiles() -> None:
    known = ml.compile(lambda x: x + 1)
    x = np.arange(10.0)
    known(x)
    compiling = threading.Event()
    finished = threading.Event()

    def compile_some() -> None:
        compiling.set()
        for size in range(2, 8):
            ml.compile(lambda x: np.tanh(x) @ x.T)(np.ones((size, size)))
        finished.set()

    thread = threading.Thread(target=compile_some)
    thread.start()
    compiling.wait()
    calls = 0
    while not finished.is_set():
        np.testing.assert_array_equal(known(x), x + 1)
        calls += 1
        time.sleep(0.001)
    thread.join()
    assert calls > 20


def test_a_long_call_lets_other_threads_run() -> None:
    compiled = ml.compile(lambda x: np.sin(np.cos(np.sin(np.cos(np.exp(np.tanh(x)))))))
    x = np.linspace(-1, 1, 4_000_000)
    compiled(x)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    with ml.config.override(threads=1):
        compiled(x)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert len([t for t in ticks if begin < t < end]) >= 5, f"within {end - begin:.3f} s"


def test_every_number_of_threads_gives_the_same_bits() -> None:
    def program(x: Any, y: Any) -> Any:
        return x @ y, np.sum(np.exp(x), axis=0), np.mean(x), np.var(x, axis=1), np.tanh(x) * y.T

    compiled = ml.compile(program)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 300)).astype(np.float32), rng.normal(size=(300, 500)).astype(np.float32)
    outputs = []
    for threads in (1, 2, 4, 1):
        with ml.config.override(threads=threads):
            outputs.append([result.tobytes() for result in compiled(x, y)])
    assert all(other == outputs[0] for other in outputs[1:])


FORK = """
import os, sys
import numpy as np
import mlirml as ml

x = np.linspace(0, 1, 300_000)
compiled = ml.compile(lambda x: np.exp(x) * 2)
expected = compiled(x).copy()  # the thread pool of the parent runs now
child = os.fork()
if child == 0:
    status = 1
    try:
        for _ in range(3):
            assert (compiled(x) == expected).all()
        fresh = ml.compile(lambda x: np.sin(x) + 1)
        assert np.allclose(fresh(x), np.sin(x) + 1)
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if (compiled(x) == expected).all() else 2)
        status = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    finally:
        os._exit(status)
assert (compiled(x) == expected).all()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (compiled(x) == expected).all()
print("all right")
"""


def test_calls_after_a_fork() -> None:
    # A process of its own: pytest has threads of its own, after which Python does not like to fork.
    environment = {**os.environ, "MLIRML_THREADS": "4", "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stderr, done.stdout) == ("", "all right\n")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["ab", "atb", "abt"])
def test_threads_that_pack_side_by_side_do_not_meet(form: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (1024, 1024)).astype(dtype) for _ in range(2))
    product = ml.compile({"ab": lambda a, b: a @ b, "atb": lambda a, b: a.T @ b, "abt": lambda a, b: a @ b.T}[form])
    expected = {"ab": a @ b, "atb": a.T @ b, "abt": a @ b.T}[form]
    before = ml.config.threads
    try:
        ml.config.threads = 2
        for _ in range(5):
            np.testing.assert_array_equal(product(a, b), expected)  # small integers: every order of sums is exact
    finally:
        ml.config.threads = before


def test_a_thread_with_a_stack_too_small_for_the_compiler_is_an_error() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            ml.compile(lambda x: np.tanh(x) + 0.5)(np.ones(3))
        except ml.TargetError as error:
            errors.append(error)

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert "compiling takes a stack of 512 KiB, and this thread has 256 KiB" in str(errors[0])
