"""`cond`, `switch`, `while_loop`, `fori_loop` and `scan`: structured control flow on dynamic values.

In compiled code the functions that are passed are traced once and become regions of loops and branches. Called with
real arrays outside of compiled code, everything runs in Python with the same semantics, so that functions that use them
can be tried uncompiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.sizes import same_shape
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import ArgumentError
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.runtime.array import Array

if TYPE_CHECKING:
    from mlirml.frontend.arrays.carry import LeafType


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`; only one of them runs.

    `pred` is one number or bool. Both functions return pytrees of the same structure, shapes and dtypes; where one
    returns a Python number and the other an array of no dimension, the result has the array's dtype. A `pred` that is
    known when the function is compiled chooses as Python's `if` does. The branches may read arrays from outside but
    not store into them.

    Raises `ShapeError`, `DTypeError` or `CaptureError` where the results of the branches differ in type.

    >>> import numpy as np, mlirml as ml
    >>> root = ml.compile(lambda x: ml.cond(x > 0, np.sqrt, lambda x: 0.0, x))
    >>> float(root(4.0)), float(root(-1.0))
    (2.0, 0.0)
    """
    _check_functions("cond", true_fn=true_fn, false_fn=false_fn)
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.tracing.regions import trace_cond

        return trace_cond(trace, pred, true_fn, false_fn, operands)
    return _fresh((true_fn if _is_true(pred, "cond", "`pred`") else false_fn)(*_read_only(operands)))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index out of range takes the first or the last branch.

    The branches return pytrees of the same structure, shapes and dtypes, as for `cond`.

    Raises `ShapeError`, `DTypeError` or `CaptureError` where the results differ in type, `DTypeError` where `index` is
    no integer.

    >>> import numpy as np, mlirml as ml
    >>> apply = ml.compile(lambda i, x: ml.switch(i, [np.sin, np.negative, lambda x: 2 * x], x))
    >>> float(apply(1, 3.0)), float(apply(7, 3.0))
    (-3.0, 6.0)
    """
    _check_functions("switch", **{f"branches[{number}]": branch for number, branch in enumerate(branches)})
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.tracing.regions import trace_switch

        return trace_switch(trace, index, branches, operands)
    number = int(index) if isinstance(index, np.bool_) else operator.index(index)
    return _fresh(branches[min(max(number, 0), len(branches) - 1)](*_read_only(operands)))


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """`carry = init`, then `carry = body_fn(carry)` as long as `cond_fn(carry)` is true; the last carry.

    The carry is a pytree of arrays and numbers that keeps its structure, shapes and dtypes. A Python number in `init`
    takes the dtype that the body returns: `0` meets f32 and is f32, as in NumPy. Stores into the carry are local.
    Functions, strings and dtypes in the carry, such as the activation of a model, are static: the body returns the
    same ones.

    Raises `ShapeError` or `DTypeError` at the `return` of the body where a leaf of the carry changes its type.

    >>> import numpy as np, mlirml as ml
    >>> halvings = ml.compile(lambda x: ml.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))[1])
    >>> int(halvings(1000.0))
    10
    """
    _check_functions("while_loop", cond_fn=cond_fn, body_fn=body_fn)
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.tracing.regions import trace_while_loop

        return trace_while_loop(trace, cond_fn, body_fn, init)
    carry = _Carry("while_loop", init, body_fn)
    while _is_true(cond_fn(_read_only(carry.tree)), "while_loop", "the condition"):
        carry.replace(body_fn(carry.tree))
    return carry.tree


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any) -> Any:
    """`carry = init`, then `carry = body_fn(i, carry)` for `i` from `lower` to `upper - 1`; the last carry.

    The bounds are integers, and may be dynamic. `i` is a Python integer for NumPy's promotion, as in
    `for i in range(lower, upper)`. The carry is as for `while_loop`.

    Raises `ShapeError` or `DTypeError` at the `return` of the body where a leaf of the carry changes its type.

    >>> import numpy as np, mlirml as ml
    >>> factorial = ml.compile(lambda n: ml.fori_loop(1, n + 1, lambda i, product: product * i, 1))
    >>> int(factorial(5))
    120
    """
    _check_functions("fori_loop", body_fn=body_fn)
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.tracing.regions import trace_fori_loop

        return trace_fori_loop(trace, lower, upper, body_fn, init)
    carry = _Carry("fori_loop", init, body_fn)
    for i in range(operator.index(lower), operator.index(upper)):
        carry.replace(body_fn(i, carry.tree))
    return carry.tree


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for the rows `x` of `xs`: the last carry, and all `y` in new arrays along dimension 0.

    `xs` is a pytree of arrays of the same first size, which is the trip count; without `xs` it is `length`. With
    `reverse` the rows are taken from the last to the first, and `y` goes where its `x` was. `y` is a pytree, or None
    where there is nothing to collect. The carry is as for `while_loop`.

    Raises `ShapeError` where the lengths differ or nothing tells the length, and `ShapeError` or `DTypeError` at the
    `return` of the body where a leaf of the carry changes its type.

    >>> import numpy as np, mlirml as ml
    >>> total = ml.compile(lambda xs: ml.scan(lambda s, x: (s + x, s + x), 0, xs))
    >>> total(np.array([1, 2, 3]))
    (array(6), array([1, 3, 6]))
    """
    _check_functions("scan", f=f)
    trace = current_trace()
    from mlirml.frontend.arrays.carry import flatten_values
    from mlirml.frontend.tracing import regions

    if trace is not None:
        return regions.trace_scan(trace, f, init, xs, length, reverse)
    leaves, tree = flatten_values(xs)
    leaves = [leaf if isinstance(leaf, Array) else np.asarray(leaf) for leaf in leaves]
    with at_user_line():
        count = regions.scan_length(tree.paths("xs"), [leaf.shape for leaf in leaves], length)
    if count == 0:
        return _no_iterations(f, init, xs)
    carry = _Carry("scan", init, f)
    rows: list[Any] = [None] * count
    structure: TreeDef | None = None
    for i in reversed(range(count)) if reverse else range(count):
        result = f(carry.tree, tree.unflatten([_own(leaf[i]) for leaf in leaves]))
        regions.check_pair(f, result)
        carry.replace(result[0])
        ys, found = flatten_values(result[1])
        structure = found if structure is None else structure
        regions.check_ys(f, found, structure)
        rows[i] = [_own(y) for y in ys]
    assert structure is not None
    return carry.tree, structure.unflatten([_stacked(column) for column in zip(*rows)])


def _check_functions(name: str, **given: Any) -> None:
    """That branches and bodies can be called."""
    for what, function in given.items():
        if not callable(function):
            with at_user_line():
                raise ArgumentError(
                    f"{name}: {what} must be a function, got: {type(function).__name__}",
                    help="write `lambda: x` for a value" if name in ("cond", "switch") else None,
                )


def _is_true(x: Any, name: str, what: str) -> bool:
    """The truth of a condition of an uncompiled loop or branch."""
    if np.ndim(x):
        from mlirml.frontend.arrays.carry import leaf_type_of, several

        with at_user_line():
            raise several(name, what, leaf_type_of(x, what))
    return bool(x)


def _no_iterations(f: Callable[..., Any], init: Any, xs: Any) -> tuple[Any, Any]:
    """A scan of length 0: the shapes of the collected arrays are those of the compiled program."""
    from mlirml.frontend.arrays.carry import flatten_values
    from mlirml.frontend.capture import capture
    from mlirml.frontend.spec import spec_of
    from mlirml.frontend.tracing.regions import trace_scan

    leaves, tree = flatten_values((init, xs))
    specs = [spec_of(leaf, path) for leaf, path in zip(leaves, tree.paths())]
    _, arguments = flatten_values(((init, xs), {}))
    structures: list[TreeDef] = []

    def empty_scan(init: Any, xs: Any) -> Any:
        state = current_trace()
        assert state is not None
        arrays, structure = flatten_values(trace_scan(state, f, init, xs, 0, False)[1])
        structures.append(structure)
        return arrays

    captured = capture(empty_scan, arguments, specs, "scan", {})
    empty = [np.zeros(spec.shape, spec.dtype) for spec in captured.outputs[: captured.out_tree.leaf_count()]]
    return _Carry("scan", init, f).tree, structures[-1].unflatten(empty)


class _Carry:
    """The loop-carried pytree of an uncompiled loop. It never shares memory with arrays of the caller."""

    def __init__(self, name: str, init: Any, body: Callable[..., Any]) -> None:
        from mlirml.frontend.arrays.carry import flatten_values, leaf_type_of

        self._name, self._body = name, body
        leaves, self._treedef = flatten_values(init)
        self._paths = self._treedef.paths("carry")
        self._kinds: list[LeafType] = [leaf_type_of(leaf, path) for leaf, path in zip(leaves, self._paths)]
        self._leaves = [_own(leaf) for leaf in leaves]

    @property
    def tree(self) -> Any:
        """The pytree."""
        return self._treedef.unflatten(self._leaves)

    def replace(self, new: Any) -> None:
        """Replace the carry by the body's result; its types are checked as in compiled code."""
        from mlirml.frontend.arrays.carry import flatten_values

        leaves, tree = flatten_values(new)
        if tree != self._treedef or not all(map(_has_type, leaves, self._kinds)):
            self._check(leaves, tree)
        self._leaves = [
            leaf if leaf is before else _converted(leaf, leaf_type)
            for leaf, before, leaf_type in zip(leaves, self._leaves, self._kinds)
        ]

    def _check(self, leaves: list[Any], tree: TreeDef) -> None:
        from mlirml.frontend.arrays.carry import check_carry, check_structure, leaf_type_of
        from mlirml.frontend.tracing.trace import at_function

        with at_function(self._body):
            what = "the body returns a carry of another structure"
            check_structure(self._name, what, tree, self._treedef, "carry")
            found = [leaf_type_of(leaf, path) for leaf, path in zip(leaves, self._paths)]
            self._kinds = check_carry(self._name, list(zip(self._paths, self._kinds, found)))


def _has_type(leaf: Any, leaf_type: LeafType) -> bool:
    """True if a leaf certainly has the type of the carry."""
    if type(leaf) is np.ndarray or isinstance(leaf, (np.generic, Array)):
        return not leaf_type.weak and leaf.dtype == leaf_type.dtype and same_shape(leaf.shape, leaf_type.shape)
    return False


def _converted(leaf: Any, leaf_type: LeafType) -> Any:
    """A leaf of a carry, converted to the dtype of the carry."""
    if type(leaf) in (bool, int, float, complex):
        return leaf if leaf_type.weak and leaf_type.dtype == np.asarray(leaf).dtype else leaf_type.dtype.type(leaf)
    return _own(leaf)


def _own(leaf: Any) -> Any:
    """A copy of an array; numbers are immutable."""
    return np.array(leaf, order="C") if isinstance(leaf, np.ndarray) else leaf


def _fresh(tree: Any) -> Any:
    leaves, treedef = flatten(tree)
    return treedef.unflatten([_own(leaf) for leaf in leaves])


def _read_only(tree: Any) -> Any:
    """The pytree with read-only arrays, as compiled code refuses stores into them too."""
    leaves, treedef = flatten(tree)
    return treedef.unflatten([_locked(leaf) for leaf in leaves])


def _locked(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    view = leaf.view()
    view.flags.writeable = False
    return view


def _stacked(column: Sequence[Any]) -> np.ndarray:
    """The ys of one leaf, stacked; Python numbers yield to NumPy's dtypes."""
    strong = [y for y in column if type(y) not in (bool, int, float, complex)]
    rows = np.stack(column)
    return rows.astype(np.result_type(*strong), copy=False) if strong else rows
