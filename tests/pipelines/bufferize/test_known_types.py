"""Many loops and branches in the body of a loop: bufferization takes them one at a time, and copies nothing more."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import make_context, mlir, named_operations
from mlirml.pipelines.bufferize import known_types
from mlirml.pipelines.bufferize.known_types import Contiguous, drop_calls, state_types

BODIES = {
    "for": ("for j in range(int(x[i])):", "    a[(j * {k}) % 7] = a[(j + {k}) % 5] * 0.5 + x[i]"),
    "while": ("j = 0", "while a[j] < {k} and j < 9:", "    a[j] += 0.5", "    j += 1"),
    "if": ("if x[i] > {k} % 4:", "    a = np.sqrt(a + 1) * x[i]"),
}


def function(kind: str, count: int) -> Callable[..., Any]:
    """A loop with `count` loops or branches in its body, each of which changes an array."""
    body = [line.format(k=k) for k in range(1, count + 1) for line in BODIES[kind]]
    lines = [
        "def program(a, x):",
        "    for i in range(x.shape[0]):",
        *(f"        {line}" for line in body),
        "    return a",
    ]
    file = f"<{count} of {kind}>"
    linecache.cache[file] = 0, None, [f"{line}\n" for line in lines], file
    names: dict[str, Any] = {"np": np}
    exec(compile("\n".join(lines), file, "exec"), names)
    return names["program"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", BODIES)
def test_many_in_a_loop_do_not_take_exponential_time(kind: str) -> None:
    # With twelve loops upstream's questions for types did not end.
    program = function(kind, 24)
    a, x = np.arange(40.0) / 7, np.arange(5.0)
    memory = a.copy()
    expected = program(memory, x)
    found = ml.compile(program, frontend="loops")(a, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(a, memory, rtol=1e-12)


def test_nothing_more_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = np.ones(40), np.ones(5)
    few = ml.compile(function("for", 3), frontend="loops").ir("schedule", a, x)
    monkeypatch.setattr(known_types, "FEW", 0)
    assert ml.compile(function("for", 3), frontend="loops").ir("schedule", a, x) == few


MODULE = """
func.func @main(%x: tensor<8xf32>, %n: index, %c: i1) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %half = tensor.extract_slice %x[0] [4] [2] : tensor<8xf32> to tensor<4xf32>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %h = %half) -> (tensor<8xf32>, tensor<4xf32>) {
    LOOPS
    scf.yield %aN, %h : tensor<8xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<8xf32>
}
"""
LOOP = """
    %hM = scf.for %j = %zero to %n step %one iter_args(%b = %h) -> (tensor<4xf32>) {
      scf.yield %b : tensor<4xf32>
    }
    %aM = scf.if %c -> (tensor<8xf32>) {
      %e = tensor.extract %aK[%i] : tensor<8xf32>
      %s = tensor.insert %e into %aK[%zero] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    } else {
      scf.yield %aK : tensor<8xf32>
    }
"""


def module() -> mlir.Module:
    loops = "".join(LOOP.replace("M", str(k)).replace("%aK", f"%a{k - 1}" if k else "%a") for k in range(3))
    return mlir.Module.parse(MODULE.replace("LOOPS", loops).replace("%aN", "%a2"), make_context())


def test_calls_come_and_go() -> None:
    with_calls = module()
    before = str(with_calls)
    main = with_calls.body.operations[0].operation
    with with_calls.context:
        state_types(main)
    text = str(with_calls)
    assert with_calls.operation.verify()
    assert text.count("call @mlirml_known_type_0") == 3
    assert "tensor<4xf32>) -> tensor<4xf32>" not in text  # what starts from a slice keeps the layout of that
    drop_calls(with_calls.operation)
    assert str(with_calls) == before


def test_a_slice_is_not_contiguous() -> None:
    parsed = module()
    (loop,) = (op for op in named_operations(parsed.operation, ("scf.for",)) if len(op.results) == 2)
    whole, half = list(loop.results)
    assert Contiguous().holds(whole) and not Contiguous().holds(half)
