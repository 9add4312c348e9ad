"""Dynamic dimensions: one program for all sizes, with the numbers of NumPy and of the program for one size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.sizes import StaticSizeError
from mlirml.core.tree import flatten
from mlirml.errors import ArgumentError, LoweringError

RNG = np.random.default_rng(7)
WEIGHTS = RNG.standard_normal((16, 24)).astype(np.float32)
COUNTS = np.arange(40).reshape(8, 5)
WINDOW = np.array([1, 2, 1], np.float32)
layers = ml.nn.functional
SIZES = (2, 7, 64, 513)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def encoder(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    n, d = x.shape
    h = 4
    q, k, v = ((x @ w).reshape(n, h, d // h).transpose(1, 0, 2) for w in (wq, wk, wv))
    p = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d // h))
    o = (p @ v).transpose(1, 0, 2).reshape(n, d) @ wo + x
    o = (o - o.mean(-1, keepdims=True)) / np.sqrt(o.var(-1, keepdims=True) + 1e-5)
    return o + np.maximum(o @ w1, 0) @ w2


def causal(x: Any) -> Any:
    n = x.shape[0]
    return softmax(np.where(np.tril(np.ones((n, n), bool)), x @ x.T, -1e9))


def loop_over_rows(x: Any) -> Any:
    total = np.zeros((x.shape[1] - 1, 4), np.float32)
    for i in range(3):
        total = total + x[i, 1:] * x[i][:-1]
    return total


def masked(q: Any, k: Any) -> Any:
    return softmax(np.where(np.arange(q.shape[0])[:, None] >= np.arange(k.shape[0]), q @ k.T, -1e9))


def positive(x: Any) -> Any:
    return x @ np.swapaxes(x, -1, -2) + 10 * np.eye(x.shape[-2], dtype=np.float32)


def stored(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1]
    y[0] = 1.0
    return y


def reversed_rows(x: Any) -> Any:
    y = x * x.sum(1, keepdims=True)
    z = y[::-1] * y.max(1, keepdims=True)
    return z, z - z[np.array([1, 0, -1])].sum(0), np.exp(y)[::-1] / y


PROGRAMS: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "chain": (lambda x: np.exp(-x * x) + np.sin(x), [("n", 16)]),
    "broadcast": (lambda x, y: x[:, None] * y[None, :] + 1, [("n",), ("m",)]),
    "sums": (lambda x: (x.sum(0), x.sum(1), x.sum(), x.mean(), x.std(), x.max(), x.min(1)), [("n", 16)]),
    "columns": (lambda x: (x.sum(1), x.mean(0), x / x.sum(1, keepdims=True)), [(5, "n")]),
    "both": (lambda x: (x.sum(1), x.sum(0), x.sum(), x - x.mean(0)), [("n", "m")]),
    "rows_of_a_product": (lambda x: x @ WEIGHTS + 1, [("n", 16)]),
    "depth_of_a_product": (lambda x, y: x.T @ y, [("n", 16), ("n", 8)]),
    "product": (lambda x, y: x @ y, [("n", "k"), ("k", "m")]),
    "product_with_itself": (lambda x: x @ x.T, [("n", 16)]),
    "einsum": (lambda x, y: np.einsum("bij,bjk->bik", x, y), [("b", 4, "n"), ("b", "n", 3)]),
    "einsum_of_three": (lambda x, y, z: np.einsum("ij,jk,kl->il", x, y, z), [("n", 4), (4, "m"), ("m", 3)]),
    "attention": (lambda q, k, v: softmax(q @ k.T) @ v, [("n", 8), ("m", 8), ("m", 8)]),
    "encoder": (encoder, [("n", 32), (32, 32), (32, 32), (32, 32), (32, 32), (32, 64), (64, 32)]),
    "products_in_the_cheaper_order": (lambda x, y, z: (x @ y) @ z, [("n", "k"), ("k", "n"), ("n",)]),
    "batches": (lambda x: softmax(x @ x.transpose(0, 2, 1)), [("b", "n", 8)]),
    "reshape": (lambda x: (x.reshape(-1, 4), x.reshape(-1), x.reshape(x.shape[0], 2, 8).sum(1)), [("n", 16)]),
    "merged": (lambda x: x.reshape(-1, x.shape[-1]) @ WEIGHTS, [("b", "n", 16)]),
    "concatenate": (lambda x, y: np.concatenate([x, y], 0), [("n", 8), ("m", 8)]),
    "cache": (lambda k, new: np.concatenate([k, new[None]], 0).sum(0), [("n", 8), (8,)]),
    "stack": (lambda x: np.stack([x, x * 2], 1), [("n", 8)]),
    "parts_of_a_row_in_a_loop": (loop_over_rows, [(3, "n", 4)]),
    "slices_of_static": (lambda x, y: (y[: x.shape[0]].sum(), y[-x.shape[0] :][::-1] * 2), [("n",), (600,)]),
    "slices": (lambda x: (x[1:], x[:-1], x[1:] - x[:-1], x[-1], x[0], x[::-1]), [("n", 8)]),
    "rows_of_results": (lambda x: reversed_rows(softmax(x)), [("n", 8)]),
    "transposed": (lambda x, y: (x.T, x.T * 2 + y, (x.T + 1) * (y > 0)), [("n", "m"), ("m", "n")]),
    "transposed_in_batches": (lambda x: (x.transpose(0, 2, 1), np.exp(x.transpose(2, 1, 0))), [("b", "n", "m")]),
    "transposed_bytes": (lambda x: (x.astype(np.int8).T, x.astype(np.float64).T + 1, (x > 0).T), [("n", "m")]),
    "transposed_rows": (lambda x: softmax(x.T * 3), [("n", "m")]),
    "transpose": (lambda x: (x.T + 1, x.transpose(1, 2, 0)), [("n", 8, 3)]),
    "size_as_a_number": (lambda x: x.sum(0) / x.shape[0] * (x.shape[0] - 1) ** 0.5, [("n", 8)]),
    "where": (lambda x: np.where(x > 0, x, 0.1 * x), [("n", 8)]),
    "created": (lambda x: np.zeros((x.shape[0], 3)) + np.ones_like(x)[:, :1] + np.full(x.shape, 2)[:, 1:2], [("n", 8)]),
    "positions_of_extremes": (lambda x: (x.argmax(1), x.argmax(0), np.argmin(x)), [("n", 8)]),
    "running_sum": (lambda x: np.cumsum(x, 0), [("n", 8)]),
    "taken": (lambda x: x[np.array([0, 1, -1])], [("n", 8)]),
    "counted": (lambda x: x * np.arange(x.shape[0])[:, None] + np.eye(x.shape[0])[:, :1], [("n", 8)]),
    "causal": (causal, [("n", 8)]),
    "stored": (stored, [("n", 8)]),
    "fori_loop": (lambda x: ml.fori_loop(0, x.shape[0], lambda i, s: s + x[i], np.zeros(8, np.float32)), [("n", 8)]),
    "scan": (lambda x: ml.scan(lambda c, r: (c + r, c * r), np.zeros(8, np.float32), x), [("n", 8)]),
    "norms": (lambda x, y: (x @ y, np.linalg.norm(x), np.outer(x, y)), [("n",), ("n",)]),
    "products_of_integers": (
        lambda x: ((x * 9).astype(np.int32) @ (x.T * 7).astype(np.int32), (x * 50).astype(np.int64) @ COUNTS),
        [("n", 8)],
    ),
    "integers": (lambda x: (x.astype(np.int32) * 2).sum(1), [("n", 8)]),
    "double": (lambda x: np.log1p(np.abs(x.astype(np.float64))), [("n", 8)]),
    "moved": (lambda x: (*np.split(x, 2, 1), np.tile(x, (1, 2)), np.repeat(x, 2, 0), np.roll(x, 1, 1)), [("n", 8)]),
    "padded_with_elements": (
        lambda x: [np.pad(x, ((2, 1), (1, 0)), mode) for mode in ("edge", "reflect", "symmetric", "wrap")],
        [("n", 8)],
    ),
    "deleted": (lambda x: (np.delete(x, [0, -1, 1], 0), np.delete(x, slice(-2, None), 0), np.delete(x, 3)), [("n", 8)]),
    "inserted": (
        lambda x, y: (np.insert(x, [0, 2, -1], y, 0), np.insert(x, 1, y, 0), np.insert(x, -1, 5)),
        [("n", 8), (3, 8)],
    ),
    "padded": (lambda x: np.pad(x, ((1, 1), (0, 0))), [("n", 8)]),
    "batch_norm": (lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), [("n", 8)]),
    "layers": (lambda x: ml.nn.functional.gelu(x) + ml.nn.functional.softmax(x), [("n", 8)]),
    "layer_norm": (lambda x: ml.nn.functional.layer_norm(x, (8,)), [("n", 8)]),
    "sorted": (lambda x: (np.sort(x, 0), np.argsort(x, 1), np.argsort(x[:, 0])[::-1], np.median(x)), [("n", 8)]),
    "quantiles": (lambda x: (np.percentile(x, 30, axis=0), np.quantile(x, [0.1, 0.9])), [("n", 8)]),
    "searched": (lambda x, y: (np.searchsorted(np.sort(x), y), np.isin(y, x)), [("n",), ("m",)]),
    "transforms": (lambda x: (np.abs(np.fft.rfft(x, axis=0)), np.fft.ifft(np.fft.fft(x)).real), [("n", 8)]),
    "transforms_of_planes": (lambda x: np.abs(np.fft.fft2(x)), [("b", "n", "m")]),
    "solved": (lambda x, y: np.linalg.solve(positive(x), y), [("n", 8), ("n", 3)]),
    "factors": (lambda x: (np.linalg.cholesky(positive(x)), np.linalg.inv(positive(x))), [("n", 8)]),
    "spectra": (lambda x: (np.linalg.svd(x, compute_uv=False), np.linalg.eigvalsh(positive(x))), [("n", 8)]),
    "determinants": (lambda x: np.linalg.slogdet(positive(x.transpose(0, 2, 1) @ x)), [("b", "n", 3)]),
    "rows_up_to_each": (masked, [("n", 8), ("m", 8)]),
    "padded_by_length": (lambda x, y: np.where(np.arange(x.shape[1]) < y[:, None], x, 0).sum(1), [("b", "n"), ("b",)]),
    "causal_layer": (lambda q: layers.scaled_dot_product_attention(q, q, q, is_causal=True), [("b", 2, "n", 8)]),
    "parts": (lambda x: (x[1:-1], x[::2], x[: x.shape[0] // 2], x[x.shape[0] // 2 :], np.roll(x, 1, 0)), [("n", 8)]),
    "diagonals": (lambda x: (np.diag(x[:, 0]), np.diag(x @ x.T), np.trace(x @ x.T)), [("n", 8)]),
    "grids": (lambda x: (np.linspace(0, 1, x.shape[0]), np.indices(x.shape), np.mgrid[0 : len(x), 1:4]), [("n", 3)]),
    "selected": (lambda x: np.select([x > 0, x < -1], [x, -x], 2.0), [("n", 8)]),
    "convolved": (lambda x: (np.convolve(x, WINDOW), np.convolve(x, WINDOW[:2], "valid")), [("n",)]),
    "images": (lambda x, w: layers.conv2d(x, w, padding=1).mean((2, 3)), [("b", 3, 12, 12), (4, 3, 3, 3)]),
    "steps_and_gaps": (lambda x, w: layers.conv2d(x, w, stride=2, dilation=(1, 2)), [("b", 3, 11, 12), (4, 3, 3, 3)]),
    "sequences": (lambda x, w: layers.conv1d(x, w, padding=1), [("b", 3, "n"), (4, 3, 3)]),
    "groups": (lambda x, w: layers.max_pool2d(layers.conv2d(x, w, groups=3), 2), [("b", 3, 9, 9), (6, 1, 2, 2)]),
    "images_of_any_size": (lambda x, w: layers.conv2d(x, w, padding=1), [("b", 3, "n", "m"), (4, 3, 3, 3)]),
    "pools": (lambda x: (layers.max_pool2d(x, 2), layers.avg_pool2d(x, 3, stride=2)), [("b", 3, 9, 14)]),
    "a_filter_for_each_channel": (lambda x, w: layers.conv2d(x, w, groups=3), [("b", 3, 9, 14), (3, 1, 3, 3)]),
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2).sum(-1), [("n",)]),
    "branch": (lambda x: ml.cond(x.sum() > 0, lambda v: v * 2, lambda v: -v, x), [("n", 8)]),
    "counts": (lambda x: np.bincount((np.abs(x) * 2).astype(np.int64) % 5, minlength=5), [("n",)]),
    "noise": (lambda x: x + ml.random.normal(ml.random.key(1), x.shape), [("n", 8)]),
    "covariance": (lambda x: np.cov(x.T), [("n", 4)]),
    "loss": (lambda x: -np.log(softmax(x)[:, 0]).mean(), [("n", 8)]),
}  # fmt: skip

COMPILED = {
    "padded_with_elements": 2,
    "deleted": 2,
    "inserted": 2,
    "parts": 2,
    "searched": 3,
    "convolved": 2,
    "windows": 2,
    "spectra": 2,
}
"""The programs of those that compare a size: with another one, its parity, the steps of a search."""
LONG = ("transforms_of_planes", "spectra", "solved", "factors", "determinants", "images_of_any_size")
UNCOMPILED: dict[str, Any] = {
    name: ml.compile(PROGRAMS[name][0], dynamic="off") for name in ("noise", "pools", "a_filter_for_each_channel")
}

TRANSFORMED: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "grad": (ml.grad(lambda x: np.mean(np.tanh(x @ WEIGHTS) ** 2)), [("n", 16)]),
    "grad_of_weights": (ml.grad(lambda w, x: np.mean(np.tanh(x @ w) ** 2)), [(16, 4), ("n", 16)]),
    "grad_of_softmax": (ml.grad(lambda x: np.sum(softmax(x) * x)), [("n", 8)]),
    "grad_of_batch_norm": (ml.grad(lambda x: np.sum((x - x.mean(0)) / np.sqrt(x.var(0) + 1) * x**2)), [("n", 8)]),
    "grad_of_encoder": (
        ml.grad(lambda x, *w: np.mean(encoder(x, *w) ** 2)),
        [("n", 32), (32, 32), (32, 32), (32, 32), (32, 32), (32, 64), (64, 32)],
    ),
    "grad_of_slices": (ml.grad(lambda x: np.sum((x[1:] - x[:-1]) ** 2) + np.concatenate([x, x * x]).sum()), [("n", 8)]),
    "jvp": (lambda x: ml.jvp(lambda y: np.sin(y).sum(0), (x,), (x,)), [("n", 8)]),
    "vmap": (ml.vmap(lambda r: np.sum(r * r) + r), [("n", 8)]),
    "vmap_of_product": (ml.vmap(lambda r: r @ WEIGHTS), [("b", "n", 16)]),
    "vmap_of_grad": (ml.vmap(ml.grad(lambda r: np.sum(np.tanh(r @ WEIGHTS)))), [("n", 16)]),
}  # fmt: skip


def lengths(n: int) -> dict[str, int]:
    return {"n": n, "m": n + 3, "k": n + 1, "b": max(2, n // 8)}


def described(shapes: list[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """The option `dynamic` for these arguments."""
    found = {}
    for name, shape in zip("abcdefg", shapes):
        if any(isinstance(n, str) for n in shape):
            found[name] = tuple(n if isinstance(n, str) else None for n in shape)
    return found


def named(fn: Any, count: int) -> Any:
    """The function with arguments called a, b, c and so on."""
    names = ", ".join("abcdefg"[:count])
    return eval(f"lambda {names}: fn({names})", {"fn": fn})


def compare(got: Any, want: Any) -> None:
    for mine, theirs in zip(flatten(got)[0], flatten(want)[0], strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        scale = max(1.0, float(np.abs(theirs).max(initial=0)))
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=2e-5 * scale)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_has_the_numbers_of_numpy_for_all_sizes(name: str) -> None:
    fn, shapes = PROGRAMS[name]
    compiled = ml.compile(named(fn, len(shapes)), dynamic=described(shapes))
    for n in SIZES:
        if n == 513 and name in LONG:
            continue
        args = [array(*(lengths(n).get(s, s) for s in shape)) for shape in shapes]
        compare(compiled(*args), UNCOMPILED.get(name, fn)(*args))
    assert compiled._compiled == COMPILED.get(name, 1)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_one_program_has_the_numbers_of_the_static_one(name: str) -> None:
    fn, shapes = TRANSFORMED[name]
    compiled = ml.compile(named(fn, len(shapes)), dynamic=described(shapes))
    static = ml.compile(fn, dynamic="off")
    for n in (2, 7, 64):
        args = [array(*(lengths(n).get(s, s) for s in shape)) for shape in shapes]
        compare(compiled(*args), static(*args))
    assert compiled._compiled == 1


def test_products_of_halves_are_added_up_in_single_precision() -> None:
    weights = WEIGHTS.astype(np.float16)
    compiled = ml.compile(lambda x: x @ weights, dynamic={"x": ("n", None)})
    for n in SIZES:
        x = array(n, 16).astype(np.float16)
        exact = x.astype(np.float64) @ weights.astype(np.float64)
        found = compiled(x)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, exact, rtol=2e-3, atol=1e-5 * 16)
    assert compiled._compiled == 1


def test_positions_of_extremes_are_the_first_ones_of_long_rows() -> None:
    f = ml.compile(lambda x: (x.argmax(1), np.argmin(np.abs(x), 1), x.argmin()), dynamic={"x": ("n", "m")})
    for shape in ((3, 2), (4, 1024), (2, 1025), (3, 5000)):
        x = np.round(array(*shape) * 2)  # many are equal
        compare(f(x), f.fn(x))
        x[1, shape[1] // 2 :: 7] = np.nan
        compare(f(x), f.fn(x))
        x[:] = -np.inf
        compare(f(x), f.fn(x))
    counts = ml.compile(lambda x: (x.argmax(1), x.argmin(1)), dynamic={"x": ("n", "m")})
    for shape in ((3, 2), (2, 3000)):
        numbers = RNG.integers(-5, 5, shape)
        compare(counts(numbers), counts.fn(numbers))
    assert f._compiled == counts._compiled == 1


def test_sizes_0_and_1_have_programs_of_their_own() -> None:
    f = ml.compile(lambda x: (x.sum(0), x * 2), dynamic={"x": (ml.Dim("n", min=0), None)})
    for n in (5, 1, 0, 6, 1, 0):
        x = array(n, 3)
        compare(f(x), (x.sum(0), x * 2))
    assert f._compiled == 3


def test_200_lengths_are_compiled_once_or_for_1_alone() -> None:
    fn, shapes = PROGRAMS["encoder"]
    f = ml.compile(named(fn, len(shapes)), dynamic={"a": ("n", None)})
    weights = [array(*shape) for shape in shapes[1:]]  # type: ignore[arg-type]
    for n in range(1, 201):
        x = array(n, 32)
        compare(f(x, *weights), fn(x, *weights))
    assert f._compiled == 2


def test_derived_sizes_are_checked_and_solved() -> None:
    n = ml.Dim("n", max=100)
    f = ml.compile(
        lambda x, y: x.sum() + y[: x.shape[0]].sum() + (y[1:] * 2).sum(), dynamic={"x": (n,), "y": (2 * n + 1,)}
    )
    for size in (3, 50):
        x, y = array(size), array(2 * size + 1)
        np.testing.assert_allclose(f(x, y), x.sum() + y[:size].sum() + 2 * y[1:].sum(), rtol=1e-4)
    assert f._compiled == 1
    with pytest.raises(ml.ShapeError, match=r"`y` \(axis 0\) has size 8, and 2\*n\+1 is 7 with n = 3"):
        f(array(3), array(8))
    alone = ml.compile(lambda y: y * 2, dynamic={"y": (2 * n + 1,)})
    y = array(7)
    compare(alone(y), y * 2)
    with pytest.raises(ml.ShapeError, match=r"`y` \(axis 0\) has size 8, which is no 2\*n\+1"):
        alone(array(8))


def test_a_multiple_can_be_split() -> None:
    f = ml.compile(lambda x: x.reshape(-1, 4, 3).sum(1), dynamic={"x": (ml.Dim("n", multiple_of=4), None)})
    for size in (8, 12, 40):
        x = array(size, 3)
        compare(f(x), x.reshape(-1, 4, 3).sum(1))
    with pytest.raises(ml.ShapeError, match="dimension `n` is 10, and a multiple of 4: the size of `x`"):
        f(array(10, 3))


def test_errors_of_a_call_name_the_dimension_and_the_values() -> None:
    n = ml.Dim("n", max=64)
    f = ml.compile(lambda x, y: x + y, dynamic={"x": (n, None), "y": ("n", None)})
    with pytest.raises(ml.ShapeError, match=r"dimension `n` is 5 in `x` \(axis 0\) and 6 in `y` \(axis 0\)"):
        f(array(5, 2), array(6, 2))
    with pytest.raises(ml.ShapeError, match="dimension `n` is 65, and at most 64"):
        f(array(65, 2), array(65, 2))
    with pytest.raises(ml.ShapeError, match=r"`x` has 1 dimension\(s\)"):
        f(array(5), array(5))
    with pytest.raises(ml.ArgumentError, match="has no array argument 'z'"):
        ml.compile(lambda x: x, dynamic={"z": ("n",)})(array(3))


def test_an_operation_that_needs_a_size_says_so_at_its_line() -> None:
    def counted(x: Any) -> Any:
        return x * int(x.shape[0])

    def chosen(x: Any) -> Any:
        return np.delete(x, slice(None, None, 2), axis=0)

    for fn, message in ((counted, "its value is needed"), (chosen, "a table of the indices that stay")):
        with pytest.raises(ml.CaptureError, match=f"dimension `n` is dynamic, and {message}") as found:
            ml.compile(fn, dynamic={"x": ("n", None)})(array(5, 2))
        assert found.value.location.line == fn.__code__.co_firstlineno + 1


def test_a_comparison_of_a_size_is_a_condition_of_the_program() -> None:
    def branches(x: Any) -> Any:
        if x.shape[0] > 100:
            return x.sum(0)
        return x[1:-1] * 2 if x.shape[0] % 2 else x[: x.shape[0] // 2]

    for dynamic in ({"x": ("n", None)}, "auto"):
        f = ml.compile(branches, dynamic=dynamic)
        for n in (4, 6, 8, 101, 200, 5, 7, 64, 500, 9, 99, 10):
            x = array(n, 2)
            compare(f(x), branches(x))
        # Of the static ones 4 and 6 are the first two sizes that "auto" sees.
        assert f._compiled == (3 if isinstance(dynamic, dict) else 5)


def test_sizes_that_are_equal_by_chance_have_a_static_program() -> None:
    f = ml.compile(lambda x, y: x + y if x.shape == y.shape else x.sum() + y.sum(), dynamic={"x": ("n",), "y": ("m",)})
    for n, m in ((5, 7), (8, 6), (5, 5), (9, 9), (5, 5), (4, 3)):
        x, y = array(n), array(m)
        compare(f(x, y), x + y if n == m else np.float32(x.sum() + y.sum()))
    assert f._compiled == 3
    assert "`n` = 5, `m` = 5 has a static program: the size of dimension" in f.explain()


def test_a_loop_of_python_over_a_size_leaves_it_static() -> None:
    def unrolled(x: Any) -> Any:
        total, i = x[0] * 0, 0
        while i < x.shape[0]:
            total, i = total + x[i] * i, i + 1
        return total

    f = ml.compile(unrolled, frontend="trace", dynamic="auto")
    for n in range(2, 20):
        x = array(n)
        np.testing.assert_allclose(f(x), (x * np.arange(n)).sum(), rtol=1e-3, atol=1e-4)
    assert "`x.shape[0]` stays static" in f.explain()


def test_options_that_make_no_sense_are_refused() -> None:
    for dynamic in ("always", {"x": "n"}, {"x": (3.5,)}, {"x": (ml.Dim("n"), ml.Dim("n", min=2))}):
        with pytest.raises(ml.ArgumentError):
            ml.compile(lambda x: x, dynamic=dynamic)
    for options in ({"min": -1}, {"min": 5, "max": 4}, {"multiple_of": 0}, {"min": 5, "max": 7, "multiple_of": 4}):
        with pytest.raises(ml.ArgumentError):
            ml.Dim("n", **options)
    with pytest.raises(ml.ArgumentError):
        ml.compile(lambda x: x, target="reference", dynamic={"x": ("n",)})


def test_auto_makes_a_dimension_dynamic_after_the_third_size() -> None:
    f = ml.compile(lambda x, y: (x @ WEIGHTS + y[:, None]).sum(1), dynamic="auto")
    for n in (5, 9, 5, 12, 40, 7, 200, 1, 3):
        x, y = array(n, 16), array(n)
        np.testing.assert_allclose(f(x, y), (x @ WEIGHTS + y[:, None]).sum(1), rtol=1e-3, atol=1e-4)
    assert f._compiled == 4  # of 5, of 9, of all others but 1, and of 1
    assert "f32[x.shape[0],16], f32[x.shape[0]]" in f.explain()


def test_auto_takes_a_constant_difference_of_sizes_and_gives_it_up() -> None:
    f = ml.compile(lambda x, y: x.sum() + y.sum(), dynamic="auto")
    for n in (5, 6, 7, 20):
        f(array(n), array(n + 1))
    assert f._compiled == 3
    for n, m in ((5, 9), (9, 9), (30, 2)):
        x, y = array(n), array(m)
        np.testing.assert_allclose(f(x, y), x.sum() + y.sum(), rtol=1e-3, atol=1e-4)
    assert f._compiled == 4


def test_auto_leaves_static_what_cannot_be_dynamic_and_explains_it() -> None:
    def counted(x: Any, y: Any) -> Any:
        return x.sum() * int(x.shape[0]) + y.sum()

    f = ml.compile(counted, dynamic="auto")
    for n, m in ((5, 4), (200, 5), (7, 6), (8, 7), (200, 9)):
        x, y = array(n), array(m)
        np.testing.assert_allclose(f(x, y), counted(x, y), rtol=1e-3, atol=1e-3)
    assert "`x.shape[0]` stays static: the size of dimension `x.shape[0]` is dynamic" in f.explain()


def grid(low: float, high: float, n: int) -> Any:
    return np.linspace(low, high, n) * n + np.zeros((n, n))


def beginning(x: Any, n: int, k: int) -> Any:
    return x[:n].sum(), np.arange(n) * k + np.ones((n, k)).sum()


def counted(n: int) -> Any:
    return ml.fori_loop(0, n, lambda i, x: x + np.ones(n), np.zeros(n))


NUMBERS: dict[str, tuple[Any, list[tuple[Any, ...]], int]] = {
    "grid": (grid, [(0.0, 1.0, n) for n in (4, 5, 6, 7, 40, 2, 1, 3)], 4),
    "beginning": (beginning, [(np.arange(50.0), n, n + 2) for n in (4, 5, 6, 7, 40, 49, 2)], 3),
    "trip_count": (counted, [(n,) for n in range(2, 9)], 3),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_python_integer_of_many_values_is_a_dynamic_size(name: str) -> None:
    fn, calls, count = NUMBERS[name]
    f = ml.compile(fn, dynamic="auto")
    for args in calls:
        compare(f(*args), fn(*args))
    assert f._compiled == count
    assert "`n` has had several values: it is a dynamic size now" in f.explain()


def test_an_integer_that_decides_a_branch_stays_static_where_that_is_needed() -> None:
    def chosen(x: Any, n: int) -> Any:
        return [x + 1, x * 2, x - 3, -x][n % 4] * np.ones(n + 2).sum()

    f = ml.compile(chosen, dynamic="auto")
    for n in range(2, 9):
        compare(f(np.arange(4.0), n), chosen(np.arange(4.0), n))
    assert "`n` stays static: the size of dimension `n` is dynamic, and its value is needed" in f.explain()


def double(x: Any, y: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2 * x[i, j]
    return y


SLOW: dict[str, Any] = {
    "windows along it": lambda x, y: layers.max_pool2d(x[None, None], 2),
    "loops over elements": double,
}


@pytest.mark.parametrize("what", SLOW)
def test_auto_leaves_static_what_is_much_faster_so(what: str) -> None:
    fn = SLOW[what]
    f = ml.compile(fn, dynamic="auto")
    for n in (4, 5, 6, 7):
        x, y = array(n, 4), array(n, 4)
        compare(f(x, y), fn(x, y.copy()))
    assert f"every dimension stays static: {what} have faster programs of one size" in f.explain()


def test_programs_come_from_the_disk_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "cache", True)
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    for n, source in ((5, "compiled in"), (9, "loaded from the disk cache")):
        f = ml.compile(lambda x: np.exp(x).sum(0) * x, dynamic={"x": ("n", None)})
        x = array(n, 3)
        compare(f(x), np.exp(x).sum(0) * x)
        assert source in f.explain()


def test_arguments_by_name_are_called_natively_in_any_order() -> None:
    for dynamic in (None, {"x": ("n",)}):
        f = ml.compile(lambda x, y, scale: x * scale + y.sum(), dynamic=dynamic)
        x, y = array(4), array(3)
        for _ in range(2):
            compare(f(y=y, scale=2.0, x=x), x * 2 + y.sum())
        found = f.find((), {"y": y, "scale": 2.0, "x": x})
        assert found is not None
        assert f.find((x,), {"y": y, "scale": 2.0}) is None
        compare(f(scale=3.0, y=y, x=x), x * 3 + y.sum())


def test_known_sizes_are_called_natively_and_guards_hold() -> None:
    f = ml.compile(lambda x: x * FACTOR, dynamic={"x": ("n",)})
    x = array(4)
    for _ in range(2):
        compare(f(x), x * FACTOR)
    assert f.find((x,)) is not None and f.find((array(5),)) is None
    globals()["FACTOR"] = np.float32(3.0)
    compare(f(x), x * np.float32(3.0))
    globals()["FACTOR"] = np.float32(2.0)


FACTOR = np.float32(2.0)


def test_stores_into_arguments_are_seen_by_the_caller() -> None:
    def f(x: Any) -> Any:
        x[1:] += 1
        return x.sum()

    compiled = ml.compile(f, dynamic={"x": ("n",)})
    for n in (4, 9):
        x = array(n)
        y = x.copy()
        np.testing.assert_allclose(compiled(x), f(y), rtol=1e-4)
        np.testing.assert_array_equal(x, y)
    assert compiled._compiled == 1


def test_loops_over_rows_and_products_run_on_threads() -> None:
    n = ml.Dim("n")
    f = ml.compile(lambda x: softmax(x @ WEIGHTS))
    text = f.ir("schedule", ml.TensorSpec((n, 16), np.float32))
    assert text.count("mlirml.parallel_for = 1") == 3  # of the zeros that are added to, the product, the rows after it
    x = array(20_000, 16)
    compare(ml.compile(f.fn, dynamic={"x": ("n", None)})(x), f.fn(x))


@pytest.mark.parametrize(
    "name", ["sums", "both", "columns", "rows_of_a_product", "attention", "batch_norm", "reversed", "images"]
)
def test_many_chunks_have_the_numbers_of_the_static_program(name: str) -> None:
    fn, shapes = PROGRAMS[name if name != "reversed" else "rows_of_results"]
    compiled = ml.compile(named(fn, len(shapes)), dynamic=described(shapes))
    static = ml.compile(fn, dynamic="off")
    args = [array(*({"n": 1501, "m": 1033, "b": 70}.get(s, s) for s in shape)) for shape in shapes]
    compare(compiled(*args), static(*args))


def test_results_go_into_out_and_shapes_of_traced_programs_show_names() -> None:
    f = ml.compile(lambda x: x * 2, dynamic={"x": ("n",)})
    x = array(6)
    out = np.empty_like(x)
    assert f(x, out=out) is out
    np.testing.assert_array_equal(out, x * 2)
    n = ml.Dim("n")
    program = ml.trace(lambda x: x.reshape(-1)[1:], ml.TensorSpec((n, 3), np.float32))
    assert [str(spec) for spec in program.inputs + program.outputs] == ["f32[n,3]", "f32[3*n-1]"]


def test_generators_and_arrays_of_dynamic_sizes() -> None:
    def norm(x: Any) -> Any:
        return sum(v * v for v in x)

    compiled = ml.compile(norm, dynamic={"x": ("n",)})
    for n in (5, 70, 900):
        np.testing.assert_allclose(compiled(np.arange(n) * 0.5), norm(np.arange(n) * 0.5))


def test_what_does_not_go_together() -> None:
    def double(x: Any) -> Any:
        return x * 2

    with pytest.raises(ArgumentError, match="programs of dynamic sizes have passes of their own"):
        ml.compile(double, dynamic={"x": ("n",)}, pipeline=[])


def test_a_profile_is_that_of_the_program_for_its_sizes() -> None:
    for dynamic in ({"x": ("n", None)}, "auto"):
        compiled = ml.compile(lambda x: np.exp(x @ WEIGHTS), dynamic=dynamic)
        for n in (5, 6, 7, 8):
            compiled(array(n, 16))
        x = array(9, 16)
        profile = compiled.profile(x)
        compare(profile.results, np.exp(x @ WEIGHTS))
        assert "this is the program for these sizes: calls run one of dynamic sizes" in profile.notes
        assert compiled._prepared((x,), {})[1].values is not None
        assert "because it is profiled" in compiled.explain()


def test_errors_of_passes_name_the_dimensions_and_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise LoweringError("there is no kernel for it")

    f = ml.compile(lambda x: x * 2, dynamic={"x": ("n", None)})
    monkeypatch.setattr("mlirml.api.compiled", fails)
    with pytest.raises(LoweringError, match="note: dynamic here: `n` = 5"):
        f(array(5, 977))


def looped_or_sine(a: Any) -> Any:
    def loop(x: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, c: np.sin(c) * 0.5 + i, x)

    return ml.cond(np.sum(a) > 0, loop, np.sin, a)


def test_a_branch_whose_loop_computes_an_array_of_dynamic_size() -> None:
    compiled = ml.compile(looped_or_sine, dynamic={"a": ("n", "m")})
    changed = ml.compile(lambda a: ml.jvp(looped_or_sine, (a,), (a,))[1], dynamic={"a": ("n", "m")})
    for shape in ((2, 3), (5, 4)):
        for a in (np.ones(shape), -np.ones(shape)):
            expected = a
            for i in range(3):
                expected = np.sin(expected) * 0.5 + i
            np.testing.assert_allclose(compiled(a), expected if a[0, 0] > 0 else np.sin(a))
            h = 1e-6
            slope = (compiled(a * (1 + h)) - compiled(a * (1 - h))) / (2 * h)
            np.testing.assert_allclose(changed(a), slope, rtol=1e-6)


def settled(x: Any) -> Any:
    def improve(carry: Any) -> Any:
        total, term, _ = carry
        return total + term, term * x, np.abs(term)

    return ml.while_loop(lambda carry: np.any(carry[2] > 1e-9), improve, (np.zeros_like(x), np.ones_like(x), x))[0]


def test_a_loop_whose_condition_reads_an_array_that_its_body_does_not() -> None:
    compiled, incomplete = (
        ml.compile(f, dynamic={"x": ("n",)}) for f in (settled, lambda x: ml.special.gammainc(x, 2.0))
    )
    for n in (3, 40):
        x = RNG.uniform(0.1, 0.5, n)
        np.testing.assert_allclose(compiled(x), 1 / (1 - x), rtol=1e-8)
        np.testing.assert_allclose(incomplete(x), ml.special.gammainc(x, 2.0))


def test_methods_of_integers_need_a_static_size() -> None:
    with pytest.raises(StaticSizeError, match="the result of its `bit_length` is needed"):
        ml.compile(lambda x: x * (x.shape[0]).bit_length(), dynamic={"x": ("n", None)})(array(5, 2))
    with pytest.raises(StaticSizeError):
        ml.compile(lambda x: ml.signal.convolve(x, x[:3]), dynamic={"x": ("n",)})(array(5))


def longest_path(x: Any) -> Any:
    n = len(x)
    best = np.zeros((n + 1, n + 1))
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            best[i, j] = max(best[i - 1, j], best[i, j - 1]) + x[i - 1] * x[j - 1]
    best[n, 0] = best[n, n] + best[n // 2, n - 1]
    return best[n, 0]


def test_elements_of_loops_at_dynamic_sizes() -> None:
    compiled = ml.compile(longest_path, dynamic={"x": ("n",)})
    for n in (3, 8, 21):
        x = RNG.uniform(-1, 1, n)
        np.testing.assert_allclose(compiled(x), longest_path(x), rtol=1e-12)
    with pytest.raises(ml.NoDerivativeError, match="each iteration, arrays of dynamic sizes, and the trip count"):
        ml.compile(ml.grad(longest_path), dynamic={"x": ("n",)})(np.ones(3))
