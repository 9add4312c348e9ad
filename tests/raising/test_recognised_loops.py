"""Convolutions, poolings, normalisations, attention and searches as plain Python loops, and what they are raised to."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

# mypy: disable-error-code="no-untyped-def"


def conv7(x, w, y):
    N, C, _H, _W = x.shape
    F, _, KH, KW = w.shape
    for n in range(N):
        for f in range(F):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                y[n, f, i, j] += x[n, c, i + p, j + q] * w[f, c, p, q]


def conv_acc(x, w, y):
    N, C, _H, _W = x.shape
    F, _, KH, KW = w.shape
    for n in range(N):
        for f in range(F):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    s = 0.0
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                s += x[n, c, 2 * i + p, 2 * j + q] * w[f, c, p, q]
                    y[n, f, i, j] = s


def conv_pad(x, w, b, y):
    N, C, H, W = x.shape
    F, _, KH, KW = w.shape
    for n in range(N):
        for f in range(F):
            for i in range(H):
                for j in range(W):
                    y[n, f, i, j] = b[f]
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                r = i + p - 1
                                t = j + q - 1
                                if 0 <= r < H and 0 <= t < W:
                                    y[n, f, i, j] += x[n, c, r, t] * w[f, c, p, q]


def conv_pad_acc(x, w, y):
    N, C, H, W = x.shape
    F, _, KH, KW = w.shape
    for n in range(N):
        for f in range(F):
            for i in range(H):
                for j in range(W):
                    s = 0.0
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                r = i + p - 1
                                t = j + q - 1
                                if r >= 0 and r < H and t >= 0 and t < W:
                                    s += x[n, c, r, t] * w[f, c, p, q]
                    y[n, f, i, j] = s


def conv_nhwc(x, w, y):
    N, _H, _W, C = x.shape
    KH, KW, _, F = w.shape
    for n in range(N):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                for f in range(F):
                    for p in range(KH):
                        for q in range(KW):
                            for c in range(C):
                                y[n, i, j, f] += x[n, i + p, j + q, c] * w[p, q, c, f]


def conv_wgrad(x, dy, dw):
    N, C, _H, _W = x.shape
    F, _, KH, KW = dw.shape
    for n in range(N):
        for f in range(F):
            for i in range(dy.shape[2]):
                for j in range(dy.shape[3]):
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                dw[f, c, p, q] += x[n, c, i + p, j + q] * dy[n, f, i, j]


def conv_xgather(dy, w, dx):
    N, F, H, W = dy.shape
    _, C, KH, KW = w.shape
    for n in range(N):
        for c in range(C):
            for y in range(dx.shape[2]):
                for x in range(dx.shape[3]):
                    for f in range(F):
                        for p in range(KH):
                            for q in range(KW):
                                if 0 <= y - p < H and 0 <= x - q < W:
                                    dx[n, c, y, x] += dy[n, f, y - p, x - q] * w[f, c, p, q]


def conv_xscatter(dy, w, dx):
    N, F, H, W = dy.shape
    _, C, KH, KW = w.shape
    for n in range(N):
        for f in range(F):
            for i in range(H):
                for j in range(W):
                    for c in range(C):
                        for p in range(KH):
                            for q in range(KW):
                                dx[n, c, i + p, j + q] += dy[n, f, i, j] * w[f, c, p, q]


def grouped(x, w, y):
    F, C = w.shape[0] // 2, w.shape[1]
    for n in range(x.shape[0]):
        for g in range(2):
            for f in range(F):
                for i in range(y.shape[2]):
                    for j in range(y.shape[3]):
                        s = 0.0
                        for c in range(C):
                            for p in range(3):
                                for q in range(3):
                                    s += x[n, g * C + c, i + p, j + q] * w[g * F + f, c, p, q]
                        y[n, g * F + f, i, j] = s


def depthwise(x, w, y):
    N, C, _H, _W = x.shape
    _, KH, KW = w.shape
    for n in range(N):
        for c in range(C):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    for p in range(KH):
                        for q in range(KW):
                            y[n, c, i, j] += x[n, c, i + p, j + q] * w[c, p, q]


def maxpool(x, y):
    N, C, H, W = x.shape
    for n in range(N):
        for c in range(C):
            for i in range(H // 2):
                for j in range(W // 2):
                    m = -np.inf
                    for p in range(2):
                        for q in range(2):
                            if x[n, c, 2 * i + p, 2 * j + q] > m:
                                m = x[n, c, 2 * i + p, 2 * j + q]
                    y[n, c, i, j] = m


def avgpool(x, y):
    N, C, H, W = x.shape
    for n in range(N):
        for c in range(C):
            for i in range(H // 2):
                for j in range(W // 2):
                    s = 0.0
                    for p in range(3):
                        for q in range(3):
                            if 2 * i + p < H and 2 * j + q < W:
                                s += x[n, c, 2 * i + p, 2 * j + q]
                    y[n, c, i, j] = s / 9.0


def softmax(x, y):
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > m:
                m = x[i, j]
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= s


def softmax2(x, y):
    for i in range(x.shape[0]):
        m = -np.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += np.exp(x[i, j] - m)
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - m) / s


def layernorm(x, g, b, y):
    n = x.shape[1]
    for i in range(x.shape[0]):
        m = 0.0
        for j in range(n):
            m += x[i, j]
        m /= n
        v = 0.0
        for j in range(n):
            d = x[i, j] - m
            v += d * d
        v /= n
        for j in range(n):
            y[i, j] = (x[i, j] - m) / np.sqrt(v + 1e-5) * g[j] + b[j]


def rmsnorm(x, g, y):
    n = x.shape[1]
    for i in range(x.shape[0]):
        v = 0.0
        for j in range(n):
            v += x[i, j] * x[i, j]
        r = 1.0 / np.sqrt(v / n + 1e-5)
        for j in range(n):
            y[i, j] = x[i, j] * r * g[j]


def logsumexp(x, y):
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += np.exp(x[i, j] - m)
        y[i] = m + np.log(s)


def attention(q, k, v, o):
    n, d = q.shape
    s = np.zeros((n, n), np.float32)
    for i in range(n):
        for j in range(n):
            a = 0.0
            for t in range(d):
                a += q[i, t] * k[j, t]
            s[i, j] = a * 0.125
        m = s[i, 0]
        for j in range(1, n):
            m = max(m, s[i, j])
        z = 0.0
        for j in range(n):
            s[i, j] = np.exp(s[i, j] - m)
            z += s[i, j]
        for t in range(d):
            a = 0.0
            for j in range(n):
                a += s[i, j] * v[j, t]
            o[i, t] = a / z


def causal(q, k, v, o):
    n, d = q.shape
    s = np.zeros((n, n), np.float32)
    for i in range(n):
        for j in range(i + 1):
            a = 0.0
            for t in range(d):
                a += q[i, t] * k[j, t]
            s[i, j] = a * 0.125
        m = s[i, 0]
        for j in range(1, i + 1):
            m = max(m, s[i, j])
        z = 0.0
        for j in range(i + 1):
            s[i, j] = np.exp(s[i, j] - m)
            z += s[i, j]
        for t in range(d):
            a = 0.0
            for j in range(i + 1):
                a += s[i, j] * v[j, t]
            o[i, t] = a / z


def argmax1(x, k):
    m = x[0]
    p = 0
    for i in range(1, x.shape[0]):
        if x[i] > m:
            m = x[i]
            p = i
    k[0] = p


def argmax2(x, k):
    for i in range(x.shape[0]):
        m = x[i, 0]
        p = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > m:
                m = x[i, j]
                p = j
        k[i] = p


def prefix(x, s):
    s[0] = x[0]
    for i in range(1, x.shape[0]):
        s[i] = s[i - 1] + x[i]


def prefix2(x, s):
    for i in range(x.shape[0]):
        a = 0.0
        for j in range(x.shape[1]):
            a += x[i, j]
            s[i, j] = a


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape).astype(dtype)


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


X, W = random(1, 4, 8, 8), random(4, 4, 3, 3)
LOOPS: dict[str, tuple[Callable[..., None], list[Any], str]] = {
    "conv7": (conv7, [X, W, zeros(1, 4, 6, 6)], "linalg.conv_2d_nchw_fchw"),
    "conv_acc": (conv_acc, [X, W, zeros(1, 4, 3, 3)], "linalg.conv_2d_nchw_fchw"),
    "conv_pad": (conv_pad, [X, W, random(4), zeros(1, 4, 8, 8)], "linalg.conv_2d_nchw_fchw"),
    "conv_pad_acc": (conv_pad_acc, [X, W, zeros(1, 4, 8, 8)], "linalg.conv_2d_nchw_fchw"),
    "conv_nhwc": (
        conv_nhwc,
        [random(1, 8, 8, 4), random(3, 3, 4, 8), zeros(1, 6, 6, 8)],
        "linalg.conv_2d_nhwc_hwcf",
    ),
    "conv_wgrad": (conv_wgrad, [X, random(1, 4, 6, 6), zeros(4, 4, 3, 3)], "a convolution without a name of its own"),
    "conv_xgather": (conv_xgather, [random(1, 4, 6, 6), W, zeros(1, 4, 8, 8)], "linalg.conv_2d_nchw_fchw"),
    "conv_xscatter": (conv_xscatter, [random(1, 4, 6, 6), W, zeros(1, 4, 8, 8) + 1], "linalg.conv_2d_nchw_fchw"),
    "depthwise": (depthwise, [X, random(4, 3, 3), zeros(1, 4, 6, 6)], "linalg.depthwise_conv_2d_nchw_chw"),
    "grouped": (
        grouped,
        [X, random(6, 2, 3, 3), zeros(1, 6, 6, 6)],
        "a convolution without a name of its own",
    ),
    "maxpool": (maxpool, [X, zeros(1, 4, 4, 4)], "a maximum over windows"),
    "avgpool": (avgpool, [X, zeros(1, 4, 4, 4)], "a sum over padded windows"),
    "softmax": (softmax, [random(7, 9), zeros(7, 9)], "a maximum; softmax"),
    "softmax2": (softmax2, [random(7, 9), zeros(7, 9)], "a maximum; softmax"),
    "layernorm": (layernorm, [random(7, 9), random(9), random(9), zeros(7, 9)], "layer norm"),
    "rmsnorm": (rmsnorm, [random(7, 9), random(9), zeros(7, 9)], "RMS norm"),
    "logsumexp": (logsumexp, [random(7, 9), zeros(7)], "a maximum; logsumexp"),
    "attention": (
        attention,
        [random(11, 64), random(12, 64)[1:], random(11, 64), zeros(11, 64)],
        "linalg.matmul; attention",
    ),
    "causal": (
        causal,
        [random(11, 64), random(12, 64)[1:], random(11, 64), zeros(11, 64)],
        "linalg.matmul; attention, masked",
    ),
    "argmax1": (argmax1, [random(63), zeros(1, dtype="int64")], "argmax"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_no_loop_is_left(name: str) -> None:
    kernel, arguments, what = LOOPS[name]
    expected, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
    kernel(*expected)
    compiled = ml.compile(kernel, frontend="loops")
    compiled(*given)
    for first, second in zip(expected, given, strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-5, atol=2e-5)
    assert "scf." not in compiled.ir("raise", *arguments)
    found = re.findall("recognised: (.*)$", compiled.explain(*arguments), re.MULTILINE)
    assert set(filter(None, what.split("; "))) <= set(found)


def softmax_of_another(x, y):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += np.exp(x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = np.exp(2 * x[i, j]) / s


def one_more(x, y):
    for i in range(x.shape[0]):
        s = 1.0
        for j in range(x.shape[1]):
            s += np.exp(x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j]) / s


def across(x, y):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += np.exp(x[j, i])
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j]) / s


def norm_of_another(x, y):
    n = x.shape[1]
    for i in range(x.shape[0]):
        v = 0.0
        for j in range(n):
            v += x[i, j] * y[i, j]
        for j in range(n):
            y[i, j] = x[i, j] / np.sqrt(v / n + 99)


def unit(x, y):
    for i in range(x.shape[0]):
        v = 0.0
        for j in range(x.shape[1]):
            v += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / np.sqrt(v)


@pytest.mark.parametrize("kernel", [softmax_of_another, one_more, across, norm_of_another, unit])
def test_what_only_looks_alike_has_no_name(kernel: Callable[..., None]) -> None:
    compiled = ml.compile(kernel, frontend="loops")
    given, expected = zeros(6, 6) + 1, zeros(6, 6) + 1
    kernel(random(6, 6), expected)
    compiled(random(6, 6), given)
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    assert not re.search("recognised: (softmax|layer|RMS)", compiled.explain(random(6, 6), given))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("least", [False, True])
def test_the_first_of_equal_elements_wins(dtype: str, least: bool) -> None:
    def search(x, out):
        best = x[2]
        place = 7
        for i in range(3, x.shape[0]):
            if (x[i] < best) if least else (best < x[i]):
                best = x[i]
                place = i
        out[0] = place

    search = ml.compile(search, frontend="loops")  # type: ignore[assignment]
    python = search.__wrapped__
    rng = np.random.default_rng(0)
    for case in range(6):
        x = rng.integers(-3, 4, 1500).astype(dtype)
        if case == 1:
            x[3:] = x[2]
        if dtype == "float32" and case > 1:
            x[rng.integers(0, 1500, 40)] = np.nan
            x[2] = np.nan if case == 3 else x[2]
            x[3:] = np.nan if case == 4 else x[3:]
        expected, given = np.zeros(1, np.int64), np.zeros(1, np.int64)
        python(x, expected)
        search(x, given)
        assert given[0] == expected[0]
    assert f"recognised: {'argmin' if least else 'argmax'}" in search.explain(x, given)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kernel", [prefix, prefix2])
def test_prefix_sums_have_a_name(kernel: Callable[..., None]) -> None:
    x = random(40, dtype="float64") if kernel is prefix else random(7, 9, dtype="float64")
    expected, given = np.zeros_like(x), np.zeros_like(x)
    kernel(x, expected)
    compiled = ml.compile(kernel, frontend="loops")
    compiled(x, given)
    np.testing.assert_array_equal(given, expected)
    assert "recognised: a prefix sum" in compiled.explain(x, given)


def bubble(x):
    for _ in range(len(x)):
        for j in range(len(x) - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]


def test_exchanges_of_neighbours_stay_one_loop() -> None:
    compiled = ml.compile(bubble)
    compiled(x := random(40))
    assert np.array_equal(x, np.sort(random(40)))
    text = compiled.ir("raise", x)
    assert text.count("scf.for") == 2 and "linalg" not in text
