"""The decode loop of the benchmark: the tokens of plain NumPy, from one program."""

from __future__ import annotations

import numpy as np

from benchmarks import decoding


def test_one_program_writes_the_tokens_of_numpy() -> None:
    p = decoding.parameters()
    start, run, program = decoding.with_mlirml(p)
    found, _ = decoding.decoded(start, run, 5, 6)

    def plain(token: int, cache: tuple[np.ndarray, np.ndarray]) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
        token, *caches = decoding.growing(np, np.concatenate, p, token, *cache)
        return int(token), (caches[0], caches[1])

    assert found == decoding.decoded(start, plain, 5, 6)[0]
    assert program._compiled == 1
