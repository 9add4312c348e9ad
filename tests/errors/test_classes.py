"""The error classes: what else catches them, and what they keep."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import errors
from mlirml.errors import MlirmlError, SourceLocation

CLASSES = sorted(
    {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MlirmlError)}, key=lambda c: c.__name__
)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_is_where_tracebacks_say(kind: type[MlirmlError]) -> None:
    assert kind.__module__ == "mlirml"
    assert getattr(ml, kind.__name__) is kind
    assert kind.__name__ in ml.__all__


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"])
def test_an_error_survives(kind: type[MlirmlError], again: Any) -> None:
    place = SourceLocation("train.py", 3, 5, 3, 8, "loss")
    error = kind("what", location=place, notes=("one", "two"), help="write this", stage="lower")
    other = again(error)
    assert type(other) is kind
    assert str(other) == str(error)
    assert (other.location, other.notes, other.help, other.stage) == (place, ("one", "two"), "write this", "lower")


@pytest.mark.parametrize(
    ("fn", "args", "kinds"),
    [
        (lambda x: x + np.ones(7), (np.ones(3),), (ml.ShapeError, ValueError)),
        (lambda x: x[3], (np.ones(3),), (ml.IndexOutOfBoundsError, ml.ShapeError, IndexError, ValueError)),
        (lambda x: x.sum(axis=1), (np.ones(3),), (ml.IndexOutOfBoundsError, IndexError, ValueError)),
        (lambda x: x.astype("U3"), (np.ones(3),), (ml.DTypeError, TypeError)),
        (lambda x: x + 300, (np.ones(3, np.uint8),), (ml.IntegerRangeError, ml.DTypeError, OverflowError, TypeError)),
        (lambda x, n: x + n, (np.ones(3, np.uint8), 300), (ml.IntegerRangeError, OverflowError)),
        (lambda x: x.fill(0), (np.broadcast_to(1.0, 3),), (ml.LaunchError, ValueError)),
        (lambda x: x, (np.ones(3), 1), (ml.ArgumentError, TypeError)),
    ],
)
def test_what_numpy_raises_catches_it(fn: Any, args: Any, kinds: tuple[type[Exception], ...]) -> None:
    with pytest.raises(kinds[0]) as caught:
        ml.compile(fn)(*args)
    for kind in kinds:
        assert isinstance(caught.value, kind)


def test_columns_count_bytes() -> None:
    def f(größe: Any) -> Any:
        return größe @ np.ones((7, 7))  # the bytes of an umlaut are two

    with pytest.raises(ml.ShapeError) as caught:
        ml.compile(f)(np.ones(3))
    lines = str(caught.value).split("\n")
    source = next(i for i, line in enumerate(lines) if "größe @" in line)
    carets = lines[source + 1]
    if caught.value.location is not None and caught.value.location.column:
        assert lines[source][carets.index("^") : carets.rindex("^") + 1] == "größe @ np.ones((7, 7))"
