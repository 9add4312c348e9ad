"""The op records: one for each operation, with its NumPy function, its builder in MLIR, and its test inputs."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError
from mlirml.ir.text.complex import NOT_COMPILED, has_complex

BOOL = ("bool",)
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f16", "bf16", "f32", "f64")
NUMBERS = INTEGERS + FLOATS
ALL = BOOL + NUMBERS
COMPLEX = ("c64", "c128")
NOT_IN_NUMPY = tuple((dtype, "not defined in NumPy") for dtype in COMPLEX)
NO_COMPLEX_ORDER = tuple((dtype, "made of comparisons with the largest element") for dtype in COMPLEX)


@dataclass(frozen=True)
class OpDef:
    """The record of an operation, from which the NumPy dispatch, `mlirml.numpy.<name>`, method, tests and docs are
    made.

    `build(builder, *operands, **options)` writes MLIR and returns a `Value` (or a list of them); operands are `Value`s
    and `Scalar`s. For a view, `build(shape, ...)` returns `ViewOp`s instead. The parameters are NumPy's, in NumPy's
    order; `out` is among them, but is handled by the caller.

    A `composed` record is NumPy code: `build(xp, *args, **options)` takes the NumPy namespace of traced code instead of
    the builder, and the arguments unchanged.

    A `kind` of "nn" or "composite" marks functions of `mlirml.nn.functional`. The `reference` of an "nn" record is
    written in NumPy here; a "composite" is made of other operations, and is its own `reference` and `build`.
    """

    name: str
    kind: str  # the section of docs/ops.md: "elementwise", "reduction", "view", ...
    reference: Callable[..., Any]
    build: Callable[..., Any]
    dtypes: tuple[str, ...]
    doc: str
    aliases: tuple[Callable[..., Any], ...] = ()
    methods: tuple[str, ...] = ()
    operand: str = "a"  # the name of a view's operand in NumPy's signature
    scalars: bool = True  # whether 0-d results are NumPy scalars, which do not change in place, as of most functions
    arrays: int = 1  # the number of leading parameters that are arrays; -1: the first is a sequence of arrays
    array_options: tuple[str, ...] = ()  # later parameters that may be arrays too
    composed: bool = False
    domain: tuple[float, float] = (-4.0, 4.0)  # the range of float test inputs
    second_domain: tuple[float, float] | None = None
    tolerance: float = 2.0  # allowed error in units of NumPy's own rounding (ulp) against float64
    gaps: tuple[tuple[str, str], ...] = ()  # (dtype, reason) for each NumPy dtype that is refused
    # The builder that replaces `build` where an operand or the dtype is complex, under the key "complex".
    forms: dict[str, Callable[..., Any]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters after the builder (or, for a view, after the shape)."""
        if self.kind == "composite":
            return inspect.signature(self.build)
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        if self.kind == "view" and not self.composed:
            parameters.insert(0, inspect.Parameter(self.operand, inspect.Parameter.POSITIONAL_OR_KEYWORD))
        return inspect.Signature(parameters)

    @cached_property
    def bound_as_given(self) -> range:
        """The numbers of positional arguments that need no binding to parameters, as no `out` is among them."""
        most, least = 0, sum(self.required)
        for name, parameter in self.signature.parameters.items():
            if name == "out" or parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                break
            most += 1
        return range(least, most + 1)

    @property
    def takes(self) -> tuple[str, ...]:
        """All dtypes, complex ones included."""
        lifted = self.kind == "view" or self.composed or complex_form_of(self) is not None
        refused = [dtype for dtype, _ in self.gaps]
        return self.dtypes + tuple(d for d in COMPLEX if lifted and d not in refused)

    @cached_property
    def required(self) -> tuple[bool, ...]:
        """For each parameter whether it has no default."""
        return tuple(p.default is p.empty for p in self.signature.parameters.values())


_MODULES = (
    "elementwise", "reductions", "shapes.views", "contractions", "shapes.joins", "shapes.rearrange", "indexing.gather",
    "shapes.composed", "statistics", "linear_algebra", "numeric", "polynomials", "scans", "creation", "float_parts",
    "divisors", "error_functions", "sorting", "segments", "complex.records",
)  # fmt: skip
"""The modules with records of NumPy's functions, those of most programs first."""
_COMPLEX_MODULES = ("complex.records", "complex.scans", "complex.sorting")
"""The modules that enter complex forms."""
_Key = TypeVar("_Key")


class Records(Mapping[_Key, OpDef]):
    """A table of records that imports the modules which define them on demand.

    Importing all of `_MODULES` would take a tenth of a small program's compilation: they are imported in order, until
    one has defined the requested record, and all of them if none has or if the table is iterated over.
    """

    def __init__(self) -> None:
        self.entered: dict[_Key, OpDef] = {}
        self._settled: set[_Key] = set()

    def __getitem__(self, key: _Key) -> OpDef:
        if key not in self._settled:
            for name in _MODULES:
                # Another thread may be importing the module: it may have defined the record, but not yet all that the
                # record calls.
                if key not in self.entered or f"{__package__}.{name}" in sys.modules:
                    importlib.import_module(f"{__package__}.{name}")
        record = self.entered[key]
        self._settled.add(key)
        return record

    def __iter__(self) -> Iterator[_Key]:
        _import_all(_MODULES)
        return iter(self.entered)

    def __len__(self) -> int:
        _import_all(_MODULES)
        return len(self.entered)


@functools.cache
def _import_all(modules: tuple[str, ...]) -> None:
    for name in modules:
        importlib.import_module(f"{__package__}.{name}")


OPS: Records[str] = Records()
NN: dict[str, OpDef] = {}
"""The records of `mlirml.nn.functional`, which NumPy lacks, defined when its modules are imported."""
BY_FUNCTION: Records[Any] = Records()
BY_METHOD: Records[str] = Records()


def define(record: OpDef) -> OpDef:
    """Add a record to the tables under its name, its NumPy functions and its methods."""
    table = NN if record.kind in ("nn", "composite") else OPS.entered
    assert record.name not in table, record.name
    if record.kind not in ("view", "composite") and not record.composed:
        object.__setattr__(record, "build", _by_number(record))  # a copy would double the time of an import
    table[record.name] = record
    if record.kind == "nn":
        record.reference.__qualname__ = record.name  # Python's errors about its arguments name it so
    for function in (record.reference, *record.aliases):
        BY_FUNCTION.entered[function] = record
    for method in record.methods:
        BY_METHOD.entered[method] = record
    return record


def _by_number(record: OpDef) -> Callable[..., Any]:
    """`build`, or the record's complex form where an operand or the dtype is complex."""
    plain = record.build

    @functools.wraps(plain)
    def build(b: Any, *operands: Any, **options: Any) -> Any:
        place = _position_of_dtype(plain)
        dtype = options.get("dtype", operands[place] if place is not None and place < len(operands) else None)
        listed = operands[0] if record.arrays == -1 and operands and isinstance(operands[0], Sequence) else ()
        if not (has_complex(operands) or has_complex(listed) or has_complex([*options.values()]) or _is_complex(dtype)):
            return plain(b, *operands, **options)
        form = complex_form_of(record)
        if form is not None:
            return form(b, *operands, **options)
        if isinstance(record.reference, np.ufunc) and not _has_complex_loop(record.reference):
            return plain(b, *operands, **options)  # which refuses them as NumPy does
        raise refuse_complex(record.name)

    return build


@functools.cache  # when it is asked for: the signatures of all records would take 5 ms at import
def _position_of_dtype(build: Callable[..., Any]) -> int | None:
    names = list(inspect.signature(build).parameters)[1:]
    return names.index("dtype") if "dtype" in names else None


def _has_complex_loop(ufunc: np.ufunc) -> bool:
    return any("F" in loop or "D" in loop for loop in ufunc.types)


def refuse_complex(name: str) -> DTypeError:
    """The error of an operation that takes no complex numbers."""
    return DTypeError(f"{name}: {NOT_COMPILED}", help="compute real and imaginary parts apart: `x.real`, `x.imag`")


def _is_complex(dtype: Any) -> bool:
    try:
        return dtype is not None and np.dtype(dtype).kind == "c"
    except TypeError:
        return False


def complex_form_of(record: OpDef) -> Callable[..., Any] | None:
    """The builder of a record for complex operands, or None; the first call imports the complex forms."""
    _import_all(_COMPLEX_MODULES)
    return record.forms.get("complex")


def complex_form(*records: OpDef) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function is the builder of these records for complex operands."""

    def enter(build: Callable[..., Any]) -> Callable[..., Any]:
        for record in records:
            record.forms["complex"] = build
        return build

    return enter


def lift(*records: OpDef) -> None:
    """Declare that the builders of these records use only primitives that take complex values as well."""
    for record in records:
        record.forms["complex"] = inspect.unwrap(record.build)


def operation(section: str, reference: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: the function is `build`; its name (less a trailing underscore) and docstring are the record's."""

    def decorate(build: Callable[..., Any]) -> OpDef:
        doc = inspect.getdoc(build) or ""
        return define(OpDef(build.__name__.rstrip("_"), section, reference, build, doc=doc, **options))

    return decorate


def named(function: Callable[..., Any], name: str, doc: str, *first: Any) -> Callable[..., Any]:
    """`function(*first, ...)` as a function of the other parameters, called `name` in errors of Python's."""
    code, defaults = function.__code__, function.__defaults__
    own = FunctionType(code, function.__globals__, name, defaults, function.__closure__)
    own.__qualname__, own.__kwdefaults__ = name, function.__kwdefaults__
    call = functools.partial(own, *first)
    vars(call).update(__name__=name, __qualname__=name, __doc__=doc, __module__=function.__module__)
    return call


def operations(
    section: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    names: str,
    docs: Mapping[int, str],
    **options: Any,
) -> Iterator[OpDef]:
    """The operations `build(name, rank, builder, *operands, **options)`, one for each rank that has a docstring.

    `reference(name, rank, ...)` are their references, and `names` their names, with {} for the rank.
    """
    for rank, doc in docs.items():
        name = names.format(rank)
        of_rank = named(reference, name, doc, name, rank)
        yield operation(section, of_rank, **options)(named(build, name, doc, name, rank))


def family(
    section: str,
    build: Callable[..., Any],
    docs: Mapping[str, str],
    *,
    methods: bool = False,
    aliases: Mapping[str, tuple[Callable[..., Any], ...]] | None = None,
    **options: Any,
) -> Iterator[OpDef]:
    """The operations `build(name, ...)`, one for each function of NumPy that has a docstring.

    With `methods` arrays have methods of their names; `aliases` are other functions that they are.
    """
    for name, doc in docs.items():
        own: dict[str, Any] = {"methods": (name,)} if methods else {}
        own["aliases"] = (aliases or {}).get(name, ())
        yield operation(section, getattr(np, name), **own, **options)(named(build, name, doc, name))


def composed(section: str, reference: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """As `operation`, for a function written with NumPy's functions: its first parameter is the NumPy namespace of
    traced code.
    """
    return operation(section, reference, composed=True, **options)


def extension(section: str, **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """As `composed`, for a function that NumPy lacks: on real arrays, `mlirml.numpy.<name>` runs the same code with
    NumPy.
    """

    def decorate(build: Callable[..., Any]) -> OpDef:
        return composed(section, dispatching(build, np), **options)(build)

    return decorate


def dispatching(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """`function(*first, ...)` as a NumPy-like function: a call with a traced array is dispatched to the trace."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        stand_in = next((x for x in _leaves((args, kwargs)) if hasattr(x, "__array_function__")), None)
        if stand_in is not None:
            return stand_in.__array_function__(reference, (type(stand_in),), args, kwargs)
        return function(*first, *args, **kwargs)

    parameters = list(inspect.signature(function).parameters.values())[len(first) :]
    reference.__name__ = reference.__qualname__ = function.__name__.strip("_")
    reference.__doc__ = function.__doc__
    reference.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return reference


def _leaves(tree: Any) -> list[Any]:
    """The arguments of a call other than real arrays, flattened."""
    if isinstance(tree, (list, tuple)):
        return [x for item in tree for x in _leaves(item)]
    if isinstance(tree, dict):
        return _leaves(list(tree.values()))
    return [] if isinstance(tree, (np.ndarray, np.generic)) else [tree]
