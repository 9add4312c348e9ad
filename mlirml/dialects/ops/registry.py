"""One record per operation: what NumPy function it is, how it is written in MLIR, and how it is tested."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

BOOL = ("bool",)
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f16", "bf16", "f32", "f64")
NUMBERS = INTEGERS + FLOATS
ALL = BOOL + NUMBERS


@dataclass(frozen=True)
class OpDef:
    """An operation. From the record come the NumPy dispatch, `mlirml.numpy.<name>`, the method, the tests and the docs.

    `build(builder, *operands, **options)` writes MLIR and returns a `Value` (or a list of them); operands are
    `Value`s and `Scalar`s. For a view, `build(shape, ...)` returns `ViewOp`s instead. The parameters are NumPy's, in
    NumPy's order; `out` only keeps its place there, as storing is not the record's business.

    A `composed` record is NumPy code: `build(xp, *args, **options)` gets NumPy as traced code sees it in place of the
    builder, and the arguments as they were given.

    The kinds "nn" and "composite" are the functions of `mlirml.nn.functional`. The `reference` of an "nn" record is
    ours, written in NumPy; a "composite" is made of other operations, and is its own `reference` and `build`.
    """

    name: str
    kind: str  # the section of docs/ops.md: "elementwise", "reduction", "view", ...
    reference: Callable[..., Any]
    build: Callable[..., Any]
    dtypes: tuple[str, ...]
    doc: str
    aliases: tuple[Callable[..., Any], ...] = ()
    methods: tuple[str, ...] = ()
    operand: str = "a"  # what NumPy calls the operand of a view
    scalars: bool = True  # whether 0-d results are NumPy scalars, which do not change in place, as of most functions
    arrays: int = 1  # how many leading parameters are arrays; -1: the first is a sequence of arrays
    array_options: tuple[str, ...] = ()  # later parameters that may be arrays too
    composed: bool = False
    domain: tuple[float, float] = (-4.0, 4.0)  # where float test inputs are drawn from
    second_domain: tuple[float, float] | None = None
    tolerance: float = 2.0  # allowed error in units of NumPy's own rounding (ulp) against float64
    gaps: tuple[tuple[str, str], ...] = ()  # (dtype, reason) for each NumPy dtype that is refused

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters after the builder (or, for a view, after the shape)."""
        if self.kind == "composite":
            return inspect.signature(self.build)
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        if self.kind == "view":
            parameters.insert(0, inspect.Parameter(self.operand, inspect.Parameter.POSITIONAL_OR_KEYWORD))
        return inspect.Signature(parameters)

    @cached_property
    def required(self) -> tuple[bool, ...]:
        """For each parameter whether it has no default."""
        return tuple(p.default is p.empty for p in self.signature.parameters.values())


OPS: dict[str, OpDef] = {}
NN: dict[str, OpDef] = {}
"""The records of `mlirml.nn.functional`, which are no functions of NumPy."""
BY_FUNCTION: dict[Any, OpDef] = {}
BY_METHOD: dict[str, OpDef] = {}


def define(record: OpDef) -> OpDef:
    """Enter a record under its name, its NumPy functions and its methods."""
    table = NN if record.kind in ("nn", "composite") else OPS
    assert record.name not in table, record.name
    table[record.name] = record
    for function in (record.reference, *record.aliases):
        BY_FUNCTION[function] = record
    for method in record.methods:
        BY_METHOD[method] = record
    return record


def operation(kind: str, reference: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: the function is `build`; its name (less a trailing underscore) and docstring are the record's."""

    def decorate(build: Callable[..., Any]) -> OpDef:
        doc = inspect.getdoc(build) or ""
        return define(OpDef(build.__name__.rstrip("_"), kind, reference, build, doc=doc, **options))

    return decorate


def composed(kind: str, reference: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """As `operation`, for a function written with NumPy's: its first parameter is NumPy as traced code sees it."""
    return operation(kind, reference, composed=True, **options)


def extension(kind: str, **options: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """As `composed`, for what NumPy lacks: on real arrays, `mlirml.numpy.<name>` runs the same code with NumPy."""

    def decorate(build: Callable[..., Any]) -> OpDef:
        def reference(*args: Any, **kwargs: Any) -> Any:
            stand_in = next((x for x in _leaves((args, kwargs)) if hasattr(x, "__array_function__")), None)
            if stand_in is not None:  # a traced array
                return stand_in.__array_function__(reference, (type(stand_in),), args, kwargs)
            return build(np, *args, **kwargs)

        parameters = list(inspect.signature(build).parameters.values())[1:]
        reference.__name__ = reference.__qualname__ = build.__name__.rstrip("_")
        reference.__doc__ = build.__doc__
        reference.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return composed(kind, reference, **options)(build)

    return decorate


def _leaves(tree: Any) -> list[Any]:
    """The arguments of a call that are no real arrays."""
    if isinstance(tree, (list, tuple)):
        return [x for item in tree for x in _leaves(item)]
    if isinstance(tree, dict):
        return _leaves(list(tree.values()))
    return [] if isinstance(tree, (np.ndarray, np.generic)) else [tree]
