"""The Ising model on a square lattice by Metropolis' rule, beside Onsager's exact solution.

    python examples/ising.py

Spins are up or down, and neighbours that differ cost energy. Fields of a checkerboard do not touch each other, so that
all the black ones are drawn at once, and then the white ones (Metropolis et al., "Equation of state calculations by
fast computing machines", 1953). All temperatures and sweeps are one compiled program: a loop over the sweeps, batched
over the temperatures, with random numbers by keys. The magnetisation is compared with Onsager's and Yang's formula, and
drawn with three lattices in ising.png.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import random

CRITICAL = 2 / np.log(1 + np.sqrt(2))


def neighbours(spins: Any) -> Any:
    """The sums of the four neighbours, at the border those on the other side."""
    return np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)


def sweep(spins: Any, key: Any, temperature: Any) -> Any:
    """The spins after each of them was offered to turn over once."""
    rows, columns = np.indices(spins.shape)
    for colour in (0, 1):
        cost = 2 * spins * neighbours(spins)
        chance = random.uniform(random.fold_in(key, colour), spins.shape, np.float32)
        turns = (chance < np.exp(-cost / temperature)) & ((rows + columns) % 2 == colour)
        spins = np.where(turns, -spins, spins)
    return spins


def simulated(key: Any, temperature: Any, size: int, sweeps: int) -> tuple[Any, Any, Any]:
    """The lattice after the sweeps, and its magnetisation and energy a spin: means over the second half of them."""
    spins, magnetisation, energy = np.ones((size, size), np.float32), np.float32(0), np.float32(0)
    for number in range(sweeps):
        spins = sweep(spins, random.fold_in(key, number), temperature)
        counts = np.float32(number >= sweeps // 2)
        magnetisation += counts * np.abs(np.mean(spins))
        energy -= counts * np.mean(spins * neighbours(spins)) / 2
    return spins, magnetisation / (sweeps - sweeps // 2), energy / (sweeps - sweeps // 2)


def run(temperatures: np.ndarray, size: int, sweeps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lattices, magnetisations and energies at all temperatures."""
    keys = random.split(random.key(seed), len(temperatures))
    program = ml.compile(ml.vmap(lambda key, temperature: simulated(key, temperature, size, sweeps)))
    lattices, magnetisation, energy = program(keys, temperatures.astype(np.float32))
    return lattices, magnetisation, energy


def exact(temperatures: np.ndarray) -> np.ndarray:
    """The magnetisation of an infinite lattice (Yang, "The spontaneous magnetization of a two-dimensional Ising model",
    1952).
    """
    below = np.minimum(temperatures, CRITICAL)
    return np.where(temperatures < CRITICAL, np.maximum(1 - np.sinh(2 / below) ** -4, 0) ** 0.125, 0)


def draw(temperatures: np.ndarray, lattices: np.ndarray, magnetisation: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(13, 3.4), layout="constrained", width_ratios=(1, 1, 1, 1.5))
    for panel, wanted in zip(axes, (1.8, CRITICAL, 3.0)):
        chosen = int(np.argmin(np.abs(temperatures - wanted)))
        panel.imshow(lattices[chosen], cmap="Greys", interpolation="nearest")
        panel.set_title(f"temperature {temperatures[chosen]:.2f}", fontsize=9)
        panel.set_axis_off()
    fine = np.linspace(temperatures[0], temperatures[-1], 400)
    axes[3].plot(fine, exact(fine), "k--", linewidth=1, label="exact, infinite lattice")
    axes[3].plot(temperatures, magnetisation, ".", label="simulated")
    axes[3].set(xlabel="temperature", ylabel="magnetisation")
    axes[3].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="rows of the lattice, an even number (default: 64)")
    parser.add_argument("--sweeps", type=int, default=4000, help="sweeps (default: 4000)")
    parser.add_argument("--temperatures", type=int, default=24, help="temperatures (default: 24)")
    parser.add_argument("--png", type=Path, default=Path("ising.png"), help="the picture")
    given = parser.parse_args()
    temperatures = np.linspace(1.6, 3.2, given.temperatures)
    start = time.perf_counter()
    lattices, magnetisation, energy = run(temperatures, given.size, given.sweeps)
    seconds = time.perf_counter() - start
    spins = given.size**2 * given.sweeps * given.temperatures
    print(f"{spins / 1e6:.0f} million spins drawn in {seconds:.1f} s, compilation included")
    for t, m, e in list(zip(temperatures, magnetisation, energy))[:: max(1, given.temperatures // 8)]:
        print(f"temperature {t:.2f}: magnetisation {m:.3f} (exact {exact(np.array(t)):.3f}), energy {e:.3f} a spin")
    cold = temperatures < CRITICAL - 0.2
    error = np.max(np.abs(magnetisation - exact(temperatures))[cold])
    print(f"largest error of the magnetisation in the cold: {error:.4f}")
    draw(temperatures, lattices, magnetisation, given.png)
    print(f"drawn in {given.png}")


if __name__ == "__main__":
    main()
