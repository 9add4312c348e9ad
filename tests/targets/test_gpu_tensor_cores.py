"""Kernels for tensor cores, run without them: each instruction is replaced by what PTX's manual says that it does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("wgpu")
from mlirml.dialects import emit
from mlirml.ir import mlir, operations
from mlirml.passes import parse_pipeline
from mlirml.pipelines.schedules.gpu import tensor_cores
from mlirml.pipelines.stages import load_passes
from mlirml.targets.gpu import TO_SPIRV
from tests.targets.gpu_harness import Program, as_kernel, device

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)


def pairs_of(vector: mlir.Value) -> list[mlir.Value]:
    """The pairs that a fragment was put together from."""
    found = {}
    op = vector.owner
    while op.name == "vector.insert":
        found[op.attributes["static_position"][0]] = op.operands[0]
        op = op.operands[1].owner
    return [found[n] for n in range(len(found))]


class Emulation:
    """Replaces `nvgpu.mma.sync` in one kernel: fragments go to shared memory, and each thread sums its four results."""

    def __init__(self, kernel: mlir.Operation) -> None:
        self.f32 = mlir.F32Type.get()
        self.index = mlir.IndexType.get()
        threads = next(iter(kernel.attributes["known_block_size"]))
        with mlir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]):
            x = mlir.Attribute.parse("#gpu<dim x>")
            thread = emit.value("gpu.thread_id", (), self.index, dimension=x)
            self.warp = self.arith("divui", thread, 32)
            lane = self.arith("remui", thread, 32)
            self.g, self.t = self.arith("divui", lane, 4), self.arith("remui", lane, 4)
            self.a, self.b = self.shared(threads // 32 * 256), self.shared(threads // 32 * 128)
        for op in [op for op in operations(kernel) if op.name == "nvgpu.mma.sync"]:
            with op.location, mlir.InsertionPoint(op):
                self.replace(op)

    def arith(self, name: str, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return emit.same_type(f"arith.{name}", a, emit.index(b) if isinstance(b, int) else b)

    def shared(self, size: int) -> mlir.Value:
        space = mlir.Attribute.parse("#gpu.address_space<workgroup>")
        kind = mlir.MemRefType.get([size], self.f32, memory_space=space)
        attributes = {"operandSegmentSizes": emit.segments(0, 0)}
        return emit.create("memref.alloc", (), [kind], attributes).results[0]

    def place(self, matrix: int, row: mlir.Value, width: int, column: mlir.Value) -> mlir.Value:
        start = self.arith("muli", self.warp, matrix)
        return self.arith("addi", self.arith("addi", start, self.arith("muli", row, width)), column)

    def write(self, memory: mlir.Value, pair: mlir.Value, place: mlir.Value) -> None:
        for lane in range(2):
            position = mlir.DenseI64ArrayAttr.get([lane])
            kind = mlir.VectorType(pair.type).element_type
            half = emit.value("vector.extract", [pair], kind, static_position=position)
            wide = emit.value("arith.extf", [half], self.f32)
            emit.create("memref.store", [wide, memory, self.arith("addi", place, lane)])

    def replace(self, op: mlir.Operation) -> None:
        left, right, before = op.operands
        twice = self.arith("muli", self.t, 2)
        for number, pair in enumerate(pairs_of(left)):  # a0 a1: row g; a2 a3: row g + 8; then the same 8 columns on
            row = self.arith("addi", self.g, 8 * (number % 2))
            self.write(self.a, pair, self.place(256, row, 16, self.arith("addi", twice, 8 * (number // 2))))
        for number, pair in enumerate(pairs_of(right)):  # b0 b1: rows 2t, 2t + 1 of column g; b2 b3: 8 rows on
            self.write(self.b, pair, self.place(128, self.g, 16, self.arith("addi", twice, 8 * number)))
        emit.create("gpu.barrier")
        results = []
        for number, start in enumerate(before.owner.operands):  # c0 c1: row g, columns 2t, 2t + 1; c2 c3: row g + 8
            row, column = self.arith("addi", self.g, 8 * (number // 2)), self.arith("addi", twice, number % 2)
            results.append(self.dot(row, column, start))
        emit.create("gpu.barrier")
        for use in [use.owner.operation for use in op.results[0].uses]:
            i, j = use.attributes["static_position"]
            use.results[0].replace_all_uses_with(results[2 * i + j])
            use.erase()
        op.erase()

    def dot(self, row: mlir.Value, column: mlir.Value, start: mlir.Value) -> mlir.Value:
        def step(k: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            a = emit.value("memref.load", [self.a, self.place(256, row, 16, k)], self.f32)
            b = emit.value("memref.load", [self.b, self.place(128, column, 16, k)], self.f32)
            return [emit.same_type("arith.addf", carried[0], emit.same_type("arith.mulf", a, b))]

        return emit.for_loop(emit.index(0), emit.index(16), emit.index(1), step, [start])[0]


@pytest.mark.parametrize(("m", "n", "k", "transposed"), [(32, 32, 32, False), (35, 20, 40, True)])
def test_matmul(monkeypatch: pytest.MonkeyPatch, m: int, n: int, k: int, transposed: bool) -> None:
    monkeypatch.setattr(tensor_cores, "MIDDLE", tensor_cores.Tile(32, 16, 32, 16, 16))  # the emulation is long
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k) if transposed else (k, n)))

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.maximum(a @ (b.T if transposed else b), 0)

    module = as_kernel(function, a, b)
    load_passes(f"mlirml-schedule-kernels {TO_SPIRV}")
    parse_pipeline("mlirml-schedule-kernels{subgroup=32 tensor-cores=true}").run(module.operation)
    with module.context:
        for kernel in [op for op in operations(module) if op.name == "gpu.func"]:
            with kernel.location:
                Emulation(kernel)
    parse_pipeline("canonicalize,cse").run(module.operation)
    (result,) = Program(module, "k")(a, b, np.zeros((m, n), np.float16))
    expected = function(a.astype(np.float64), b.astype(np.float64))
    assert abs(result - expected).max() < 1e-2
    assert result.any()
