"""Contractions: matmul and its relatives, and einsum, written as named structured ops."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.analysis.contractions import BY_MAPS
from mlirml.core.sizes import same, sampled
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.complex import ComplexValue, parts_of
from mlirml.ir.text.complex_scalars import Complex, Real
from mlirml.ir.text.dtypes import as_dtype, common_shape, is_complex, is_float, part_dtype
from mlirml.ops import elementwise as ew
from mlirml.ops import promotion
from mlirml.ops.complex.contractions import contract_parts
from mlirml.ops.reductions import as_value, normalized_axes, sum_
from mlirml.ops.registry import ALL, operation

_BOOL = np.dtype(np.bool_)
_MULTIPLY = ew.by_kind(biu="arith.muli", f="arith.mulf")


def _prepared(
    b: Builder, operands: Sequence[Operand], result: np.dtype | None = None
) -> tuple[list[Value], np.dtype, np.dtype]:
    """Operands in one dtype, the dtype to accumulate in, and that of the result, the promoted one unless given."""
    operands = [promotion.strong(o) for o in operands]
    result = promotion.result_type(*operands) if result is None else result
    # A product of truth values is an OR of ANDs: count in 32 bits and compare with 0.
    compute = np.dtype(np.int32) if result == _BOOL else result
    accumulate = np.dtype(np.float32) if is_float(result) and result.itemsize == 2 else compute
    values = [as_value(b, o) for o in operands]
    # A real operand of a complex product stays real, and takes half of the work.
    kinds = [compute if is_complex(v.dtype) else part_dtype(compute) for v in values]
    return [b.cast(v, kind) for v, kind in zip(values, kinds)], accumulate, result


def _finished(b: Builder, value: Value, result: np.dtype) -> Value:
    return b.cast(value, result)


def _named(b: Builder, name: str, x: Value, y: Value, shape: Sequence[int], dtype: np.dtype) -> Value:
    out = b.filled(shape, dtype, 0)
    return b.op(
        f"{name} ins({x.name}, {y.name} : {x.type}, {y.type}) outs({out.name} : {out.type}) -> {out.type}",
        shape,
        dtype,
    )


def contract(
    b: Builder, x: Value, y: Value, maps: tuple[str, str, str], sizes: dict[str, int], dtype: np.dtype
) -> Value:
    """Sum of products; each map names the loops of an operand's dimensions, as in einsum."""
    if isinstance(x, ComplexValue) or isinstance(y, ComplexValue):
        return contract_parts(b, contract, x, y, maps, sizes, part_dtype(dtype))  # type: ignore[arg-type]
    x_map, y_map, out_map = maps
    shape = tuple(sizes[c] for c in out_map)
    loops = list(dict.fromkeys(out_map + x_map + y_map))
    if 0 in (sizes[c] for c in loops):
        return b.filled(shape, dtype, 0)
    letters: dict[str, str] = {}
    canonical = _canonical(maps, letters)
    if canonical in BY_MAPS:
        return _named(b, BY_MAPS[canonical], x, y, shape, dtype)
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    texts = [f"affine_map<({dims}) -> ({', '.join(f'd{loops.index(c)}' for c in m)})>" for m in maps]
    out = b.filled(shape, dtype, 0)
    return b.op(
        f"linalg.contract indexing_maps = [{', '.join(texts)}] ins({x.name}, {y.name} : {x.type}, {y.type}) "
        f"outs({out.name} : {out.type}) -> {out.type}",
        shape,
        dtype,
    )


def _canonical(maps: tuple[str, str, str], letters: dict[str, str]) -> tuple[str, str, str]:
    """The maps with loops renamed to the letters of the named forms: batch h, then i, j, k by first use."""
    x_map, y_map, out_map = maps
    batch = [c for c in x_map if c in y_map and c in out_map]
    names = iter("hgf" if len(batch) == 1 else "")
    for c in batch:
        letters[c] = next(names, "?")
    names = iter("ijkl")
    for c in x_map + y_map:
        if c not in letters:
            letters[c] = next(names, "?")
    return tuple("".join(letters[c] for c in m) for m in maps)  # type: ignore[return-value]


_BATCH_LETTERS = "".join(c for c in string.ascii_letters if c not in "ijk")


@operation("contraction", np.matmul, dtypes=ALL, arrays=2, tolerance=8)
def matmul(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
    """Matrix product; dimensions before the last two broadcast, 1-D operands are vectors."""
    if not x1.shape or not x2.shape:
        raise ShapeError(f"matmul: a scalar has no matrix product, {x1} @ {x2}", help="use `*` to scale an array")
    x_batch, y_batch = x1.shape[:-2], x2.shape[:-2]
    inner = x1.shape[-1], x2.shape[-2] if len(x2.shape) > 1 else x2.shape[0]
    if not same(*inner) and inner[0] != inner[1]:
        raise ShapeError(f"matmul: inner dimensions differ, {x1} @ {x2}", help=_transpose_hint(x1.shape, x2.shape))
    try:
        batch = common_shape(x_batch, y_batch)
    except ValueError:
        raise ShapeError(f"matmul: batch dimensions do not broadcast, {x1} @ {x2}") from None
    names = {x1.dtype.name, x2.dtype.name}
    mixed = "bfloat16" in names and len(names) > 1  # of which NumPy has no common dtype, but `matmul` has
    common = np.matmul.resolve_dtypes((x1.dtype, x2.dtype, None))[-1] if mixed else None
    (x, y), accumulate, result = _prepared(b, (x1, x2), common)
    if dtype is None and result.name == "bfloat16":  # NumPy has no such loop and takes the next wider one
        dtype = np.float32
    if dtype is not None:
        x, y, accumulate, result = (
            b.cast(x, as_dtype(dtype)),
            b.cast(y, as_dtype(dtype)),
            as_dtype(dtype),
            as_dtype(dtype),
        )
    letters = _BATCH_LETTERS[: len(batch)]
    x, x_map = _batch_map(b, x, batch, letters, "ik" if len(x.shape) > 1 else "k")
    y, y_map = _batch_map(b, y, batch, letters, "kj" if len(y.shape) > 1 else "k")
    out_map = letters + ("i" if len(x1.shape) > 1 else "") + ("j" if len(x2.shape) > 1 else "")
    sizes = dict(zip(letters, batch)) | dict(zip(x_map, x.shape)) | dict(zip(y_map, y.shape))
    for letter in [c for c in letters if c not in x_map and c not in y_map]:  # both sides have size 1
        sizes[letter] = 1
    used = "".join(c for c in out_map if c in x_map or c in y_map)
    product = contract(b, x, y, (x_map, y_map, used), sizes, accumulate)
    return _finished(b, b.reshape(product, tuple(sizes[c] for c in out_map)), result)


def _transpose_hint(x: tuple[int, ...], y: tuple[int, ...]) -> str | None:
    x_turned, y_turned = (f"{name}.{'T' if len(s) == 2 else 'mT'}" for name, s in (("x1", x), ("x2", y)))
    if len(y) > 1 and y[-1] == x[-1]:
        return f"did you mean `x1 @ {y_turned}`?"
    if len(x) > 1 and x[-2] == y[-2 if len(y) > 1 else -1]:
        return f"did you mean `{x_turned} @ x2`?"
    if len(x) == len(y) == 2 and y[1] == x[0]:
        return "did you mean `x2 @ x1`?"
    return None


def _batch_map(b: Builder, value: Value, batch: tuple[int, ...], letters: str, core: str) -> tuple[Value, str]:
    """Drop the batch dimensions that broadcast; name the others."""
    count = len(value.shape) - len(core)
    first = len(batch) - count
    kept = [i for i in range(count) if same(value.shape[i], batch[first + i]) and not same(value.shape[i], 1)]
    shape = tuple(value.shape[i] for i in kept) + value.shape[count:]
    return b.reshape(value, shape), "".join(letters[first + i] for i in kept) + core


def einsum_pair(b: Builder, x: Value, x_map: str, y: Value, y_map: str, out_map: str, accumulate: np.dtype) -> Value:
    """Contract two operands whose maps repeat no letter; letters on one side that the result lacks are summed first."""
    x, x_map = _summed(b, x, x_map, set(y_map + out_map))
    y, y_map = _summed(b, y, y_map, set(x_map + out_map))
    sizes = dict(zip(x_map, x.shape)) | dict(zip(y_map, y.shape))
    if not any(c in y_map and c not in out_map for c in x_map):
        return _product(b, x, x_map, y, y_map, out_map, sizes, accumulate)
    return contract(b, x, y, (x_map, y_map, out_map), sizes, accumulate)


def _product(
    b: Builder, x: Value, x_map: str, y: Value, y_map: str, out_map: str, sizes: dict[str, int], accumulate: np.dtype
) -> Value:
    shape = tuple(sizes[c] for c in out_map)
    if isinstance(x, ComplexValue) or isinstance(y, ComplexValue):
        return _multiply_parts(b, x, x_map, y, y_map, out_map, shape)

    def body(block: Body, xs: list[str], accumulator: str) -> str:
        names = [block.cast(n, v.dtype, accumulate) for n, v in zip(xs, (x, y))]
        return _MULTIPLY(block, names, accumulate)

    maps = [[out_map.index(c) for c in m] for m in (x_map, y_map)]
    out = b.empty(shape, accumulate)
    return b.generic([x, y], maps, out, range(len(shape)), ["parallel"] * len(shape), body)


def _multiply_parts(
    b: Builder, x: Value, x_map: str, y: Value, y_map: str, out_map: str, shape: tuple[int, ...]
) -> Value:
    """Products of complex operands, or of a complex and a real one."""
    part = parts_of(x)[0].dtype
    inputs = [*parts_of(x), *parts_of(y)]
    maps = [[out_map.index(c) for c in m] for v, m in ((x, x_map), (y, y_map)) for _ in parts_of(v)]

    def body(block: Body, names: list[str], accumulators: list[str]) -> tuple[str, str]:
        reals = [Real(block, name, part) for name in names]
        if len(reals) == 4:
            product = Complex(*reals[:2]) * Complex(*reals[2:])
        else:
            pair, factor = (reals[:2], reals[2]) if isinstance(x, ComplexValue) else (reals[1:], reals[0])
            product = Complex(*pair).scaled(factor)
        return product.re.name, product.im.name

    outs = b.empty(shape, part), b.empty(shape, part)
    return ComplexValue.of(*b.generic2(inputs, maps, outs, range(len(shape)), ["parallel"] * len(shape), body))


def _summed(b: Builder, value: Value, letters: str, wanted: set[str]) -> tuple[Value, str]:
    gone = tuple(i for i, c in enumerate(letters) if c not in wanted)
    if not gone:
        return value, letters
    kept = "".join(c for c in letters if c in wanted)
    result: Value = sum_.build(b, value, gone, value.dtype)
    return result, kept


def _diagonal(b: Builder, value: Value, letters: str) -> tuple[Value, str]:
    """Take the diagonal of every repeated letter."""
    unique = "".join(dict.fromkeys(letters))
    if unique == letters:
        return value, letters
    sizes = dict(zip(letters, value.shape))
    shape = tuple(sizes[c] for c in unique)
    return b.gather(value, shape, lambda block, loops: [loops[unique.index(c)] for c in letters]), unique


def parsed_subscripts(subscripts: str, operands: Sequence[Operand]) -> tuple[list[str], str]:
    """The letters of each operand's dimensions and of the result's, those of an ellipsis among them."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"einsum: {len(terms)} subscripts in {subscripts!r} for {len(operands)} operand(s)")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in text]
    widest = 0
    full = []
    for term, operand in zip(terms, operands):
        if "..." in term:
            count = len(operand.shape) - len(term.replace("...", ""))
            widest = max(widest, count)
            term = term.replace("...", "".join(spare[-count:]) if count > 0 else "")
        if len(term) != len(operand.shape) or (not term.isalpha() and term):
            raise ShapeError(f"einsum: subscript {term!r} in {subscripts!r} does not fit {operand}")
        full.append(term)
    dots = "".join(spare[-widest:]) if widest else ""
    if arrow:
        out = right.replace("...", dots)
    else:
        joined = "".join(full)
        out = dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    missing = [c for c in out if c not in "".join(full)]
    if missing or len(set(out)) != len(out):
        raise ShapeError(
            f"einsum: the output {out!r} of {subscripts!r} names a letter twice or one that no operand has"
        )
    return full, out


@operation("contraction", np.einsum, dtypes=ALL, arrays=0, tolerance=8)
def einsum(
    b: Builder, subscripts: Any, *operands: Any, out: None = None, dtype: Any = None, optimize: Any = True
) -> Value:
    """Einstein summation, ellipsis and repeated letters included, in the order that opt_einsum finds."""
    if not isinstance(subscripts, str):
        subscripts, operands = from_lists((subscripts, *operands))
    operands = tuple(promotion.strong(promotion.as_operand(x)) for x in operands)
    terms, final = parsed_subscripts(subscripts, operands)
    if dtype is not None:
        for operand in operands:
            if not np.can_cast(operand.dtype, as_dtype(dtype), "same_kind"):
                raise DTypeError(f"einsum: {operand} cannot be cast to {as_dtype(dtype)}")
        operands = tuple(b.cast(as_value(b, o), as_dtype(dtype)) for o in operands)
    values, accumulate, result = _prepared(b, operands)
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values):
        for letter, n in zip(term, value.shape):
            known = sizes.setdefault(letter, n)
            if not same(known, n) and not same(n, 1) and not same(known, 1) and known != n:
                raise ShapeError(f"einsum: letter {letter!r} of {subscripts!r} has sizes {sizes[letter]} and {n}")
            sizes[letter] = n if same(sizes[letter], 1) else sizes[letter]
    if any(sizes[c] == 0 for term in terms for c in term if c not in final):  # a sum of nothing, also beside infinities
        return b.filled(tuple(sizes[c] for c in final), result, 0)
    pairs = [_diagonal(b, *_without_units(b, v, t, sizes)) for v, t in zip(values, terms)]
    for group in _path(pairs, final, optimize) if len(pairs) > 2 else []:
        chosen = [pairs[i] for i in sorted(group)]
        pairs = [p for i, p in enumerate(pairs) if i not in group]
        while len(chosen) > 1 and pairs + chosen[2:]:  # what is left at the end is contracted into the result itself
            first, second, *chosen = chosen
            wanted = final + "".join(m for _, m in pairs + chosen)
            kept = "".join(dict.fromkeys(c for c in first[1] + second[1] if c in wanted))
            chosen.insert(0, (einsum_pair(b, *first, *second, kept, accumulate), kept))
        pairs += chosen
    if len(pairs) == 2:
        (x, x_map), (y, y_map) = pairs
        present = "".join(c for c in final if c in x_map + y_map)
        value, letters = einsum_pair(b, x, x_map, y, y_map, present, accumulate), present
    else:
        value, letters = _summed(b, *pairs[0], set(final))
        value = b.transpose(value, [letters.index(c) for c in final if c in letters])
        letters = "".join(c for c in final if c in letters)
    value = b.reshape(value, tuple(sizes[c] if c in letters else 1 for c in final))
    return _finished(b, b.broadcast(value, tuple(sizes[c] for c in final), value.dtype), result)


def _without_units(b: Builder, value: Value, term: str, sizes: dict[str, int]) -> tuple[Value, str]:
    """Drop dimensions of size 1 whose letter is longer elsewhere: they broadcast."""
    kept = [i for i, (c, n) in enumerate(zip(term, value.shape)) if same(n, sizes[c])]
    return b.reshape(value, tuple(value.shape[i] for i in kept)), "".join(term[i] for i in kept)


def _path(pairs: Sequence[tuple[Value, str]], final: str, optimize: Any) -> list[tuple[int, ...]]:
    """The contraction order: pairs of operand indices, each pair replaced by its result at the end of the list."""
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return list(optimize[1:])
    if optimize is False:
        return [(0, 1 if i == 0 else len(pairs) - 1 - i) for i in range(len(pairs) - 1)]
    import opt_einsum

    text = ",".join(letters for _, letters in pairs) + "->" + final
    how = "auto" if optimize in (True, None) else optimize
    path = opt_einsum.contract_path(text, *(sampled(v.shape) for v, _ in pairs), shapes=True, optimize=how)[0]
    return [tuple(step) for step in path]


def from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """`einsum(x, [0, 1], y, [1, 2], [0, 2])` in letters."""
    lists = [x for x in arguments if isinstance(x, (list, tuple))]
    if len(lists) not in (len(arguments) // 2, (len(arguments) + 1) // 2) or isinstance(arguments[0], (list, tuple)):
        raise ShapeError("einsum: the first argument must be the subscripts, such as 'ij,jk->ik'")
    terms = ["".join("..." if i is Ellipsis else chr(65 + i // 26 * 32 + i % 26) for i in group) for group in lists]
    count = len(arguments) // 2
    text = ",".join(terms[:count]) + ("->" + terms[count] if len(arguments) % 2 else "")
    return text, tuple(arguments[: 2 * count : 2])


@operation("contraction", np.dot, dtypes=ALL, arrays=2, methods=("dot",), tolerance=8)
def dot(builder: Builder, a: Operand, b: Operand, out: None = None) -> Value:
    """Sum of products over the last axis of a and the second to last of b."""
    if not a.shape or not b.shape:
        return _scaled(builder, a, b)
    place = max(len(b.shape) - 2, 0)
    if a.shape[-1] != b.shape[place]:
        hint = _transpose_hint(a.shape, b.shape) if max(len(a.shape), len(b.shape)) < 3 else None
        raise ShapeError(f"dot: inner dimensions differ, {a} and {b}", help=hint)
    return tensordot_axes(builder, "dot", a, b, ((len(a.shape) - 1,), (place,)))


def _scaled(b: Builder, x: Operand, y: Operand) -> Value:
    return ew.multiply.build(b, promotion.strong(x), promotion.strong(y))


@operation("contraction", np.outer, dtypes=ALL, arrays=2)
def outer(builder: Builder, a: Operand, b: Operand, out: None = None) -> Value:
    """All products of the elements of two flattened arrays."""
    x, y = (as_value(builder, v) for v in (a, b))
    return _scaled(builder, builder.reshape(x, (x.size, 1)), builder.reshape(y, (y.size,)))


@operation("contraction", np.inner, dtypes=ALL, arrays=2, tolerance=8)
def inner(builder: Builder, a: Operand, b: Operand) -> Value:
    """Sum of products over the last axes of both."""
    if not a.shape or not b.shape:
        return _scaled(builder, a, b)
    return tensordot_axes(builder, "inner", a, b, ((-1,), (-1,)))


@operation("contraction", np.tensordot, dtypes=ALL, arrays=2, tolerance=8, scalars=False)
def tensordot(builder: Builder, a: Operand, b: Operand, axes: Any = 2) -> Value:
    """Sum of products over the given axes of both, or over the last `axes` of a and the first of b."""
    if isinstance(axes, int):
        pairs = (tuple(range(-axes, 0)), tuple(range(axes)))
    else:
        pairs = tuple((x,) if isinstance(x, int) else tuple(x) for x in axes)  # type: ignore[assignment]
    return tensordot_axes(builder, "tensordot", a, b, pairs)


def tensordot_axes(
    builder: Builder, name: str, a: Operand, b: Operand, axes: tuple[tuple[int, ...], tuple[int, ...]]
) -> Value:
    """`tensordot` with both axis lists given."""
    x_axes, y_axes = ([normalized_axes(name, v.shape, i)[0] for i in group] for v, group in zip((a, b), axes))
    if len(x_axes) != len(y_axes) or any(a.shape[i] != b.shape[j] for i, j in zip(x_axes, y_axes)):
        raise ShapeError(f"{name}: sizes differ along the axes {_shown(x_axes)} of {a} and {_shown(y_axes)} of {b}")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    x_map = [next(letters) for _ in a.shape]
    y_map = [x_map[x_axes[y_axes.index(j)]] if j in y_axes else next(letters) for j in range(len(b.shape))]
    out = [c for i, c in enumerate(x_map) if i not in x_axes] + [c for j, c in enumerate(y_map) if j not in y_axes]
    (x, y), accumulate, result = _prepared(builder, (a, b))
    product = einsum_pair(builder, x, "".join(x_map), y, "".join(y_map), "".join(out), accumulate)
    return _finished(builder, product, result)


def _shown(axes: list[int]) -> str:
    return ", ".join(map(str, axes))


@operation("contraction", np.vdot, dtypes=ALL, arrays=2, tolerance=8)
def vdot(builder: Builder, a: Operand, b: Operand) -> Value:
    """Sum of products of two flattened arrays of one size."""
    x, y = (as_value(builder, v) for v in (a, b))
    if x.size != y.size:
        raise ShapeError(f"vdot: sizes differ, {a} and {b}")
    return tensordot_axes(builder, "vdot", builder.reshape(x, (x.size,)), builder.reshape(y, (y.size,)), ((0,), (0,)))
