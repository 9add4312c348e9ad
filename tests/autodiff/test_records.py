"""Every operation record: forward mode against reverse mode, and batches against loops, on the reference target."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import tests.ops.array_samples
import tests.ops.composed_samples
import tests.ops.index_samples  # noqa: F401  (all register their samplers)
from mlirml.core.tree import flatten
from mlirml.ops import OPS
from tests.ops.samples import Call, calls_of

F64 = np.dtype(np.float64)


def floats_of(call: Call) -> tuple[list[np.ndarray], Callable[..., Any]]:
    """The float arrays among the arguments of a call, and the call as a function of them that gives one float."""
    leaves, tree = flatten((list(call.args), dict(call.options)))
    places = [i for i, x in enumerate(leaves) if isinstance(x, np.ndarray) and x.dtype == F64 and 0 < x.size < 200]

    def function(*xs: Any) -> Any:
        replaced = list(leaves)
        for place, x in zip(places, xs):
            replaced[place] = x
        args, options = tree.unflatten(replaced)
        total: Any = 0.0
        for y in flatten(call.function(*args, **options))[0]:
            if y.dtype.kind == "f" and y.size:
                total = total + np.sum(y * np.linspace(0.5, 1.5, y.size).reshape(y.shape))
        return total

    # Within the domains of most functions, and off their corners.
    values = [np.clip(np.nan_to_num(leaves[i], posinf=2, neginf=-2), -3, 3) + 0.01 for i in places]
    return values, function


def calls(name: str) -> list[Call]:
    return [call for call in calls_of(OPS[name], F64)[:4] if floats_of(call)[0]]


OF_INTEGERS = ("bitwise_", "left_", "right_", "gcd", "lcm")
NAMES = [name for name in sorted(OPS) if calls(name) and not name.startswith(OF_INTEGERS)]


@pytest.mark.parametrize("name", NAMES)
def test_both_modes_and_batches_agree(name: str) -> None:
    values, function = floats_of(calls(name)[0])
    directions = [np.random.default_rng(0).standard_normal(x.shape) for x in values]
    both = ml.compile(ml.value_and_grad(function, tuple(range(len(values)))), "reference")
    one = ml.compile(function, "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, gradients = both(*values)
        _, change = ml.compile(lambda p, t: ml.jvp(function, p, t), "reference")(tuple(values), tuple(directions))
        expected = sum(np.sum(g * d) for g, d in zip(gradients, directions))
        np.testing.assert_allclose(change, expected, rtol=1e-8, atol=1e-8)
        many = [np.stack([x, 0.9 * x]) for x in values]
        batched = ml.compile(ml.vmap(function), "reference")(*many)
        np.testing.assert_allclose(batched, [one(*(x[i] for x in many)) for i in (0, 1)], rtol=1e-10)
