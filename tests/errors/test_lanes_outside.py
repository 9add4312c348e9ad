"""Values of one lane of a batch that a function keeps in what is the same for all lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


def stores(x: Any) -> Any:
    x[0] = 1.0
    return np.sum(x)


def kept_outside(xs: Any) -> Any:
    total, last, found = np.zeros(3), {"x": 0.0}, []

    def stored(x: Any) -> Any:
        total[:] += x
        return np.sum(x)

    def replaced(x: Any) -> Any:
        last["x"] = x[0] * 2
        return np.sum(x)

    def appended(x: Any) -> Any:
        found.append(np.max(x))
        return np.sum(x)

    return {
        "stored": lambda: (ml.vmap(stored)(xs), total),
        "replaced": lambda: (ml.vmap(replaced)(xs), last["x"]),
        "appended": lambda: (ml.vmap(ml.vmap(appended))(xs[None]), found[0]),
        "an argument": lambda: ml.vmap(stores, axis_size=2, in_axes=(None,))(total),
        "shared": lambda: ml.vmap(lambda y, x: stored(x), in_axes=(None, 0))(total, xs),
    }


@pytest.mark.parametrize(
    ("name", "line"), [("stored", "total[:] += x"), ("replaced", "x[0] * 2"), ("appended", "np.max(x)")]
)
def test_a_value_of_one_example_that_is_kept_outside(name: str, line: str) -> None:
    with pytest.raises(ml.NoBatchingError, match="is used outside of the function for one example") as caught:
        ml.compile(lambda xs: kept_outside(xs)[name]())(np.ones((2, 3)))
    shown = str(caught.value).splitlines()
    assert shown[1].endswith(f"({name})") and line in shown[3] and "^" * len(line) in shown[4]


def test_what_all_examples_share_is_kept_outside() -> None:
    assert ml.compile(lambda xs: kept_outside(xs)["an argument"]())(np.ones((2, 3))).tolist() == [1.0, 1.0]
    assert ml.compile(lambda xs: kept_outside(xs)["shared"]())(np.ones((2, 3))).tolist() == [3.0, 3.0]
