"""Transforms of traced functions: a function is traced between the operations that open and close a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import is_size, same, same_shape
from mlirml.core.tree import Filling, TreeDef, flatten
from mlirml.errors import ArgumentError, CaptureError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import flatten_values
from mlirml.frontend.arrays.lanes import Lanes
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.state.objects import flatten_parameters
from mlirml.frontend.tracing.trace import Trace, at_function, value_of
from mlirml.frontend.transforms.nested_calls import callee_in_trace
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexValue, parts_of
from mlirml.ir.text.dtypes import describe, is_float, marked
from mlirml.ops import OPS


@dataclass
class Pulled:
    """The result of a function with its pullback: one `ml.vjp`."""

    trace: Trace
    name: str
    group: int
    independents: list[Value]
    in_tree: TreeDef
    outputs: list[Value]
    out_tree: TreeDef
    result: Any
    calls: int = 0

    def pull(self, cotangents: Sequence[Value | None]) -> Any:
        """The gradients, in the structure of the arguments, for the cotangents of the outputs."""
        if not self.independents:
            return self.in_tree.unflatten([])
        b, call = self.trace.builder, self.calls
        self.calls += 1
        tags = f"group = {self.group} : i64, call = {call} : i64"
        for value, cotangent in zip(self.outputs, cotangents):
            if cotangent is not None:
                for part, move in zip(parts_of(value), parts_of(conjugate(self.trace, cotangent))):
                    b.line(
                        f'"mlirml.cotangent"({part.name}, {move.name}) {{{tags}}} : ({part.type}, {part.type}) -> ()'
                    )
        gradients = [conjugate(self.trace, mark(self.trace, "vjp", tags, x)) for x in self.independents]
        return self.in_tree.unflatten([wrapped(self.trace, g) for g in gradients])


def mark(trace: Trace, name: str, tags: str, *values: Value) -> Value:
    """An operation of the mlirml dialect on values of one type, with one result; for complex values on both parts."""

    def build(parts: Sequence[Value]) -> Value:
        first, types = parts[0], ", ".join(x.type for x in parts)
        text = f'"mlirml.{name}"({", ".join(x.name for x in parts)}) {{{tags}}} : ({types}) -> {first.type}'
        return trace.builder.op(text, first.shape, first.dtype)

    built = [build(parts) for parts in zip(*(parts_of(value) for value in values))]
    whole = built[0] if len(built) == 1 else ComplexValue.of(*built)
    return replace(whole, weak=values[0].weak)


def conjugate(trace: Trace, value: Value) -> Value:
    """The conjugate of a cotangent, so that its product with a change is real(cotangent * change).

    So the gradient of a real function of x + iy is df/dx - i df/dy, as in JAX.
    """
    if not isinstance(value, ComplexValue):
        return value
    return OPS["conjugate"].build(trace.builder, value)


def trace_pull(trace: Trace, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
               argnums: tuple[int, ...], named: tuple[int, ...] = ()) -> Pulled:  # fmt: skip
    """Trace a function so that its result can be differentiated by the arguments `argnums`.

    `named` are the positions that errors name them by, if they differ in the user's call.
    """
    with at_user_line():
        wanted = tuple(args[i] for i in argnums)
        leaves, tree = flatten_parameters(wanted)
        values = floats(trace, name, leaves, paths_of(tree, named or argnums))
        group = trace.new_request()
        opened = [mark(trace, "independent", f"group = {group} : i64", v) for v in values]
        inner = [wrapped(trace, replace(o, weak=v.weak), leaf) for o, v, leaf in zip(opened, values, leaves)]
        called, filling = list(args), Filling(inner)
    try:
        for i, value in zip(argnums, filling.fill(wanted, tree)):
            called[i] = value
        with trace.differentiated():
            result = callee_in_trace(function, trace)(*called, **kwargs)
    finally:
        filling.undo()
    with at_user_line(), at_function(function):
        _check_not_stored(name, inner)
        leaves, out_tree = flatten_values(result)
        outputs = [value_of(trace, leaf, path) for leaf, path in zip(leaves, out_tree.paths("result"))]
    return Pulled(trace, name, group, opened, tree, outputs, out_tree, result)


def trace_jvp(
    trace: Trace, function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """`ml.jvp` in a trace."""
    with at_user_line():
        leaves, tree = flatten_values(primals)
        values = floats(trace, "jvp", leaves, tree.paths("primals"))
        moves = _matching(trace, "jvp", "tangents", tangents, tree, values)
        tags, b = f"group = {trace.new_request()} : i64", trace.builder
        opened = [mark(trace, "dual", tags, v, t) for v, t in zip(values, moves)]
        inner = [wrapped(trace, replace(o, weak=v.weak), leaf) for o, v, leaf in zip(opened, values, leaves)]
    with trace.differentiated():
        result = callee_in_trace(function, trace)(*tree.unflatten(inner))
    with at_user_line(), at_function(function):
        _check_not_stored("jvp", inner)
        results, out_tree = flatten_values(result)
        outputs = [value_of(trace, leaf, path) for leaf, path in zip(results, out_tree.paths("result"))]
        found = []
        for value in outputs:
            if has_derivatives(value):
                found.append(wrapped(trace, mark(trace, "jvp", tags, replace(value, weak=False))))
            else:
                found.append(wrapped(trace, b.filled(value.shape, np.dtype(np.float64), 0)))
    return result, out_tree.unflatten(found)


def scalar_output(pulled: Pulled, function: Callable[..., Any], leaves: Sequence[Value]) -> Value:
    """The scalar result whose gradient is taken."""
    with at_user_line(), at_function(function):
        if len(leaves) != 1 or leaves[0].shape != () or not is_float(leaves[0].dtype):
            given = ", ".join(describe(v.shape, v.dtype) for v in leaves) or "nothing"
            raise ShapeError(
                f"{pulled.name}: the function must return one float, got {given}",
                help="return a scalar such as `np.sum(...)`; for more outputs use `ml.jacrev`, or `ml.vjp`; "
                "for further results `has_aux=True`",
            )
        return leaves[0]


def cotangents_of(pulled: Pulled, given: Any) -> list[Value | None]:
    """The cotangents that the user passes to a pullback, checked."""
    floats = [v for v in pulled.outputs if has_derivatives(v)]
    if len(floats) == len(pulled.outputs):
        return list(_matching(pulled.trace, "vjp", "cotangents", given, pulled.out_tree, pulled.outputs))
    leaves, _ = flatten(given)
    with at_user_line():
        raise DTypeError(
            f"vjp: {len(pulled.outputs) - len(floats)} of the results are no floats, which have no cotangents",
            notes=(f"{len(leaves)} cotangents were passed",),
            help="differentiate a function that returns the floats only",
        )


def ones(trace: Trace, value: Value) -> Value:
    """The cotangent of a value by itself."""
    return trace.builder.filled(value.shape, value.dtype, 1)


def wrapped(trace: Trace, value: Value, like: Any = None) -> Traced:
    scalar = value.shape == () and not isinstance(like, np.ndarray)
    if isinstance(like, Traced):
        scalar = like._scalar
    return Traced(trace, Cell(value, owned=True), scalar=scalar)


def has_derivatives(value: Value) -> bool:
    """True for floats, real or complex."""
    return is_float(value.dtype) or value.dtype.kind == "c"


def paths_of(tree: TreeDef, positions: Sequence[int]) -> list[str]:
    """The names, in messages, of the leaves of arguments at these positions of the user's call."""
    return [path for position, child in zip(positions, tree.children) for path in child.paths(f"argument[{position}]")]


def floats(trace: Trace, name: str, leaves: Sequence[Any], paths: Sequence[str]) -> list[Value]:
    """Arguments to differentiate by, as values; Python's ints are refused too."""
    values = [value_of(trace, leaf, path) for leaf, path in zip(leaves, paths)]
    for value, path in zip(values, paths):
        if not has_derivatives(value):
            raise DTypeError(
                f"{name}: {path} is {describe(value.shape, value.dtype)}, and derivatives are by floats",
                help="convert it with `.astype(float)`, or leave it out by `argnums`",
            )
    return values


def _matching(trace: Trace, name: str, what: str, given: Any, tree: TreeDef, like: Sequence[Value]) -> list[Value]:
    """Tangents or cotangents, which must have the structure, shapes and dtypes of their values."""
    leaves, found = flatten_values(given)
    with at_user_line():
        if found != tree:
            raise ArgumentError(
                f"{name}: the {what} have another structure than what they belong to",
                notes=(f"expected {tree.paths(what)}", f"got {found.paths(what)}"),
            )
        values = [value_of(trace, leaf, path) for leaf, path in zip(leaves, tree.paths(what))]
        for value, other, path in zip(values, like, tree.paths(what)):
            if not same_shape(value.shape, other.shape):
                owners = "arguments" if what == "tangents" else "results"
                raise ShapeError(
                    f"{name}: {path} is {value}, and what it belongs to {other}",
                    help=f"{what} have the shapes of the {owners}; `np.broadcast_to` spreads a number",
                )
            if value.dtype.kind == "c" != other.dtype.kind:
                raise DTypeError(
                    f"{name}: {path} is {value}, and what it belongs to {other}", help="pass the real part"
                )
        return [trace.builder.cast(v, o.dtype) for v, o in zip(values, like)]


def _check_not_stored(name: str, inner: Sequence[Traced]) -> None:
    for array in inner:
        if array._cell.written:
            error = CaptureError(
                f"{name}: the function stores into an argument that it is "
                + ("batched over" if name == "vmap" else "differentiated by"),
                help="store into a copy, `x = x.copy()`" + (", and return it" if name == "vmap" else ""),
            )
            error.location = array._cell.stored_at
            raise error


def trace_vmap(
    trace: Trace,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    in_axes: Any,
    out_axes: Any,
    axis_size: int | None,
    is_for_examples: bool = False,
) -> Any:
    """`ml.vmap` in a trace."""
    names = trace.builder.count
    with at_user_line():
        leaves, tree = flatten_values(args)
        paths = tree.paths("argument")
        axes = spread_axes("in_axes", in_axes, tree, tuple)
        size = _batch_size(leaves, paths, axes, axis_size)
        group = trace.new_request()
        inner: list[Any] = []
        for leaf, axis, path in zip(leaves, axes, paths):
            if axis is None:
                inner.append(leaf)
                continue
            value = value_of(trace, _front(leaf, axis), path)
            one = _batched(trace, "unbatch", f"group = {group} : i64", value, value.shape[1:])
            inner.append(wrapped(trace, one))
    batches, trace.batches = trace.batches, [*trace.batches, names] if is_for_examples else trace.batches
    outer, trace.lanes = trace.lanes, [*trace.lanes, Lanes(next(Cell.numbers), trace.builder.region)]
    try:
        result = callee_in_trace(function, trace)(*tree.unflatten(inner))
    finally:
        trace.batches, trace.lanes = batches, outer
    with at_user_line(), at_function(function):
        _check_not_stored("vmap", [x for x, axis in zip(inner, axes) if axis is not None])
        results, out_tree = flatten_values(result)
        positions = spread_axes("out_axes", out_axes, out_tree, None)
        found = []
        for leaf, position, path in zip(results, positions, out_tree.paths("result")):
            value = value_of(trace, leaf, path)
            tags = f"group = {group} : i64, size = {marked(size)} : i64"
            if position is None:
                shared = _batched(trace, "vmap", f"{tags}, shared", value, value.shape)
                found.append(Traced(trace, Cell(shared, owned=True)))
                continue
            shape = (size, *value.shape)
            many = Traced(trace, Cell(_batched(trace, "vmap", tags, value, shape), owned=True))
            if not -len(shape) <= position < len(shape):
                raise ShapeError(
                    f"vmap: out_axes={position} of a result with {_dimensions(shape)}",
                    help=f"that of the examples is one of them: give an axis from {-len(shape)} to {len(shape) - 1}",
                )
            found.append(many if position in (0, -len(shape)) else _moved(many, 0, position).copy())
    return out_tree.unflatten(found)


def _batched(trace: Trace, name: str, tags: str, value: Value, shape: tuple[int, ...]) -> Value:
    """The operation that begins or ends a request for a batch; for complex values on both parts."""

    def build(part: Value) -> Value:
        kind = replace(part, shape=shape).type
        return trace.builder.op(f'"mlirml.{name}"({part.name}) {{{tags}}} : ({part.type}) -> {kind}', shape, part.dtype)

    built = [build(part) for part in parts_of(value)]
    return built[0] if len(built) == 1 else ComplexValue.of(*built)


def spread_axes(name: str, axes: Any, tree: TreeDef, top: type | None) -> list[int | None]:
    """The axis of each leaf: a number or None in `axes` holds for all leaves below it."""
    if axes is None or type(axes) is int or not tree.leaf_count():
        return [axes] * tree.leaf_count()
    kind = type(axes)
    if top is not None and kind is list:
        kind = tuple
    fits = kind is tree.kind and len(axes) == len(tree.children)
    if not fits or (isinstance(axes, dict) and set(axes) != set(tree.keys)):
        raise ArgumentError(
            f"vmap: {name} {axes!r} does not fit: {described(tree)} to be mapped",
            help=f"`{name}` is one number, or has the structure of what it is for",
        )
    items = [axes[key] for key in tree.keys] if isinstance(axes, dict) else list(axes)
    return [a for item, child in zip(items, tree.children) for a in spread_axes(name, item, child, None)]


def described(tree: TreeDef) -> str:
    """A structure as messages describe it."""
    if isinstance(tree.kind, str):
        return "one value is"
    keys = f" {', '.join(map(repr, tree.keys))}" if tree.kind is dict else ""
    return f"the value{keys} is" if len(tree.children) == 1 else f"{len(tree.children)} values{keys} are"


def _dimensions(shape: Sequence[int]) -> str:
    return f"{len(shape)} dimension{'s' * (len(shape) != 1)}"


def _batch_size(leaves: Sequence[Any], paths: Sequence[str], axes: Sequence[int | None], axis_size: int | None) -> int:
    """The batch size, on which all arguments agree."""
    if axis_size is not None and ((not is_size(axis_size) and not isinstance(axis_size, int)) or axis_size < 0):
        raise ArgumentError(f"vmap: axis_size must be a number of examples, got: {axis_size!r}")
    size, first = axis_size, "axis_size"
    for leaf, path, axis in zip(leaves, paths, axes):
        if axis is None:
            continue
        shape = np.shape(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"vmap: in_axes={axis} of {path}, which has {_dimensions(shape)}, {list(shape)}",
                help="give a dimension that it has, or None if all examples share it: `in_axes=(0, None)`",
            )
        if size is not None and not same(shape[axis], size) and shape[axis] != size:
            raise ShapeError(
                f"vmap: batches of different sizes, {size} of {first} and {shape[axis]} of {path}",
                help="give the dimension of the examples of each in `in_axes`, None for what all of them share",
            )
        if size is None:
            size, first = shape[axis], path
    if size is None:
        raise ArgumentError(
            "vmap: no argument has a dimension of examples", help="give an axis in `in_axes`, or `axis_size=`"
        )
    return size


def _front(array: Any, axis: int) -> Any:
    return array if axis == 0 else _moved(array, axis, 0)


def trace_stop_gradient(trace: Trace, tree: Any) -> Any:
    """`ml.stop_gradient` in a trace."""
    with at_user_line():
        leaves, structure = flatten_values(tree)
        found = []
        for leaf, path in zip(leaves, structure.paths("argument")):
            value = value_of(trace, leaf, path)
            if not has_derivatives(value):
                found.append(leaf)
                continue
            constant = mark(trace, "stop_gradient", "", value)
            found.append(wrapped(trace, constant, leaf))
        return structure.unflatten(found)


def _moved(array: Any, source: int, destination: int) -> Any:
    return np.moveaxis(array, source, destination)
