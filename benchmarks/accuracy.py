"""Every elementwise record on every dtype: the largest error in ulp, and nanoseconds an element next to NumPy.

    python -m benchmarks.accuracy                      all records and float dtypes
    python -m benchmarks.accuracy exp log --dtypes f32 these only
    python -m benchmarks.accuracy exp --exhaustive     all 2^32 numbers of f32 (minutes for one function)
    python -m benchmarks.accuracy --math libmvec       with glibc's vector functions

The operands stay in the second-level cache and one thread works. Errors are against NumPy in the next wider format
(`longdouble` for f64); random bit patterns, the record's own domain, and numbers next to 0, 1 and the special values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import mlirml as ml
from mlirml.ir.text.dtypes import from_short_name, is_float, short_name
from mlirml.ops import OPS, OpDef

BYTES = 1 << 16  # of an operand: three of them fit into any second-level cache, and malloc needs no new pages
ROUNDS = 15
COUNT = 1 << 18
EXHAUSTIVE_STEP = 1 << 24


@dataclass(frozen=True)
class Row:
    """One record on one dtype; errors are None where the result is no float."""

    name: str
    dtype: np.dtype
    ours_ulp: float | None
    numpy_ulp: float | None
    ours_ns: float
    numpy_ns: float
    worst: str = ""


def records() -> list[OpDef]:
    """The elementwise records that are ufuncs of NumPy with one result."""
    ufuncs = [r for r in OPS.values() if r.kind == "elementwise" and isinstance(r.reference, np.ufunc)]
    return [r for r in ufuncs if r.reference.nout == 1]


def random_bits(dtype: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Any number of the format, NaN and infinities included."""
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)


def samples(record: OpDef, dtype: np.dtype, second: bool = False) -> np.ndarray:
    """Arguments for the measurement of errors."""
    rng = np.random.default_rng(1 + second)
    if not is_float(dtype):
        return random_bits(dtype, COUNT, rng) if dtype != np.bool_ else rng.random(COUNT) < 0.5
    low, high = record.second_domain or record.domain if second else record.domain
    part = COUNT // 4
    near = [c + s * 10.0 ** rng.uniform(-9, 0, part // 8) for c in (0, 1, low, high) for s in (-1, 1)]
    wide = rng.standard_normal(part) * 10.0 ** rng.uniform(-6, 2.5, part)
    pieces = [rng.uniform(low, high, part), np.concatenate(near), wide]
    if second:
        rng.shuffle(pieces)
    with np.errstate(all="ignore"):
        return np.concatenate([random_bits(dtype, part, rng), *(p.astype(dtype) for p in pieces)])


def wider(dtype: np.dtype) -> np.dtype:
    """A format in which NumPy's result is as good as exact."""
    return np.dtype(np.longdouble if dtype.itemsize >= 4 else np.float64)


def ulp(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distances in units in the last place; infinite where only one is a number."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        limit = np.array(float(_finfo(got.dtype).max), exact.dtype)
        below = np.minimum(np.abs(rounded.astype(exact.dtype)), limit)
        least = float(_finfo(got.dtype).smallest_subnormal)
        _, exponent = np.frexp(below)
        unit = np.maximum(np.ldexp(np.ones_like(below), exponent - 1 - _finfo(got.dtype).nmant), least)
        distance = np.abs(got.astype(exact.dtype) - exact) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(np.isfinite(distance), distance, np.where(same, 0, np.inf)).astype(np.float64)


def _finfo(dtype: np.dtype) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype) if dtype.name == "bfloat16" else np.finfo(dtype)


def error(record: OpDef, ours: Callable[..., Any], dtype: np.dtype) -> tuple[float | None, float | None, str]:
    """The largest error of mlirml and of NumPy, and where it is."""
    operands = [samples(record, dtype, second=i > 0) for i in range(record.arrays)]
    if record.name == "power" and not is_float(dtype):  # NumPy refuses negative powers
        operands[1] = operands[1] & operands[1].dtype.type(15)
    with np.errstate(all="ignore"):
        theirs = record.reference(*operands)
        got = ours(*operands)
        if not is_float(np.asarray(theirs).dtype):
            wrong = got != theirs
            return float(wrong.sum()), 0.0, _shown(operands, wrong.argmax(), got) if wrong.any() else ""
        exact = np.asarray(record.reference(*(x.astype(wider(theirs.dtype)) for x in operands)))
    distance = ulp(got, exact)
    worst = int(distance.argmax())
    return distance[worst], float(ulp(theirs, exact).max()), _shown(operands, worst, got)


def _shown(operands: list[np.ndarray], place: Any, got: np.ndarray) -> str:
    return f"{', '.join(str(x[place]) for x in operands)} -> {got[place]}"


def speed(record: OpDef, ours: Callable[..., Any], dtype: np.dtype) -> tuple[float, float]:
    """The best nanoseconds an element of mlirml and NumPy, taken in turn."""
    rng = np.random.default_rng(0)
    count = BYTES // dtype.itemsize
    operands = []
    for i in range(record.arrays):
        low, high = record.second_domain or record.domain if i else record.domain
        values = rng.uniform(low, high, count) if is_float(dtype) else rng.integers(1, 100, count)
        operands.append(values.astype(dtype))
    with np.errstate(all="ignore"):
        best = [best_of(f, operands) for f in (ours, record.reference)]
        for _ in range(ROUNDS - 1):
            best = [min(old, best_of(f, operands)) for old, f in zip(best, (ours, record.reference))]
    return best[0] / count * 1e9, best[1] / count * 1e9


def best_of(function: Callable[..., Any], operands: list[np.ndarray]) -> float:
    """The best seconds of three calls."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function(*operands)
        times.append(time.perf_counter() - start)
    return min(times)


def measure(record: OpDef, dtype: np.dtype) -> Row | None:
    """One row, or None where NumPy or mlirml has no such loop."""
    ours = ml.compile(lambda *xs: record.reference(*xs))
    one = np.ones(BYTES // dtype.itemsize, dtype)
    try:
        record.reference(*[one] * record.arrays)
        ours(*[one] * record.arrays)
    except (TypeError, ml.errors.MlirmlError):
        return None
    ours_ulp, numpy_ulp, worst = error(record, ours, dtype)
    return Row(record.name, dtype, ours_ulp, numpy_ulp, *speed(record, ours, dtype), worst)


def exhaustive(record: OpDef) -> tuple[float, str]:
    """The largest error over all numbers of f32, for a function of one operand."""
    ours = ml.compile(lambda x: record.reference(x))
    largest, where = 0.0, ""
    for start in range(0, 1 << 32, EXHAUSTIVE_STEP):
        x = np.arange(start, start + EXHAUSTIVE_STEP, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            distance = ulp(ours(x), np.asarray(record.reference(x.astype(np.float64))))
        worst = int(distance.argmax())
        if distance[worst] > largest:
            largest, where = float(distance[worst]), f"{x[worst]!r}"
    return largest, where


def shown(rows: Iterator[Row]) -> Table:
    """The table; slower than NumPy, or wrong, is marked."""
    table = Table(title="Elementwise records: largest error in ulp, ns an element in L2, one thread")
    for title in ("record", "dtype", "ulp", "NumPy's", "ns", "NumPy's", "ratio", "worst at"):
        table.add_column(title, justify="left" if title in ("record", "worst at") else "right")
    for row in rows:
        ratio = row.numpy_ns / row.ours_ns
        mark = "[red]" if ratio < 1 else ""
        table.add_row(
            row.name, short_name(row.dtype), f"{row.ours_ulp:.2f}", f"{row.numpy_ulp:.2f}", f"{row.ours_ns:.3f}",
            f"{row.numpy_ns:.3f}", f"{mark}{ratio:.2f}", row.worst if row.ours_ulp else "",
        )  # fmt: skip
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="records, all without")
    parser.add_argument("--dtypes", default="f32,f64", help="comma-separated short names")
    parser.add_argument("--exhaustive", action="store_true", help="all numbers of f32")
    parser.add_argument("--math", default="builtin", choices=("builtin", "libmvec"), help="`config.math`")
    given = parser.parse_args()
    chosen = [r for r in records() if not given.names or r.name in given.names]
    console = Console(width=150)
    if given.exhaustive:
        for record in chosen:
            if record.arrays == 1:
                console.print(record.name, *exhaustive(record))
        return
    with ml.config.override(threads=1, math=given.math):
        rows = [measure(r, from_short_name(d)) for r in chosen for d in given.dtypes.split(",")]
    console.print(shown(row for row in rows if row is not None))


if __name__ == "__main__":
    main()
