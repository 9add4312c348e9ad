"""Image processing, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def sobel(image):
    """The strength of edges."""
    kx = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    ky = kx.T
    height, width = image.shape
    out = np.zeros_like(image)
    for i in range(1, height - 1):
        for j in range(1, width - 1):
            patch = image[i - 1 : i + 2, j - 1 : j + 2]
            gx = np.sum(patch * kx)
            gy = np.sum(patch * ky)
            out[i, j] = np.sqrt(gx**2 + gy**2)
    return out


def equalized(image):
    """Histogram equalisation of an image of bytes."""
    counts = np.zeros(256, dtype=np.int64)
    for row in image:
        for pixel in row:
            counts[pixel] += 1
    total = np.cumsum(counts)
    lowest = total[total > 0].min()
    table = np.round((total - lowest) / (image.size - lowest) * 255).clip(0, 255).astype(np.uint8)
    return table[image]


def otsu(image):
    """The threshold that separates two classes of pixels best (Otsu 1979)."""
    counts = np.bincount(image.ravel(), minlength=256)
    total = image.size
    sum_all = np.dot(np.arange(256), counts)
    best, threshold = 0.0, 0
    weight, partial = 0, 0.0
    for t in range(256):
        weight += counts[t]
        if weight == 0:
            continue
        rest = total - weight
        if rest == 0:
            break
        partial += t * counts[t]
        mean_low = partial / weight
        mean_high = (sum_all - partial) / rest
        between = weight * rest * (mean_low - mean_high) ** 2
        if between > best:
            best = between
            threshold = t
    return threshold


def dilated(mask, times):
    """A mask grown by its four neighbours, several times."""
    for _ in range(times):
        new = mask.copy()
        new[1:, :] |= mask[:-1, :]
        new[:-1, :] |= mask[1:, :]
        new[:, 1:] |= mask[:, :-1]
        new[:, :-1] |= mask[:, 1:]
        mask = new
    return mask


def resized(image, height, width):
    """Bilinear interpolation to another size."""
    rows = np.linspace(0, image.shape[0] - 1, height)
    columns = np.linspace(0, image.shape[1] - 1, width)
    out = np.empty((height, width))
    for i in range(height):
        for j in range(width):
            r, c = int(rows[i]), int(columns[j])
            r1, c1 = min(r + 1, image.shape[0] - 1), min(c + 1, image.shape[1] - 1)
            dr, dc = rows[i] - r, columns[j] - c
            top = image[r, c] * (1 - dc) + image[r, c1] * dc
            bottom = image[r1, c] * (1 - dc) + image[r1, c1] * dc
            out[i, j] = top * (1 - dr) + bottom * dr
    return out


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (120, 160)).astype(np.uint8)
    return {
        "sobel": (rng.random((80, 100)),),
        "equalized": (pixels,),
        "otsu": (pixels,),
        "dilated": (rng.random((200, 200)) > 0.999, 30),
        "resized": (rng.random((50, 60)), 120, 160),
    }[name]
