"""The cost model: a description of a machine, and what follows from another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis import costs
from mlirml.analysis.costs import STATIC, Costs, is_worth, used
from mlirml.codegen.cpu.contract.plan import register_tile
from mlirml.codegen.cpu.contract.problem import build_problem, match_contraction
from mlirml.core.dataclass import replace
from mlirml.ir.bindings import named_operations, parse
from mlirml.nn import functional as F
from mlirml.targets.machine import named


def test_small_loops_stay_on_one_thread() -> None:
    assert STATIC.grain(1, 1e9) == STATIC.grain(1000, 39.0) == 0
    assert STATIC.grain(1000, 40.0) == 500
    assert STATIC.grain(10, 1e9) == 1
    assert Costs(parallel_ns=0).grain(1000, 1.0) == 1000


def test_arrays_beyond_the_cache_take_longer() -> None:
    assert STATIC.byte_ns(1 << 20) < STATIC.byte_ns((1 << 20) + 1)
    assert STATIC.vector_ns(3.0, 64) == pytest.approx(1.0)


def test_rewrites_must_be_clearly_cheaper() -> None:
    assert is_worth(0.8, 1.0)
    assert not is_worth(0.81, 1.0)


def test_products_cost_flops_bytes_and_a_start() -> None:
    assert STATIC.product_bytes(320.0, 100.0, 4) == 40.0 + 100.0 + STATIC.start_bytes
    assert STATIC.sum_bytes(100.0) == 100.0 + STATIC.start_bytes


def test_a_loop_with_few_instructions_a_launch_stays_on_the_host() -> None:
    assert STATIC.stays_on_host(instructions=99, launches=1, copied=0)
    assert not STATIC.stays_on_host(instructions=10_000, launches=1, copied=0)
    assert not STATIC.stays_on_host(instructions=0, launches=1, copied=40_000)


def schedule_of(machine: Costs, monkeypatch: pytest.MonkeyPatch, function: Any, *inputs: Any) -> str:
    monkeypatch.setattr(costs, "STATIC", machine)
    with ml.config.override(cache=False, processor="avx2,l2=1M", threads=4):
        compiled = ml.compile(function)
        np.testing.assert_allclose(compiled(*inputs), function(*inputs), rtol=1e-4, atol=1e-4)
        return str(compiled.ir("schedule", *inputs))


def test_passes_decide_by_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads: what 40 us are worth on one machine is left to one thread on another."""
    x = np.random.default_rng(0).standard_normal((400, 500), dtype=np.float32)
    texts = [schedule_of(each, monkeypatch, np.tanh, x) for each in (STATIC, Costs(parallel_ns=1 << 40))]
    assert ["mlirml.parallel_for" in text for text in texts] == [True, False]


def test_orders_of_products_follow_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where flops take no time, a chain of products is left as it is written."""
    a, b, c = (np.random.default_rng(0).standard_normal(s) for s in ((90, 4), (4, 80), (80,)))
    chain = lambda a, b, c: (a @ b) @ c  # noqa: E731
    texts = [schedule_of(each, monkeypatch, chain, a, b, c) for each in (STATIC, Costs(start_bytes=1e9))]
    assert texts[0] != texts[1]


def test_measured_machines_are_asked_only_where_a_setting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlirml.targets import measured
    from mlirml.targets.measured import Level, MeasuredMachine
    from mlirml.targets.measured_costs import costs_of
    from mlirml.targets.registry import get_target

    level = Level(1 << 19, False, (2e10, 4e10), (1e10, 2e10), (1e10, 2e10))
    machine = MeasuredMachine("cpu", 2, {"f32": (1e11, 2e11)}, {"L2": level, "memory": level}, 1e-6, 1e-3)
    monkeypatch.setattr(measured, "measured_machine", lambda threads: machine)
    found = costs_of(machine)
    assert (found.parallel_ns, found.chunk_ns, found.cache_bytes) == (8_000_000, 4_000_000, 1 << 19)
    assert found.memory_byte_ns == pytest.approx(0.05)
    assert found.flop_bytes == pytest.approx(0.05)
    x = np.random.default_rng(0).standard_normal((400, 500), dtype=np.float32)
    fingerprints, parallel = [], []
    for setting in ("static", "measured"):
        with ml.config.override(cache=False, costs=setting, threads=4, processor="host"):
            fingerprints.append(get_target("cpu").fingerprint())
            parallel.append("mlirml.parallel_for" in str(ml.compile(np.tanh).ir("schedule", x)))
    assert parallel == [True, False]
    assert fingerprints[0] != fingerprints[1]


def test_a_machine_that_was_not_measured_has_static_costs() -> None:
    from mlirml.targets.measured import MeasuredMachine
    from mlirml.targets.measured_costs import costs_of

    assert costs_of(MeasuredMachine("cpu", 1, {}, {}, 0.0, 0.0)) == STATIC
    with pytest.raises(ValueError, match="static"):
        ml.config.override(costs="fast").__enter__()


def test_register_tiles_follow_the_description() -> None:
    """Where vectors of b cost nothing, tiles are wider, and where broadcasts cost nothing, they are higher."""
    machine = named("avx512,l2=1M")
    a, b, c = "tensor<120x64xf32>", "tensor<64x240xf32>", "tensor<120x240xf32>"
    text = f"""func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
      %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
      return %r : {c}
    }}"""
    module = parse(text)
    (op,) = named_operations(module.operation, ("linalg.matmul",))
    problem = build_problem(match_contraction(op))
    tiles = []
    for load in (0.0, 20.0):
        with used(replace(STATIC, kernels=replace(STATIC.kernels, packed_load=load))):
            tiles.append(register_tile(problem, machine, packed_b=True))
    assert tiles[0][0] < tiles[1][0]


def test_threads_of_convolutions_follow_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = (np.random.default_rng(0).standard_normal(s, dtype=np.float32) for s in ((1, 8, 66, 66), (16, 8, 3, 3)))

    def wanted(x: np.ndarray, w: np.ndarray) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,fcij->nfhw", windows, w)

    texts = []
    for each in (STATIC, Costs(parallel_ns=1 << 40)):
        monkeypatch.setattr(costs, "STATIC", each)
        with ml.config.override(cache=False, processor="avx2,l2=1M", threads=4):
            compiled = ml.compile(lambda x, w: F.conv2d(x, w))
            np.testing.assert_allclose(compiled(x, w), wanted(x, w), rtol=1e-3, atol=1e-3)
            texts.append(str(compiled.ir("schedule", x, w)))
    assert ["mlirml.parallel_for" in text for text in texts] == [True, False]
