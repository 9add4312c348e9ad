"""Decaying turbulence in two dimensions by Fourier transforms: small vortices merge into large ones.

    python examples/turbulence.py

The incompressible Navier-Stokes equations with periodic boundaries, as vorticity in Fourier space: products are
computed at the points and cut off at two thirds of the wave numbers (Orszag, "On the elimination of aliasing", 1971),
viscosity is an integrating factor, and time goes by Runge and Kutta's method of order four. All steps are one compiled
loop with twenty transforms of the plane each. Energy and enstrophy may not grow; without viscosity they stay. The
vorticity at four times and both curves are drawn in turbulence.png.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml


@dataclass(frozen=True)
class Plane:
    """A periodic square of side 2 pi with size x size points, and steps of time."""

    size: int = 256
    seconds: float = 0.004
    viscosity: float = 5e-4

    def wave_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the bins of `rfft2`, down the rows and along the columns."""
        return np.fft.fftfreq(self.size, 1 / self.size)[:, None], np.fft.rfftfreq(self.size, 1 / self.size)[None, :]


def change_of(plane: Plane) -> Callable[[Any], Any]:
    """The change of the vorticity's spectrum in a second by the flow."""
    kx, ky = plane.wave_numbers()
    squares = kx**2 + ky**2
    inverse = np.where(squares > 0, 1 / np.maximum(squares, 1), 0)
    kept = (np.abs(kx) < plane.size / 3) & (ky < plane.size / 3)
    shape = (plane.size, plane.size)

    def change(spectrum: Any) -> Any:
        stream = spectrum * inverse
        down, along = np.fft.irfft2(1j * ky * stream, s=shape), np.fft.irfft2(-1j * kx * stream, s=shape)
        slope_x, slope_y = np.fft.irfft2(1j * kx * spectrum, s=shape), np.fft.irfft2(1j * ky * spectrum, s=shape)
        return np.where(kept, -np.fft.rfft2(down * slope_x + along * slope_y), 0)

    return change


def stepper(plane: Plane, steps: int) -> Callable[[Any], Any]:
    """The vorticity's spectrum after a number of steps."""
    change, h = change_of(plane), plane.seconds
    kx, ky = plane.wave_numbers()
    half = np.exp(-plane.viscosity * h / 2 * (kx**2 + ky**2))

    def step(_: Any, w: Any) -> Any:
        first = change(w)
        second = change(half * (w + h / 2 * first))
        third = change(half * w + h / 2 * second)
        fourth = change(half**2 * w + h * half * third)
        return half**2 * w + h / 6 * (half**2 * first + 2 * half * (second + third) + fourth)

    return lambda w: ml.fori_loop(0, steps, step, w)


def start_of(plane: Plane, seed: int = 0) -> np.ndarray:
    """The spectrum of a random vorticity with a peak of its energy at wave number 12 and a mean speed of one."""
    rng = np.random.default_rng(seed)
    kx, ky = plane.wave_numbers()
    k = np.hypot(kx, ky)
    noise = np.fft.rfft2(rng.standard_normal((plane.size, plane.size)))
    spectrum = noise * k**2 / (1 + (k / 12) ** 6) * (k < plane.size / 3)
    energy, _ = energy_and_enstrophy(plane, spectrum)
    return spectrum / np.sqrt(2 * energy)


def energy_and_enstrophy(plane: Plane, spectrum: np.ndarray) -> tuple[float, float]:
    """Means over the plane of half of the squared speed and of the squared vorticity."""
    kx, ky = plane.wave_numbers()
    squares = kx**2 + ky**2
    weights = np.where((ky > 0) & (ky < plane.size / 2), 2.0, 1.0) / plane.size**4  # a bin and its conjugate
    power = weights * np.abs(spectrum) ** 2 / 2
    return float(np.sum(power / np.maximum(squares, 1))), float(np.sum(power))


def simulate(plane: Plane, steps: int, frames: int) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Spectra at the start and after each of `frames` parts of the steps, energy and enstrophy there, and the time."""
    advance = ml.compile(stepper(plane, steps // frames))
    spectra = [start_of(plane)]
    advance(spectra[0])  # compiles
    start = time.perf_counter()
    for _ in range(frames):
        spectra.append(advance(spectra[-1]))
    return spectra, np.array([energy_and_enstrophy(plane, w) for w in spectra]), time.perf_counter() - start


def draw(plane: Plane, spectra: list[np.ndarray], curves: np.ndarray, times: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 5, figsize=(15, 3.2), layout="constrained")
    chosen = [0, len(spectra) // 8, len(spectra) // 3, len(spectra) - 1]
    for axis, number in zip(axes, chosen):
        field = np.fft.irfft2(spectra[number], s=(plane.size, plane.size))
        limit = np.quantile(np.abs(field), 0.995)
        axis.imshow(field, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="bilinear")
        axis.set_title(f"vorticity at {times[number]:.1f} s")
        axis.set_axis_off()
    axes[4].plot(times, curves[:, 0] / curves[0, 0], label="energy")
    axes[4].plot(times, curves[:, 1] / curves[0, 1], label="enstrophy")
    axes[4].set_xlabel("seconds")
    axes[4].set_ylim(0, 1.05)
    axes[4].legend()
    figure.savefig(path, dpi=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="points along each side (default: 256)")
    parser.add_argument("--steps", type=int, default=960, help="steps of time (default: 960)")
    parser.add_argument("--frames", type=int, default=48, help="points of the curves (default: 48)")
    parser.add_argument("--png", type=Path, default=Path("turbulence.png"), help="the picture")
    given = parser.parse_args()
    plane = Plane(given.size)
    spectra, curves, seconds = simulate(plane, given.steps, given.frames)
    done = given.steps // given.frames * given.frames
    print(f"{given.size} x {given.size} points, {done} steps: {seconds:.2f} s, {seconds / done * 1e3:.2f} ms a step")

    advance = stepper(plane, 2)
    began = time.perf_counter()
    expected = advance(spectra[0])
    numpy = (time.perf_counter() - began) / 2
    found = ml.compile(advance)(spectra[0])
    error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    print(f"the same in NumPy: {numpy * 1e3:.2f} ms a step; largest difference after two steps {error:.1e}")
    print(f"energy falls to {curves[-1, 0] / curves[0, 0]:.3f}, enstrophy to {curves[-1, 1] / curves[0, 1]:.3f}")
    times = np.linspace(0, done * plane.seconds, len(spectra))
    draw(plane, spectra, curves, times, given.png)
    print(f"drawn in {given.png}")


if __name__ == "__main__":
    main()
