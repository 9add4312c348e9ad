"""Random programs against NumPy: operations, slices, views, stores and masks over several dtypes, element for element.

The numbers are small integers, in floats too, so that every order of summation is exact and no tolerance is needed.
`MLIRML_FUZZ=20000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back. Some inputs hold infinities and NaN, whose results are compared by kind and place.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes  # noqa: F401  numpy.dtype("bfloat16") needs it
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.oracle import TARGETS, assert_same, cloned
from tests.fuzz.sliced_sums import picked, sums

# A program of many is shown as it was drawn: making it smaller takes minutes.
PHASES = [phase for phase in Phase if not COUNT or phase not in (Phase.shrink, Phase.explain)]
DTYPES = [
    "float64", "float32", "int64", "int32", "int8", "uint8", "bool", "float16", "complex128", "complex64", "bfloat16",
    "uint32", "int16", "uint64",
]  # fmt: skip
# Integers up to here, and sums of them, are exact in a float dtype.
EXACT = {
    "bfloat16": 2**7,
    "float16": 2**10,
    "float32": 2**22,
    "float64": 2**50,
    "complex64": 2**22,
    "complex128": 2**50,
}
SHAPES = [
    (),
    (1,),
    (3,),
    (4,),
    (0,),
    (0, 3),
    (3, 0),
    (3, 3),
    (3, 4),
    (4, 3),
    (1, 4),
    (3, 1),
    (2, 3, 4),
    (2, 1, 3),
    (5, 17),
    (70,),
    (2, 130),  # more than a block of `mlirml-branch-blocks`
]
BINARY = [
    "{} + {}", "{} - {}", "{} * {}", "np.maximum({}, {})", "np.minimum({}, {})", "np.where({} > 1, {}, 2)",
    "np.gcd({}, {})", "np.lcm({}, {} % 4)", "np.clip({}, -2, {})",
]  # fmt: skip
POWERS = [
    "{} ** 2", "{} ** 3", "{} ** 1", "{} ** 0", "{} ** True", "{} ** 2.0", "np.power({}, 2)", "np.power({}, 2.0)",
    "{} ** np.int8(2)", "{} ** np.float32(2)", "{} ** (np.abs(np.real({})).astype(np.uint8) % 3)", "2 ** np.abs({})",
    "np.float_power({}, 2)", "{} ** 1.0",
]  # fmt: skip
SLIDING = [
    "np.convolve({}, {})", "np.convolve({}, {}, 'same')", "np.correlate({}, {}, 'full')", "np.correlate({}, {})",
    "np.convolve(np.ravel({}), [1, -1, 2])", "np.correlate({}, [2, 1], 'same')",
    "np.convolve(np.ravel({}), np.ones(9), 'same')",
]  # fmt: skip
SUBSCRIPTED = [
    "diagonal({})", "np.einsum('ij->ji', {})", "np.einsum('j->j', {})", "np.einsum('...i->i...', {})",
    "np.einsum('...ij->...ji', {})", "np.einsum('ijk->kij', {})", "np.einsum('ii', {})", "np.einsum('ij->j', {})",
    "np.einsum('j,l->', {}, {})", "np.einsum('ij,kl->ik', {}, {})", "np.einsum('ij,l->i', {}, {})",
    "np.einsum('i,j->ij', {}, {})", "np.einsum('i,i,j->j', {}, {}, {})",
]  # fmt: skip
MADE = [
    "np.zeros_like(np.ndarray({}.shape, {}.dtype))", "np.mgrid[0:2, 0:3]", "np.mgrid[1:4]", "np.ogrid[0:2, 0:3][1]",
    "shaped({} + 0)", "shaped({}.copy())", "np.empty((0, 3)) + np.ravel({})[:1]",
]  # fmt: skip
# Loops over slices whose bounds are elements of arrays of any integer dtype.
SLICED = [
    f"{function}(np.ravel({{}}).real * 1.0, {bounds})"
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
    for bounds in (f"np.abs(np.ravel({{}}).real).astype(np.{dtype})",)
    for function in ("sums",)
] + ["picked(np.ravel({}).real * 1.0, np.array([0, 2, 1, 3], np.uint32), np.array([0, 0, 0], np.int32))"]
COMPARISONS = ["{} < {}", "{} >= {}", "{} == {}", "{} != {}", "np.logical_or({}, {})", "np.logical_and({}, {} > 0)"]
UNARY = [
    "-{}", "abs({})", "np.square({})", "np.sign({})", "{} + 2", "3 - {}", "{} * -1", "{} // 2", "{} % 3", "{} > 0",
    "np.logical_not({})", "~({} > 1)", "np.clip({}, 1, 3)", "np.floor({})", "+{}", "{}.copy()", "{} * True",
    "{}.astype(np.int64)", "{}.astype(np.float64)", "{}.astype(np.float32)", "{}.astype(bool)", "np.zeros_like({})",
    "np.where({} > 0, {}, {})", "np.full_like({}, 2)", "{}.real + 1", "{}.imag > 0", "np.imag({}) * 2", "np.conj({})",
]  # fmt: skip
SHAPED = [
    "{}.T", "{}.reshape(-1)", "np.ravel({})", "np.flip({})", "{}[::-1]", "{}[None]", "{}[..., None]", "np.squeeze({})",
    "np.expand_dims({}, 0)", "np.moveaxis({}, 0, -1)", "np.swapaxes({}, 0, -1)", "{}[1:]", "{}[..., ::2]", "{}[0]",
    "{}[-1:]", "{}[..., 1]", "np.broadcast_to({}, (2, *{}.shape))", "{}.reshape({}.shape[::-1])", "{}[:, ::-2]",
    "{}.reshape(-1, order='F')", "np.ravel({}, 'F')", "{}.reshape({}.shape[::-1], order='F')",
    "np.split({}, [1])[1]", "np.transpose({})[1:]", "{}.reshape(*{}.shape, 1)", "{}[...]", "{}[1, ..., 0]",
]  # fmt: skip
REDUCTIONS = [
    "np.sum({})", "{}.sum(0)", "{}.sum(-1, keepdims=True)", "np.max({}, axis=-1)", "{}.min(axis=0)", "np.any({}, 0)",
    "np.all({} > 0)", "np.argmax({}, 0)", "np.argmin({})", "np.count_nonzero({}, axis=-1)", "{}.max(keepdims=True)",
    "np.sum({}, (0, -1))", "np.add.reduce({})", "np.sum({}[{} > 0])", "np.max({}[{} > 0], initial=1)",
]  # fmt: skip
JOINS = [
    "np.concatenate([{}, {}])", "np.stack([{}, {}])", "np.concatenate([{}, {}], -1)", "np.vstack([{}, {}])",
    "np.stack([{}, {}], -1)", "np.hstack([{}, {}])", "{} @ {}", "{} @ {}.T", "np.dot({}, {})", "np.outer({}, {})",
    "np.einsum('...i,...i', {}, {})", "np.einsum('ij,jk', {}, {})", "np.einsum('ij,ij->i', {}, {})",
    "np.einsum('ij,jk,kl', {}, {}, {})", "np.maximum({}, 0) @ {}", "{} @ ({} * 2 + {})", "({} - {}) @ {}.T",
    "np.linalg.multi_dot([{}, {}, {}])", "np.abs({} @ {}) + {}", "np.tensordot({}, {}, 1)", "np.inner({}, {})",
    "np.vecdot({}, {})",
]  # fmt: skip
PRODUCTS = [
    "{} @ {}.T", "{}.T @ {}", "np.einsum('ij,kj', {}, {})", "{} @ np.ones(({}.shape[-1], 4))", "np.dot({}, {}.T)",
]  # fmt: skip
"""Contractions of any matrix with itself or a known one, so that many programs have some."""
STORES = [
    "{}[...] = {}", "{}[0] = {}", "{}[1:] = {}", "{}[::-1] = {}", "{} += {}", "{} *= 2", "{}[..., 0] = {}",
    "{}[1:] += {}", "{}[{} > 0] = 1", "{}[:-1] = {}[1:]", "{}[:] = 3", "{}[..., ::2] -= 1", "{}.T[1:] = {}",
    "{} -= {}[::-1]", "np.copyto({}, {} + 0, 'unsafe')", "np.add({}, 1, out={})", "{}[1:][0] = {}",
    "diagonal({})[:] = 2", "np.einsum('ij->ji', {})[0] += 1", "np.einsum('...i->i...', {})[...] = {}",
    "{}.reshape(-1)[::2] = 1", "{}.ravel()[1:] = {}", "np.ravel({})[0] += 2", "{}.T.reshape(-1)[1:] *= 2",
    "{}[1:].reshape(-1)[0] = 3",
    "{}[-1, ..., 1:] = 0", "{}[{} > 0] *= 2", "{}[{} > 0] = {}[{} > 0] + 1",
]  # fmt: skip
REARRANGED = [
    "np.roll({}, 1)", "np.roll({}, -2, 0)", "np.tile({}, 2)", "np.tile({}, (2, 1))", "np.repeat({}, 2, -1)",
    "np.pad({}, 1)", "np.pad({}, 2, 'edge')", "np.pad({}, 1, 'reflect')", "np.pad({}, (1, 2), 'wrap')",
    "np.rot90({})", "np.tril({})", "np.triu({}, 1)", "np.diag({})", "np.trace({})", "np.flipud({})",
    "np.stack(np.meshgrid({}, {}))", "np.broadcast_arrays({}, {})[0] + 0", "np.kron({}, {})",
]  # fmt: skip
SCANS = [
    "np.cumsum({})", "np.cumsum({}, 0)", "np.cumsum({}, -1)", "np.cumprod(np.sign({}), 0)", "np.diff({}, axis=0)",
    "np.maximum.accumulate({}, -1)", "np.minimum.accumulate({})", "np.diff({}, 2)",
]  # fmt: skip
SORTS = [
    "np.lexsort(({}, {}))", "np.partition(np.sort({}), 1)", "ml.nn.functional.relu({})",
    "np.sort({})", "np.sort({}, 0)", "np.sort({}, None)", "np.argsort({}, kind='stable')",
    "np.searchsorted(np.sort({}, None), {})", "np.searchsorted(np.sort({}, None), {}, 'right')", "np.median({})",
    "np.take_along_axis({}, np.argsort({}, -1, kind='stable'), -1)",
]  # fmt: skip
INDEXED = [
    "{}[[1, 0, -1]]", "{}[..., [1, 0]]", "{}[[0, 1], [1, 0]]", "{}[:, [[0, 1], [1, 1]]]", "{}[[0, 1], :, [1, 0]]",
    "{}[np.array([0, -1]), None]", "np.take({}, [1, 0], axis=0)", "np.take({}, [[0, 1], [2, 0]], axis=-1)",
    "{}[np.abs(np.real({})).astype(np.int64) % 2]", "{}[np.argmax({})]", "{}[..., np.argmin({}, 0)]",
    "{}[np.array([True, False, True])]",
    "np.take({}, {}.astype(np.int64), mode='wrap')", "np.take({}, {}.astype(np.int64), 0, mode='clip')",
]  # fmt: skip
SCATTERS = [
    "{}[[0, 1]] = 2", "{}[[1, 0]] += {}", "{}[..., [0]] = {}[..., [1]]", "np.add.at({}, ([0, 0, 1],), 1)",
    "{}[[0, 1, 0], 0] = {}", "{}[np.abs(np.real({})).astype(np.int64) % 2] = 3", "{}[np.argmax({})] = 2",
    "np.put_along_axis({}, np.argmax({}, -1, keepdims=True), 2, -1)", "np.fill_diagonal({}, 3)", "{}.sort(-1)",
    "np.maximum.at({}, ([1, 0],), {})", "{}[{} > 1] = {}[0, 0]",
    "np.add.at({}, np.abs(np.real({})).astype(np.int64) % 2, 1)", "{}[::-1, [1, 0]] -= 1",
]  # fmt: skip
# A Python number has one dtype in both branches of compiled code, whichever runs: these take arrays.
CONTROL = [
    "ml.fori_loop(0, 3, lambda i, x: x + x, {})", "ml.fori_loop(0, 3, lambda i, x: x * {}, {})",
    "ml.cond(np.sum({}) > 2, lambda x: x + x, lambda x: x * x, np.asarray({}))",
    "ml.cond(np.any({}), lambda x, y: x, lambda x, y: y, np.asarray({}), np.asarray({}))",
    "ml.switch(np.argmin({}), [lambda x: x, lambda x: x + x, lambda x: x * x], np.asarray({}))",
    "ml.scan(lambda c, x: (c + x, c * x), {}[0], {})[0]", "ml.scan(lambda c, x: (c + x, c * x), {}[0], {})[1]",
    "ml.scan(lambda c, x: (x, x - c), {}[-1], {}, reverse=True)[1]",
    "ml.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[1]), (0, {}))[1]",
    "ml.fori_loop(0, {}.shape[0], lambda i, x: x + {}[i], {}[0])",
    "ml.fori_loop(0, 2, lambda i, x: ml.scan(lambda c, r: (c + r, c), x, np.stack([{}, {}]))[0], {})",
    "ml.scan(lambda c, r: (ml.cond(np.any(r > 0), lambda y: y + r, lambda y: y - r, c), np.sum(r)), {}[0] * 1, {})[0]",
    "ml.while_loop(lambda s: np.sum(s[0]) < 9, lambda s: (s[0] + 1, s[1] * 1 + {}), (np.zeros(2), {} + 0))[1]",
    "ml.scan(lambda c, r: (np.maximum(c, 0) @ r, c), {}, np.stack([{}, {}]))[0]",
    "ml.fori_loop(0, 2, lambda i, x: ml.fori_loop(i, 3, lambda j, y: y + y, x), {})",
]  # fmt: skip
KNOWN = [
    "np.arange(4)",
    "np.ones((3, 4))",
    "np.zeros((2, 3, 4), np.int32)",
    "np.eye(3)",
    "np.arange(12.0).reshape(3, 4)",
]
OF_MASKS = [
    "{}[{} > 0] = 1", "{}[{} > 0] *= 2", "{}[{} > 0] = {}[{} > 0] + 1", "np.sum({}[{} > 0])",
    "np.max({}[{} > 0], initial=1)",
]  # fmt: skip
OF_ONE = {*UNARY, *SHAPED, *OF_MASKS, *PRODUCTS, *POWERS, *MADE}
VALUES = [
    *BINARY * 3, *COMPARISONS, *UNARY, *SHAPED * 2, *REDUCTIONS, *JOINS, *KNOWN,
    *REARRANGED, *SCANS, *SORTS, *INDEXED * 2, *CONTROL * 2, *PRODUCTS * 3, *POWERS, *SLIDING * 2, *SUBSCRIPTED * 2,
    *MADE, *SLICED,
]  # fmt: skip
STATEMENTS = [*STORES, *SCATTERS]
READ_AGAIN = [BINARY, UNARY, SHAPED, REDUCTIONS, JOINS, INDEXED, [*SCANS, *SORTS, *REARRANGED], STATEMENTS]
"""The kinds of ways to read a value: of each intermediate that is read again, several are drawn."""
REFUSED = (
    "NumPy may or may not have made a copy",
    "not compiled for complex numbers",
    "the branches differ in type",
    "read-only",
    "a NumPy function made a view",
    "NumPy has no common dtype of",  # NumPy computes with Python objects
    "a NumPy scalar cannot be stored into",  # of branches of which one gives an array and the other a number
    "indexing with True or False",  # of an array without dimensions
    "a mask of shape [0",  # NumPy does not compare the shape of masks without elements
    ", 0] does not fit",
    "and may not fit",  # of Python integers, known when the program runs, in an array of narrow ones
    "with size 0",  # the body of a loop of no rounds is traced too
)
OVERLAPS = [
    "{}",
    "{}[:]",
    "{}[::-1]",
    "{}[1:]",
    "{}[:-1]",
    "{}.T",
    "{}[..., ::2]",
    "{}[None]",
    "{}.reshape(-1)",
    "{}[0:1]",
]
TEMPLATES = [*VALUES, *STATEMENTS * 2]
# In another order, products with infinities and NaN may be others, and which NaN is found first.
OF_WILD = [
    template
    for template in [*BINARY, *UNARY, *SHAPED, *REDUCTIONS, *SLIDING * 4, *SUBSCRIPTED, *INDEXED, *REARRANGED, *STORES]
    if not any(word in template for word in ("kl->", "j,l", "ij,l", "i,i,j", "gcd", "lcm", "kron"))
]


@dataclass
class Program:
    """Source text and inputs."""

    lines: list[str]
    inputs: list[Any]
    wild: bool = False  # whether there may be infinities and NaN
    views: tuple[str, ...] = ()  # arguments after the inputs, which share their memory

    def arguments(self) -> list[Any]:
        """The inputs, cloned, and views of them."""
        inputs = cloned(self.inputs)
        return inputs + [eval(view, {f"a{i}": x for i, x in enumerate(inputs)}) for view in self.views]

    def with_line(self, line: str) -> Program:
        """The program with one more line."""
        return replace(self, lines=[*self.lines, line])

    def source(self) -> str:
        """A function that returns every variable."""
        arguments = ", ".join(f"a{i}" for i in range(len(self.inputs) + len(self.views)))
        made = [line.partition(" = ")[0] for line in self.lines]
        body = [*self.lines, f"return [{', '.join(name for name in made if name.isalnum())}]"]
        return f"def program({arguments}):\n" + "".join(f"    {line}\n" for line in body)

    def function(self) -> Any:
        """The compiled source."""
        scope: dict[str, Any] = {
            "np": np,
            "ml": ml,
            "sums": sums,
            "picked": picked,
            "shaped": shaped,
            "diagonal": diagonal,
            "__name__": "random_program",
        }
        exec(compile(self.source(), "<random program>", "exec"), scope)
        return scope["program"]

    def is_exact(self) -> bool:
        """Whether NumPy runs the program without rounding anything."""
        arguments = self.arguments()
        with np.errstate(all="ignore", invalid="warn"), warnings.catch_warnings():
            warnings.simplefilter("error")  # the median of nothing
            warnings.filterwarnings("ignore", "invalid value encountered in", RuntimeWarning)
            warnings.filterwarnings("error", "invalid value encountered in cast", RuntimeWarning)
            warnings.filterwarnings("ignore", category=np.exceptions.ComplexWarning)
            try:
                results = self.function()(*arguments)
            except (ValueError, TypeError, IndexError, OverflowError, AttributeError, Warning):
                return False
        return all(_is_exact(value, self.wild) for value in [*results, *arguments])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program whose every line NumPy runs, with results that are exact."""
    wild = draw(st.integers(0, 7)) == 0
    program = Program([], [_input(draw, wild) for _ in range(draw(st.integers(1, 3)))], wild)
    if draw(st.integers(0, 5)) == 0:
        program = _overlapping(draw, program)
    names = [f"a{i}" for i in range(len(program.inputs) + len(program.views))]
    for number in range(draw(st.integers(1, 14))):
        template = draw(st.sampled_from(OF_WILD if wild else TEMPLATES))
        count = template.count("{}")
        one = [draw(st.sampled_from(names))] * count
        line = template.format(*(one if template in OF_ONE else [draw(st.sampled_from(names)) for _ in one]))
        longer = program.with_line(line if template in STATEMENTS else f"v{number} = {line}")
        if longer.is_exact():
            program = longer
            names += [] if template in STATEMENTS else [f"v{number}"]
            if template not in STATEMENTS and (template in PRODUCTS or draw(st.integers(0, 2)) == 0):
                program = _read_again(draw, program, f"v{number}", names)
    return program


def _overlapping(draw: st.DrawFn, program: Program) -> Program:
    """The program with arguments that are views of others."""
    views = []
    for _ in range(draw(st.integers(1, 2))):
        number, how = draw(st.integers(0, len(program.inputs) - 1)), draw(st.sampled_from(OVERLAPS))
        if isinstance(program.inputs[number], np.ndarray) and program.inputs[number].ndim:
            views.append(how.format(f"a{number}"))
    return replace(program, views=tuple(views))


def _read_again(draw: st.DrawFn, program: Program, name: str, names: list[str]) -> Program:
    """A program that goes on with reads of one value, each of another kind."""
    for number, kind in enumerate(draw(st.permutations(READ_AGAIN))[: draw(st.integers(2, 4))]):
        template = draw(st.sampled_from([x for x in kind if not program.wild or x in OF_WILD] or UNARY))
        others = draw(st.sampled_from([[name], names])) if template not in OF_ONE else [name]
        operands = [name, *(draw(st.sampled_from(others)) for _ in range(template.count("{}") - 1))]
        line = template.format(*operands)
        made = f"{name}r{number}"
        longer = program.with_line(line if template in STATEMENTS else f"{made} = {line}")
        if longer.is_exact():
            program = longer
            names += [] if template in STATEMENTS else [made]
    return program


def diagonal(x: Any) -> Any:
    """The diagonal as a view. Of an array of shape (0, n) NumPy gives memory that is not the array's."""
    if len(set(x.shape)) > 1:
        raise ValueError("not square")
    return np.einsum("ii->i", x)


def shaped(x: Any) -> Any:
    """An array that got another shape in place."""
    x.shape = (-1, 1)
    return x


def _input(draw: st.DrawFn, wild: bool) -> Any:
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(["float64", "float32"] if wild else DTYPES))
    values = np.random.default_rng(draw(st.integers(0, 7))).integers(-3, 4, shape)
    array = np.asarray(values % 4 if dtype.startswith("u") else values).astype(dtype)
    if wild and array.size:
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.inf, -np.inf, np.nan]))
    if array.dtype.kind == "c":
        array = array + 1j * array.dtype.type(draw(st.integers(-2, 2)))
    layout = draw(st.sampled_from(["plain", "plain", "Fortran", "strided", "backwards", "number"]))
    if layout == "number" and shape == () and dtype in ("int64", "float64", "bool"):
        return array.item()
    if layout == "Fortran":
        return array.copy(order="F")
    if layout == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    return array[::-1].copy()[::-1] if layout == "backwards" and array.ndim else array


def _is_exact(value: Any, wild: bool) -> bool:
    array = np.asarray(value)
    if array.size > 4000 or array.dtype.name not in DTYPES:
        return False
    limit = EXACT.get(array.dtype.name)
    if limit is None:
        return True
    if wild:
        array = np.where(np.isfinite(array), array, 0)
    if not np.all(np.isfinite(array)) or np.abs(array).sum(dtype=np.float64) > limit:
        return False
    return bool(np.all(array * 4 == np.round(array * 4)))  # no roots: the absolute value of a complex number is one


@seed(first_seed() if COUNT else 0)
@settings(
    database=None,
    max_examples=COUNT or 150,
    derandomize=not COUNT,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # NumPy's depends on the data
def test_random_programs(program: Program) -> None:
    check(program, *TARGETS)


def check(program: Program, *targets: str) -> None:
    """Assert that a program has NumPy's results and stores on each target, or is refused for a known reason."""
    note(program.source())
    function = program.function()
    expected_inputs = program.arguments()
    with np.errstate(all="ignore"):
        expected = function(*expected_inputs)
    for target in targets:
        inputs = program.arguments()
        try:
            given = ml.compile(function, target)(*inputs)
        except CaptureError as error:
            assert any(text in error.message for text in REFUSED), error
            continue
        assert_same(_unsigned(given), _unsigned(expected), f"{target}: result")
        assert_same(_unsigned(inputs), _unsigned(expected_inputs), f"{target}: arguments")


def _unsigned(values: list[Any]) -> list[np.ndarray]:
    """Zeros without their signs, which depend on the order of a sum."""
    return [x + x.dtype.type(0) if x.dtype.kind in "fc" else x for x in map(np.asarray, values)]
