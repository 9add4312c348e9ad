"""Calls that exercise every operation record: arguments for each dtype, drawn from the record's domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mlirml.ir.text.dtypes import from_short_name, is_float, short_name
from mlirml.ops import OPS, OpDef
from mlirml.ops.registry import ALL, COMPLEX

DTYPES = [from_short_name(name) for name in ALL + COMPLEX]
USUAL = [from_short_name(name) for name in ("bool", "i32", "f32", "f64", "c64")]
GROUPS = {"usual": USUAL, "others": [dtype for dtype in DTYPES if dtype not in USUAL]}
"""Dtypes that are tested in one program; `make test` has few of the second group."""
of_each_group = pytest.mark.parametrize("dtypes", list(GROUPS.values()), ids=list(GROUPS))


@dataclass(frozen=True)
class Runtime:
    """A Python number that is an argument of the compiled function, not a literal in it."""

    value: bool | int | float | complex


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operation. Arrays and `Runtime` numbers are arguments of the compiled function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def leaves(self) -> list[Any]:
        """What is passed when the program runs."""
        return [x.value if isinstance(x, Runtime) else x for x in _flat(self.args) if _is_leaf(x)]

    def apply(self, leaves: list[Any]) -> Any:
        """Call the function with these leaves in place of the call's own."""
        return self.function(*_replaced(self.args, iter(leaves)), **self.options)

    def __str__(self) -> str:
        shown = [_shown(x) for x in self.args] + [f"{k}={v!r}" for k, v in self.options.items()]
        return f"{self.function.__name__}({', '.join(shown)})"


def _is_leaf(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Runtime))


def _flat(x: Any) -> list[Any]:
    return [y for item in x for y in _flat(item)] if isinstance(x, (list, tuple)) else [x]


def _replaced(x: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_replaced(y, leaves) for y in x)
    return next(leaves) if _is_leaf(x) else x


def _shown(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{short_name(x.dtype)}{list(x.shape)}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_shown, x)) + "]"
    return f"argument {x.value!r}" if isinstance(x, Runtime) else repr(x)


@dataclass
class Draw:
    """Arrays of one dtype for one record."""

    record: OpDef
    dtype: np.dtype
    random: np.random.Generator

    @property
    def is_float(self) -> bool:
        """Whether the dtype is f16, bf16, f32 or f64."""
        return is_float(self.dtype)

    @property
    def is_complex(self) -> bool:
        """Whether the dtype is c64 or c128."""
        return self.dtype.kind == "c"

    @property
    def thorough(self) -> bool:
        """Whether to draw many cases: for one dtype of each kind, as the others differ in the body only."""
        return short_name(self.dtype) in ("f32", "i32", "c64")

    @property
    def wide(self) -> type:
        """A wider dtype of the same kind."""
        return np.complex128 if self.is_complex else np.float64

    def array(self, *shape: int, domain: tuple[float, float] | None = None) -> np.ndarray:
        """Random elements in the record's domain; small integers, so that few of them overflow."""
        low, high = domain or self.record.domain
        if self.dtype == np.bool_:
            return np.asarray(self.random.random(shape) < 0.5)
        if self.is_complex:
            parts = self.random.uniform(low, high, (2, *shape))
            return np.asarray(parts[0] + 1j * parts[1]).astype(self.dtype)
        if self.is_float:
            return np.asarray(self.random.uniform(low, high, shape)).astype(self.dtype)
        if self.dtype.kind == "u":
            low = 0
        return np.asarray(self.random.integers(int(np.floor(low)), int(np.ceil(high)) + 2, shape)).astype(self.dtype)

    def second(self, *shape: int) -> np.ndarray:
        """As `array`, for a second operand."""
        return self.array(*shape, domain=self.record.second_domain)


def special_values(dtype: np.dtype) -> np.ndarray:
    """The values at which operations go wrong."""
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "c":
        parts = [np.nan, -np.inf, -1.5, -0.0, 0.0, np.inf]
        return np.array([complex(re, im) for re in parts for im in parts], dtype)
    if not is_float(dtype):
        limits = np.iinfo(dtype)
        bits = 8 * dtype.itemsize
        wanted = [limits.min, limits.min + 1, -3, -1, 0, 1, 2, bits - 1, bits, limits.max - 1, limits.max]
        return np.array([n for n in wanted if limits.min <= n <= limits.max], dtype)
    info = _finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.smallest_normal, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, info.max, np.inf]
    numbers = [np.nan, *(np.float64(x) for x in positive), *(-np.float64(x) for x in positive)]
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(dtype)


def _finfo(dtype: np.dtype) -> Any:
    if dtype.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Sampler = Callable[[Draw], Iterator[Arguments]]
SAMPLERS: dict[str, Sampler] = {}


def sampler(*names: str) -> Callable[[Sampler], Sampler]:
    """Decorator: the function yields arguments for these records."""

    def register(function: Sampler) -> Sampler:
        for name in names:
            assert name in OPS and name not in SAMPLERS, name
            SAMPLERS[name] = function
        return function

    return register


def calls_of(record: OpDef, dtype: np.dtype) -> list[Call]:
    """The calls that test a record with a dtype; never none."""
    sample = SAMPLERS.get(record.name) or (_elementwise if record.kind == "elementwise" else None)
    assert sample is not None, f"{record.name} has no sampler: add one to tests/ops/samples.py"
    draw = Draw(record, dtype, np.random.default_rng([ord(c) for c in record.name + dtype.name]))
    return [Call(record.reference, args, options) for args, options in sample(draw)]


BINARY_SHAPES = [
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((), (5,)),
    ((), ()),
    ((0, 3), (1, 3)),
    ((2, 1, 3), (4, 1)),
    ((1,), (1,)),
]
UNARY_SHAPES = [(3, 4), (), (0,), (2, 1, 3), (1,), (2, 0, 3)]


def _elementwise(draw: Draw) -> Iterator[Arguments]:
    arity = draw.record.arrays
    turn = DTYPES.index(draw.dtype)
    if arity == 1:
        yield (draw.array(2, 67),), {}
        for shape in UNARY_SHAPES if draw.thorough else [UNARY_SHAPES[turn % len(UNARY_SHAPES)]]:
            yield (draw.array(*shape),), {}
        yield (special_values(draw.dtype),), {}
        return
    yield (draw.array(2, 67), draw.second(2, 67)), {}
    shapes = BINARY_SHAPES if draw.thorough else [BINARY_SHAPES[turn % len(BINARY_SHAPES)]]
    for first, second in shapes:
        yield (draw.array(*first), draw.second(*second)), {}
    yield _special_pairs(draw), {}
    if draw.dtype != np.bool_:
        yield from _with_python_numbers(draw)


def _special_pairs(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    values = special_values(draw.dtype)
    one, other = (np.array(x) for x in zip(*itertools.product(values, values)))
    if draw.record.name in ("power", "float_power") and other.dtype.kind == "i":
        one, other = one[other >= 0], other[other >= 0]  # NumPy refuses negative powers of integers
    if draw.record.name in ("power", "float_power") and draw.is_complex:  # C99 leaves infinite ones open
        finite = np.isfinite(one) & np.isfinite(other)
        one, other = one[finite], other[finite]
    return one.astype(draw.dtype), other.astype(draw.dtype)


def _with_python_numbers(draw: Draw) -> Iterator[Arguments]:
    """A literal and an argument on either side; the kinds of number take turns so that programs stay small."""
    numbers: list[Any] = [2, 1.5, True] if "f64" in draw.record.dtypes else [2, 3, True]
    if draw.is_complex:
        numbers = [2, 0.5 - 1.5j, 2.5]
    for turn, number in enumerate(numbers if draw.thorough else [numbers[DTYPES.index(draw.dtype) % 3]]):
        literal_first = bool((turn + DTYPES.index(draw.dtype)) % 2)
        yield ((number, draw.second(5)) if literal_first else (draw.array(5), number)), {}
        yield ((draw.array(5), Runtime(number)) if literal_first else (Runtime(number), draw.second(5))), {}


@sampler("where")
def _where(draw: Draw) -> Iterator[Arguments]:
    condition = draw.random.random((4, 5)) < 0.5
    yield (condition, draw.array(4, 5), draw.array(4, 5)), {}
    yield (condition[0], draw.array(4, 1), draw.array(5)), {}
    yield (draw.array(4, 5), draw.array(4, 5), draw.array()), {}  # any dtype as the condition
    if draw.dtype != np.bool_:
        yield (condition, draw.array(4, 5), 1), {}
        yield (condition, 1.5, draw.array(4, 5)), {}
        yield (condition, Runtime(1), draw.array(5)), {}
    if draw.thorough:
        yield (condition, 1, 2.5), {}
        yield (np.array(True), draw.array(3), draw.array()), {}
        yield (condition, Runtime(1), Runtime(2)), {}


@sampler("clip")
def _clip(draw: Draw) -> Iterator[Arguments]:
    low, high = draw.array(5, domain=(0, 1)), draw.array(5, domain=(1, 2))
    yield (draw.array(3, 5), low, high), {}
    yield (special_values(draw.dtype), draw.array(), None), {}
    yield (draw.array(3, 5), None, 2), {}
    if draw.thorough:
        yield (draw.array(5), 1, 2), {}
        yield (draw.array(5),), {"min": 1}
        yield (draw.array(5),), {"a_min": 1, "a_max": 3}
        yield (draw.array(5), 2, 1), {}  # the upper limit wins
        yield (draw.array(5), -1000, 2), {}
        if draw.dtype.kind in "iu":
            yield (draw.array(5), -(2**70), draw.array(5)), {}
            yield (draw.array(5), 1, 2**64), {}
        yield (draw.array(5), Runtime(1), Runtime(2)), {}
        yield (draw.array(5), 0.5, 1.5), {}


@sampler("round")
def _round(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    yield (special_values(draw.dtype),), {}
    yield (draw.array(3), 0), {}
    if draw.dtype != np.bool_:
        yield (draw.array(40, domain=(-99, 99)), -1), {}
        yield (draw.array(40), 1), {}
        yield (draw.array(40), 3), {}


@sampler("ldexp")
def _ldexp(draw: Draw) -> Iterator[Arguments]:
    values = special_values(draw.dtype)
    powers = [
        np.array([0, 1, -1, 5, -20, 30, -130, -140, 200, -1030, 1060, -2100, 2098, 2**31 - 1, -(2**31)], np.int32)
    ]
    for exponents in (*powers, powers[0].astype(np.int64) * 2**20, powers[0].astype(np.int16))[
        : 3 if draw.thorough else 1
    ]:
        one, other = (np.array(x) for x in zip(*itertools.product(values, exponents)))
        yield (one.astype(draw.dtype), other.astype(exponents.dtype)), {}
    yield (draw.array(3, 1), powers[:7]), {}
    yield (draw.array(5), 3), {}
    yield (draw.array(5), Runtime(-3)), {}
    yield (draw.array(5), draw.array(5)), {}


@sampler("nan_to_num")
def _nan_to_num(draw: Draw) -> Iterator[Arguments]:
    yield (special_values(draw.dtype),), {}
    yield (special_values(draw.dtype),), {"nan": 1.5, "posinf": 2, "neginf": -3.0}
    yield (draw.array(3, 4),), {"nan": draw.array(4)}
    yield (draw.array(),), {}


@sampler("isclose")
def _isclose(draw: Draw) -> Iterator[Arguments]:
    x = draw.array(3, 5)
    yield (x, x[::-1].copy()), {"rtol": 1}
    yield (x, (x.astype(np.float64) * 1.000001).astype(draw.dtype)), {}
    yield _special_pairs(draw), {}
    yield _special_pairs(draw), {"equal_nan": True, "rtol": 0.25}
    yield (x, draw.array(5)), {"atol": 1.5, "rtol": 0.0}
    yield (x, 2), {}


REDUCTION_SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((3, 5, 7), {}),
    ((3, 5, 7), {"axis": 0}),
    ((3, 5, 7), {"axis": (0, -1), "keepdims": True}),
    ((3, 5, 7), {"axis": 1, "keepdims": True}),
    ((100,), {"axis": -1}),
    ((3, 70), {"axis": 1}),
    ((), {}),
    ((), {"axis": 0}),
    ((3, 0), {"axis": 0}),
    ((3, 4), {"axis": ()}),
    ((3, 4), {"keepdims": True}),
]


def _reductions(draw: Draw) -> Iterator[Arguments]:
    for shape, options in REDUCTION_SHAPES if draw.thorough else REDUCTION_SHAPES[:3]:
        if shape or not options or draw.record.name not in ("mean", "var", "std"):  # they want the axis to be there
            yield (draw.array(*shape),), options


def _masked(draw: Draw, **options: Any) -> Iterator[Arguments]:
    mask = draw.random.random((3, 5)) < 0.5
    yield (draw.array(3, 5),), {"where": mask, **options}
    if draw.thorough:
        yield (draw.array(3, 5),), {"where": mask[0], "axis": 1, "keepdims": True, **options}
        yield (draw.array(2, 3, 5),), {"where": mask, "axis": (0, 1), **options}
        yield (draw.array(3, 5),), {"where": [[True], [False], [True]], "axis": 0, **options}
        yield (draw.array(3, 5),), {"where": False, "axis": 0, **options}


@sampler("sum", "prod")
def _sums(draw: Draw) -> Iterator[Arguments]:
    yield from _reductions(draw)
    yield from _masked(draw)
    yield from _masked(draw, initial=1)
    if draw.thorough:
        yield (draw.array(3, 4),), {"axis": 1, "initial": 2}
        yield (draw.array(3, 4),), {"dtype": draw.wide}
        yield (draw.array(3, 4), 0, None, None, True), {}  # the fourth argument is `out`
    if draw.dtype.kind in "iub" and draw.dtype.itemsize < 8:
        yield (draw.array(40),), {"dtype": draw.dtype}
    yield (draw.array(0, 3),), {"axis": 0}


@sampler(*(name for name in OPS if name.endswith("_reduce")))
def _combined(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(40),), {}
    yield (draw.array(3, 4),), {"axis": 1, "keepdims": True}
    yield (draw.array(3, 4),), {"axis": 0, "where": draw.array(3, 4) > 0}
    yield (draw.array(0, 3),), {}
    if draw.thorough:
        yield (draw.array(3, 4, 5),), {"axis": (0, 2), "initial": 1}
        yield (draw.array(3, 4), None), {}


@sampler("max", "min", "ptp")
def _extrema(draw: Draw) -> Iterator[Arguments]:
    yield from _reductions(draw)
    yield (special_values(draw.dtype),), {}
    if draw.is_float:
        yield (np.array([-np.inf, -np.inf]).astype(draw.dtype),), {}
        yield (np.array([[1, np.nan], [2, 3]]).astype(draw.dtype),), {"axis": 0}
        yield (np.array([np.inf, np.inf]).astype(draw.dtype),), {}
    if draw.record.name != "ptp":
        yield from _masked(draw, initial=1)
    if draw.thorough and draw.record.name != "ptp":
        yield (draw.array(3, 4),), {"axis": 1, "initial": 2}
        yield (draw.array(0, 3),), {"axis": 0, "initial": -1}
        yield (draw.array(3, 4), 0, None, True), {}


@sampler("mean")
def _mean(draw: Draw) -> Iterator[Arguments]:
    yield from _reductions(draw)
    yield from _masked(draw)
    if draw.thorough:
        yield (draw.array(3, 4),), {"axis": 1, "dtype": draw.wide}
        yield (draw.array(0, 3),), {"axis": 0}
        yield (draw.array(3, 4), 0, None, None, True), {}


@sampler("var", "std")
def _spread(draw: Draw) -> Iterator[Arguments]:
    yield from _reductions(draw)
    yield from _masked(draw)
    if draw.thorough:
        yield (draw.array(3, 4),), {"axis": 1, "ddof": 1}
        yield (draw.array(1, 4),), {"axis": 0, "ddof": 1}
        yield (draw.array(3, 4),), {"axis": 1, "dtype": draw.wide}
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            yield (draw.array(3, 4),), {"axis": 1, "correction": 1}
            if draw.is_float:
                yield (draw.array(3, 4),), {"axis": 1, "mean": draw.array(3, 1)}


@sampler("any", "all", "count_nonzero")
def _truths(draw: Draw) -> Iterator[Arguments]:
    yield from _reductions(draw)
    if draw.record.name != "count_nonzero":
        yield from _masked(draw)
    yield (special_values(draw.dtype),), {}
    yield (np.zeros((3, 4), draw.dtype),), {"axis": 1}
    yield (np.ones((3, 4), draw.dtype),), {"axis": 0}


@sampler("argmax", "argmin")
def _positions(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5, 7),), {}
    yield (draw.array(3, 5, 7),), {"axis": 1}
    yield (draw.array(3, 70),), {"axis": -1, "keepdims": True}
    yield (np.ones((4, 5), draw.dtype),), {"axis": 0}  # the first of equals
    yield (special_values(draw.dtype),), {}
    if draw.is_float:
        yield (np.array([[1, np.nan, 3], [np.nan, np.nan, 0]]).astype(draw.dtype),), {"axis": 1}
        yield (np.full(3, -np.inf).astype(draw.dtype),), {}
        yield (np.full(3, np.inf).astype(draw.dtype),), {}
        yield (np.array([-0.0, 0.0, -0.0]).astype(draw.dtype),), {}
    if draw.thorough:
        yield (draw.array(),), {}
        yield (draw.array(),), {"axis": -1}
        yield (draw.array(3, 4),), {"keepdims": True}
        yield (draw.array(3, 0),), {"axis": 0}
        yield (draw.array(3, 4), 1), {}


PRODUCT_SHAPES = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((3, 0), (0, 5)),
    ((0, 3), (3, 2)),
    ((17, 33), (33, 19)),
    ((1, 1), (1, 1)),
]


@sampler("matmul")
def _matmul(draw: Draw) -> Iterator[Arguments]:
    for first, second in PRODUCT_SHAPES if draw.thorough else PRODUCT_SHAPES[:3]:
        yield (draw.array(*first), draw.array(*second)), {}


@sampler("dot")
def _dot(draw: Draw) -> Iterator[Arguments]:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (5, 4, 2)),
        ((4,), (4,)),
        ((), (3,)),
    ]
    if draw.thorough:
        shapes += [((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((4,), (4, 3)), ((3, 0), (0, 2)), ((), ())]
    for first, second in shapes:
        yield (draw.array(*first), draw.array(*second)), {}
    if draw.dtype.name != "bfloat16":  # NumPy makes an array of objects of it
        yield (draw.array(3), 2), {}


@sampler("inner")
def _inner(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4), draw.array(4)), {}
    yield (draw.array(2, 3, 4), draw.array(5, 4)), {}
    yield (draw.array(2, 3), draw.array()), {}


@sampler("outer")
def _outer(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4), draw.array(5)), {}
    yield (draw.array(2, 3), draw.array()), {}


@sampler("vdot")
def _vdot(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4), draw.array(4)), {}
    yield (draw.array(2, 3), draw.array(6)), {}
    yield (draw.array(), draw.array()), {}


@sampler("tensordot")
def _tensordot(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4), draw.array(3, 4, 5)), {}
    yield (draw.array(2, 3, 4), draw.array(4, 3, 5)), {"axes": ((1, 2), (1, 0))}
    if draw.thorough:
        yield (draw.array(2, 3), draw.array(4)), {"axes": 0}
        yield (draw.array(2, 3), draw.array(5, 3)), {"axes": (-1, 1)}
        yield (draw.array(2, 3), draw.array(3, 2)), {"axes": [[0, 1], [1, 0]]}
        yield (draw.array(2, 3), draw.array(3, 4)), {"axes": 1}


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("ij,kj->ik", (3, 4), (5, 4)),
    ("ii->i", (4, 4)),
    ("ii", (4, 4)),
    ("ij->ji", (3, 4)),
    ("ij->j", (3, 4)),
    ("ij", (3, 4)),
    ("ba", (3, 4)),
    ("i,i", (4,), (4,)),
    ("i,j->ij", (4,), (5,)),
    ("ij,ij->ij", (3, 4), (3, 4)),
    ("ij,ij->i", (3, 4), (3, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...i->...", (2, 3, 4)),
    ("i...->...", (2, 3, 4)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("ij,jk,kl", (3, 4), (4, 5), (5, 2)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("a,b,c,d->", (2,), (3,), (4,), (5,)),
    ("iij,j->i", (3, 3, 4), (4,)),
    ("ij,j", (3, 1), (4,)),
    ("ij,jk->ik", (3, 0), (0, 5)),
    (" i j , j -> i ", (3, 4), (4,)),
    (",ij->ij", (), (3, 4)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ab,cb->ca", (3, 4), (5, 4)),
    ("aab,bcc->ac", (3, 3, 4), (4, 5, 5)),
]


@sampler("einsum")
def _einsum(draw: Draw) -> Iterator[Arguments]:
    for text, *shapes in EINSUMS if draw.thorough else EINSUMS[:5]:
        yield (text, *(draw.array(*shape) for shape in shapes)), {}
    if draw.thorough:
        yield ("ij,jk,kl->il", draw.array(3, 4), draw.array(4, 5), draw.array(5, 2)), {"optimize": False}
        yield ("ij,jk,kl", draw.array(3, 4), draw.array(4, 5), draw.array(5, 2)), {"optimize": "optimal"}
        yield ("ij,jk->ik", draw.array(3, 4), draw.array(4, 5)), {"dtype": np.float64}
        yield (draw.array(3, 4), [0, 1], draw.array(4, 5), [1, 27], [27, 0]), {}
        yield (draw.array(3, 4, 4), [Ellipsis, 1, 1]), {}


VIEWS: dict[str, list[tuple[Any, ...]]] = {
    "reshape": [
        ((2, 6), (3, 4)), ((2, 6), -1), ((2, 3, 4), (4, -1)), ((4, 3), (3, 4)), ((1,), ()), ((), (1, 1)),
        ((0, 3), (3, 0)), ((6,), (1, 6, 1)), ((3, 1, 2), (6,)), ((2, 3, 4), (-1, 2), "F"), ((3, 4), 12, "F"),
    ],
    "ravel": [((2, 3),), ((),), ((0, 2),), ((2, 3, 4), "F")],
    "transpose": [((2, 3, 4),), ((2, 3, 4), (1, 0, 2)), ((2, 3, 4), (-1, 0, 1)), ((),), ((5,),), ((3, 0),)],
    "swapaxes": [((2, 3, 4), 0, -1), ((2, 3, 4), 1, 1)],
    "moveaxis": [((2, 3, 4), 0, -1), ((2, 3, 4), (0, 1), (2, 0)), ((2, 3, 4), [2, 0], [0, 1])],
    "expand_dims": [((2, 3), 0), ((2, 3), -1), ((2, 3), (0, 3)), ((), 0), ((2,), (-1, 0))],
    "squeeze": [((1, 3, 1),), ((1, 3, 1), 0), ((1, 3, 1), (0, -1)), ((2,),), ((1, 1),)],
    "broadcast_to": [((3,), (2, 3)), ((2, 1), (4, 2, 5)), ((), (2,)), ((1, 3), (0, 3)), ((), 3)],
    "flip": [((2, 3),), ((2, 3), 0), ((2, 3, 4), (0, -1)), ((0,),), ((),)],
    "split": [((6, 2), 3), ((6, 2), [1, 4]), ((2, 6), 2, 1), ((5,), [3, 2, 9]), ((5,), [-2]), ((6, 2), range(1, 6, 2))],
    "array_split": [((7, 2), 3), ((2, 7), 4, -1), ((3,), 5)],
}  # fmt: skip


@sampler(*VIEWS)
def _views(draw: Draw) -> Iterator[Arguments]:
    for shape, *rest in VIEWS[draw.record.name] if draw.thorough else VIEWS[draw.record.name][:2]:
        yield (draw.array(*shape), *rest), {}


@sampler("concat")
def _concatenate(draw: Draw) -> Iterator[Arguments]:
    yield ([draw.array(2, 3), draw.array(4, 3)],), {}
    yield ((draw.array(2, 3), draw.array(2, 1)), -1), {}
    yield ([draw.array(2, 3), draw.array(2)],), {"axis": None}
    if draw.thorough:
        yield ([draw.array(2, 3), np.ones((1, 3), np.int8), np.ones((1, 3), np.float64)],), {}
        yield ([draw.array(0, 3), draw.array(2, 3), draw.array(0, 3)],), {}
        yield ([draw.array(2), [1, 2]],), {}
        yield ([draw.array(2), draw.array(3)],), {"dtype": draw.wide}
        yield ([draw.array(2)],), {}


@sampler("stack")
def _stack(draw: Draw) -> Iterator[Arguments]:
    yield ([draw.array(2, 3), draw.array(2, 3)],), {}
    yield ((draw.array(2, 3), draw.array(2, 3), draw.array(2, 3)), -1), {}
    yield ([draw.array(), draw.array()],), {"axis": 0}
    if draw.thorough:
        yield ([draw.array(2, 3), draw.array(2, 3)],), {"axis": 1, "dtype": draw.wide}
        yield ([draw.array(), 1.5, 2],), {}
        yield ([draw.array(), Runtime(1.5)],), {}
        yield ([draw.array(0, 3)],), {}


@sampler("vstack", "hstack")
def _stacked(draw: Draw) -> Iterator[Arguments]:
    yield ([draw.array(3), draw.array(3)],), {}
    yield ((draw.array(2, 3), draw.array(2, 3)),), {}
    yield ([draw.array(), draw.array()],), {}
    if draw.thorough:
        yield ([draw.array(2, 3, 4), draw.array(2, 3, 4)],), {}
