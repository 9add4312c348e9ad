"""Kernels that go ahead of @main: which do, that the code is the same number for number, and how a failure ends."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.driver import compilation
from mlirml.errors import LoweringError
from mlirml.ir.bindings import parse, to_text
from mlirml.nn import functional as F
from mlirml.pipelines.cpu import check
from mlirml.runtime import load_object
from mlirml.targets.cpu import cpu_target, kernel_pipeline
from mlirml.targets.llvm import early_kernels as ahead
from mlirml.targets.llvm.codegen import CodegenOptions, ObjectBuilder
from mlirml.targets.llvm.early_kernels import take_kernels
from mlirml.targets.llvm.job_pool import JobPool
from mlirml.targets.machine import processor

KERNELS = """
func.func private @alone(%x: memref<4xf32>) {
  %c = arith.constant 0 : index
  %v = arith.constant 1.0 : f32
  memref.store %v, %x[%c] : memref<4xf32>
  return
}
func.func private @caller(%x: memref<4xf32>) attributes {mlirml.no_inline} {
  call @shared(%x) : (memref<4xf32>) -> ()
  return
}
func.func private @shared(%x: memref<4xf32>) {
  %c = arith.constant 1 : index
  %v = arith.constant 2.0 : f32
  memref.store %v, %x[%c] : memref<4xf32>
  memref.store %v, %x[%c] : memref<4xf32>
  memref.store %v, %x[%c] : memref<4xf32>
  return
}
func.func private @user(%x: memref<4xf32>) {
  call @shared(%x) : (memref<4xf32>) -> ()
  return
}
"""
GLOBAL = 'memref.global "private" constant @g : memref<2xf32> = dense<1.0>\n'
MAIN = """
func.func @main(%x: memref<4xf32>) {
  call @user(%x) : (memref<4xf32>) -> ()
  call @alone(%x) : (memref<4xf32>) -> ()
  call @caller(%x) : (memref<4xf32>) -> ()
  return
}
"""


@pytest.fixture(autouse=True)
def all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_LEAST_KERNELS", 1)
    monkeypatch.setattr(ahead, "_LEAST_REST", 1)


def test_functions_that_call_each_other_stay_together() -> None:
    module = parse(GLOBAL + MAIN + KERNELS)
    (first, first_exports), (second, second_exports) = take_kernels(module.operation)
    assert (first_exports, second_exports) == (("alone",), ("caller", "user"))
    assert "@alone" in to_text(first) and "@shared" not in to_text(first)
    assert [name for name in ("@caller", "@shared", "@user", "@alone") if name in to_text(second)] == [
        "@caller", "@shared", "@user",
    ]  # fmt: skip
    rest = to_text(module)
    for name in ("alone", "caller", "user"):
        assert f"func.func private @{name}(memref<4xf32>)\n" in rest
    assert "@shared" not in rest
    for each in (module, first, second):
        assert each.operation.verify()


def test_denormals_are_flushed_in_kernels_of_marked_programs() -> None:
    marked = MAIN.replace(") {", ") attributes {mlirml.flush_denormals} {")
    for text, expected in ((MAIN, False), (marked, True)):
        for kernels, _ in take_kernels(parse(text + KERNELS).operation):
            assert ("mlirml.flush_denormals" in kernels.operation.attributes) is expected


@pytest.mark.parametrize(
    "change",
    [
        ("return\n}", "%t = arith.constant true\n  cf.assert %t, \"no\"\n  return\n}"),
        ("call @shared", "call @main"),
        ("%v = arith.constant 1.0 : f32", "%v = arith.constant 1.0 : f32\n  %g = memref.get_global @g : memref<2xf32>"),
    ],
)  # fmt: skip
def test_what_is_used_by_others_too_stays(change: tuple[str, str]) -> None:
    module = parse(GLOBAL + MAIN + KERNELS.replace(*change))
    before = to_text(module)
    assert take_kernels(module.operation) == []
    assert to_text(module) == before


def test_small_programs_are_lowered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_LEAST_REST", 100)
    assert take_kernels(parse(MAIN + KERNELS).operation) == []


def layers(x: Any, w: Any, v: Any) -> Any:
    h = np.tanh(x @ w)
    a = np.exp(h @ np.swapaxes(h, -1, -2) / 8)
    return ((a / np.sum(a, -1, keepdims=True)) @ h) @ v


def convolution(x: Any, w: Any, v: Any) -> Any:
    return F.relu(F.conv2d(x, w)) @ v


def arguments(*shapes: tuple[int, ...], dtype: str = "f4") -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(3)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray[Any, Any]]]] = {
    "layers": (layers, arguments((96, 64), (64, 80), (80, 48))),
    "gradients": (
        ml.grad(lambda x, w, v: np.sum(layers(x, w, v) ** 2), argnums=(0, 1, 2)),
        arguments((96, 64), (64, 80), (80, 48), dtype="f8"),
    ),
    "batch": (ml.vmap(layers, in_axes=(0, None, None)), arguments((3, 40, 64), (64, 80), (80, 48))),
    "convolution": (convolution, arguments((2, 8, 40, 41), (16, 8, 3, 3), (39, 30))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_whole_modules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = PROGRAMS[name]
    taken: list[int] = []
    take = ahead.take_kernels
    monkeypatch.setattr(ahead, "take_kernels", lambda module: taken.append(len(found := take(module))) or found)  # type: ignore[func-returns-value]
    with config.override(cache=False):
        apart = ml.compile(function)(*args)
        monkeypatch.setattr(ahead, "_LEAST_REST", 1 << 30)
        whole = ml.compile(function)(*args)
    assert taken[0] and not taken[1]
    for got, expected in zip(leaves(apart), leaves(whole), strict=True):
        assert np.array_equal(got, expected)


def leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    return list(result) if isinstance(result, tuple) else [result]


def test_threads_change_nothing_in_the_object() -> None:
    function, args = PROGRAMS["gradients"]
    objects = []
    for threads in (1, 2, 3):
        with config.override(cache=False, threads=threads):
            compiled = ml.compile(function)
            module = compilation.parsed(compiled.trace(*args))
            objects.append(compilation.built(cpu_target(), module, compilation.Clock())[0].object)
    assert objects[0] == objects[1] == objects[2]


def test_a_kernel_keeps_the_names_that_others_have_too() -> None:
    """Two modules may each have a function of their own of the same name."""
    text = "define internal void @own(ptr %p) noinline {{\n  store float {0}, ptr %p\n  ret void\n}}\n"
    text += "define void @{1}(ptr %p) {{\n  call void @own(ptr %p)\n  {2}\n  ret void\n}}\n"
    builder = ObjectBuilder()
    builder.add(text.format("2.0", "kernel", ""), CodegenOptions(exports=("kernel",)))
    call = "%q = getelementptr float, ptr %p, i64 1\n  call void @kernel(ptr %q)"
    builder.add(text.format("1.0", "entry", call) + "declare void @kernel(ptr)\n")
    loaded = load_object(builder.finish())
    out = np.zeros(2, np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("entry"))(out.ctypes.data)
    assert out.tolist() == [1.0, 2.0]


def test_a_failure_ends_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = PROGRAMS["layers"]
    begun: list[JobPool] = []
    add = JobPool.add
    monkeypatch.setattr(JobPool, "add", lambda crew, *given: begun.append(crew) or add(crew, *given))  # type: ignore[func-returns-value]

    def fail(module: Any, *_: Any) -> None:
        raise LoweringError("no")

    target = cpu_target()
    with config.override(cache=False, threads=2):
        module = compilation.parsed(ml.compile(function).trace(*args))
        with pytest.raises(LoweringError, match="no"):
            compilation.built(replace(target, codegen=fail), module, compilation.Clock())
    assert begun
    for thread in [thread for crew in begun for thread in crew._others]:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_the_pipeline_of_kernels_is_that_of_the_target() -> None:
    def names(text: str) -> list[str]:
        return [step.partition("{")[0] for step in text.split(",")]

    calls = ("mlirml-lower-sort", "mlirml-lower-compactions", "mlirml-lower-library-calls", "mlirml-lower-host-calls")
    of_host = (*calls, *check())
    lower = [name for name in names(dict(cpu_target().stages)["lower"]) if name not in of_host]
    own = [name for name in names(str(kernel_pipeline(config.math, processor()))) if "verify-stage" not in name]
    assert own[1:] == lower
