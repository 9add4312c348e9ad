"""Every operation record with every dtype on every target, against NumPy: values, dtypes and shapes.

Floats are compared by their error against the same call in a wider type: at most twice NumPy's own largest error and
the record's `tolerance` in units in the last place. Everything else is exact.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import tests.ops.array_samples
import tests.ops.composed_samples
import tests.ops.index_samples  # noqa: F401  (both register their samplers)
from mlirml.core.tree import flatten
from mlirml.errors import DTypeError
from mlirml.frontend.tracing.trace import _HARMLESS
from mlirml.ir.text.dtypes import is_complex, is_float, short_name
from mlirml.ops import OPS, OpDef
from tests.fuzz.oracle import TARGETS, clone, same_elements
from tests.ops.samples import DTYPES, SAMPLERS, Call, _finfo, calls_of, of_each_group

RECORDS = [OPS[name] for name in sorted(OPS)]
MORE_THAN_NUMPY = {("einsum", "bf16")}
"""Records and dtypes that NumPy has no loop for."""

NOT_COMPILED = {"reshape": ["copy"]}
"""Parameters of NumPy's functions that the records lack."""

COMPLEX_FUNCTIONS = [
    "absolute", "add", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "broadcast_to",
    "concat", "conjugate", "cos", "cosh", "count_nonzero", "cumsum", "divide", "einsum", "equal", "exp",
    "expand_dims", "expm1", "flip", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "matmul", "mean", "moveaxis", "multiply", "negative", "not_equal",
    "outer", "positive", "power", "prod", "reciprocal", "repeat", "reshape", "roll", "sign", "sin", "sinh", "sqrt",
    "square", "squeeze", "stack", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
    "transpose", "tril", "triu", "var", "vdot", "vecdot", "vector_norm", "where",
]  # fmt: skip
"""Those that the array-API standard defines for complex numbers, and some of NumPy's."""

SUMS = {
    "sum", "mean", "norm", "vector_norm", "matrix_norm", "trace", "matrix_power", "multi_dot", "vecdot", "matvec",
    "vecmat", "cross",
    "matmul", "einsum", "dot", "inner", "tensordot", "vdot", "outer",
    "conv1d", "conv2d", "conv3d", "conv_transpose2d", "linear", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool2d", "convolve", "correlate", "trapezoid",
}  # fmt: skip
"""Operations that add products up: their error is measured against the sum of the magnitudes."""


OF_LAPACK = {"cond", "matrix_rank", "poly", "polyfit", "roots", "tensorinv", "tensorsolve"}
"""Operations that NumPy computes in f64 at most."""


def strided(array: np.ndarray) -> np.ndarray:
    """Every second element of a larger array."""
    large = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    every_second: Any = (*[slice(None, None, 2)] * array.ndim, ...)
    view: np.ndarray = large[every_second]
    view[...] = array
    return view


def backwards(array: np.ndarray) -> np.ndarray:
    """All strides negative."""
    reverse: Any = (*[slice(None, None, -1)] * array.ndim, ...)
    flipped: np.ndarray = array[reverse].copy()[reverse]
    return flipped


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": np.copy,
    "Fortran": lambda a: a.copy(order="F"),
    "strided": strided,
    "backwards": backwards,
    "stretched": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim and a.shape[0] else a,
}


ROUNDED_INSIDE = {
    "batch_norm", "cross_entropy", "gelu", "group_norm", "layer_norm", "log_softmax", "logsumexp", "mse_loss",
    "rms_norm", "scaled_dot_product_attention", "selu", "elu", "mish", "silu", "softplus", "polyfit",
}  # fmt: skip
"""Operations that cancel: their error is measured against their operands too."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """NumPy warns about what these tests do on purpose."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
@of_each_group
def test_record(record: OpDef, target: str, dtypes: list[np.dtype]) -> None:
    calls, failures = [], []
    for dtype in dtypes:
        for call in calls_of(record, dtype):
            takes = numpy_takes(call) or (record.name, short_name(dtype)) in MORE_THAN_NUMPY
            gap = short_name(dtype) in dict(record.gaps) or (dtype.kind == "c" and not is_taken(record, dtype))
            if takes and not gap:
                calls.append(call)
            elif not is_refused(call, target):
                failures.append(f"{call}: compiled, though {'the record has a gap' if takes else 'NumPy refuses it'}")
    assert calls
    failures += run(record, calls, target)
    if failures:
        pytest.fail(f"{record.name} on {target}: {len(failures)} failures\n" + "\n".join(failures[:20]), pytrace=False)


def test_every_record_has_a_sampler() -> None:
    missing = [r.name for r in RECORDS if r.kind != "elementwise" and r.name not in SAMPLERS]
    assert missing == []
    assert all(calls_of(r, d) for r in RECORDS for d in DTYPES)


def test_the_complex_functions_of_the_array_api() -> None:
    assert [name for name in COMPLEX_FUNCTIONS if not is_taken(OPS[name], np.dtype(np.complex64))] == []


def test_every_listed_dtype_is_one_that_numpy_takes() -> None:
    more = {
        (record.name, short_name(dtype))
        for record in RECORDS
        for dtype in DTYPES
        if short_name(dtype) in record.takes and not numpy_takes(calls_of(record, dtype)[0])
    }
    assert more == MORE_THAN_NUMPY


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_parameters_are_those_of_numpy(record: OpDef) -> None:
    try:
        given = inspect.signature(record.reference).parameters
        theirs = {name: p for name, p in given.items() if p.kind != p.VAR_KEYWORD}
    except ValueError:  # a builtin, in some versions of NumPy
        return
    if isinstance(record.reference, np.ufunc) or record.name == "einsum":
        return
    ours = record.signature.parameters
    assert [n for n in theirs if n not in ours and n not in _HARMLESS] == NOT_COMPILED.get(record.name, [])
    positional = [n for n, p in theirs.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert [n for n in ours if n in positional] == [n for n in positional if n in ours]


def is_taken(record: OpDef, dtype: np.dtype) -> bool:
    """Whether the record lists the dtype."""
    return short_name(dtype) in record.takes


def numpy_takes(call: Call) -> bool:
    """Whether NumPy computes this."""
    try:
        call.apply(call.leaves())
    except (TypeError, OverflowError):
        return False
    return True


def is_refused(call: Call, target: str) -> bool:
    """Whether mlirml refuses the call by a `DTypeError`."""
    try:
        ml.compile(lambda leaves: call.apply(leaves), target).trace(call.leaves())
    except DTypeError:
        return True
    return False


def numpy_result(call: Call, leaves: list[Any]) -> Any:
    """What NumPy gives; for bf16 where it takes f32 only, the f32 result rounded."""
    copies = [clone(x) if isinstance(x, np.ndarray) else x for x in leaves]
    if numpy_takes(call):
        return call.apply(copies)
    return call.apply([x.astype(np.float32) for x in copies]).astype(leaves[0].dtype)


def run(record: OpDef, calls: list[Call], target: str) -> Iterator[str]:
    """Run the calls in one program; one by one if the program cannot be made, to find out which is at fault."""
    compiled = ml.compile(lambda groups: [call.apply(leaves) for call, leaves in zip(calls, groups)], target)
    groups = [call.leaves() for call in calls]
    try:
        compiled(groups)
    except Exception as error:
        if len(calls) == 1:
            yield f"{calls[0]}: {type(error).__name__}: {str(error).splitlines()[0]}"
            return
        middle = len(calls) // 2
        yield from run(record, calls[:middle], target)
        yield from run(record, calls[middle:], target)
        return
    found: set[Call] = set()
    for name, layout in LAYOUTS.items():
        # Matrices of equal rows are singular, and a polynomial of equal coefficients leaves no remainder but zeros.
        if name == "stretched" and (record.name in OF_LAPACK or record.name == "polydiv"):
            continue
        arranged = [[layout(x) if isinstance(x, np.ndarray) else x for x in leaves] for leaves in groups]
        for call, leaves, given in zip(calls, arranged, compiled(arranged)):
            expected = numpy_result(call, leaves)
            several = isinstance(expected, (list, tuple))
            pairs = zip(*(flatten(x)[0] for x in (given, expected)), strict=True) if several else [(given, expected)]
            for number, (one, other) in enumerate(pairs if call not in found else []):
                part = number if several else None
                problem = difference(record, call, leaves, one, np.asarray(other), part)
                if problem:
                    found.add(call)
                    yield f"{call}, {name}: {problem}"


def difference(
    record: OpDef, call: Call, leaves: list[Any], given: np.ndarray, expected: np.ndarray, part: int | None = None
) -> str | None:
    """What is wrong with a result, or with one of several; None when nothing is."""
    if (given.dtype, given.shape) != (expected.dtype, expected.shape):
        return f"{given.dtype}{list(given.shape)}, expected {expected.dtype}{list(expected.shape)}"
    wrong = ~same_elements(given, expected)
    if not wrong.any():
        return None
    if is_float(given.dtype):
        exact, scale = in_wider_type(record, call, leaves, given.dtype, part)
        wrong &= ~close(record, given, expected, exact, scale)
    elif is_complex(given.dtype):  # each part by itself, its error in proportion to the whole number
        exact, scale = in_wider_type(record, call, leaves, given.dtype, part)
        parts = [(given.real, expected.real, exact.real), (given.imag, expected.imag, exact.imag)]
        wrong = ~np.logical_and(*(same_elements(g, e) | close(record, g, e, x, scale) for g, e, x in parts))
    if not wrong.any():
        return None
    first = np.unravel_index(np.argmax(wrong), wrong.shape)
    shown = ", ".join(repr(_at(x, first, wrong.shape)) for x in leaves)
    where = f"{wrong.sum()} of {wrong.size}, at {[int(i) for i in first]}"
    return f"{where}: {given[first]!r}, expected {expected[first]!r}; operands {shown}"


def close(record: OpDef, given: np.ndarray, expected: np.ndarray, exact: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Where floats are as near to the exact result as the record's tolerance and NumPy's own error allow."""
    ours, theirs = (np.abs(x.astype(exact.dtype) - exact) for x in (given, expected))
    unit = float(_finfo(given.dtype).eps) * np.maximum(scale, float(_finfo(given.dtype).smallest_normal))
    finite = np.isfinite(given) & np.isfinite(expected) & np.isfinite(exact)
    own = np.max(np.where(finite, theirs / unit, 0), initial=0)
    limit = np.asarray((record.tolerance + 2 * own) * unit, np.float64)
    result: np.ndarray = finite & (ours <= limit)
    return result


def _at(x: Any, place: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The operand's element at a place of the result, where it broadcasts to it."""
    try:
        return np.broadcast_to(x, shape)[place]
    except ValueError:
        return "..."


def in_wider_type(
    record: OpDef, call: Call, leaves: list[Any], dtype: np.dtype, part: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The result almost exactly, and the magnitude that rounding errors are in proportion to."""
    wider = dtype.itemsize >= 4 and record.name not in (*OF_LAPACK, "interp")
    wide = np.dtype(np.longdouble) if wider else np.dtype(np.float64)

    def widened(given: np.dtype) -> np.dtype:
        return np.result_type(wide, np.complex64) if given.kind == "c" else wide

    options = {k: widened(np.dtype(v)).type if k == "dtype" else v for k, v in call.options.items()}
    precise = Call(call.function, call.args, options)
    kept = "iub" if record.kind == "composite" else "b"  # classes stay integers
    operands = [
        x.astype(widened(x.dtype)) if isinstance(x, np.ndarray) and x.dtype.kind not in kept else x for x in leaves
    ]
    results = precise.apply(operands)
    exact = np.asarray(results if part is None else results[part]).astype(widened(dtype))
    scale = np.abs(exact)
    if exact.dtype.kind == "c":  # beside an infinite part, the other one by itself
        scale = np.where(np.isfinite(scale), scale, np.minimum(np.abs(exact.real), np.abs(exact.imag)))
    if record.name in ("var", "std"):  # the mean is rounded in proportion to the elements
        largest = np.max(np.abs(operands[0]), initial=0)
        scale = np.maximum(scale, largest if record.name == "std" else float(_finfo(dtype).eps) * largest**2)
    if record.name in SUMS:
        scale = np.asarray(precise.apply([np.abs(x) for x in operands])).astype(wide)
        scale = np.maximum(scale, np.abs(exact))  # of differences of products
    if record.name in ROUNDED_INSIDE:
        scale = np.maximum(scale, np.max(np.abs(operands[0]), initial=0))
    return exact, np.asarray(np.where(np.isfinite(scale), scale, 0), wide)
