"""One compiled function, many threads and processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

import mlirml as ml

THREADS = 8


def test_first_calls_race() -> None:
    compiled = ml.compile(lambda x: np.exp(x) + x)
    start = Barrier(THREADS)

    def call(number: int) -> np.ndarray:
        start.wait()
        return compiled(np.full(100, number, np.float64))

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(call, range(THREADS)))
    for number, result in enumerate(results):
        np.testing.assert_allclose(result, np.exp(float(number)) + number, rtol=1e-15)
    assert "1 signature(s) compiled" in compiled.explain()
