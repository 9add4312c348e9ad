"""Regression by a Gaussian process, whose length, amplitude and noise are found by the gradient of the evidence.

    python examples/gaussian_process.py

The logarithm of the evidence goes through a Cholesky factor and two triangular systems (Rasmussen and Williams,
"Gaussian Processes for Machine Learning", algorithm 2.1), and its gradient through their derivatives; L-BFGS climbs it.
The gradient is checked against differences, and the prediction, with its uncertainty, is drawn in
gaussian_process.png.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import linalg, optim


@dataclass(frozen=True)
class Points:
    """Places and measured values."""

    x: np.ndarray
    y: np.ndarray


def truth(x: Any) -> Any:
    return np.sin(3 * x) + 0.5 * np.cos(7.5 * x)


def measured(count: int, noise: float = 0.2, seed: int = 0) -> Points:
    """Values at random places between -2 and 2, with a gap."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, 2 * count)
    x = np.sort(x[(x < 0.3) | (x > 0.9)][:count])
    return Points(x, truth(x) + noise * rng.standard_normal(x.shape))


def kernel(parameters: dict[str, Any], x: Any, z: Any) -> Any:
    """The covariance of the values at places x and z; all parameters are logarithms."""
    scaled = (x[:, None] - z) / np.exp(parameters["length"])
    return np.exp(2 * parameters["amplitude"]) * np.exp(-0.5 * scaled**2)


def negative_evidence(parameters: dict[str, Any], x: Any, y: Any) -> Any:
    """Minus the logarithm of the probability of the values."""
    noisy = kernel(parameters, x, x) + np.exp(2 * parameters["noise"]) * np.eye(x.shape[0])
    factor = np.linalg.cholesky(noisy)
    white = linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * np.sum(white**2) + np.sum(np.log(np.diagonal(factor))) + 0.5 * x.shape[0] * np.log(2 * np.pi)


def prediction(parameters: dict[str, Any], x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """The mean and the standard deviation of the values at places z."""
    noisy = kernel(parameters, x, x) + np.exp(2 * parameters["noise"]) * np.eye(x.shape[0])
    factor = np.linalg.cholesky(noisy)
    between = linalg.solve_triangular(factor, kernel(parameters, x, z), lower=True)
    mean = between.T @ linalg.solve_triangular(factor, y, lower=True)
    variance = np.exp(2 * parameters["amplitude"]) - np.sum(between**2, axis=0)
    return mean, np.sqrt(np.maximum(variance, 0) + np.exp(2 * parameters["noise"]))


START = {"length": np.array(0.0), "amplitude": np.array(0.0), "noise": np.array(0.0)}


def fitted(points: Points, iterations: int) -> tuple[dict[str, Any], list[float]]:
    """The parameters, and minus the logarithm of the evidence before each iteration."""
    optimiser = optim.lbfgs()

    def loss(parameters: dict[str, Any]) -> Any:
        return negative_evidence(parameters, points.x, points.y)

    @ml.compile
    def step(parameters: dict[str, Any], state: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(parameters)
        parameters, state = optimiser.update(gradient, state, parameters)
        return value, parameters, state

    parameters, state, values = START, optimiser.init(START), []
    for _ in range(iterations):
        value, parameters, state = step(parameters, state)
        values.append(float(value))
    return parameters, values


def slopes(points: Points) -> tuple[float, float]:
    """The derivative of the evidence by the logarithm of the length: by the gradient, and by a difference in NumPy."""
    gradient = ml.compile(ml.grad(negative_evidence))(START, points.x, points.y)
    h = 1e-5
    above, below = ({**START, "length": START["length"] + d} for d in (h, -h))
    difference = negative_evidence(above, points.x, points.y) - negative_evidence(below, points.x, points.y)
    return float(gradient["length"]), float(difference / (2 * h))


def draw(points: Points, parameters: dict[str, Any], values: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    z = np.linspace(-2.5, 2.5, 400)
    mean, deviation = ml.compile(prediction)(parameters, points.x, points.y, z)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=(3, 1))
    left.fill_between(z, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, label="two standard deviations")
    left.plot(z, mean, label="prediction")
    left.plot(z, truth(z), "k--", linewidth=1, label="truth")
    left.plot(points.x, points.y, ".", color="tab:red", markersize=3, label="measured")
    left.legend(fontsize=8)
    right.plot(values)
    right.set_xlabel("iteration of L-BFGS")
    right.set_title("minus the logarithm of the evidence", fontsize=9)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="measured points (default: 200)")
    parser.add_argument("--iterations", type=int, default=25, help="iterations of L-BFGS (default: 25)")
    parser.add_argument("--png", type=Path, default=Path("gaussian_process.png"), help="the picture")
    given = parser.parse_args()
    points = measured(given.count)
    gradient, difference = slopes(points)
    print(f"derivative by the length: {gradient:.6f} by the gradient, {difference:.6f} by a difference in NumPy")
    start = time.perf_counter()
    parameters, values = fitted(points, given.iterations)
    seconds = time.perf_counter() - start
    shown = ", ".join(f"{name} {float(np.exp(value)):.3f}" for name, value in parameters.items())
    print(
        f"{given.iterations} iterations with {points.x.size} points in {seconds:.2f} s, compilation included: {shown}"
    )
    print(f"minus the logarithm of the evidence: {values[0]:.1f} at first, {values[-1]:.1f} at last")
    draw(points, parameters, values, given.png)
    print(f"drawn in {given.png}")


if __name__ == "__main__":
    main()
