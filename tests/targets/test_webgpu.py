"""The targets `webgpu` and `metal`: kernels as WGSL, which wgpu translates for the Vulkan driver here."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from examples.digits import MODELS, load, training_step
from mlirml.core.tree import flatten
from mlirml.errors import TargetError
from tests.errors.shown import check_error
from tests.targets.drivers import needs_vulkan


def samples(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def halvings(n: Any) -> Any:
    return ml.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1), (n, np.int32(0)))[1]


def test_the_text_is_that_of_each_kernel() -> None:
    text = ml.lower(lambda x, w: softmax(x @ w), samples(5, 7), samples(7, 3), target="webgpu").emit("wgsl")
    names = re.findall(r"^fn (\w+)\(", text, re.MULTILINE)
    assert len(names) == text.count("@compute") >= 2
    assert text.count("{") == text.count("}")
    assert "array<f32, 35>" in text and "f64" not in text and "i64" not in text


def test_metal_gets_the_same_text() -> None:
    texts = [ml.lower(softmax, samples(9, 40), target=target).emit("wgsl") for target in ("webgpu", "metal")]
    assert texts[0] == texts[1] != ""


@pytest.mark.skipif(sys.platform == "darwin", reason="Metal is here")
def test_metal_needs_macos() -> None:
    check_error(
        lambda: ml.compile(softmax, target="metal")(samples(9, 40)),
        """
        mlirml.TargetError: Metal is a part of macOS, and this is another system
           = help: target="webgpu" makes the same kernels, and runs them on Vulkan devices
        """,
    )


def test_what_wgsl_lacks_is_refused_at_its_line() -> None:
    check_error(
        lambda: ml.lower(doubled, np.arange(9), target="webgpu"),
        """
        mlirml.TargetError: the target 'webgpu' has no int64 on this device
          --> test_webgpu.py:72:12 (doubled)
            |
         72 |     return x * 2
            |            ^^^^^
           = help: compute in int32, as by `x.astype(np.int32)`, or compile for the CPU
        """,
    )


def doubled(x: Any) -> Any:
    return x * 2


def test_limits_are_those_that_every_implementation_has() -> None:
    with pytest.raises(TargetError, match="takes arrays of at most 128 MiB"):
        ml.lower(doubled, ml.TensorSpec((1 << 26,), np.dtype(np.float32)), target="webgpu")


def many(a, b, c, d, e, f, g, h, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = a[i] * b[i] + c[i] * d[i] + e[i] * f[i] + g[i] * h[i]


def test_a_kernel_over_the_limits_is_refused_at_its_line() -> None:
    check_error(
        lambda: ml.lower(many, *[samples(9) for _ in range(9)], target="webgpu"),
        """
        mlirml.TargetError: a kernel takes 9 arrays, and the target 'webgpu' binds 8 at once
          --> test_webgpu.py:82:9 (many)
            |
         82 |         out[i] = a[i] * b[i] + c[i] * d[i] + e[i] * f[i] + g[i] * h[i]
            |         ^^^^^^
           = help: compute in several steps, so that fewer arrays meet in one, or compile for the CPU
        """,
    )


def ten_products(*arrays: Any) -> Any:
    result = arrays[0]
    for array in arrays[1:]:
        result = np.tanh(result) * array
    return result


def totals(values: Any, places: Any) -> Any:
    sums = np.zeros(6, np.float32)
    np.add.at(sums, places, values)
    return sums


X, IDS = samples(33, 40), np.array([3, 1, -1, 5], np.int32)
PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (softmax, (X,)),
    (lambda x, w: np.tanh(x @ w), (X, samples(40, 21))),
    (lambda x, i: x[i] * 2, (X, IDS)),
    (lambda x: (np.cumsum(x, axis=1), np.sort(x, axis=1)), (X,)),
    (totals, (samples(4), IDS)),
    (lambda x: (x > 0, np.sum(x > 0, axis=0, dtype=np.int32), x.astype(np.float16) * 3), (X,)),
    (lambda x, s: np.concatenate([x[:, ::3] * s, x[:, :5]], axis=1), (X, np.float32(2.5))),
    (lambda x, y: (x // y, x % y, x >> 1, x.astype(np.uint8) + np.uint8(250)), (IDS * 7, IDS - 2)),
    (lambda x: np.sin(x * 50) + np.cos(x) ** 3 + np.abs(x) ** x, (X,)),
    (ten_products, tuple(samples(9) + n for n in range(10))),
    (ml.value_and_grad(lambda w, x: np.mean((np.tanh(x @ w)) ** 2)), (samples(40, 6), X)),
]


@needs_vulkan
@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[str(n) for n in range(len(PROGRAMS))])
def test_a_program_does_what_it_does_on_the_cpu(function: Any, arguments: tuple[Any, ...]) -> None:
    found = ml.compile(function, target="webgpu")(*arguments)
    for one, two in zip(flatten(found)[0], flatten(ml.compile(function)(*arguments))[0], strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=3e-5, atol=3e-5)


@needs_vulkan
def test_digits_are_learned() -> None:
    model, digits = MODELS[0], load()
    step = training_step(model)
    there = ml.compile(step.fn, target="webgpu")
    params = model.random_params()
    state = params, {name: np.zeros_like(w) for name, w in params.items()}
    moved, batch = ml.put(state, "vulkan"), (digits.images[:32], digits.labels[:32].astype(np.int32))
    for _ in range(3):
        loss, *state = step(*state, *batch, np.float32(model.rate))
        found, *moved = there(*moved, *batch, np.float32(model.rate))
        np.testing.assert_allclose(float(found), loss, rtol=1e-5)


@needs_vulkan
def test_names_in_long_kernels_are_no_types() -> None:
    """A counter of a loop was `i32`, which hid the type."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = np.where(np.tri(len(q), len(k), dtype=bool), q @ k.T, -np.inf)
        return softmax(scores) @ v

    bfloat16 = np.dtype("bfloat16")
    q, k, v = (samples(65, 32).astype(bfloat16) for _ in range(3))
    text = ml.lower(attention, q, k, v, target="webgpu").emit("wgsl")
    assert not re.search(r"\b(let|var) [iuf](16|32|64)\b", text)
    np.testing.assert_allclose(
        ml.compile(attention, "webgpu")(q, k, v).astype(np.float32), attention(q, k, v).astype(np.float32), atol=0.05
    )


def gathered(x: Any) -> Any:
    return x[[3, 0, -1]], x[np.argmax(x, axis=0), np.arange(x.shape[1])], np.take(x, [1, -1], axis=1)


def best(x: Any) -> Any:
    return np.take_along_axis(x, np.argmin(x, axis=1)[:, None], axis=1), np.argmax(x, axis=1).astype(np.int32)


def one_hot(x: Any) -> Any:
    return (np.argmax(x, axis=1)[:, None] == np.arange(x.shape[1])).astype(np.float32)


def stored(x: Any) -> Any:
    x[[0, 2]] = 1
    x[np.argmax(x, axis=0), 0] += 2
    return x


@needs_vulkan
@pytest.mark.parametrize("function", [gathered, best, one_hot, stored])
def test_positions_have_32_bits(function: Any) -> None:
    x, y = samples(6, 5), samples(6, 5)
    expected = function(x)
    for found, wanted in zip(flatten(ml.compile(function, "webgpu")(y))[0], flatten(expected)[0], strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(x, y)
