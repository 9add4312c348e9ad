"""Default schedules against tuned ones: `python -m benchmarks.tuner [--seconds N] [--threads N] [--only NAME ...]`.

Each matrix product, softmax and so on is tuned in a cache folder of its own, then compiled with and without the tuner,
and both programs are timed in turns in one process, each result checked against NumPy first. The ratio is that of the
medians.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SECONDS = 0.6
"""The seconds that both programs are timed."""

Arrays = Sequence[np.ndarray]


def softmax(x: Any) -> Any:
    """The softmax of each row."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    """Each row with mean 0 and variance 1."""
    c = x - np.mean(x, axis=-1, keepdims=True)
    return c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5)


CASES: dict[str, tuple[Callable[..., Any], str, tuple[tuple[int, ...], ...]]] = {
    "512 x 512 x 512": (lambda a, b: a @ b, "float32", ((512, 512), (512, 512))),
    "1024 x 1024 x 1024": (lambda a, b: a @ b, "float32", ((1024, 1024), (1024, 1024))),
    "64 x 768 x 3072": (lambda a, b: a @ b, "float32", ((64, 768), (768, 3072))),
    "64 x 768 x 3072, bias and relu": (
        lambda a, b, c: np.maximum(a @ b + c, 0), "float32", ((64, 768), (768, 3072), (3072,)),
    ),
    "8 x 2048 x 2048": (lambda a, b: a @ b, "float32", ((8, 2048), (2048, 2048))),
    "1 x 2048 x 2048": (lambda a, b: a @ b, "float32", ((1, 2048), (2048, 2048))),
    "128 x 256 times transposed 512 x 256": (lambda a, b: a @ b.T, "float32", ((128, 256), (512, 256))),
    "12 of 128 x 64 x 128": (lambda a, b: a @ b, "float32", ((12, 128, 64), (12, 64, 128))),
    "4000 x 64 x 64": (lambda a, b: a @ b, "float32", ((4000, 64), (64, 64))),
    "300 x 301 x 302, f64": (lambda a, b: a @ b, "float64", ((300, 301), (301, 302))),
    "softmax of 1024 x 1024": (softmax, "float32", ((1024, 1024),)),
    "layer norm of 2048 x 768": (layer_norm, "float32", ((2048, 768),)),
    "sums of columns, 2000 x 3000": (lambda x: x.sum(axis=0), "float32", ((2000, 3000),)),
}  # fmt: skip
"""Products and loops by name, with the dtype and the shapes of the arguments."""


def arguments(dtype: str, shapes: Sequence[tuple[int, ...]]) -> Arrays:
    """Arguments of a product."""
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def medians(runs: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """The median seconds of each, timed in turns."""
    samples: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples[0]) < 5:
        for run, own in zip(runs, samples, strict=True):
            start = time.perf_counter()
            run()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in samples]


def measured(name: str, seconds: float) -> tuple[float, float, str]:
    """The seconds of the default and of the tuned program, and the schedule."""
    import mlirml as ml
    from mlirml.cli.tune import described
    from mlirml.tuning.store import opened

    function, dtype, shapes = CASES[name]
    given = arguments(dtype, shapes)
    expected = function(*[x.astype(np.float64) for x in given])
    with (
        tempfile.TemporaryDirectory() as folder,
        ml.config.override(cache=True, cache_dir=folder, tune_seconds=seconds),
    ):
        programs = [ml.compile(function, tune=tune) for tune in (False, True)]
        for program in programs:
            error = np.abs(program(*given) - expected).max() / np.abs(expected).max()
            assert error < 1e-5, f"{name}: {error}"
        with opened() as file:
            words = [row.schedule for row in file.rows()]
        out = np.empty_like(programs[0](*given))
        before, after = medians([lambda p=p: p(*given, out=out) for p in programs], SECONDS)  # type: ignore[misc]
    return before, after, ", ".join(map(described, words))


def main() -> None:
    """Print a table, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuner", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of the search for each product (default: 20)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="NAME")
    options = parser.parse_args()
    import mlirml as ml

    ml.config.threads, ml.config.progress = options.threads, False
    ratios = []
    print(f"{'product':<38} {'default':>10} {'tuned':>10} {'ratio':>6}  schedule")
    for name in options.only:
        before, after, words = measured(name, options.seconds)
        ratios.append(before / after)
        print(f"{name:<38} {1e6 * before:>7.1f} us {1e6 * after:>7.1f} us {ratios[-1]:>6.2f}  {words}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.2f}, lowest {min(ratios):.2f}, highest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
