"""Functions with custom derivatives, and recomputed functions: marker operations around their code."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import same_shape
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import ArgumentError, CaptureError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.trace import Trace, at_function, value_of
from mlirml.frontend.transforms.derivatives import conjugate, has_derivatives, mark, wrapped
from mlirml.frontend.transforms.nested_calls import callee_in_trace
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import parts_of


def marked(
    trace: Trace, name: str, leaves: Sequence[Any], paths: Sequence[str], tags: str
) -> tuple[list[Any], list[Value | None]]:
    """Float leaves passed through a marker operation; all others, functions and texts too, unchanged."""
    found: list[Any] = []
    values: list[Value | None] = []
    # A view is computed where it is read first: that has to be before the first marker, which ends the function.
    read = [None if callable(x) or isinstance(x, str) else value_of(trace, x, path) for x, path in zip(leaves, paths)]
    for leaf, value in zip(leaves, read):
        if value is None or not has_derivatives(value):
            found.append(leaf)
            values.append(None)
            continue
        new = mark(trace, name, tags, value)
        found.append(wrapped(trace, new, leaf))
        values.append(new)
    return found, values


def call_with_vjp(
    trace: Trace,
    function: Callable[..., Any],
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    args: tuple[Any, ...],
    fixed: Sequence[int],
    name: str,
) -> Any:
    """Call `forward`, and trace `backward`, whose results are used as the cotangents of the arguments.

    `fixed` are the positions of arguments that have no cotangents; `backward` takes them first.

    The code of both is differentiated once less than the call is, so that they may call the function itself; if nothing
    is differentiated, only `function` is called.
    """
    if not trace.derivatives:
        return callee_in_trace(function, trace)(*args)
    with trace.differentiated(-1):
        return _call_with_vjp(trace, forward, backward, args, fixed, name)


def _call_with_vjp(
    trace: Trace,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    args: tuple[Any, ...],
    fixed: Sequence[int],
    name: str,
) -> Any:
    with at_user_line():
        leaves, tree = flatten(tuple(x for position, x in enumerate(args) if position not in fixed))
        tags = f"group = {trace.new_request()} : i64"
        inner, opened = marked(trace, "custom_input", leaves, tree.paths("argument"), tags)
        rest = iter(tree.unflatten(inner))
        called = [x if position in fixed else next(rest) for position, x in enumerate(args)]
    pair = callee_in_trace(forward, trace)(*called)
    with at_user_line(), at_function(forward):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise CaptureError(f"custom_vjp: the forward function of `{name}` must return a pair (result, residuals)")
        results, out_tree = flatten(pair[0])
        outputs, closed = marked(trace, "custom_output", results, out_tree.paths("result"), tags)
        seeds = [None if v is None else _cotangent(trace, v, tags) for v in closed]
    found = callee_in_trace(backward, trace)(
        *(args[position] for position in fixed), pair[1], out_tree.unflatten(seeds)
    )
    with at_user_line(), at_function(backward):
        _give(trace, name, found, tree, opened, tags)
    return out_tree.unflatten(outputs)


def _cotangent(trace: Trace, output: Value, tags: str) -> Any:
    """A placeholder operation for the cotangent of an output."""
    return wrapped(trace, conjugate(trace, mark(trace, "custom_cotangent", tags, output)))


def _give(trace: Trace, name: str, found: Any, tree: TreeDef, opened: Sequence[Value | None], tags: str) -> None:
    """Emit the operations that assign cotangents to arguments."""
    if not isinstance(found, tuple) or len(found) != len(tree.children):
        raise ArgumentError(
            f"custom_vjp: the backward function of `{name}` must return a tuple of {len(tree.children)} cotangents",
            help="one for each argument, with None for those that are no floats",
        )
    gradients: list[Any] = []
    for number, (part, child) in enumerate(zip(found, tree.children)):
        leaves, structure = flatten(part)
        if part is not None and structure != child:
            raise ArgumentError(
                f"custom_vjp: the cotangent of argument {number} of `{name}` has another structure than the argument"
            )
        gradients += leaves if part is not None else [None] * child.leaf_count()
    b = trace.builder
    given: list[tuple[Value, Value]] = []  # all of them before the first `custom_gradient`
    for value, gradient, path in zip(opened, gradients, tree.paths("argument")):
        if value is None or gradient is None:
            continue
        new = b.cast(value_of(trace, gradient, path), value.dtype)
        if not same_shape(new.shape, value.shape):
            raise ShapeError(f"custom_vjp: the cotangent of {path} of `{name}` is {new}, the argument {value}")
        given += zip(parts_of(value), parts_of(conjugate(trace, new)))
    for part, move in given:
        b.line(f'"mlirml.custom_gradient"({part.name}, {move.name}) {{{tags}}} : ({part.type}, {part.type}) -> ()')


def call_with_jvp(
    trace: Trace,
    function: Callable[..., Any],
    rule: Callable[..., Any],
    args: tuple[Any, ...],
    fixed: Sequence[int],
    name: str,
    refusal: tuple[str, str] | None = None,
) -> Any:
    """Call the rule of a function for its result, and trace the tangent of the result, which is used in forward mode.

    `fixed` are the positions of arguments that the rule takes unchanged, first, and `refusal` are the message and the
    help of the error for derivatives by these. The code of the rule is differentiated
    once less than the call is, so that it may call the function itself; if nothing is differentiated, only `function`
    is called.
    """
    if not trace.derivatives:
        return callee_in_trace(function, trace)(*args)
    with at_user_line():
        leaves, tree = flatten(tuple(x for position, x in enumerate(args) if position not in fixed))
        tags = f"group = {trace.new_request()} : i64, depth = {trace.derivatives} : i64"
        inner, opened = marked(trace, "custom_primal", leaves, tree.paths("primals"), tags)
        moves = [
            trace.known(np.zeros(np.shape(leaf)))
            if value is None
            else wrapped(trace, mark(trace, "custom_tangent", tags, value), leaf)
            for leaf, value in zip(leaves, opened)
        ]
        first = [args[position] for position in fixed]
    with trace.differentiated(-1):
        pair = callee_in_trace(rule, trace)(*first, tree.unflatten(inner), tree.unflatten(moves))
    with at_user_line(), at_function(rule):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise CaptureError(f"custom_jvp: the rule of `{name}` must return a pair (result, tangent of the result)")
        results, out_tree = flatten(pair[0])
        tangents, found = flatten(pair[1])
        if found != out_tree:
            raise ArgumentError(
                f"custom_jvp: the rule of `{name}` returns a tangent of another structure than the result",
                notes=(f"the result {out_tree.paths('result')}", f"the tangent {found.paths('tangent')}"),
            )
        pairs = [
            _moving(trace, name, leaf, tangent, path)
            for leaf, tangent, path in zip(results, tangents, out_tree.paths("result"))
        ]
        if refusal is not None:
            tags += f", refusal = [{', '.join(map(json.dumps, refusal))}]"
        outputs = [
            leaf if pair is None else wrapped(trace, mark(trace, "custom_result", tags, *pair), leaf)
            for leaf, pair in zip(results, pairs)
        ]
    return out_tree.unflatten(outputs)


def _moving(trace: Trace, name: str, leaf: Any, tangent: Any, path: str) -> tuple[Value, Value] | None:
    """A result and its tangent; None for anything but floats.

    All of them are computed before the first `custom_result`, which ends the rule.
    """
    value = value_of(trace, leaf, path)
    if not has_derivatives(value):
        return None
    change = value_of(trace, tangent, f"the tangent of {path}")
    if not same_shape(change.shape, value.shape):
        raise ShapeError(f"custom_jvp: the tangent of {path} of `{name}` is {change}, the result {value}")
    return value, trace.builder.cast(change, value.dtype)


def call_again(trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], policy: str) -> Any:
    """Call a function whose intermediate values are recomputed for derivatives instead of saved."""
    if not trace.derivatives:
        return callee_in_trace(function, trace)(*args)
    with at_user_line():
        leaves, tree = flatten(args)
        tags = f'group = {trace.new_request()} : i64, policy = "{policy}"'
        inner, _ = marked(trace, "again_input", leaves, tree.paths("argument"), tags)
    result = callee_in_trace(function, trace)(*tree.unflatten(inner))
    with at_user_line(), at_function(function):
        results, out_tree = flatten(result)
        outputs, _ = marked(trace, "again_output", results, out_tree.paths("result"), tags)
    return out_tree.unflatten(outputs)
