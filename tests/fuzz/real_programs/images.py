"""Images and signals: filters, pooling, histograms, wavelets, byte arithmetic."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, program


@program(lambda d: (d.integers(0, 256, 14, 17),), ("uint8",))
def box_blur(image: Array) -> Array:
    x = image.astype(np.float32)
    total = sum(x[i : x.shape[0] - 2 + i, j : x.shape[1] - 2 + j] for i in range(3) for j in range(3))
    return np.clip(np.rint(total / 9), 0, 255).astype(np.uint8)


@program(lambda d: (d.integers(0, 256, 14, 17),), ("uint8",))
def sobel(image: Array) -> Array:
    g = image / 255.0
    gx = (g[:-2, 2:] + 2 * g[1:-1, 2:] + g[2:, 2:]) - (g[:-2, :-2] + 2 * g[1:-1, :-2] + g[2:, :-2])
    gy = (g[2:, :-2] + 2 * g[2:, 1:-1] + g[2:, 2:]) - (g[:-2, :-2] + 2 * g[:-2, 1:-1] + g[:-2, 2:])
    edges = np.hypot(gx, gy)
    return (255 * (edges > 0.75 * edges.mean())).astype(np.uint8)


@program(lambda d: (d.integers(0, 256, 9, 11, 3),), ("uint8",))
def grey(rgb: Array) -> Array:
    r, g, b = (rgb[..., i].astype(np.uint32) for i in range(3))
    return ((77 * r + 150 * g + 29 * b) >> 8).astype(np.uint8)


@program(lambda d: (d.integers(0, 256, 9, 11, 4), d.integers(0, 256, 9, 11, 3)), ("uint8",))
def alpha_blend(top: Array, bottom: Array) -> Array:
    alpha = top[..., 3:].astype(np.uint16)
    mixed = top[..., :3] * alpha + bottom * (255 - alpha)
    return ((mixed + 127) // 255).astype(np.uint8)


@program(lambda d: (d.integers(0, 16, 60),), ("uint8", "int32", "float64"))
def histogram(values: Array) -> Array:
    return (values[:, None] == np.arange(16, dtype=values.dtype)).sum(axis=0)


@program(lambda d: (d.normal(2, 5, 6, 3), d.normal(3, 3, 3, 4), d.normal(4)), ulps=100)
def conv2d_slices(x: Array, weights: Array, bias: Array) -> Array:
    k = weights.shape[0]
    n, h, w = x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1
    y = np.empty((n, h, w, weights.shape[3]), dtype=x.dtype)
    for i in range(h):
        for j in range(w):
            patch = x[:, i : i + k, j : j + k, :, np.newaxis]
            y[:, i, j, :] = np.sum(patch * weights[np.newaxis], axis=(1, 2, 3))
    return np.maximum(y + bias, 0)


@program(lambda d: (d.normal(2, 8, 9, 3), d.normal(3, 3, 3, 5)), ulps=100)
def conv2d_einsum(x: Array, weights: Array) -> Array:
    kh, kw = weights.shape[:2]
    h, w = x.shape[1] - kh + 1, x.shape[2] - kw + 1
    out = np.zeros((x.shape[0], h, w, weights.shape[-1]), x.dtype)
    for i in range(kh):
        for j in range(kw):
            out += np.einsum("bhwc,co->bhwo", x[:, i : i + h, j : j + w], weights[i, j])
    return out


@program(lambda d: (d.normal(2, 3, 8, 8), d.normal(4, 3, 3, 3), 2), ulps=100, static_argnums=(2,))
def conv2d_im2col(x: Array, weights: Array, stride: int) -> Array:
    n, c, h, w = x.shape
    f, _, kh, kw = weights.shape
    padded = np.zeros((n, c, h + 2, w + 2), x.dtype)
    padded[:, :, 1:-1, 1:-1] = x
    oh, ow = (h + 2 - kh) // stride + 1, (w + 2 - kw) // stride + 1
    rows, cells = stride * oh, stride * ow
    patches = [padded[:, :, i : i + rows : stride, j : j + cells : stride] for i in range(kh) for j in range(kw)]
    columns = np.stack(patches, axis=2).reshape(n, c * kh * kw, oh * ow)
    return (weights.reshape(f, -1) @ columns).reshape(n, f, oh, ow)


@program(lambda d: (d.normal(2, 8, 6, 3),))
def pooling(x: Array) -> tuple[Array, Array]:
    n, h, w, c = x.shape
    windows = x.reshape(n, h // 2, 2, w // 2, 2, c)
    return windows.max(axis=(2, 4)), windows.mean(axis=(2, 4))


@program(lambda d: (d.normal(50), d.uniform(0, 1, 7)))
def fir(signal: Array, taps: Array) -> Array:
    n = signal.shape[0] - taps.shape[0] + 1
    y = np.zeros(n, dtype=signal.dtype)
    for k in range(taps.shape[0]):
        y += taps[k] * signal[k : k + n]
    return y


@program(lambda d: (d.normal(4, 32),))
def haar(x: Array) -> Array:
    out = np.empty_like(x)
    n = x.shape[1]
    while n > 1:
        even, odd = x[:, 0:n:2], x[:, 1:n:2]
        x = (even + odd) / np.sqrt(2)
        out[:, n // 2 : n] = (even - odd) / np.sqrt(2)
        n //= 2
    out[:, :1] = x
    return out


@program(lambda d: (d.normal(40), 5), static_argnums=(1,))
def moving_average(x: Array, window: int) -> tuple[Array, Array]:
    n = len(x) - window + 1
    mean = sum(x[i : i + n] for i in range(window)) / window
    spread = np.sqrt(sum((x[i : i + n] - mean) ** 2 for i in range(window)) / (window - 1))
    return mean, spread


@program(lambda d: (d.normal(16),), ulps=200)
def discrete_fourier(x: Array) -> tuple[Array, Array]:
    n = x.shape[0]
    angle = -2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    real, imaginary = np.cos(angle).astype(x.dtype) @ x, np.sin(angle).astype(x.dtype) @ x
    return np.sqrt(real**2 + imaginary**2), np.arctan2(imaginary + 3, real)


@program(lambda d: (d.integers(0, 256, 10, 12), 1.8), ("uint8",))
def gamma_and_contrast(image: Array, gamma: float) -> tuple[Array, Array, Array]:
    x = image.astype(np.float64) / 255
    low, high = x.min(), x.max()
    stretched = (x - low) / (high - low)
    lit = image[image.shape[0] // 2 :].astype(np.int16) + 40
    return np.rint(255 * stretched**gamma), np.where(lit > 255, 255, lit).astype(np.uint8), 255 - image[::-1, ::-1]


@program(lambda d: (d.uniform(0, 1, 7, 5, 3),), ulps=20)
def hue_and_saturation(rgb: Array) -> tuple[Array, Array]:
    r, g, b = (rgb[..., i] for i in range(3))
    most, span = rgb.max(axis=-1), np.ptp(rgb, axis=-1)
    hue = np.zeros_like(most)
    is_red, is_green = most == r, (most == g) & (most != r)
    hue[is_red] = ((g - b)[is_red] / span[is_red]) % 6
    hue[is_green] = (b - r)[is_green] / span[is_green] + 2
    rest = ~(is_red | is_green)
    hue[rest] = (r - g)[rest] / span[rest] + 4
    return hue * 60, np.divide(span, most, out=np.zeros_like(span), where=most != 0)
