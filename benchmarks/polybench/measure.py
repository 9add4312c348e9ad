"""What becomes of a kernel: its loops after stage `raise`, its numbers, and its times."""

from __future__ import annotations

import collections
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.polybench.kernels import SMALL, Kernel

# What the structured operations that count as recognised products are called.
PRODUCTS = ("contract", "matmul", "batch_matmul", "matvec", "vecmat", "batch_matvec", "batch_vecmat", "dot")
# Why loops are left whose rounds need each other.
CARRIED = (
    "later iterations need what it stores",
    "statements in it need each other's results from iteration to iteration",
)
_LOOPS = ("scf.for", "scf.while", "scf.parallel")
_ELEMENTS = ("tensor.extract", "tensor.insert")


@dataclass(frozen=True)
class Structure:
    """A kernel after stage `raise`.

    `named` counts products and other named operations, `left` loops and accesses to single elements in them,
    `inner` the lines of innermost loops over elements that are left, `remarks` what was said of loops that are left.
    """

    named: dict[str, int]
    left: dict[str, int]
    inner: tuple[int, ...]
    remarks: tuple[str, ...]

    @property
    def structured(self) -> bool:
        """Whether no loop is left."""
        return not self.left

    @property
    def raised(self) -> bool:
        """Whether every loop is raised but those whose rounds need each other."""
        return all(remark.endswith(CARRIED) for remark in self.remarks)

    @property
    def products(self) -> int:
        """How many matrix and vector products have their name."""
        return sum(count for name, count in self.named.items() if name in PRODUCTS)


def compiled(kernel: Kernel, target: str = "cpu") -> Any:
    """The kernel compiled as loops."""
    return ml.compile(kernel.function, target, frontend="loops")


def structure(kernel: Kernel, size: int) -> Structure:
    """Run stage `raise` and look at what is there."""
    from mlirml.ir.bindings import operations, parse
    from mlirml.ir.location import source_location
    from mlirml.passes import Instrumentation, parse_pipeline
    from mlirml.pipelines.cpu import RAISE

    captured = compiled(kernel).trace(*kernel.arguments(size))
    module = parse(captured.text)
    watch = Instrumentation()
    parse_pipeline(",".join(RAISE)).run(module, instrumentation=watch)
    ops = list(operations(module))
    left = collections.Counter(op.name for op in ops if _is_left(op))
    named = collections.Counter(
        op.name.removeprefix("linalg.")
        for op in ops
        if op.name.startswith("linalg.") and op.name not in ("linalg.generic", "linalg.yield", "linalg.index")
    )
    inner = []
    for op in ops:
        inside = [o.name for o in operations(op)][1:]
        if op.name == "scf.for" and not {"scf.for", "scf.while"} & set(inside) and "tensor.insert" in inside:
            place = source_location(op.location)
            inner.append(place.line if place is not None else 0)
    remarks = tuple(str(r.text) for r in watch.remarks if r.outcome == "not raised")
    return Structure(dict(named), dict(left), tuple(inner), remarks)


def _is_left(op: Any) -> bool:
    """Whether an operation is a loop, or an access to a single element in a loop."""
    return op.name in _LOOPS or (op.name in _ELEMENTS and len(op.operands) > 1 and op.parent.name.startswith("scf."))


def largest_error(kernel: Kernel, target: str = "cpu") -> float:
    """The largest error of any element at the small sizes, relative to the largest magnitude in its array."""
    worst = 0.0
    for size in SMALL:
        expected, given = kernel.arguments(size), kernel.arguments(size)
        kernel.function(*expected)
        compiled(kernel, target)(*given)
        for wanted, found in zip(expected, given):
            if isinstance(wanted, np.ndarray):
                error = np.max(np.abs(found - wanted)) / max(np.max(np.abs(wanted)), 1e-300)
                worst = max(worst, float(error) if math.isfinite(error) else math.inf)
    return worst


def cold_compile(kernel: Kernel) -> float:
    """The seconds of processor time that capturing, raising and compiling takes, with nothing cached."""
    arguments = kernel.arguments(kernel.medium)
    with ml.config.override(cache=False):
        start = time.process_time()
        compiled(kernel).executable(*arguments)
        return time.process_time() - start
