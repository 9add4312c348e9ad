"""A fluid in two dimensions that is stirred so that a drop of dye becomes a ring: a gradient through the solver.

    python examples/fluid.py

The incompressible Navier-Stokes equations with periodic boundaries, as vorticity and stream function: vorticity and dye
are carried along backwards (Stam, "Stable Fluids", section 2), and diffuse implicitly. Unknown is the vorticity at the
start. The misfit of the dye at the end is differentiated through all steps, and made smaller by Adam. The gradient is
checked against differences of a run in plain NumPy; what the dye does is drawn in fluid.png.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml


@dataclass(frozen=True)
class Fluid:
    """A periodic square of side 1 with size x size points, through `steps` steps of time."""

    size: int = 64
    steps: int = 40
    seconds: float = 0.02
    viscosity: float = 1e-3

    def waves(self) -> tuple[np.ndarray, np.ndarray]:
        """The orthogonal real Fourier basis, one wave a column, and the square of each wave's number times 2 pi."""
        points, half = np.arange(self.size)[:, None] / self.size, self.size // 2
        numbers = np.array([k // 2 + k % 2 for k in range(self.size)])
        cosines, sines = np.cos(2 * np.pi * points * numbers), np.sin(2 * np.pi * points * numbers)
        basis = np.where(np.arange(self.size) % 2 == 1, cosines, sines)
        basis[:, 0] = 1
        if self.size % 2 == 0:
            basis[:, -1] = np.cos(2 * np.pi * points[:, 0] * half)
        return basis / np.linalg.norm(basis, axis=0), (2 * np.pi * numbers) ** 2


def carried(field: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The field at the points where the flow was one step before, u rows above and v columns to the left."""
    size = field.shape[0]
    points = np.arange(size, dtype=field.dtype)
    rows, columns = points[:, None] - u, points - v
    top, left = np.floor(rows), np.floor(columns)
    below, right = rows - top, columns - left
    i, j = top.astype(np.int32) % size, left.astype(np.int32) % size
    flat, ii, jj = field.reshape(-1), (i + 1) % size * size, (j + 1) % size
    i = i * size
    upper = (1 - right) * flat[i + j] + right * flat[i + jj]
    lower = (1 - right) * flat[ii + j] + right * flat[ii + jj]
    return (1 - below) * upper + below * lower


def solver(fluid: Fluid, dtype: Any = np.float32) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """(vorticity, dye) at the start -> the dye at the end."""
    basis, squares = (array.astype(dtype) for array in fluid.waves())
    laplacian = squares[:, None] + squares
    inverse = np.where(laplacian > 0, 1 / np.maximum(laplacian, 1), 0).astype(dtype)
    fading = (1 / (1 + fluid.viscosity * fluid.seconds * laplacian)).astype(dtype)
    # From differences of two grid spacings to points that the flow passes in a step.
    scale = dtype(fluid.size**2 * fluid.seconds / 2)

    def step(_: Any, state: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        vorticity, dye = state
        spectrum = basis.T @ vorticity @ basis
        stream = basis @ (spectrum * inverse) @ basis.T
        u = scale * (np.roll(stream, -1, axis=1) - np.roll(stream, 1, axis=1))
        v = scale * (np.roll(stream, 1, axis=0) - np.roll(stream, -1, axis=0))
        vorticity = basis @ (spectrum * fading) @ basis.T
        return carried(vorticity, u, v), carried(dye, u, v)

    def run(vorticity: np.ndarray, dye: np.ndarray) -> np.ndarray:
        return ml.fori_loop(0, fluid.steps, step, (vorticity, dye))[1]

    return run


def drop_and_ring(size: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """The dye at the start and as it should be at the end; as much of it in both."""
    x, y = np.meshgrid(np.linspace(-1, 1, size, endpoint=False), np.linspace(-1, 1, size, endpoint=False))
    radius = np.hypot(x, y)
    drop, ring = 1 / (1 + np.exp(40 * (radius - 0.4))), np.exp(-(((radius - 0.5) / 0.1) ** 2))
    return drop.astype(dtype), (ring * (drop.sum() / ring.sum())).astype(dtype)


def vorticity_of(fluid: Fluid, control: np.ndarray) -> np.ndarray:
    """The smooth field of a control, which holds one number for each pair of waves: long waves are strong."""
    basis, squares = (array.astype(control.dtype) for array in fluid.waves())
    return basis @ (control / (1 + 3e-3 * (squares[:, None] + squares)).astype(control.dtype)) @ basis.T


def misfit_of(fluid: Fluid, dtype: Any = np.float32) -> Callable[[np.ndarray], np.ndarray]:
    """control -> the mean square of what the dye at the end differs from the ring."""
    run = solver(fluid, dtype)
    drop, ring = drop_and_ring(fluid.size, dtype)
    return lambda control: np.mean((run(vorticity_of(fluid, control), drop) - ring) ** 2)


def first_control(fluid: Fluid, dtype: Any = np.float32) -> np.ndarray:
    """Random waves."""
    return np.random.default_rng(0).standard_normal((fluid.size, fluid.size)).astype(dtype)


@dataclass(frozen=True)
class Search:
    """A control, the misfit before each change of it, and the median seconds of one gradient."""

    control: np.ndarray
    misfits: list[float]
    seconds: float


def search(fluid: Fluid, rounds: int, rate: float = 20.0) -> Search:
    """Change the control along the gradient (Kingma and Ba, "Adam", algorithm 1)."""
    misfit = misfit_of(fluid)

    @ml.compile
    def step(control: Any, mean: Any, square: Any, n: float) -> Any:
        value, gradient = ml.value_and_grad(misfit)(control)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        change = mean / (1 - 0.9**n) / (np.sqrt(square / (1 - 0.99**n)) + 1e-12)
        return value, control - rate * change, mean, square

    control = first_control(fluid)
    mean, square = np.zeros_like(control), np.zeros_like(control)
    misfits, times = [], []
    for n in range(1, rounds + 1):
        start = time.perf_counter()
        value, control, mean, square = step(control, mean, square, float(n))
        times.append(time.perf_counter() - start)
        misfits.append(float(value))
    return Search(control, misfits, statistics.median(times))


def slopes(fluid: Fluid) -> tuple[float, float]:
    """How the misfit changes along a random control: from the compiled gradient, and from a difference in NumPy."""
    misfit, control = misfit_of(fluid, np.float64), first_control(fluid, np.float64)
    direction = np.random.default_rng(1).standard_normal(control.shape)
    gradient = ml.compile(ml.grad(misfit))(control)
    difference = (misfit(control + 1e-5 * direction) - misfit(control - 1e-5 * direction)) / 2e-5
    return float(np.sum(gradient * direction)), float(difference)


def seconds_of(call: Callable[[], object]) -> float:
    """The median of some calls."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def draw(fluid: Fluid, found: Search, path: Path) -> None:
    """What the dye does, as it should be at the end, the vorticity that does it, and the misfits, in a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drop, ring = drop_and_ring(fluid.size)
    vorticity = vorticity_of(fluid, found.control)
    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subfigures(2, 1)
    steps = [fluid.steps * n // 4 for n in range(5)]
    pictures = [solver(replace(fluid, steps=n))(vorticity, drop) for n in steps] + [ring]
    titles = [f"after {n} steps" if n else "dye at the start" for n in steps] + ["wanted"]
    for axes, picture, title in zip(upper.subplots(1, 6), pictures, titles):
        axes.imshow(picture, cmap="magma", vmin=0, vmax=1)
        axes.set_title(title)
        axes.axis("off")
    left, right = lower.subplots(1, 2, width_ratios=[1, 2])
    limit = float(np.abs(vorticity).max())
    shown = left.imshow(vorticity, cmap="RdBu", vmin=-limit, vmax=limit)
    left.set_title("vorticity at the start")
    left.axis("off")
    lower.colorbar(shown, ax=left)
    right.plot(found.misfits)
    right.set(title="misfit", xlabel="round", yscale="log")
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Search, check, draw and report."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=Fluid.size, help="points along a side (64)")
    parser.add_argument("--steps", type=int, default=Fluid.steps, help="of time (40)")
    parser.add_argument("--rounds", type=int, default=80, help="of the search (80)")
    parser.add_argument("--png", type=Path, default=Path("fluid.png"), help="where the pictures go (fluid.png)")
    options = parser.parse_args()
    out = Console(highlight=False)
    fluid = Fluid(options.size, options.steps)

    start = time.perf_counter()
    found = search(fluid, options.rounds)
    seconds = time.perf_counter() - start
    draw(fluid, found, options.png)
    gradient, difference = slopes(fluid)
    misfit = misfit_of(fluid)
    compiled = ml.compile(misfit)
    expected, value = misfit(found.control), compiled(found.control)
    np.testing.assert_allclose(value, expected, rtol=1e-3)
    numpy_seconds = seconds_of(lambda: misfit(found.control))
    run_seconds = seconds_of(lambda: compiled(found.control))

    name = f"{fluid.size} x {fluid.size} points, {fluid.steps} steps"
    results = Table(name, "NumPy", "mlirml", box=box.SIMPLE_HEAD, pad_edge=False)
    results.add_row("misfit of random vorticity", "", f"{found.misfits[0]:.5f}")
    results.add_row(f"after {options.rounds} rounds", f"{expected:.5f}", f"{value:.5f}")
    results.add_row("slope along a random control, f64", f"{difference:.6e}", f"{gradient:.6e}")
    faster = f"({numpy_seconds / run_seconds:.1f}x)"
    results.add_row("one run", f"{1e3 * numpy_seconds:.1f} ms", f"{1e3 * run_seconds:.1f} ms {faster}")
    times = f"{1e3 * found.seconds:.1f} ms ({found.seconds / run_seconds:.1f} runs)"
    results.add_row("one round, with the gradient", "", times)
    results.add_row("the search, with compilation", "", f"{seconds:.1f} s")
    out.print(results)
    out.print(f"the pictures are in {options.png}")


if __name__ == "__main__":
    main()
