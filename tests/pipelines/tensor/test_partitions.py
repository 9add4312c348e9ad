"""The search for partitions: what is stored or recomputed follows the costs, and numbers stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import mlirml as ml
from mlirml.analysis.costs import STATIC, Costs, used
from mlirml.core.dataclass import replace
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import block_ops, operations, parse
from mlirml.pipelines.tensor.fuse import FusePass
from mlirml.pipelines.tensor.fusion import partitions
from mlirml.pipelines.tensor.fusion.clusters import Choices, Graph
from mlirml.pipelines.tensor.fusion.partitions import Partition, Prices, best_partition
from tests.pipelines.programs import Program, programs

SLOW_MEMORY = replace(STATIC, memory_byte_ns=50.0, cache_byte_ns=50.0, start_bytes=0.0)
SLOW_ARITHMETIC = replace(STATIC, ghz=0.001, start_bytes=0.0)


@pytest.fixture(autouse=True, scope="module")
def small_programs_count() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "LEAST_NS", 0.0)
        yield


@settings(max_examples=75, deadline=None)
@given(programs(max_ops=12))
@pytest.mark.parametrize("machine", [SLOW_MEMORY, SLOW_ARITHMETIC], ids=["memory", "arithmetic"])
def test_values_stay(machine: Costs, program: Program) -> None:
    text, arrays = program.text(), program.random_inputs()
    module = parse(text)
    with used(machine):
        FusePass(search=True).run(module.operation)
    module.operation.verify()
    for old, new in zip(interpret(parse(text), arrays), interpret(module, arrays), strict=True):
        np.testing.assert_array_equal(new, old)


@settings(max_examples=75, deadline=None)
@given(programs(max_ops=10))
@pytest.mark.parametrize("machine", [SLOW_MEMORY, SLOW_ARITHMETIC], ids=["memory", "arithmetic"])
def test_the_search_never_ends_with_a_partition_that_costs_more(machine: Costs, program: Program) -> None:
    module = parse(program.text())
    block = module.body.operations[0].operation.regions[0].blocks[0]
    with used(machine), module.context:
        graph = Graph(block, 96, 24)
        found = Partition(best_partition(graph), Prices()).total
        assert found <= Partition(graph, Prices()).total


def body_ops(compiled: Any, *inputs: np.ndarray) -> list[list[str]]:
    """The names of the scalar operations of each loop of a program."""
    module = parse(compiled.ir("optimize", *inputs))
    found = [op for op in operations(module) if op.name == "linalg.generic"]
    return [[inner.name for inner in block_ops(op.regions[0].blocks[0])] for op in found]


def polynomial(x: np.ndarray) -> Any:
    """More operations than are recomputed without the search."""
    return np.maximum(x * x * 0.5 + x * 3 - 1, 0) * (x + 2) * (x - 1.5) * (x + 0.25)


def sums_of_rows_and_columns(x: np.ndarray) -> Any:
    t = polynomial(x)
    return t.sum(0), t.sum(1)


def pairs(a: np.ndarray, b: np.ndarray) -> Any:
    u, v = np.maximum(a * 2 + 1, 0) * (a - 1) + 0.5 * a, np.minimum(b * 3 - 1, 2) * (b + 1) - 0.25 * b
    return np.abs(u[:, None, :] - v[None, :, :]).sum(-1)


@pytest.mark.parametrize(("rows", "stored"), [(16, 1), (2048, 1), (4096, 0)])
def test_a_large_array_that_two_sums_read_is_computed_for_each_of_them(rows: int, stored: int) -> None:
    """That takes less than to store it in memory and read it from there; an array that a cache has is stored."""
    x = np.random.default_rng(0).standard_normal((rows, 1024), dtype=np.float32)
    compiled = ml.compile(sums_of_rows_and_columns)
    bodies = body_ops(compiled, x)
    assert sum("arith.maximumf" in body for body in bodies) == 2 - stored
    for result, wanted in zip(compiled(x), sums_of_rows_and_columns(x.astype(float)), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-2)


def test_what_each_pair_of_rows_would_recompute_is_stored() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 64), dtype=np.float32), rng.standard_normal((300, 64), dtype=np.float32)
    compiled = ml.compile(pairs)
    *_, last = body_ops(compiled, a, b)
    assert last == ["arith.subf", "math.absf", "arith.addf", "linalg.yield"]
    np.testing.assert_allclose(compiled(a, b), pairs(a, b), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("function", [sums_of_rows_and_columns, pairs])
def test_numbers_are_those_of_the_greedy_partition(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    # Sums of these are exact, in any order.
    inputs = [rng.integers(-2, 3, (600, 512)).astype(np.float32) for _ in range(1 + (function is pairs))]
    results = []
    for most in (partitions.MOST_GRAPHS, 0):
        monkeypatch.setattr(partitions, "MOST_GRAPHS", most)
        with ml.config.override(cache=False, threads=1):
            results.append(ml.compile(function)(*inputs))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_choices_are_made_by_the_machine() -> None:
    """A producer of ten operations is recomputed where memory is slow, and stored where arithmetic is."""
    chosen = []
    for machine in (SLOW_MEMORY, SLOW_ARITHMETIC):
        with used(machine):
            x = np.zeros((64, 64), np.float32)
            module = parse(ml.compile(sums_of_rows_and_columns).ir("transform", x))
            (function,) = list(module.body.operations)
            block = function.operation.regions[0].blocks[0]
            with module.context:
                chosen.append(best_partition(Graph(block, 96, 24)).choices)
    assert chosen[0].recomputed
    assert chosen[1] == Choices()
