"""The derivatives that the benchmarks time are right, and what checks them would see that they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mlirml as ml
from benchmarks.gradients import check, functions
from benchmarks.gradients.problems import PROBLEMS
from benchmarks.peers.with_mlirml import transformed
from benchmarks.rounds import DERIVATIVES
from benchmarks.workloads import WORKLOADS, error, reference

DERIVED = {workload.name: workload for workload in PROBLEMS if workload.transform}


@pytest.mark.parametrize("name", DERIVED)
def test_a_compiled_derivative_is_what_differences_say(name: str) -> None:
    workload = DERIVED[name]
    arguments = workload.arguments(quick=True)
    found = ml.compile(transformed(workload))(*arguments)
    assert error(workload, arguments, found, reference(workload, arguments)) < DERIVATIVES[workload.transform]


@pytest.mark.parametrize("name", ["gradients_kmeans", "gradients_kmeans_hvp", "gradients_mlp64"])
def test_a_derivative_that_is_written_out_is_what_differences_say(name: str) -> None:
    workload = DERIVED[name]
    arguments = workload.arguments(quick=True)
    if name == "gradients_kmeans_hvp":
        gradient = DERIVED["gradients_kmeans"].derivative
        assert gradient is not None
        step = 1e-6
        centres, points = arguments
        found = (gradient(centres + step, points) - gradient(centres - step, points)) / (2 * step)
        np.testing.assert_allclose(workload.derivative(*arguments), found, rtol=1e-6)  # type: ignore[misc]
        return
    value = functions.kmeans if name == "gradients_kmeans" else lambda p, m, x, labels: functions.mlp_loss(p, x, labels)
    apart = replace(workload, derivative=None, value=value)
    doubles = tuple(
        {key: x.astype(np.float64) for key, x in tree.items()} if isinstance(tree, dict) else tree.astype(np.float64)
        for tree in arguments
    )
    np.testing.assert_allclose(check.expected(apart, doubles), check.expected(workload, doubles), rtol=1e-6)


def test_a_wrong_derivative_is_seen() -> None:
    workload = DERIVED["gradients_gmm10x25"]
    arguments = workload.arguments(quick=True)
    expected = reference(workload, arguments)
    alphas, means, factors = ml.compile(transformed(workload))(*arguments)
    factors[0, -1] *= 1.001
    assert error(workload, arguments, (alphas, means, factors), expected) > DERIVATIVES["gradient"]
    assert error(workload, arguments, (alphas, means), expected) == np.inf
    assert error(workload, arguments, (alphas, means, factors.astype(np.float32)), expected) == np.inf


def test_every_gradient_has_its_function_beside_it() -> None:
    for name, workload in DERIVED.items():
        if workload.transform == "gradient":
            assert WORKLOADS[f"{name}_value"].function is workload.function
