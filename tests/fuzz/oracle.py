"""NumPy as the oracle: run a function on copies of its arguments both ways, and compare everything that can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from mlirml.core.tree import flatten

TARGETS = ("cpu", "reference")


def clone(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides, in memory of its own."""
    if array.size == 0:
        empty: np.ndarray = array.copy()
        return empty
    low, high = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0]
    memory = np.zeros(high - low, np.uint8)
    copy: np.ndarray = np.ndarray(array.shape, array.dtype, memory.data, start - low, array.strides)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


def cloned(tree: Any) -> Any:
    """A pytree with every array cloned."""
    leaves, structure = flatten(tree)
    return structure.unflatten([clone(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves])


def check(
    fn: Callable[..., Any],
    *args: Any,
    targets: tuple[str, ...] = TARGETS,
    rtol: float = 0.0,
    static_argnums: int | tuple[int, ...] = (),
    **kwargs: Any,
) -> None:
    """Assert that `fn` does the same compiled as with NumPy: results, dtypes, structure and the arguments afterwards.

    Each program is called twice, as the first call and later ones take different ways. `rtol` is for results that
    cannot be exact, relative to the largest magnitude.
    """
    __tracebackhide__ = True
    for target in targets:
        compiled = ml.compile(fn, target, static_argnums=static_argnums)
        for round_ in ("first", "second"):
            expected_arguments, given_arguments = cloned((args, kwargs)), cloned((args, kwargs))
            with np.errstate(all="ignore"):
                expected = fn(*expected_arguments[0], **expected_arguments[1])
            given = compiled(*given_arguments[0], **given_arguments[1])
            where = f"{getattr(fn, '__name__', fn)} on {target}, {round_} call"
            assert_same(given, expected, f"{where}: result", rtol)
            assert_same(given_arguments, expected_arguments, f"{where}: arguments", rtol)


def assert_same(given: Any, expected: Any, where: str, rtol: float = 0.0) -> None:
    """Assert that two pytrees are alike: structure, shapes, dtypes and elements, NaN equal to NaN, -0.0 not to 0.0."""
    __tracebackhide__ = True
    given_leaves, given_tree = flatten(given)
    leaves, tree = flatten(expected)
    assert given_tree == tree, f"{where}: structure {given_tree}, expected {tree}"
    for path, one, other in zip(tree.paths(where), given_leaves, leaves):
        difference = difference_of(np.asarray(one), np.asarray(other), rtol)
        assert not difference, f"{path}: {difference}"


def difference_of(given: np.ndarray, expected: np.ndarray, rtol: float = 0.0) -> str:
    """What differs, in words; empty when nothing does."""
    if given.dtype != expected.dtype:
        return f"dtype {given.dtype}, expected {expected.dtype}"
    if given.shape != expected.shape:
        return f"shape {given.shape}, expected {expected.shape}"
    wrong = ~same_elements(given, expected)
    if rtol and wrong.any():
        wide = [x.astype(np.result_type(x.dtype, np.float64)) for x in (given, expected)]
        finite = np.isfinite(wide[0]) & np.isfinite(wide[1])
        largest = np.max(np.abs(wide[1]), where=finite, initial=0.0)
        with np.errstate(invalid="ignore"):
            wrong &= ~(finite & (np.abs(wide[0] - wide[1]) <= rtol * largest))
    if not wrong.any():
        return ""
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    one, other = np.atleast_1d(given)[first], np.atleast_1d(expected)[first]
    return f"{int(wrong.sum())} of {wrong.size} elements, the first at {list(first)}: {one!r}, expected {other!r}"


def same_elements(given: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays of one dtype agree: equal with equal signs, or both NaN."""
    if expected.dtype.kind == "c":
        return same_elements(given.real, expected.real) & same_elements(given.imag, expected.imag)
    equal: np.ndarray = given == expected
    if expected.dtype.kind in "biu":
        return equal
    equal &= np.signbit(given) == np.signbit(expected)
    equal |= np.isnan(given) & np.isnan(expected)
    return equal
