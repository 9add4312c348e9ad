"""Stencils: sums of shifted slices, with the time loop in Python."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, Draw, program


@program(lambda d: (d.normal(40), d.normal(40)))
def jacobi_1d(a: Array, b: Array) -> None:
    for _ in range(5):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@program(lambda d: (d.normal(14, 17), d.normal(14, 17)))
def jacobi_2d(a: Array, b: Array) -> None:
    for _ in range(5):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@program(lambda d: (d.normal(7, 8, 9), d.normal(7, 8, 9)))
def heat_3d(a: Array, b: Array) -> None:
    def step(x: Array) -> Array:
        inner = x[1:-1, 1:-1, 1:-1]
        return (
            0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * inner + x[:-2, 1:-1, 1:-1])
            + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * inner + x[1:-1, :-2, 1:-1])
            + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * inner + x[1:-1, 1:-1, :-2])
            + inner
        )

    for _ in range(2):
        b[1:-1, 1:-1, 1:-1] = step(a)
        a[1:-1, 1:-1, 1:-1] = step(b)


@program(lambda d: (d.normal(11, 13), d.normal(11, 13), d.normal(11, 13), d.normal(4)))
def fdtd_2d(ex: Array, ey: Array, hz: Array, source: Array) -> None:
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@program(lambda d: (d.uniform(0, 1, 7, 8),))
def seidel_2d(a: Array) -> None:
    n, m = a.shape
    for _ in range(2):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2]
            a[i, 1:-1] += a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, m - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@program(lambda d: (d.uniform(0, 1, 8, 8),), ulps=200)
def adi(u: Array) -> Array:
    """Alternating directions: an implicit step along the columns, then one along the rows."""
    n = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    a, b, c = -0.4, 1.8, -0.4
    for x, y in ((v.T, u.T), (u, v)):
        x[:, 0] = 1.0
        p[:, 0] = 0.0
        q[:, 0] = x[:, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            right = 0.4 * y[:-2, j] + 0.2 * y[1:-1, j] + 0.4 * y[2:, j]
            q[1:-1, j] = (right - a * q[1:-1, j - 1]) / (a * p[1:-1, j - 1] + b)
        x[1:-1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            x[1:-1, j] = p[1:-1, j] * x[1:-1, j + 1] + q[1:-1, j]
    return v[1:-1, 1:-1]


@program(lambda d: (d.normal(9, 10, 3), d.normal(9, 10, 3)))
def horizontal_diffusion(field: Array, coefficient: Array) -> Array:
    laplacian = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flux_x = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    flux_x = np.where(flux_x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, flux_x)
    flux_y = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    flux_y = np.where(flux_y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, flux_y)
    change = flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1]
    return field[2:-2, 2:-2] - coefficient[2:-2, 2:-2] * change


@program(lambda d: (d.uniform(0, 1, 9, 9), d.uniform(0, 1, 9, 9), d.normal(9, 9)), ulps=200)
def cavity_pressure(u: Array, v: Array, p: Array) -> Array:
    """The pressure step of a lid-driven cavity flow, with its boundary values."""
    rho, dt, dx, dy = 1.0, 0.001, 0.25, 0.2
    b = np.zeros_like(p)
    du_dx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv_dy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    shear = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    b[1:-1, 1:-1] = rho * (1 / dt * (du_dx + dv_dy) - du_dx**2 - 2 * shear - dv_dy**2)
    for _ in range(3):
        pn = p.copy()
        around = (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        p[1:-1, 1:-1] = (around - dx**2 * dy**2 * b[1:-1, 1:-1]) / (2 * (dx**2 + dy**2))
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


@program(lambda d: (d.uniform(1, 2, 9, 4), d.uniform(3, 5, 9, 4), d.uniform(1, 2, 9, 4), d.normal(9, 4)), ulps=200)
def thomas(a: Array, b: Array, c: Array, rhs: Array) -> Array:
    """Tridiagonal systems, one in each column."""
    n = len(rhs)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        rhs[i] -= w * rhs[i - 1]
    x = np.zeros_like(rhs)
    x[-1] = rhs[-1] / b[-1]
    for i in reversed(range(n - 1)):
        x[i] = (rhs[i] - c[i] * x[i + 1]) / b[i]
    return x


@program(lambda d: (d.integers(0, 2, 12, 15),), ("uint8", "int64", "bool"))
def game_of_life(board: Array) -> Array:
    padded = np.zeros((board.shape[0] + 2, board.shape[1] + 2), dtype=np.uint8)
    padded[1:-1, 1:-1] = board
    for _ in range(4):
        count = (
            padded[:-2, :-2] + padded[:-2, 1:-1] + padded[:-2, 2:]
            + padded[1:-1, :-2] + padded[1:-1, 2:]
            + padded[2:, :-2] + padded[2:, 1:-1] + padded[2:, 2:]
        )  # fmt: skip
        alive = padded[1:-1, 1:-1]
        alive[...] = (count == 3) | ((alive == 1) & (count == 2))
    return padded[1:-1, 1:-1].astype(board.dtype)


def chequered(d: Draw) -> Array:
    return (np.indices((8, 10)).sum(axis=0) % 2 == 0).astype(d.dtype)


@program(lambda d: (d.normal(8, 10), chequered(d)))
def red_black(u: Array, red: Array) -> Array:
    for _ in range(3):
        for mask in (red, 1 - red):
            around = np.zeros_like(u)
            around[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
            u = np.where(mask.astype(bool), around, u)
    return u


@program(lambda d: (d.normal(14, 13, 11, 2), d.normal(14, 13, 11, 3), d.normal(14)), ulps=400)
def upwind(tracer: Array, speed: Array, width: Array) -> Array:
    """Fluxes of steps of time in the last dimension, by a limiter between four neighbours."""
    now, vel = tracer[..., 0], speed[1:-2, 2:-2, :, 1]
    before, here, after, far = (now[1 + n : -2 + n or None, 2:-2] for n in range(-1, 3))
    slope = after - here
    safe = np.where(np.abs(slope) < 0.25, 0.25, slope)
    ratio = np.where(vel > 0, here - before, far - after) / safe
    limit = np.maximum(0, np.maximum(np.minimum(1, 2 * ratio), np.minimum(2, ratio)))
    courant = np.abs(width[1:-2, None, None] * vel)
    flux = vel * (after + here) / 2 - np.abs(vel) * (1 - limit + courant * limit) * slope / 2
    result = tracer.copy()
    result[2:-2, 2:-2, :, 1] -= flux[1:] - flux[:-1]
    result[..., 1] += now * np.abs(now)
    return result
