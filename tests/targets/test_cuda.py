"""Kernels for NVIDIA's processors: made without one, and taken by NVIDIA's assembler."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import parse
from mlirml.nn import functional as nn
from mlirml.runtime.artifact import Artifact
from mlirml.targets.llvm import ptx
from mlirml.targets.registry import get_target
from tests.targets.cubin import names_of, parameters_of

pytestmark = pytest.mark.skipif(ptx.assembler() is None, reason="no ptxas; `pip install nvidia-cuda-nvcc`")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def draw(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.zeros(shape, dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * gain + bias


def add_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, i, v)
    return x


def maximum_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.maximum.at(x, i, v)
    return x


def multiply_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.multiply.at(x, i, v)
    return x


def set_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


def chain(x: Any) -> Any:
    return np.tanh(x * 2 + 1) * np.exp(-x * x) / (1 + np.abs(x)) - np.sqrt(x * x + 1)


X, CUBE = draw(1024, 1024), draw(8, 96, 128)
A, B, C = draw(512, 256), draw(256, 384), draw(384)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (lambda x, y: x + y, (X, X)),
    "chain": (chain, (X,)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (X,)),
    "sin": (np.sin, (X,)),
    "power": (lambda x: np.abs(x) ** 2.5, (X,)),
    "where": (lambda x, y: np.where(x > y, x, y), (X, X)),
    "broadcast": (lambda x, y: x * y, (X, draw(1024))),
    "cast": (lambda x: x.astype(np.float16), (X,)),
    "integer": (lambda x: (x // 7) % 5, (draw(64, 64, dtype="i4"),)),
    "half_chain": (lambda x: np.tanh(x) + 1, (X.astype(np.float16),)),
    "sum0": (lambda x: np.sum(x, axis=0), (CUBE,)),
    "sum1": (lambda x: np.sum(x, axis=1), (CUBE,)),
    "sum2": (lambda x: np.sum(x, axis=2), (CUBE,)),
    "sum_all": (np.sum, (X,)),
    "max1": (lambda x: np.max(x, axis=1), (X,)),
    "mean0": (lambda x: np.mean(x, axis=0), (X,)),
    "softmax": (softmax, (X,)),
    "layer_norm": (layer_norm, (X, draw(1024), draw(1024))),
    "log_softmax": (lambda x: x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True)), (X,)),
    "argmax": (lambda x: np.argmax(x, axis=1), (X,)),
    "argmin0": (lambda x: np.argmin(x, axis=0), (X,)),
    "matmul": (lambda a, b: a @ b, (A, B)),
    "matmul_bias_relu": (lambda a, b, c: np.maximum(a @ b + c, 0), (A, B, C)),
    "matmul_bias_tanh": (lambda a, b, c: np.tanh(a @ b + c), (A, B, C)),
    "matmul_nt": (lambda a, b: a @ b.T, (A, draw(384, 256))),
    "matmul_tn": (lambda a, b: a.T @ b, (draw(256, 512), B)),
    "matmul_f16": (lambda a, b: a @ b, (A.astype(np.float16), B.astype(np.float16))),
    "matmul_f16_bias": (
        lambda a, b, c: np.maximum(a @ b + c, 0), (A.astype(np.float16), B.astype(np.float16), C.astype(np.float16)),
    ),
    "matmul_bf16": (lambda a, b: a @ b, (A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16))),
    "batched": (lambda a, b: a @ b, (draw(4, 64, 96), draw(4, 96, 80))),
    "matvec": (lambda a, x: a @ x, (X, draw(1024))),
    "vecmat": (lambda a, x: x @ a, (X, draw(1024))),
    "conv": (lambda x, w: nn.conv2d(x, w, padding=1), (draw(2, 32, 28, 28), draw(64, 32, 3, 3))),
    "conv_f16": (
        lambda x, w: nn.conv2d(x, w, padding=1), (draw(2, 32, 28, 28, dtype="f2"), draw(64, 32, 3, 3, dtype="f2")),
    ),
    "depthwise": (lambda x, w: nn.conv2d(x, w, padding=1, groups=32), (draw(2, 32, 28, 28), draw(32, 1, 3, 3))),
    "max_pool": (lambda x: nn.max_pool2d(x, 2), (draw(2, 32, 28, 28),)),
    "transpose": (lambda x: x.T.copy(), (X,)),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), (X, X)),
    "pad": (lambda x: np.pad(x, 3), (X,)),
    "cumsum": (lambda x: np.cumsum(x, axis=1), (X,)),
    "cumsum_long": (np.cumsum, (draw(100_000),)),
    "scatter_add": (add_at, (X, np.zeros(100, np.int64), draw(100, 1024))),
    "scatter_add_many": (add_at, (draw(100), np.zeros(5000, np.int64), draw(5000))),
    "scatter_add_halves": (add_at, (draw(100, dtype="f2"), np.zeros(5000, np.int64), draw(5000, dtype="f2"))),
    "scatter_add_doubles": (add_at, (draw(100, dtype="f8"), np.zeros(5000, np.int64), draw(5000, dtype="f8"))),
    "scatter_maximum": (maximum_at, (draw(100, 8), np.zeros(500, np.int64), draw(500, 8))),
    "scatter_multiply": (multiply_at, (draw(100, 8), np.zeros(500, np.int64), draw(500, 8))),
    "scatter_integers": (add_at, (draw(100, dtype="i4"), np.zeros(5000, np.int64), draw(5000, dtype="i4"))),
    "scatter_set": (set_at, (draw(100, 4), np.zeros(5000, np.int64), draw(5000, 4))),
    "sort": (lambda x: np.sort(x, axis=1), (X,)),
    "argsort": (lambda x: np.argsort(x, axis=0), (X,)),
    "gather": (lambda x, i: x[i], (X, np.zeros(100, np.int64))),
}  # fmt: skip
HOT = (
    "chain",
    "softmax",
    "layer_norm",
    "matmul",
    "matmul_bias_relu",
    "matmul_bias_tanh",
    "batched",
    "conv",
    "conv_f16",
)
STREAMING = ("add", "concatenate", "chain", "broadcast", "softmax", "layer_norm", "sum2", "matvec")


@cache
def lowered(name: str) -> Any:
    function, arguments = PROGRAMS[name]
    return ml.lower(function, *arguments, target="cuda")


@cache
def code(name: str, architecture: str) -> str:
    return str(lowered(name).emit(f"ptx-{architecture}"))


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("name", PROGRAMS)
def test_assembles(name: str) -> None:
    for architecture in ARCHITECTURES:
        text = code(name, architecture)
        assert f".target {architecture}" in text
        made = ptx.assemble(text, architecture)
        assert made.cubin[:4] == b"\x7fELF"
        if name in HOT:
            assert not any(made.spills.values())


@pytest.mark.parametrize("name", STREAMING)
def test_streams_16_bytes(name: str) -> None:
    assert "ld.global.v4.b32" in code(name, "sm_80")
    assert re.search(r"ld\.global\.v(2\.b64|4\.b32)", code(name, "sm_100"))


@pytest.mark.parametrize("name", ["matmul_f16", "matmul_f16_bias", "matmul_bf16"])
def test_half_precision_uses_tensor_cores(name: str) -> None:
    text = code(name, "sm_80")
    assert "mma.sync.aligned.m16n8k16.row.col.f32" in text
    assert "cp.async.cg.shared.global" in text and "ldmatrix.sync.aligned.m8n8.x4.trans" in text
    assert "st.shared" not in text
    assert not any(ptx.assemble(text, "sm_80").spills.values())


@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_exact_products_of_f32_are_pipelined(form: str) -> None:
    x = ml.TensorSpec((4096, 4096), np.dtype(np.float32))
    forms = {"nn": lambda a, b: a @ b, "nt": lambda a, b: a @ b.T, "tn": lambda a, b: a.T @ b}
    text = str(ml.lower(forms[form], x, x, target="cuda").emit("ptx-sm_90"))
    assert "cp.async.cg.shared.global" in text and "mma.sync" not in text and "st.shared" not in text
    made = ptx.assemble(text, "sm_90")
    assert not any(made.spills.values())
    assert max(made.registers.values()) <= 128  # two blocks of 256 threads


def test_the_large_half_matmul_leaves_place_for_two_blocks() -> None:
    x = ml.TensorSpec((4096, 4096), np.dtype(np.float16))
    made = ptx.assemble(str(ml.lower(lambda a, b: a @ b, x, x, target="cuda").emit("ptx-sm_90")), "sm_90")
    (registers,), (shared,) = made.registers.values(), made.shared.values()
    assert not any(made.spills.values())
    assert 2 * 128 * registers <= 65536
    assert shared <= 49152


def test_f32_uses_tensor_cores_only_where_it_may() -> None:
    x = ml.TensorSpec((256, 256), np.dtype(np.float32))

    def product() -> str:
        return str(ml.lower(lambda a, b: a @ b, x, x, target="cuda").emit("ptx"))

    assert "mma.sync" not in product()
    with ml.config.override(matmul_precision="tf32"):
        text = product()
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in text
    for architecture in ARCHITECTURES:
        assert not any(ptx.assemble(text, architecture).spills.values())


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("scatter_add_many", "atom.global.add.f32"), ("scatter_add_halves", "atom.global.add.noftz.f16"),
        ("scatter_add_doubles", "atom.global.add.f64"), ("scatter_integers", "atom.global.add.u32"),
        ("scatter_maximum", "atom.relaxed.gpu.global.cas.b32"), ("scatter_multiply", "atom.global.exch.b32"),
    ],
)  # fmt: skip
def test_scatters_are_atomic(name: str, instruction: str) -> None:
    assert instruction in code(name, "sm_80")


def test_sums_of_scatters_are_in_order_where_they_have_to_be() -> None:
    function, arguments = PROGRAMS["scatter_add_many"]
    with ml.config.override(deterministic=True):
        text = str(ml.lower(function, *arguments, target="cuda").emit("ptx"))
    assert "atom." not in text and text.count(".entry") > code("scatter_add_many", "sm_80").count(".entry")


def test_a_chain_is_one_kernel() -> None:
    assert code("chain", "sm_80").count(".entry") == 1


def test_a_grid_is_as_long_as_the_device_lets_it_be() -> None:
    """One dimension of 65,536 blocks, not two of 65,535 and 2, of which half would have nothing to do."""
    x = ml.TensorSpec((1 << 26,), np.dtype(np.float32))
    text = ml.compile(lambda x: x * 2 + 1, target="cuda").ir("schedule", x)
    assert "blocks in (%c65536, %c1, %c1)" in text


def test_unknown_architecture() -> None:
    with pytest.raises(ml.TargetError, match="no code for the architecture 'sm_3'"):
        lowered("add").emit("ptx-sm_3")


def test_products_of_products_run_on_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rounded to f16 between two products is stored so, and those of the gradient have factors of f16 too."""
    monkeypatch.setattr(ml.config, "tiles", "off")

    def twice(w: Any, x: Any) -> Any:
        return (x @ w) @ w

    def loss(w: Any, x: Any) -> Any:
        return np.sum(twice(w, x).astype(np.float32) ** 2)

    arrays = [np.zeros((128, 128), np.float16)] * 2
    for function in (twice, ml.grad(loss)):
        kernels = ml.compile(function, target="cuda").ir("schedule", *arrays).split("gpu.func @")[1:]
        products = [text for text in kernels if "contract" in text.partition("(")[0]]
        assert products and all("nvgpu.mma.sync" in text for text in products)


def artifact_for(cubins: str) -> Artifact:
    """What is made of a softmax, for the driver and for a processor."""
    with ml.config.override(cubins=cubins, tiles="off"):
        target = get_target("cuda")
    module = parse(ml.trace(softmax, draw(64, 64)).text)
    target.pipeline.run(module)
    made: Artifact = target.codegen(module)
    return made


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_a_program_has_its_kernels_as_ptx_and_for_a_processor(architecture: str) -> None:
    plain, made = artifact_for("off"), artifact_for(architecture)
    assert made.common_kernels == plain.common_kernels and not plain.cubin
    assert names_of(made.cubin) == [name for name, _ in made.kernel_table]
    assert [parameters_of(made.cubin, name) for name, _ in made.kernel_table] == [
        tuple(size or 8 for size in sizes) for _, sizes in made.kernel_table
    ]
    assert Artifact.from_bytes(made.to_bytes()) == made


def test_kernels_that_the_assembler_refuses_are_left_to_the_driver() -> None:
    assert artifact_for("sm_33").cubin == b""


def test_cubins_are_part_of_the_key_of_a_program() -> None:
    keys = []
    for cubins in ("off", "sm_80", "sm_90"):
        with ml.config.override(cubins=cubins):
            keys.append(str(get_target("cuda").fingerprint()))
    assert len(set(keys)) == 3
