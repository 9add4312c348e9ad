"""Writes `docs/ops.md`, the page of what is compiled, from the op records: `python docs/ops.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mlirml.nn
import mlirml.numpy
from mlirml.ops import OPS, OpDef
from mlirml.ops.functions import FunctionRecord, records_of
from mlirml.ops.registry import BOOL, COMPLEX, NN, SIGNED, UNSIGNED

PAGE = Path(__file__).with_name("ops.md")
KINDS = {
    "elementwise": "Elementwise",
    "reduction": "Reductions",
    "contraction": "Contractions",
    "view": "Views",
    "join": "Joins",
    "indexing": "Indexing",
    "rearrangement": "Rearrangements",
    "creation": "Creation",
    "scan": "Scans",
    "sorting": "Sorting and searching",
    "statistics": "Statistics",
    "numeric": "Numeric functions",
}
# The columns: a heading and its dtypes.
COLUMNS = {
    "bool": BOOL, "int": SIGNED, "uint": UNSIGNED, "f16 bf16": ("f16", "bf16"), "f32 f64": ("f32", "f64"),
    "complex": COMPLEX,
}  # fmt: skip

HEAD = """\
# What is compiled

Written by `python docs/ops.py` from the records in `mlirml/ops`; the tests compare each of them with NumPy in
the dtypes marked here. `int` is i8, i16, i32 and i64, `uint` is u8, u16, u32 and u64, `complex` is c64 and c128, bf16
is `ml_dtypes.bfloat16`. A blank is a dtype that NumPy refuses or converts first, such as integers to floats for
`np.arctan`; that is done here too. Shapes broadcast and dtypes promote exactly as NumPy's. f16 and bf16 are computed in
f32 and rounded after each operation; sums and contractions of them add up in f32. Where the processor multiplies bf16
itself (AVX512_BF16, AMX), products of matrices take bf16 and sums below 1.2e-38, the smallest normal number, as zeros.

Python's operators, in-place ones too, indexing with slices, integers, integer arrays and masks known when tracing,
stores there and under any mask, `ufunc.at`, `astype`, `copy`, `.T` and the methods named here work as in NumPy. An
dynamic index is checked at run time; the `IndexError` names the line. `x.at[index].set(v)`,
`add`, `subtract`, `multiply`, `min`, `max` and `get` (`mlirml.numpy.at(x)` for real arrays) give a new array instead.
"""


LINEAR_ALGEBRA = """\
## Linear algebra

Of matrices in f32, f64, c64 and c128 (integers become f64), single ones or any number of them, besides the products and
norms above. Derivatives of all orders are formulae; they do not exist where eigenvalues or singular values that the
formula divides by the difference of are equal, where Q or U is completed to a square matrix, and at a singular value of
zero: NaN, infinite or an error. A singular matrix, one that is not positive definite, and an iteration that does not
converge raise `ml.LinAlgError`, which is an `np.linalg.LinAlgError`, where NumPy raises one.

The target `cpu` calls the LAPACK that NumPy is linked to for all factorizations into several arrays, and for the others
for matrices of 32 rows or more (half as many if they are complex) and for large stacks; `.explain()` then names its
routines. LAPACK has threads of its own, which `OPENBLAS_NUM_THREADS` limits and `config.threads` does not. f32 is
computed in f32, where NumPy computes in f64; `eig` is the exception. Real matrices of up to 16 rows, 16 or more of
them, are computed many at once by kernels of the runtime: vectors may have other signs than LAPACK's. Elsewhere
`cholesky`, `det`, `inv`, `slogdet` and `solve` are loops over the columns, and all others call NumPy on the host.

`mlirml.linalg` has the functions of `np.linalg` and SciPy's, which are listed as `linalg.`, for stacks, too.
"""

TRANSFORMS = """\
## Fourier transforms

All of `np.fft`, of f32, f64, c64 and c128 (f16 is computed in f32, integers in f64), any number of points, along any
axes, with derivatives of all orders. The target `cpu` has kernels for many rows of 4 to 64 points, a power of two, and
else calls ducc0, which is part of the package, on all threads; other targets have kernels for lengths that are
powers of two, and compute all others on the host.

`mlirml.fft` has the cosine and sine transforms of `scipy.fft`, by those of `np.fft`; compiled functions may call
`scipy.fft` itself.
"""

SPECIAL = """\
## Special functions

`mlirml.special`, and those of `scipy.special` itself in compiled functions; [their accuracy](special.md).
"""

SIGNALS = """\
## Signals

`mlirml.signal`, and those of `scipy.signal` itself in compiled functions; [what differs](signal-and-stats.md).
"""

IMAGES = """\
## Images

`mlirml.ndimage`, and those of `scipy.ndimage` itself in compiled functions; [what differs](ndimage.md).
"""

DISTRIBUTIONS = """\
## Distributions

`mlirml.stats`, and those of `scipy.stats` itself in compiled functions; [their functions](signal-and-stats.md).
"""
LIBRARIES = {
    LINEAR_ALGEBRA: ("numpy.linalg", "mlirml.linalg"),
    TRANSFORMS: ("numpy.fft", "mlirml.fft"),
    SPECIAL: ("mlirml.special",),
    SIGNALS: ("mlirml.signal",),
    IMAGES: ("mlirml.ndimage",),
    DISTRIBUTIONS: ("mlirml.stats",),
}
"""The sections of functions under the names of another library, and the packages with their records."""

NETWORKS = """\
`from mlirml.nn import functional as F`: the functions have the meaning and the argument names of
`torch.nn.functional`. On real arrays NumPy computes them at once.
"""


def names(record: OpDef) -> str:
    """The callable names: the NumPy functions and the method, or the function of `mlirml.nn.functional`."""
    if record.name in NN and NN[record.name] is record:
        return f"`F.{record.name}`"
    functions = []
    for function in (record.reference, *record.aliases):
        owner = getattr(function, "__self__", None)
        name = f"{owner.__name__}.{function.__name__}" if isinstance(owner, np.ufunc) else function.__name__
        if (function.__module__ or "").startswith("mlirml."):
            functions.append(f"`mlirml.numpy.{name}`")
        else:
            in_linalg = not hasattr(np, function.__name__) and hasattr(np.linalg, function.__name__)
            functions.append(f"`np.{'linalg.' if in_linalg else ''}{name}`")
    return ", ".join(dict.fromkeys([*functions, *(f"`x.{method}()`" for method in record.methods)]))


def marks(taken: tuple[str, ...]) -> list[str]:
    """The cells of the dtypes that an operation takes."""
    cells = []
    for dtypes in COLUMNS.values():
        supported = [d for d in dtypes if d in taken]
        cells.append("yes" if len(supported) == len(dtypes) else " ".join(supported))
    return cells


def row(record: OpDef) -> str:
    """The line of an operation."""
    text = " ".join(record.doc.split("\n\n")[0].split()).replace("|", "\\|").replace("**", "\\*\\*")
    return f"| {names(record)} | {' | '.join(marks(record.takes))} | {text} |"


def function_row(record: FunctionRecord) -> str:
    """The line of a function under the name of another library."""
    owner = record.package.replace("numpy", "np").removeprefix("mlirml.")
    doc = record.doc or f"Parameters: {', '.join((*record.function.shapes, *record.function.places))}."
    text = doc.replace("|", "\\|").replace("**", "\\*\\*")
    cells = [f"`{owner}.{record.name}`", *marks(record.dtypes), " ".join(f"`{x}`" for x in record.derivatives), text]
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for kind, title in KINDS.items():
        records = sorted((r for r in OPS.values() if r.kind == kind), key=lambda r: r.name)
        if not records:
            continue
        header = f"| | {' | '.join(COLUMNS)} | |\n|---|{':-:|' * len(COLUMNS)}---|\n"
        parts.append(f"## {title}\n\n{header}" + "\n".join(map(row, records)) + "\n")
    columns = [*COLUMNS, "derivatives in"]
    header = f"| | {' | '.join(columns)} | |\n|---|{':-:|' * len(columns)}---|\n"
    for text, packages in LIBRARIES.items():
        rows = [function_row(record) for package in packages for record in records_of(package).values()]
        parts.append(f"{text}\n{header}" + "\n".join(rows) + "\n")
    header = f"| | {' | '.join(COLUMNS)} | |\n|---|{':-:|' * len(COLUMNS)}---|\n"
    functions = "\n".join(row(NN[name]) for name in sorted(NN))
    parts.append(f"## Neural networks\n\n{NETWORKS}\n{header}{functions}\n")
    missing = {r.name for r in OPS.values()} - {r.name for r in OPS.values() if r.kind in KINDS}
    assert not missing, missing
    others = sorted(n for n in mlirml.numpy.__all__ if n not in OPS and callable(getattr(mlirml.numpy, n)))
    shown = ", ".join(f"`{name}`" for name in others if not isinstance(getattr(mlirml.numpy, name), type))
    parts.append(
        "## Also\n\nCreation, shapes and dtypes, and the array-API names that `mlirml.numpy` adds to NumPy's: "
        f"{shown}. Creation functions of `numpy` itself work inside a compiled function too, and so do `np.c_`, "
        "`np.r_`, `np.piecewise` and `np.apply_along_axis`.\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
