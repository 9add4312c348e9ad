"""Physics, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def lennard_jones(positions, cutoff):
    """Energy and forces of particles that attract and repel each other."""
    n = len(positions)
    forces = np.zeros_like(positions)
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            d = positions[i] - positions[j]
            r2 = d[0] ** 2 + d[1] ** 2 + d[2] ** 2
            if r2 < cutoff**2:
                s6 = 1.0 / r2**3
                energy += 4 * (s6 * s6 - s6)
                f = 24 * (2 * s6 * s6 - s6) / r2
                forces[i] += f * d
                forces[j] -= f * d
    return energy, forces


def ising(spins, uniforms, beta):
    """Metropolis steps on a lattice, with given random numbers."""
    n = spins.shape[0]
    spins = spins.copy()
    sweeps = uniforms.shape[0]
    for s in range(sweeps):
        for i in range(n):
            for j in range(n):
                total = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
                change = 2 * spins[i, j] * total
                if change <= 0 or uniforms[s, i, j] < np.exp(-beta * change):
                    spins[i, j] = -spins[i, j]
    return spins.mean()


def heat(temperature, steps, diffusion):
    """Heat that spreads on a plate with fixed edges."""
    t = temperature.copy()
    for _ in range(steps):
        t[1:-1, 1:-1] += diffusion * (t[2:, 1:-1] + t[:-2, 1:-1] + t[1:-1, 2:] + t[1:-1, :-2] - 4 * t[1:-1, 1:-1])
    return t


class Body:
    """A planet."""

    def __init__(self, mass, position, velocity):
        self.mass = mass
        self.position = position
        self.velocity = velocity


def solar_system(masses, positions, velocities, steps, dt):
    """Planets as objects, by the leapfrog method."""
    bodies = [Body(m, p, v) for m, p, v in zip(masses, positions, velocities)]
    for _ in range(steps):
        for body in bodies:
            acceleration = np.zeros(3)
            for other in bodies:
                if other is not body:
                    d = other.position - body.position
                    acceleration = acceleration + other.mass * d / (np.sum(d**2) + 1e-3) ** 1.5
            body.velocity = body.velocity + dt * acceleration
        for body in bodies:
            body.position = body.position + dt * body.velocity
    return np.array([body.position for body in bodies])


def string(u, steps, speed):
    """A plucked string, its shape at each tenth step."""
    before, now = u.copy(), u.copy()
    shapes = []
    for step in range(steps):
        after = np.zeros_like(now)
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + speed**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, after
        if step % 10 == 0:
            shapes.append(now)
    return np.array(shapes)


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    return {
        "lennard_jones": (rng.random((80, 3)) * 5, 2.5),
        "ising": (np.where(rng.random((24, 24)) < 0.5, -1, 1), rng.random((10, 24, 24)), 0.44),
        "heat": (rng.random((100, 100)), 100, 0.2),
        "solar_system": (np.array([1.0, 0.1, 0.2]), rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), 200, 0.01),
        "string": (np.sin(np.linspace(0, np.pi, 300)), 500, 0.5),
    }[name]
