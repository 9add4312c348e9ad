"""The table of the PolyBench kernels: `python -m benchmarks.polybench [--numba PYTHON] [kernel ...]`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from rich.console import Console
from rich.table import Table

from benchmarks.polybench import KERNELS, Kernel
from benchmarks.polybench.measure import cold_compile, compiled, largest_error, structure
from benchmarks.polybench.timing import Numba, in_turns
from mlirml.errors import MlirmlError


def main() -> int:
    """Print the table; the exit status is 1 when a kernel fails or its numbers are wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polybench", description=__doc__)
    parser.add_argument("kernels", nargs="*", choices=[[], *KERNELS], metavar="kernel", help="all when none is named")
    parser.add_argument("--numba", metavar="PYTHON", help="a Python that has Numba, to compare the times with")
    options = parser.parse_args()
    out = Console(width=None if Console().is_terminal else 200, highlight=False)
    table = Table(
        "kernel",
        "structured",
        "raised",
        "products",
        "left",
        "inner loops left",
        "error",
        "compile ms",
        title="PolyBench",
    )
    table.add_column("ms")
    table.add_column("Numba ms")
    table.add_column("times Numba's speed")
    problems: list[str] = []
    remarks: dict[str, tuple[str, ...]] = {}
    with ExitStack() as stack:
        peer = stack.enter_context(Numba(options.numba)) if options.numba else None
        for name in options.kernels or KERNELS:
            with out.status(name):
                try:
                    row, remarks[name], wrong = _row(KERNELS[name], peer)
                    table.add_row(*row)
                except MlirmlError as error:
                    wrong = str(error)
                    table.add_row(name, "failed")
            if wrong:
                problems.append(f"{name}: {wrong}")
    out.print(table)
    out.print(_summary(table))
    for name, texts in remarks.items():
        for text in dict.fromkeys(texts):
            out.print(f"{name}: {text}", markup=False, soft_wrap=True)
    for problem in problems:
        out.print(problem, markup=False, soft_wrap=True)
    return int(bool(problems))


def _row(kernel: Kernel, peer: Numba | None) -> tuple[list[str], tuple[str, ...], str]:
    found, error = structure(kernel, 9), largest_error(kernel)
    seconds = cold_compile(kernel)
    row = [
        kernel.name,
        "yes" if found.structured else "no",
        "yes" if found.raised else "no",
        ", ".join(f"{count} {name}" for name, count in found.named.items() if name not in ("fill", "index")),
        ", ".join(f"{count} {name}" for name, count in found.left.items()),
        ", ".join(f"line {line}" for line in found.inner),
        f"{error:.1e}",
        f"{1e3 * seconds:.0f}",
    ]
    if peer is not None:
        ours, theirs = in_turns(compiled(kernel), kernel, peer)
        row.append(f"{1e3 * ours:.3g}")
        row += ["", ""] if theirs is None else [f"{1e3 * theirs:.3g}", f"{theirs / ours:.2f}"]
    return row, found.remarks, "" if error < 1e-11 else f"the largest error is {error:.1e}"


def _summary(table: Table) -> str:
    kernels, structured, raised = (list(column.cells) for column in table.columns[:3])
    return (
        f"{structured.count('yes')} of {len(kernels)} kernels fully structured; in {raised.count('yes')} every loop is "
        "raised but those whose rounds need each other"
    )


if __name__ == "__main__":
    raise SystemExit(main())
