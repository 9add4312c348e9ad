"""Numerical methods, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def lorenz(state, dt, steps):
    """The method of Runge and Kutta, with the whole trajectory."""

    def f(s):
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    trajectory = np.empty((steps + 1, 3))
    trajectory[0] = state
    for i in range(steps):
        s = trajectory[i]
        k1 = f(s)
        k2 = f(s + dt / 2 * k1)
        k3 = f(s + dt / 2 * k2)
        k4 = f(s + dt * k3)
        trajectory[i + 1] = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return trajectory


def conjugate_gradient(a, b, tolerance):
    """A linear system, until the residual is small."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    rr = r @ r
    iterations = 0
    while np.sqrt(rr) > tolerance and iterations < 1000:
        ap = a @ p
        alpha = rr / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + new / rr * p
        rr = new
        iterations += 1
    return x, iterations


def thomas(lower, diagonal, upper, right):
    """A system with three diagonals."""
    n = len(diagonal)
    c, d = np.zeros(n), np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / m
        d[i] = (right[i] - lower[i] * d[i - 1]) / m
    x = np.zeros(n)
    x[-1] = d[-1]
    for i in reversed(range(n - 1)):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def newton(f_coefficients, start, tolerance):
    """A root of a polynomial for each start."""
    roots = np.zeros(len(start))
    for i, x in enumerate(start):
        for _ in range(50):
            value, slope = 0.0, 0.0
            for c in f_coefficients:
                slope = slope * x + value
                value = value * x + c
            if slope == 0:
                break
            step = value / slope
            x = x - step
            if abs(step) < tolerance:
                break
        roots[i] = x
    return roots


def romberg(a, b, levels):
    """The integral of a fixed function by Romberg's table."""

    def f(x):
        return np.exp(-x * x) * np.cos(3 * x)

    table = np.zeros((levels, levels))
    h = b - a
    table[0, 0] = h / 2 * (f(a) + f(b))
    for i in range(1, levels):
        h = h / 2
        total = 0.0
        for k in range(1, 2**i, 2):
            total += f(a + k * h)
        table[i, 0] = table[i - 1, 0] / 2 + h * total
        for j in range(1, i + 1):
            table[i, j] = table[i, j - 1] + (table[i, j - 1] - table[i - 1, j - 1]) / (4**j - 1)
    return table[-1, -1]


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    m = rng.normal(size=(120, 120))
    n = 5000
    return {
        "lorenz": (np.array([1.0, 1.0, 1.0]), 0.005, 2000),
        "conjugate_gradient": (m @ m.T + 120 * np.eye(120), rng.normal(size=120), 1e-10),
        "thomas": (rng.random(n), rng.random(n) + 3, rng.random(n), rng.random(n)),
        "newton": (np.array([1.0, 0.0, -2.0, -5.0]), np.linspace(1, 5, 300), 1e-12),
        "romberg": (0.0, 2.0, 11),
    }[name]
