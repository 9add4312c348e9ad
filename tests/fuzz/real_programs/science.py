"""Science and finance: iterations, integrators, filters, closed formulas."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, program


@program(lambda d: (-2.25, 0.75, 24, -1.25, 1.25, 20, 12), ("float64",), static_argnums=(2, 5, 6))
def mandelbrot(left: float, right: float, width: int, low: float, high: float, height: int, steps: int) -> Array:
    cr = left + (right - left) * np.arange(width) / (width - 1)
    ci = (low + (high - low) * np.arange(height) / (height - 1))[:, None]
    zr, zi = np.zeros((height, width)), np.zeros((height, width))
    count = np.zeros((height, width), dtype=np.int32)
    for _ in range(steps):
        inside = zr * zr + zi * zi <= 4.0
        new = np.where(inside, zr * zr - zi * zi + cr, zr)
        zi = np.where(inside, 2 * zr * zi + ci, zi)
        zr = new
        count += inside
    return count


@program(lambda d: (d.uniform(1, 2, 9, 1), d.normal(9, 3), d.normal(9, 3), 0.01), ulps=200)
def n_body(mass: Array, pos: Array, vel: Array, dt: float) -> tuple[Array, Array, Array]:
    def acceleration(p: Array) -> Array:
        x, y, z = p[:, 0:1], p[:, 1:2], p[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inverse = (dx**2 + dy**2 + dz**2 + 0.1**2) ** -1.5
        return np.hstack(((dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass))

    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = acceleration(pos)
    for _ in range(2):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos)
        vel += acc * dt / 2.0
    kinetic = 0.5 * np.sum(mass * vel**2)
    return pos, vel, kinetic


@program(lambda d: (d.uniform(10, 50, 40), d.uniform(10, 50, 40), d.uniform(1, 2, 40), 0.1, 0.2), ulps=100)
def black_scholes(price: Array, strike: Array, t: Array, rate: float, vol: float) -> tuple[Array, Array]:
    def erf(x: Array) -> Array:
        # Abramowitz and Stegun, 7.1.26
        s = 1 / (1 + 0.3275911 * np.abs(x))
        poly = ((((1.061405429 * s - 1.453152027) * s + 1.421413741) * s - 0.284496736) * s + 0.254829592) * s
        return np.sign(x) * (1 - poly * np.exp(-(x**2)))

    root = vol * np.sqrt(t)
    d1 = (np.log(price / strike) + (rate + 0.5 * vol**2) * t) / root
    d2 = d1 - root
    normal = lambda x: 0.5 * (1 + erf(x / np.sqrt(2.0)))  # noqa: E731
    discount = strike * np.exp(-rate * t)
    call = price * normal(d1) - discount * normal(d2)
    return call, call - price + discount


@program(lambda d: ([0.5, -1.25, 2.0, 0.75, -3.0], d.uniform(-2, 2, 30)))
def horner(coefficients: list[float], x: Array) -> tuple[Array, Array]:
    y, slope = np.zeros_like(x), np.zeros_like(x)
    for c in coefficients:
        slope = slope * x + y
        y = y * x + c
    return y, slope


@program(lambda d: (d.uniform(0.1, 9, 30),))
def newton_square_root(a: Array) -> tuple[Array, Array]:
    x = np.where(a > 1, a / 2, 1.0).astype(a.dtype)
    for _ in range(6):
        x = 0.5 * (x + a / x)
    y = np.ones_like(a)
    for _ in range(5):
        y -= (y**3 - a) / (3 * y**2)
    return x, y


@program(lambda d: (d.uniform(0.5, 2, 12), d.uniform(0.5, 2, 12)), ulps=100)
def lotka_volterra(prey: Array, predator: Array, dt: float = 0.05) -> tuple[Array, Array]:
    def rates(state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = state
        return 1.1 * x - 0.4 * x * y, 0.1 * x * y - 0.4 * y

    state = prey, predator
    for _ in range(3):
        k1 = rates(state)
        k2 = rates(tuple(s + dt / 2 * k for s, k in zip(state, k1)))
        k3 = rates(tuple(s + dt / 2 * k for s, k in zip(state, k2)))
        k4 = rates(tuple(s + dt * k for s, k in zip(state, k3)))
        state = tuple(s + dt / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))
    return state


@program(lambda d: (d.normal(4), np.eye(4, dtype=d.dtype), d.normal(5, 2), 0.1), ulps=200)
def kalman(x: Array, p: Array, measurements: Array, dt: float) -> tuple[Array, Array]:
    f = np.eye(4, dtype=x.dtype)
    f[0, 2] = f[1, 3] = dt
    h = np.zeros((2, 4), dtype=x.dtype)
    h[0, 0] = h[1, 1] = 1
    q, r = 0.01 * np.eye(4, dtype=x.dtype), 0.1 * np.eye(2, dtype=x.dtype)
    for z in measurements:
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
        gain = p @ h.T @ inverse
        x = x + gain @ (z - h @ x)
        p = (np.identity(4, dtype=x.dtype) - gain @ h) @ p
    return x, p


@program(lambda d: (d.normal(11, 4), d.normal(11, 3)))
def quaternions(q: Array, v: Array) -> tuple[Array, Array]:
    q = q / np.sqrt(np.sum(np.square(q), axis=-1, keepdims=True))
    w, x, y, z = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    rotation = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    rotation = np.moveaxis(rotation, -1, 0)
    return np.squeeze(rotation @ v[:, :, None], axis=-1), np.einsum("nii->n", rotation)


@program(lambda d: (d.uniform(-1, 1, 20), d.uniform(-3, 3, 20), d.uniform(-1, 1, 20), d.uniform(-3, 3, 20)), ulps=100)
def arc_distance(theta1: Array, phi1: Array, theta2: Array, phi2: Array) -> Array:
    a = np.sin((theta2 - theta1) / 2) ** 2 + np.cos(theta1) * np.cos(theta2) * np.sin((phi2 - phi1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(a), np.sqrt(1 - a))


@program(lambda d: (d.uniform(0, 3, 12, 3), 3.0), ulps=500)
def lennard_jones(positions: Array, box: float) -> tuple[Array, Array]:
    delta = positions[:, None, :] - positions[None, :, :]
    delta -= box * np.rint(delta / box)
    n = positions.shape[0]
    r2 = np.maximum((delta**2).sum(axis=-1), 0.6) + 1e3 * np.eye(n, dtype=positions.dtype)
    inverse6 = 1.0 / r2**3
    near = r2 < 2.25
    energy = np.sum(np.where(near, 4 * (inverse6**2 - inverse6), 0.0)) / 2
    strength = np.where(near, (48 * inverse6**2 - 24 * inverse6) / r2, 0.0)
    return energy, (strength[..., None] * delta).sum(axis=1)


@program(lambda d: (d.uniform(0, 5, 33), d.normal(33), 2))
def integrals_and_norms(x: Array, y: Array, power: int) -> dict[str, Array]:
    steps = np.diff(x) if isinstance(x, list) else x[1:] - x[:-1]
    return {
        "trapezoid": np.sum(steps * (y[1:] + y[:-1]) / 2),
        "one": np.abs(y).sum(),
        "two": np.sqrt(y.dot(y)),
        "inf": np.max(np.abs(y)),
        "power": np.sum(np.abs(y) ** power) ** (1 / power),
        "standard": (y - y.mean()) / y.std(ddof=1),
        "spread": np.ptp(y),
    }


@program(lambda d: (d.normal(12, 12),))
def go_fast(a: Array) -> Array:
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@program(lambda d: (d.uniform(0, 20, 24), d.normal(24), d.uniform(0, 20)), ulps=100)
def masked_statistics(radius: Array, value: Array, edge: Array) -> tuple[Array, Array, Array]:
    means = []
    for i in range(4):
        mask = np.logical_and(5.0 * i <= radius, radius < 5.0 * (i + 1))
        count = np.count_nonzero(mask)
        means.append(np.where(mask, value, 0).sum() / np.maximum(count, 1))
    result = np.array(means)
    kept = value.copy()
    kept[~(radius < edge)] = 0
    kept[kept < -1] = -1
    return result, kept, np.any(kept > 2) | np.all(kept == 0)
