"""Fusion keeps every value, computes nothing expensive twice, and makes one loop of a chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import mlir, operations, parse
from mlirml.pipelines.tensor.fuse import FusePass
from tests.pipelines.programs import Program, programs


def generics(module: mlir.Module) -> list[mlir.Operation]:
    return [op for op in operations(module) if op.name == "linalg.generic"]


def fuse(text: str, **options: int) -> mlir.Module:
    module = parse(text)
    FusePass(**options).run(module.operation)
    module.operation.verify()
    return module


def check(program: Program, **options: int) -> None:
    text = program.text()
    arrays = program.random_inputs()
    before = interpret(parse(text), arrays)
    after = interpret(fuse(text, **options), arrays)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_values_stay(program: Program) -> None:
    check(program)


@settings(max_examples=75, deadline=None)
@given(programs(max_ops=12))
def test_values_stay_with_tight_limits(program: Program) -> None:
    check(program, max_ops=6, max_operands=4)


@settings(max_examples=75, deadline=None)
@given(programs(sizes=(4,)))
def test_tanh_and_exp_are_not_computed_twice(program: Program) -> None:
    before, after = parse(program.text()), fuse(program.text())
    for name in ("math.tanh", "math.exp"):
        assert weight(after, name) <= weight(before, name)


def weight(module: mlir.Module, name: str) -> int:
    """How often a module computes an operation: all extents are 4 here."""
    total = 0
    for op in generics(module):
        count = sum(inner.name == name for inner in operations(op))
        total += count * 4 ** len(op.attributes["iterator_types"])
    return int(total)


def chain(steps: list[tuple[str, str, list[str]]]) -> str:
    """@main(%a, %b) of f32 vectors; a step is (result, body, operands), the last one is returned."""
    kind = "tensor<64xf32>"
    lines = []
    for name, body, operands in steps:
        maps = ", ".join(["affine_map<(i) -> (i)>"] * (len(operands) + 1))
        arguments = ", ".join([*(f"%x{k}: f32" for k in range(len(operands))), "%o: f32"])
        lines.append(
            f"""%e{name} = tensor.empty() : {kind}
      %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
        ins({", ".join("%" + o for o in operands)} : {", ".join([kind] * len(operands))}) outs(%e{name} : {kind}) {{
      ^bb0({arguments}):
        %r = {body} : f32
        linalg.yield %r : f32
      }} -> {kind}"""
        )
    return f"""func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{
      {" ".join(lines)}
      return %{steps[-1][0]} : {kind}
    }}"""


TEN_OPS = chain(
    [
        ("t", "arith.mulf %x0, %x1", ["a", "b"]),
        ("u", "math.tanh %x0", ["t"]),
        ("m", "math.absf %x0", ["t"]),
        ("n", "arith.negf %x0", ["m"]),
        ("e", "math.exp %x0", ["n"]),
        ("s", "math.exp %x0", ["u"]),
        ("us", "arith.mulf %x0, %x1", ["u", "s"]),
        ("eb", "arith.subf %x0, %x1", ["e", "b"]),
        ("w", "arith.maximumf %x0, %x1", ["us", "eb"]),
        ("r", "arith.addf %x0, %x1", ["w", "s"]),
    ]
)


def test_ten_operations_become_one_that_reads_each_input_once() -> None:
    module = fuse(TEN_OPS)
    (op,) = generics(module)
    assert len(op.operands) == 3
    assert [inner.name for inner in operations(op)].count("math.tanh") == 1


@pytest.mark.parametrize("length", [100, 200])
def test_long_chains_are_cut(length: int) -> None:
    steps = [("v0", "math.tanh %x0", ["a"])]
    steps += [(f"v{k}", "arith.addf %x0, %x1", [f"v{k - 1}", "b"]) for k in range(1, length)]
    module = fuse(chain(steps), max_ops=50)
    assert len(generics(module)) == -(-length // 50)


def fan(count: int) -> str:
    """A chain of sums, each value of which is read again at its end: `count` values are used twice as it grows."""
    steps = [("v0", "arith.addf %x0, %x1", ["a", "b"])]
    steps += [(f"v{k}", "arith.mulf %x0, %x1", [f"v{k - 1}", "a"]) for k in range(1, count)]
    last = f"v{count - 1}"
    for k in range(count):
        steps.append((f"w{k}", "arith.subf %x0, %x1", [last, f"v{k}"]))
        last = f"w{k}"
    return chain(steps)


def test_values_that_stay_in_a_loop_are_no_memory_streams() -> None:
    (loop,) = generics(fuse(fan(30), max_operands=6))
    assert len(loop.operands) == 3


def test_loops_that_would_have_too_many_memory_streams_in_the_end_count_them_as_they_grow() -> None:
    loops = generics(fuse(fan(30), max_operands=6, max_ops=40))
    assert len(loops) > 1
    assert all(len(loop.operands) <= 7 for loop in loops)
