"""`np.einsum` of one operand of which nothing is summed is a view, which stores go through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

SUBSCRIPTS = {
    "ii->i": (3, 3), "ij->ji": (2, 3), "j->j": (4,), "...ii->...i": (2, 3, 3), "iij->ji": (3, 3, 2),
    "iji->ij": (3, 2, 3), "iii->i": (2, 2, 2), "iijj->ji": (2, 2, 3, 3), "...->...": (2, 3), "ij": (2, 3),
    "ba": (2, 3), "ii->i ": (1, 1), "ji->ij": (0, 3),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.bool_])
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_stores_go_through(subscripts: str, dtype: Any) -> None:
    def f(a: Any) -> Any:
        view = np.einsum(subscripts, a)
        view[:1] = 1
        a[..., :1] = 2
        other = np.einsum(subscripts, a, optimize=True)
        other[...] = other * view
        return view

    check(f, np.arange(np.prod(SUBSCRIPTS[subscripts])).reshape(SUBSCRIPTS[subscripts]).astype(dtype))


def test_of_lists_of_letters_known_arrays_and_windows() -> None:
    def f(a: Any) -> Any:
        np.einsum(a[0], [1, 1], [1])[:] = 7
        known = np.zeros((2, 2))
        np.einsum("ii->i", known)[:] = a[1, 0]
        return known

    def loop(a: Any) -> Any:
        for i in range(2):
            view = np.einsum("ii->i", a[i])
            view[:] = i
            view[1] += 2
            np.einsum("ij->ji", a[i])[0] += i
        return a

    a = np.arange(8.0).reshape(2, 2, 2)
    check(f, a)
    check(loop, a)
    check(ml.loops(loop), a)


def test_what_is_no_view() -> None:
    def f(a: Any, b: Any) -> Any:
        row = np.einsum("ij->i", a)
        row[:] = 5
        into = np.einsum("ij->ji", a, out=b)
        into[0] = 9
        return row, np.einsum("ij->ji", a, dtype=np.float32)  # of the operand's dtype, as in NumPy

    check(f, np.ones((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ml.errors.ShapeError, match="has sizes 1 and 3"):
        ml.compile(lambda a: np.einsum("ii->i", a))(np.ones((1, 3)))
