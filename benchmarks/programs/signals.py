"""Signal processing, as a newcomer writes it."""

from __future__ import annotations

import math

import numpy as np


def fir(x, taps):
    """A finite impulse response filter by its definition."""
    out = np.zeros_like(x)
    for n in range(len(x)):
        total = 0.0
        for k in range(len(taps)):
            if n - k >= 0:
                total += taps[k] * x[n - k]
        out[n] = total
    return out


def biquad(x, b, a):
    """A second-order recursive filter, direct form I."""
    y = []
    x1 = x2 = y1 = y2 = 0.0
    for value in x:
        out = b[0] * value + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x2, x1 = x1, value
        y2, y1 = y1, out
        y.append(out)
    return np.array(y)


def compressor(x, threshold, ratio, attack, release):
    """A compressor of the dynamics of a sound: an envelope follower and a gain."""
    envelope = 0.0
    out = np.empty(len(x))
    for i, sample in enumerate(x):
        level = abs(sample)
        if level > envelope:
            envelope = attack * envelope + (1 - attack) * level
        else:
            envelope = release * envelope + (1 - release) * level
        gain = 1.0
        if envelope > threshold:
            over = 20 * math.log10(envelope / threshold)
            gain = 10 ** (-over * (1 - 1 / ratio) / 20)
        out[i] = sample * gain
    return out


def goertzel(x, frequencies, rate):
    """The power of a signal at some frequencies."""
    powers = np.zeros(len(frequencies))
    for k in range(len(frequencies)):
        coefficient = 2 * np.cos(2 * np.pi * frequencies[k] / rate)
        s1, s2 = 0.0, 0.0
        for sample in x:
            s1, s2 = sample + coefficient * s1 - s2, s1
        powers[k] = s1**2 + s2**2 - coefficient * s1 * s2
    return powers


def spectrogram(x, width, step):
    """Magnitudes of windowed blocks by a matrix of cosines and sines."""
    window = np.hanning(width)
    count = (len(x) - width) // step + 1
    frames = np.stack([x[i * step : i * step + width] * window for i in range(count)])
    angles = 2 * np.pi * np.outer(np.arange(width), np.arange(width // 2 + 1)) / width
    return np.hypot(frames @ np.cos(angles), frames @ np.sin(angles))


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    return {
        "fir": (x, np.hanning(64) / 32),
        "biquad": (x, np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.4, 0.2])),
        "compressor": (x, 0.5, 4.0, 0.9, 0.999),
        "goertzel": (x, np.array([440.0, 880.0, 1320.0, 2000.0]), 44_100.0),
        "spectrogram": (x, 256, 128),
    }[name]
