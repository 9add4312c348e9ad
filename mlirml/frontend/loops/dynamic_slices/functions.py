"""NumPy's functions of slices of dynamic length: sums and products as loops, elementwise functions by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.function_options import with_options
from mlirml.frontend.loops.dynamic_indices import Axis, Number, index_name
from mlirml.frontend.loops.dynamic_slices import joins, written
from mlirml.frontend.loops.dynamic_slices.captured import by_rows, captured, form_of
from mlirml.frontend.loops.dynamic_slices.compaction import whole_buffer
from mlirml.frontend.loops.dynamic_slices.gathering import store_at
from mlirml.frontend.loops.dynamic_slices.indices import has_positions
from mlirml.frontend.loops.dynamic_slices.joins import concatenate
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    as_part,
    axis_of,
    check_unchanged,
    combined,
    fold,
    materialised,
    moved,
    operated,
    part,
    refused,
    same_length,
    store,
    transposed,
)
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check
from mlirml.ir.text.dtypes import as_dtype

Combine = Callable[[Any, Any], Any]
_ELEMENTWISE = (np.where, np.clip, np.round, np.nan_to_num, np.real, np.imag, np.isclose)


def call_ufunc(trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc with a dynamic slice among its operands."""
    x = next(x for x in (*inputs, *options.get("out", ())) if isinstance(x, DynamicSlice))
    if method == "reduce" and ufunc in _REDUCED:
        return reduction(ufunc)(x, *inputs[1:], **{"axis": 0, **options})
    if method == "outer" and not options:
        return outer(trace, inputs[0], inputs[1], ufunc)
    if method == "accumulate" and not (options.get("axis") or options.get("dtype")):
        return accumulated(ufunc)(x, *inputs[1:])
    if method == "at" and not options and len(inputs) == 3 and has_positions(inputs[1]):
        return store_at(as_part(trace, inputs[0]), inputs[1], inputs[2], ufunc)
    out = options.pop("out", (None,))[0] if method == "__call__" else None
    if isinstance(out, DynamicSlice) and not options and ufunc.nout == 1:
        store(out, call_ufunc(trace, ufunc, method, inputs, {}))
        return out
    if method != "__call__" or options or ufunc.nout != 1 or out is not None:
        raise refused(trace, x, f"`np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}`")
    if ufunc is np.matmul:
        return product(trace, *inputs)
    return combined(trace, lambda *xs: trace.call_ufunc(ufunc, "__call__", xs, {}), ufunc, inputs)


def call_function(x: DynamicSlice, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A NumPy function with a dynamic slice among its arguments."""
    trace = x._trace
    if function in _ELEMENTWISE and not (function is np.where and len(args) == 1):
        return combined(trace, lambda *xs: trace.call_function(function, xs, kwargs), function, args)
    if function in _OF_TRACE:
        return with_options(function.__name__, _OF_TRACE[function])(trace, *args, **kwargs)
    if function is np.where and len(args) == 1:
        function = np.nonzero
    by_name = x._operations.named.get(getattr(function, "__name__", ""))
    if by_name is not None and function is getattr(np, function.__name__, None):
        return with_options(function.__name__, by_name)(trace, *args, **kwargs)
    known = x._operations.functions.get(function)
    if known is None or not isinstance(args[0] if args else None, DynamicSlice):
        form = form_of(trace, function)
        if form is None:
            module = "np." + {"numpy.fft": "fft.", "numpy.linalg": "linalg."}.get(function.__module__, "")
            raise refused(trace, x, f"`{module}{function.__name__}`")
        return with_options(function.__name__, form)(*args, **kwargs)
    return with_options(function.__name__, known)(*args, **kwargs)


# Reductions.


def reduced(x: DynamicSlice, axis: Any, keepdims: Any, start: Any, combine: Combine) -> Any:
    """Reduce along some axes; a reduction over all axes is emitted now."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = sorted({axis_of(a, x.ndim) for a in given})
    kept = [d for d in range(x.ndim) if d not in axes]
    lengths = [x._shape[d] for d in axes]

    def element(indices: tuple[Number, ...]) -> Any:
        own = dict(zip(kept, indices))
        return fold(
            x._trace, lengths, start, lambda total, inner: combine(total, x._at(_merged(own, axes, inner, x.ndim)))
        )

    if not kept:
        check_unchanged(x)
        found = element(())
        return found if keepdims is not True else x._trace.array([found]).reshape((1,) * x.ndim)
    sample = np.ones((1,) * len(kept), np.asarray(x._sample).dtype if start is None else _dtype_of(start))
    result = DynamicSlice(x._trace, [x._shape[d] for d in kept], [x._most[d] for d in kept], sample, element, moved(x))
    if keepdims is not True:
        return result
    return result[tuple(None if d in axes else slice(None) for d in range(x.ndim))]


def _merged(own: dict[int, Number], axes: Sequence[int], inner: Sequence[Number], rank: int) -> list[Number]:
    indices_of_dims = own | dict(zip(axes, inner))
    return [indices_of_dims[d] for d in range(rank)]


def _dtype_of(start: Any) -> np.dtype:
    return (start[0] if isinstance(start, tuple) else start).dtype


def number_of(trace: Trace, value: Any, dtype: np.dtype) -> Traced:
    """A number as a traced NumPy scalar."""
    return trace.known(np.asarray(value).astype(dtype), scalar=True)


def reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    """`np.add.reduce`, which is `np.sum`, and the like."""

    def function(
        x: DynamicSlice,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        trace = x._trace
        given = None if initial is np._NoValue else initial
        if out is not None:
            raise refused(trace, x, "the argument `out`")
        kind = as_dtype(dtype) if dtype is not None else ufunc.reduce(np.asarray(x._sample), axis=None).dtype
        start = _start(ufunc, kind) if given is None else given
        if given is None and ufunc in _EXTREMES:
            _check_some(x, ufunc, axis)
        if where is not True:
            kept = number_of(trace, _start(ufunc, kind), kind)
            x = combined(
                trace,
                lambda y, m: trace.call_function(np.where, (m, y.astype(kind), kept), {}),
                lambda y, m: np.where(m, np.asarray(y).astype(kind), kind.type(0)),
                [x, where],
            )
        total = number_of(trace, start, kind) if not isinstance(start, Traced) else start.astype(kind)
        combine: Combine = lambda one, y: trace.call_ufunc(ufunc, "__call__", (one, y), {}).astype(kind)  # noqa: E731
        return reduced(x, axis, keepdims is True, total, combine)

    return function


def _check_some(x: DynamicSlice, ufunc: np.ufunc, axis: Any) -> None:
    """Emit a check that there is an element, as an empty maximum has no value."""
    b, integers = x._trace.builder, x._trace.integers
    for length in (x._shape[d] for d in axes_of(x, axis)):
        least, greatest = integers.limits(integers.of(length))
        if least is not None and least > 0:
            continue
        name = "max" if ufunc in (np.maximum, np.fmax) else "min"
        message = f"np.{name}: the array may be empty, which has no such element"
        if greatest is not None and greatest <= 0:
            raise ShapeError(message)
        if b.checked:
            some = b.named(f"arith.cmpi sgt, {index_name(x._trace, length)}, {b.index(0)} : index")
            b.check(some, Check("ShapeError", message.replace("may be", "is")))


def _least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


_EXTREMES: dict[np.ufunc, Callable[[np.dtype], Any]] = {
    np.maximum: _least,
    np.minimum: _greatest,
    np.fmax: lambda dtype: np.nan if dtype.kind == "f" else _least(dtype),
    np.fmin: lambda dtype: np.nan if dtype.kind == "f" else _greatest(dtype),
}
_REDUCED = (
    np.add, np.multiply, np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    np.gcd, np.lcm, np.hypot, np.logaddexp, *_EXTREMES,
)  # fmt: skip


def _start(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """The identity of a reduction."""
    extreme = _EXTREMES.get(ufunc)
    if extreme is not None:
        return extreme(dtype)
    return {"lcm": 1, "gcd": 0}.get(ufunc.__name__, ufunc.identity)


def mean(
    x: DynamicSlice, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """`np.mean`."""
    kind = as_dtype(dtype) if dtype is not None else np.mean(np.asarray(x._sample)).dtype
    total = reduction(np.add)(x, axis, kind, out, keepdims, where=where)
    count: Any = 1
    for a in axes_of(x, axis):
        count = count * x._length(a)
    if where is not True:
        count = reduction(np.add)(combined(x._trace, lambda y, m: m, lambda y, m: m, [x, where]), axis, np.int64)
    if isinstance(count, Traced):
        count = count.astype(kind)
    return total / count if isinstance(count, Traced) else total / kind.type(count)


def axes_of(x: DynamicSlice, axis: Any) -> list[int]:
    """The axes that an argument `axis` names."""
    return [a % x.ndim for a in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))]


def position(greatest: bool) -> Callable[..., Any]:
    """`np.argmax` and `np.argmin`: the first of equal elements; a NaN is extreme."""

    def function(x: DynamicSlice, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        trace = x._trace
        if x.ndim != 1 or out is not None or keepdims is True or axis not in (None, 0, -1):
            raise refused(trace, x, "the position in more than one dimension")
        check_unchanged(x)
        _check_some(x, np.maximum if greatest else np.minimum, None)
        hooks, ufunc = trace.hooks, np.greater if greatest else np.less

        def step(total: Any, indices: tuple[Number, ...]) -> Any:
            best, at = total
            found = x._at(indices)
            better = trace.call_operator(ufunc, (found, best))
            if x.dtype.kind == "f":
                new, old = (trace.call_operator(np.not_equal, (v, v)) for v in (found, best))
                better = hooks.and_(hooks.or_(better, lambda: new), lambda: hooks.not_(old))
            better = hooks.or_(better, lambda: indices[0] == 0)
            return hooks.select(better, lambda: found, lambda: best), hooks.select(
                better, lambda: indices[0], lambda: at
            )

        first = number_of(trace, 0, x.dtype), number_of(trace, 0, np.dtype(np.int64))
        return fold(trace, x._shape, first, step)[1].astype(np.int64)

    return function


# Products.


def product(trace: Trace, one: Any, other: Any) -> Any:
    """`one @ other`."""
    a, b = as_part(trace, one), as_part(trace, other)
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
        raise refused(trace, a if isinstance(one, DynamicSlice) else b, "a product of these")
    with np.errstate(all="ignore"):
        kind = np.asarray(np.dot(np.asarray(a._sample), np.asarray(b._sample))).dtype
    length, _ = same_length(trace, (a._shape[-1], a._most[-1]), (b._shape[0], b._most[0]), (a, b))
    rows, columns = list(a._shape[:-1]), list(b._shape[1:])

    def element(indices: tuple[Number, ...]) -> Any:
        row, column = indices[: len(rows)], indices[len(rows) :]

        def step(total: Any, inner: tuple[Number, ...]) -> Any:
            term = trace.call_operator(np.multiply, (a._at([*row, *inner]), b._at([*inner, *column])))
            if kind.kind == "b":
                return trace.call_operator(np.bitwise_or, (total, term))
            return trace.call_operator(np.add, (total, term)).astype(kind)

        return fold(trace, [length], number_of(trace, 0, kind), step)

    if not rows and not columns:
        check_unchanged(a)
        check_unchanged(b)
        return element(())
    most = [*a._most[:-1], *b._most[1:]]
    sample = np.ones((1,) * len(most), kind)
    return DynamicSlice(trace, [*rows, *columns], most, sample, element, [*moved(a), *moved(b)])


def dot(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    """`np.dot`."""
    if out is not None:
        raise DTypeError("np.dot: `out` is not compiled for slices of changing length", help="store the result")
    if not as_part(trace, a).ndim or not as_part(trace, b).ndim:
        return operated(trace, np.multiply, (a, b))
    return product(trace, a, b)


def outer(trace: Trace, a: Any, b: Any, ufunc: np.ufunc = np.multiply) -> Any:
    """`np.outer` of vectors."""
    one, other = as_part(trace, a), as_part(trace, b)
    if one.ndim != 1 or other.ndim != 1:
        raise refused(trace, one if isinstance(a, DynamicSlice) else other, "an outer product of these")
    return operated(trace, ufunc, (one[:, None], other[None, :]))


def einsum(trace: Trace, subscripts: str, *operands: Any, optimize: Any = False) -> Any:
    """`np.einsum`: the sum of products of elements along the labels that the output lacks."""
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    terms, parts = given.split(","), [as_part(trace, x) for x in operands]
    labels = sorted(set(given) - {","})
    output = output if arrow else "".join(label for label in labels if given.count(label) == 1)
    alike = all(len(set(term)) == len(term) == x.ndim for term, x in zip(terms, parts))
    if len(terms) != len(parts) or not alike or not set(output) <= {*labels} or "." in given:
        raise refused(trace, parts[0], f"the form {subscripts!r} of `np.einsum`")
    order = [*output, *(label for label in labels if label not in output)]
    products: Any = None
    for term, x in zip(terms, parts):
        turned = transposed(x, [term.index(label) for label in order if label in term])
        factor = turned[tuple(slice(None) if label in term else None for label in order)]
        products = factor if products is None else operated(trace, np.multiply, (products, factor))
    inner = tuple(range(len(output), len(order)))
    return reduction(np.add)(products, inner, products.dtype) if inner else products


def norm(x: DynamicSlice, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """`np.linalg.norm`, the Euclidean one."""
    if ord not in (None, 2) or (ord == 2 and x.ndim != 1 and axis is None):
        return captured(x._trace, written.norm)(x, ord, axis, keepdims)
    if x.dtype.kind != "f":
        x = combined(x._trace, lambda y: y.astype(np.float64), lambda y: y.astype(np.float64), [x])
    total = reduction(np.add)(operated(x._trace, np.multiply, (x, x)), axis, keepdims=keepdims)
    return np.sqrt(total)


# New arrays.


def copied(x: DynamicSlice, *_: Any, **__: Any) -> DynamicSlice:
    """`np.copy`."""
    return materialised(x)


def astype(x: DynamicSlice, dtype: Any, **_: Any) -> DynamicSlice:
    """`x.astype(dtype)`."""
    kind = as_dtype(dtype)
    return materialised(combined(x._trace, lambda y: y.astype(kind), lambda y: np.asarray(y).astype(kind), [x]))


def filled(value: Any) -> Callable[..., DynamicSlice]:
    """`np.zeros_like` and the like."""

    def function(x: DynamicSlice, dtype: Any = None, order: str = "K", subok: bool = True) -> DynamicSlice:
        kind = x.dtype if dtype is None else as_dtype(dtype)
        array = x._trace.known(np.full(x._most, value, kind))
        return part(array, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, x._most)

    return function


def full_like(x: DynamicSlice, fill_value: Any, dtype: Any = None) -> DynamicSlice:
    """`np.full_like`."""
    result = filled(0)(x, dtype)
    store(result, fill_value)
    return result


def diff(x: DynamicSlice, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> DynamicSlice:
    """`np.diff` along the last axis, `n` times."""
    if axis not in (-1, x.ndim - 1):
        raise refused(x._trace, x, "differences along another axis than the last one")
    if n < 0:
        raise ShapeError(f"diff: the order must not be negative, got {n}")
    if n and (prepend is not None or append is not None):
        if x.ndim > 1:
            raise refused(x._trace, x, "differences with values before or after the rows")
        ends = [value if value is None or np.ndim(value) else [value] for value in (prepend, append)]
        x = concatenate(x._trace, [part for part in (ends[0], x, ends[1]) if part is not None])
    compare = x.dtype == np.bool_
    for _ in range(n):
        x = (x[..., 1:] != x[..., :-1]) if compare else x[..., 1:] - x[..., :-1]
    return x


def accumulated(ufunc: np.ufunc) -> Callable[..., Any]:
    """`np.add.accumulate`, which is `np.cumsum`, and the like, of a vector."""

    def function(x: DynamicSlice, axis: Any = None, dtype: Any = None, out: Any = None) -> DynamicSlice:
        if x.ndim != 1 or axis not in (None, 0, -1) or out is not None:
            raise refused(x._trace, x, "running results in more than one dimension")
        kind = as_dtype(dtype) if dtype is not None else ufunc.accumulate(np.asarray(x._sample)).dtype
        trace, hooks = x._trace, x._trace.hooks
        check_unchanged(x)
        result = filled(0)(x, kind)

        def step(total: Any, indices: tuple[Number, ...]) -> Any:
            found, number = x._at(indices).astype(kind), indices[0]
            combined_ = trace.call_ufunc(ufunc, "__call__", (total, found), {}).astype(kind)
            total = (
                combined_
                if ufunc in (np.add, np.multiply)
                else hooks.select(number == 0, lambda: found, lambda: combined_)
            )
            result[number] = total
            return total

        fold(trace, x._shape, number_of(trace, ufunc is np.multiply, kind), step)
        return result

    return function


def sort(x: DynamicSlice, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> DynamicSlice:
    """`np.sort` of a vector: padded to its greatest length with values that sort last."""
    if x.ndim != 1 or order is not None or axis not in (None, 0, -1):
        raise refused(x._trace, x, "`np.sort` in more than one dimension")
    if not x._most[0]:
        return x
    return part(sorted_whole(x), [Axis(0, 1, 0)], x._shape, x._most)


def sorted_whole(x: DynamicSlice) -> Traced:
    """A vector of the greatest length: the sorted elements, followed by padding that sorts last."""
    return x._trace.call_function(np.sort, (padded(x),), {})


def padded(x: DynamicSlice) -> Traced:
    """A vector of the greatest length that begins with `x`, followed by what sorts last."""
    last = {"f": np.nan, "c": complex(np.nan, np.nan)}
    array = x._trace.known(
        np.full(x._most, last[x.dtype.kind] if x.dtype.kind in last else _greatest(x.dtype), x.dtype)
    )
    store(part(array, [Axis(0, 1, 0)], x._shape, x._most), x)
    return array


def argsort(
    x: DynamicSlice, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> DynamicSlice:
    """`np.argsort` of a vector: what pads it comes last, as the sort is stable."""
    if x.ndim != 1 or order is not None or axis not in (None, 0, -1) or not x._most[0]:
        raise refused(x._trace, x, "this form of `np.argsort`")
    found = x._trace.call_function(np.argsort, (padded(x),), {})
    return part(found, [Axis(0, 1, 0)], x._shape, x._most)


def lexsort(trace: Trace, keys: Any, axis: Any = -1) -> DynamicSlice:
    """`np.lexsort` of vectors; a last key puts what is after their end last."""
    parts = [as_part(trace, key) for key in keys]
    if axis not in (0, -1) or any(p.ndim != 1 for p in parts):
        raise refused(trace, next(p for p in parts if isinstance(p._shape[0], Traced)), "this form of `np.lexsort`")
    length, most = parts[0]._shape[0], parts[0]._most[0]
    for p in parts[1:]:
        length, most = same_length(trace, (length, most), (p._shape[0], p._most[0]), (parts[0], p))
    whole = [whole_buffer(p)[:most] for p in parts]
    found = trace.call_function(np.lexsort, ((*whole, np.arange(most) >= parts[0]._length(0)),), {})
    return part(found, [Axis(0, 1, 0)], [length], [most])


def sort_in_place(x: DynamicSlice, *args: Any, **kwargs: Any) -> None:
    """`x.sort()`."""
    store(x, sort(x, *args, **kwargs))


def transpose(x: DynamicSlice, axes: Any = None) -> DynamicSlice:
    """`np.transpose`."""
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple(a % x.ndim for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"transpose: axes {list(order)} are no permutation of {x.ndim} dimension(s)")
    return transposed(x, order)


def flip(x: DynamicSlice, axis: Any = None) -> DynamicSlice:
    """`np.flip`."""
    axes = axes_of(x, axis)
    found: DynamicSlice = x[tuple(slice(None, None, -1 if d in axes else 1) for d in range(x.ndim))]
    return found


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: reduction(np.add),
    np.prod: reduction(np.multiply),
    np.max: reduction(np.maximum),
    np.min: reduction(np.minimum),
    np.all: lambda x, axis=None, out=None, keepdims=False, *, where=True: reduction(np.logical_and)(
        x, axis, None, out, keepdims, where=where
    ),
    np.any: lambda x, axis=None, out=None, keepdims=False, *, where=True: reduction(np.logical_or)(
        x, axis, None, out, keepdims, where=where
    ),
    np.mean: mean,
    np.argmax: by_rows(np.argmax, position(True), written.by_rows, None),
    np.argmin: by_rows(np.argmin, position(False), written.by_rows, None),
    np.linalg.norm: norm,
    np.copy: copied,
    np.zeros_like: filled(0),
    np.empty_like: filled(0),
    np.ones_like: filled(1),
    np.full_like: full_like,
    np.cumsum: by_rows(np.cumsum, accumulated(np.add), written.rows_by_rows, None),
    np.cumprod: by_rows(np.cumprod, accumulated(np.multiply), written.rows_by_rows, None),
    np.diff: diff,
    np.sort: by_rows(np.sort, sort, written.rows_by_rows, -1),
    np.argsort: by_rows(np.argsort, argsort, written.rows_by_rows, -1),
    np.shape: lambda x: x.shape,
    np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    np.ndim: lambda x: x.ndim,
    np.transpose: transpose,
    np.flip: flip,
}
_OF_TRACE: dict[Callable[..., Any], Callable[..., Any]] = {
    np.dot: dot,
    np.inner: dot,
    np.vdot: dot,
    np.outer: outer,
    np.einsum: einsum,
    np.lexsort: lexsort,
    **joins.FUNCTIONS,
}
METHODS: dict[str, Callable[..., Any]] = {
    name: FUNCTIONS[getattr(np, name)]
    for name in (
        "sum",
        "prod",
        "max",
        "min",
        "all",
        "any",
        "mean",
        "argmax",
        "argmin",
        "argsort",
        "copy",
        "cumsum",
        "transpose",
    )
} | {"astype": astype, "dot": lambda x, other: dot(x._trace, x, other), "fill": store, "sort": sort_in_place}
