"""Trace structured control flow: bodies run once, on traced arrays that live in a region of the program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.sizes import Size, same
from mlirml.core.tree import TreeDef
from mlirml.errors import ArgumentError, CaptureError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import (
    LeafType,
    check_branches,
    check_carry,
    check_structure,
    flatten_values,
    leaf_type_of,
    several,
)
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.trace import Trace, at_function, value_of
from mlirml.ir.text import control
from mlirml.ir.text.builder import Scalar, Value
from mlirml.ir.text.dtypes import check_integer

_I64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
_PYTHON = (bool, int, float, complex)


class _Retry(Exception):
    """Raised to retrace branches with results of these types."""

    def __init__(self, leaf_types: list[LeafType]) -> None:
        super().__init__()
        self.leaf_types = leaf_types


class _Tree:
    """A pytree of arrays that is passed into regions."""

    def __init__(self, tree: Any, path: str, trace: Trace) -> None:
        self.leaves, self.treedef = flatten_values(tree)
        self.paths = self.treedef.paths(path)
        self.leaf_types = [leaf_type_of(leaf, p) for leaf, p in zip(self.leaves, self.paths)]
        self.scalars = [_is_scalar(leaf) for leaf in self.leaves]
        self._trace = trace
        # Written before the loop, as what follows may be retraced.
        self._values = [None if type(x) in _PYTHON else value_of(trace, x, p) for x, p in zip(self.leaves, self.paths)]

    def start(self, number: int, leaf_type: LeafType) -> Value:
        """A leaf as a value of a type, defined outside of the loop."""
        leaf, value, trace = self.leaves[number], self._values[number], self._trace
        if value is not None:
            return trace.builder.cast(value, leaf_type.dtype)
        if type(leaf) is int:
            check_integer(self.paths[number], leaf, leaf_type.dtype)
        return trace.builder.filled((), leaf_type.dtype, leaf)

    def in_region(self, trace: Trace, values: Sequence[Value], leaf_types: Sequence[LeafType]) -> Any:
        """The pytree with values of a region as leaves."""
        return self.treedef.unflatten(wrapped(trace, values, leaf_types, self.scalars))


def _is_scalar(leaf: Any) -> bool:
    """True if the leaf is a number in NumPy, which cannot be stored into, and not an array."""
    return leaf._scalar if isinstance(leaf, Traced) else not isinstance(leaf, np.ndarray)


def wrapped(
    trace: Trace, values: Sequence[Value], leaf_types: Sequence[LeafType], scalars: Sequence[bool | None]
) -> list[Traced]:
    """Traced arrays of new values. `scalars` marks those that are scalars in NumPy; None if that depends on the
    data.
    """
    made = []
    for value, leaf_type, scalar in zip(values, leaf_types, scalars):
        cell = Cell(replace(value, weak=leaf_type.weak), owned=True)
        is_scalar = scalar is not False and not value.shape
        ambiguous = cell.version if is_scalar and scalar is None else None
        made.append(Traced(trace, cell, scalar=is_scalar, ambiguous=ambiguous))
    return made


def _agreed(scalars: Sequence[bool | None]) -> bool | None:
    """True if alternative values are all NumPy scalars, False if none is; None if they differ."""
    return scalars[0] if len(set(scalars)) == 1 else None


def _returned(trace: Trace, leaves: Sequence[Any], paths: Sequence[str], leaf_types: Sequence[LeafType]) -> list[Value]:
    """The results of a body as values of these types, in the region of the body."""
    values = []
    for leaf, path, leaf_type in zip(leaves, paths, leaf_types):
        if type(leaf) in _PYTHON:
            if type(leaf) is int:
                check_integer(path, leaf, leaf_type.dtype)
            values.append(trace.builder.filled((), leaf_type.dtype, leaf))
        else:
            values.append(trace.builder.cast(value_of(trace, leaf, path), leaf_type.dtype))
    return values


def _until_settled(
    trace: Trace, leaf_types: list[LeafType], write: Callable[[list[LeafType]], tuple[Any, list[LeafType]]]
) -> Any:
    """Retrace a loop until the types of its carry do not change; Python numbers may get another one.

    A Python integer in the carry may meet i16 and turn out to be one, so that its range is checked at the end only.
    """
    b = trace.builder
    outer, lenient = (b.lenient, b.narrowed_leniently), any(leaf_type.weak for leaf_type in leaf_types)
    while True:
        mark = b.mark()
        b.lenient, b.narrowed_leniently = outer[0] or lenient, False
        try:
            result, after = write(leaf_types)
        except BaseException:
            b.rewind(mark)
            b.lenient, b.narrowed_leniently = outer
            raise
        lenient = lenient and not b.narrowed_leniently
        if after == leaf_types and (outer[0] or not b.lenient or not b.narrowed_leniently):
            b.lenient, b.narrowed_leniently = outer[0], outer[1] or b.narrowed_leniently
            return result
        lenient = lenient if after == leaf_types else any(leaf_type.weak for leaf_type in after)
        b.rewind(mark)
        leaf_types = after


def _bound(trace: Trace, name: str, what: str, x: Any) -> tuple[str, tuple[int, int]]:
    """A loop bound as an index, and its least and greatest value."""
    if not isinstance(x, (Traced, np.ndarray)):
        try:
            number = x.__index__()
        except (AttributeError, TypeError):
            raise DTypeError(f"{name}: `{what}` must be an integer, got {x!r}") from None
        check_integer(f"{name}: `{what}`", number, _I64)
        return control.index(trace.builder, number), (number, number)
    array = x if isinstance(x, Traced) else trace.array(x, copy=False)
    if array.shape or array.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: `{what}` must be an integer, got {array._describe()}", help="convert it with `.astype(int)`"
        )
    known = array._known()
    if known is not None:
        return _bound(trace, name, what, int(known))
    limits = np.iinfo(array.dtype)
    value = value_of(trace, array, what)
    return control.to_index(trace.builder, value), (int(limits.min), int(limits.max))


def trace_fori_loop(trace: Trace, lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """`ml.fori_loop` in a trace."""
    with at_user_line():
        b, function = trace.builder, trace.handlers.retarget(body, trace)
        lower, upper = (trace.size_number(x) if type(x) is Size else x for x in (lower, upper))
        (first, (least, _)), (last, (_, greatest)) = (
            _bound(trace, "fori_loop", what, x) for what, x in (("lower", lower), ("upper", upper))
        )
        carry = _Tree(init, "carry", trace)
        if greatest <= least:  # never executed: the body is not called, as in Python
            starts = [carry.start(n, leaf_type) for n, leaf_type in enumerate(carry.leaf_types)]
            return carry.treedef.unflatten(wrapped(trace, starts, carry.leaf_types, carry.scalars))

        def write(leaf_types: list[LeafType]) -> tuple[Any, list[LeafType]]:
            starts = [carry.start(n, leaf_type) for n, leaf_type in enumerate(leaf_types)]
            loop = control.ForLoop(b, first, last, "the body of `ml.fori_loop`")
            arguments = [loop.carry(value) for value in starts]
            number = control.from_index(b, loop.index)
            b.known_ranges[number.name] = least, max(least, greatest - 1)
            i = Traced(trace, Cell(replace(number, weak=True)), scalar=True)
            result = function(i, carry.in_region(trace, arguments, leaf_types))
            after, scalars, values = _carried_on(trace, "fori_loop", body, carry, leaf_types, result)
            if after != leaf_types:
                return None, after
            return wrapped(trace, loop.end(values), leaf_types, scalars), after

        return carry.treedef.unflatten(_until_settled(trace, carry.leaf_types, write))


def _carried_on(
    trace: Trace, name: str, body: Callable[..., Any], carry: _Tree, leaf_types: list[LeafType], result: Any
) -> tuple[list[LeafType], list[bool | None], list[Value]]:
    """A body's result as its new carry: its types, which leaves are NumPy scalars, and, if the types stay, the
    values.
    """
    with at_function(body):
        leaves, tree = flatten_values(result)
        check_structure(name, "the body returns a carry of another structure", tree, carry.treedef, "carry")
        found = [leaf_type_of(leaf, path) for leaf, path in zip(leaves, carry.paths)]
        after = check_carry(name, list(zip(carry.paths, leaf_types, found)))
        values = _returned(trace, leaves, carry.paths, leaf_types) if after == leaf_types else []
        return after, [_agreed((one, _is_scalar(leaf))) for one, leaf in zip(carry.scalars, leaves)], values


def trace_while_loop(
    trace: Trace, condition: Callable[..., Any], body: Callable[..., Any], init: Any, attributes: str = ""
) -> Any:
    """`ml.while_loop` in a trace, with attributes of the operation."""
    with at_user_line():
        b = trace.builder
        test, step = trace.handlers.retarget(condition, trace), trace.handlers.retarget(body, trace)
        carry = _Tree(init, "carry", trace)

        def write(leaf_types: list[LeafType]) -> tuple[Any, list[LeafType]]:
            after, scalars = leaf_types, list[bool | None](carry.scalars)
            starts = [carry.start(n, leaf_type) for n, leaf_type in enumerate(leaf_types)]

            def proceeds(arguments: list[Value]) -> Value:
                inner = wrapped(trace, arguments, leaf_types, carry.scalars)
                for array in inner:
                    array._cell.frozen = "a store into the carry inside of the condition of `ml.while_loop`"
                result = test(carry.treedef.unflatten(inner))
                with at_function(condition):
                    return _truth(trace, "while_loop", "the condition", result)

            def again(arguments: list[Value]) -> list[Value]:
                nonlocal after, scalars
                result = step(carry.in_region(trace, arguments, leaf_types))
                after, scalars, values = _carried_on(trace, "while_loop", body, carry, leaf_types, result)
                return values if after == leaf_types else arguments

            owners = "the condition of `ml.while_loop`", "the body of `ml.while_loop`"
            values = control.while_loop(b, starts, proceeds, again, owners, attributes)
            return wrapped(trace, values, leaf_types, scalars), after

        return carry.treedef.unflatten(_until_settled(trace, carry.leaf_types, write))


def _truth(trace: Trace, name: str, what: str, x: Any) -> Value:
    """A condition as a rank-0 bool."""
    leaf_type = leaf_type_of(x, f"{name}: {what}")
    if leaf_type.shape:
        raise several(name, what, leaf_type)
    operand = trace.lift(x)
    if isinstance(operand, Scalar):
        return trace.builder.filled((), _BOOL, bool(operand.value))
    return trace.builder.cast(operand, _BOOL)


def _known_number(x: Any) -> Any:
    """A constant Python or NumPy number; None for a dynamic value."""
    if isinstance(x, Traced):
        known = x._known()
        return None if known is None or known.shape else known[()]
    return x if isinstance(x, (*_PYTHON, np.generic)) else None


def trace_cond(
    trace: Trace, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...]
) -> Any:
    """`ml.cond` in a trace."""
    with at_user_line():
        known = _known_number(pred)
        if known is not None:
            return _fresh(trace.handlers.retarget(true_fn if known else false_fn, trace)(*operands))
        condition = control.to_scalar(trace.builder, _truth(trace, "cond", "`pred`", pred))
        return _branches(
            trace,
            "cond",
            (true_fn, false_fn),
            ("`true_fn`", "`false_fn`"),
            operands,
            lambda b, writers, owner: control.conditional(b, condition, writers[0], writers[1], owner),
        )


def _fresh(tree: Any) -> Any:
    """The result of a branch as copies, which share no memory with what the branch read."""
    leaves, structure = flatten_values(tree)
    return structure.unflatten([x._copy() if isinstance(x, Traced) and not x._scalar else x for x in leaves])


def trace_switch(trace: Trace, number: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """`ml.switch` in a trace."""
    with at_user_line():
        if not branches:
            raise CaptureError("switch: there are no branches")
        known = _known_number(number)
        if isinstance(known, (bool, int, np.bool_, np.integer)):
            chosen = branches[min(max(int(known), 0), len(branches) - 1)]
            return _fresh(trace.handlers.retarget(chosen, trace)(*operands))
        leaf_type = leaf_type_of(number, "switch: `index`")
        if leaf_type.shape or leaf_type.dtype.kind not in "iub":
            raise DTypeError(
                f"switch: `index` must be an integer, got {leaf_type}", help="convert it with `.astype(int)`"
            )
        b = trace.builder
        value = value_of(trace, number, "`index`")
        position = control.to_index(b, b.cast(value, _I64) if leaf_type.dtype.kind == "b" else value)
        if leaf_type.dtype.kind == "i":
            position = b.named(f"arith.maxsi {position}, {control.index(b, 0)} : index")
        return _branches(
            trace,
            "switch",
            tuple(branches),
            tuple(f"`branches[{n}]`" for n in range(len(branches))),
            operands,
            lambda b, writers, owner: control.switch(b, position, writers, owner),
        )


def _branches(
    trace: Trace,
    name: str,
    functions: Sequence[Callable[..., Any]],
    labels: Sequence[str],
    operands: tuple[Any, ...],
    write: Callable[[Any, Sequence[control.Branch], str], list[Value]],
) -> Any:
    """Trace branches, whose results must have the same structure and types."""
    trees: list[TreeDef] = []
    leaf_types: list[list[LeafType]] = []
    scalars: list[list[bool]] = []
    wanted: list[LeafType] | None = None

    def writer(number: int) -> control.Branch:
        def branch() -> list[Value]:
            result = trace.handlers.retarget(functions[number], trace)(*operands)
            with at_function(functions[number]):
                leaves, tree = flatten_values(result)
                if trees:
                    other = f"{labels[number]} returns another structure than {labels[0]}"
                    check_structure(name, other, tree, trees[0], "result")
                trees.append(tree)
                paths = tree.paths("result")
                leaf_types.append([leaf_type_of(leaf, path) for leaf, path in zip(leaves, paths)])
                scalars.append(list(map(_is_scalar, leaves)))
                common = check_branches(name, labels, paths, leaf_types)
                if wanted is None and [k.dtype for k in common] != [k.dtype for k in leaf_types[0]]:
                    raise _Retry(common)
                return _returned(trace, leaves, paths, wanted or common)

        return branch

    while True:
        mark = trace.builder.mark()
        try:
            writers = [writer(number) for number in range(len(functions))]
            values = write(trace.builder, writers, f"a branch of `ml.{name}`")
            break
        except BaseException as error:
            trace.builder.rewind(mark)
            if not isinstance(error, _Retry):
                raise
            wanted = error.leaf_types
            trees, leaf_types, scalars = [], [], []
    common = check_branches(name, labels, trees[0].paths("result"), leaf_types)
    numbers = [_agreed(group) for group in zip(*scalars)]
    return trees[0].unflatten(wrapped(trace, values, common, numbers))


def trace_scan(
    trace: Trace, function: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool
) -> tuple[Any, Any]:
    """`ml.scan` in a trace."""
    with at_user_line():
        b, step = trace.builder, trace.handlers.retarget(function, trace)
        carry, rows = _Tree(init, "carry", trace), _Tree(xs, "xs", trace)
        count = scan_length(rows.paths, [leaf_type.shape for leaf_type in rows.leaf_types], length)
        sources = [rows.start(n, leaf_type) for n, leaf_type in enumerate(rows.leaf_types)]

        def write(leaf_types: list[LeafType]) -> tuple[Any, list[LeafType]]:
            starts = [carry.start(n, leaf_type) for n, leaf_type in enumerate(leaf_types)]
            mark = b.mark()
            loop = control.ForLoop(b, control.index(b, 0), control.index(b, count), "the body of `ml.scan`")
            arguments = [loop.carry(value) for value in starts]
            row = loop.index
            if reverse:
                row = b.named(f"arith.subi {control.index(b, count - 1)}, {row} : index")
            slices = [control.row(b, source, row) for source in sources]
            parts = [replace(leaf_type, shape=leaf_type.shape[1:]) for leaf_type in rows.leaf_types]
            x = rows.treedef.unflatten(wrapped(trace, slices, parts, [True] * len(parts)))
            result = step(carry.in_region(trace, arguments, leaf_types), x)
            check_pair(function, result)
            after, scalars, values = _carried_on(trace, "scan", function, carry, leaf_types, result[0])
            if after != leaf_types:
                return None, after
            with at_function(function):
                ys, tree = flatten_values(result[1])
                paths = tree.paths("y")
                items = _returned(trace, ys, paths, [leaf_type_of(y, path) for y, path in zip(ys, paths)])
            if count == 0:
                b.rewind(mark)
                collected = [b.empty((0, *y.shape), y.dtype) for y in items]
                results = starts
            else:
                results, collected = _collect(loop, values, items, count, row)
            outputs = [Traced(trace, Cell(value, owned=True)) for value in collected]
            final = wrapped(trace, results, leaf_types, scalars)
            return (carry.treedef.unflatten(final), tree.unflatten(outputs)), after

        return _until_settled(trace, carry.leaf_types, write)


def _collect(
    loop: control.ForLoop, values: Sequence[Value], items: Sequence[Value], count: int, row: str
) -> tuple[list[Value], list[Value]]:
    """End a loop that stores `items` into row `row` of new tensors; returns its carried values, and these tensors."""
    b = loop.builder
    full = [item for item in items if item.size]
    targets = [loop.fill_later((count, *item.shape), item.dtype) for item in full]
    stored = [control.set_row(b, item, target, row) for item, target in zip(full, targets)]
    results = loop.end([*values, *stored])
    rows = iter(results[len(values) :])
    collected = [next(rows) if item.size else b.empty((count, *item.shape), item.dtype) for item in items]
    return results[: len(values)], collected


def check_pair(function: Callable[..., Any], result: Any) -> None:
    """Refuse a body of a scan that does not return a pair."""
    if type(result) is tuple and len(result) == 2:
        return
    with at_function(function):
        raise CaptureError(
            f"scan: the body must return a pair (carry, y), got {_article(result)}",
            help="return `carry, None` where there is nothing to collect",
        )


def check_ys(function: Callable[..., Any], tree: TreeDef, first: TreeDef) -> None:
    """Refuse a `y` of another structure than the first one."""
    with at_function(function):
        check_structure("scan", "the body returns y of another structure than before", tree, first, "y")


def scan_length(paths: Sequence[str], shapes: Sequence[tuple[int, ...]], length: Any) -> Any:
    """The trip count of a scan."""
    if isinstance(length, Traced) and length._known() is None:
        raise CaptureError(
            "scan: `length` must be known when the function is compiled",
            help="use `ml.fori_loop`, whose bounds may be arrays, or make the argument static (`static_argnums`)",
        )
    try:
        count = length if length is None or type(length) is Size else operator.index(length)
    except TypeError:
        raise ArgumentError(f"scan: `length` is an integer, got {length!r}") from None
    if count is not None and count < 0:
        raise ShapeError(f"scan: `length` cannot be negative, got {count}")
    source = "`length`"
    for path, shape in zip(paths, shapes):
        if not shape:
            raise ShapeError(
                f"scan: {path} has no dimension to go along", help="put what is no sequence into the carry"
            )
        if count is not None and not same(shape[0], count) and shape[0] != count:
            raise ShapeError(f"scan: sequences of different lengths, {count} of {source} and {shape[0]} of {path}")
        count, source = shape[0], path if source == "`length`" and length is None else source
    if count is None:
        raise ShapeError("scan: the number of iterations is not known", help="pass `length=` where there are no `xs`")
    return count


def _article(x: Any) -> str:
    name = "array" if isinstance(x, Traced) else type(x).__name__
    size = f" of {len(x)}" if isinstance(x, (tuple, list)) else ""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}{size}"
