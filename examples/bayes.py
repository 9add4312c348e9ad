"""Logistic regression with Bayes: Hamiltonian Monte Carlo, whose forces are gradients of the posterior.

    python examples/bayes.py

Which tumours are malignant is told from six measurements of their cells. Chains of samples are drawn from the posterior
of the seven weights (Neal, "MCMC using Hamiltonian dynamics", section 5.3): one chain is written down, as a scan over
samples around a loop over leapfrog steps, and `ml.vmap` runs all of them. The means are checked against importance
sampling around the mode, which Newton's method finds with `ml.grad` and `ml.hessian`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirml as ml

FEATURES = (0, 1, 4, 6, 8, 9)
PRIOR_VARIANCE = 4.0


@dataclass(frozen=True)
class Data:
    """Standardised measurements with a column of ones, [n, d], and 1 for a malignant tumour, [n]."""

    names: list[str]
    x: np.ndarray
    y: np.ndarray


def load() -> Data:
    """Wisconsin's tumours, which scikit-learn brings."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    x = found.data[:, FEATURES]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    names = ["constant", *(str(found.feature_names[i]).removeprefix("mean ") for i in FEATURES)]
    return Data(names, np.hstack([np.ones((len(x), 1)), x]), (found.target == 0).astype(np.float64))


def potential(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-log of the posterior, but for a constant: Bernoulli likelihood, normal prior."""
    scores = x @ weights
    return np.sum(np.logaddexp(0, scores) - y * scores) + np.sum(weights**2) / (2 * PRIOR_VARIANCE)


@ml.compile
def newton_step(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
    """The gradient of the potential, and its Hessian."""
    return ml.grad(potential)(weights, x, y), ml.hessian(potential)(weights, x, y)


def mode(data: Data, rounds: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The most likely weights, and the covariance of the normal distribution there (Laplace's approximation)."""
    weights = np.zeros(data.x.shape[1])
    for _ in range(rounds):
        gradient, hessian = newton_step(weights, data.x, data.y)
        weights = weights - np.linalg.solve(hessian, gradient)
    return weights, np.linalg.inv(newton_step(weights, data.x, data.y)[1])


@dataclass(frozen=True)
class Walk:
    """How far a sample goes, in units of the posterior's own scales: a quarter turn, which is pi/2, mixes best."""

    leapfrogs: int = 4
    length: float = 0.4


def chain(walk: Walk) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """(start, momenta, uniforms, scale, x, y) -> samples, and which proposals were accepted, for one chain.

    `momenta` [samples, d] and `uniforms` [samples] are random numbers; `scale` [d, d] is a factor of the covariance.
    """

    def sample(
        start: np.ndarray, momenta: np.ndarray, uniforms: np.ndarray, scale: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        def energy(position: np.ndarray) -> np.ndarray:
            return potential(scale @ position, x, y)

        force = ml.grad(energy)

        def propose(position: np.ndarray, random: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
            momentum, uniform = random

            def leapfrog(_: Any, state: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
                q, p = state
                q = q + walk.length * p
                return q, p - walk.length * force(q)

            # Half a step of the momentum before and after, which the loop takes whole.
            p = momentum - walk.length / 2 * force(position)
            q, p = ml.fori_loop(0, walk.leapfrogs, leapfrog, (position, p))
            p = p + walk.length / 2 * force(q)
            before = energy(position) + np.sum(momentum**2) / 2
            after = energy(q) + np.sum(p**2) / 2
            accepted = np.log(uniform) < before - after
            position = np.where(accepted, q, position)
            return position, (scale @ position, accepted)

        return ml.scan(propose, start, (momenta, uniforms))[1]

    return sample


@dataclass(frozen=True)
class Samples:
    """Of all chains: weights [chains, samples, d], and the share of proposals that were accepted."""

    weights: np.ndarray
    accepted: float
    seconds: float
    first_seconds: float

    def effective(self) -> np.ndarray:
        """The number of independent samples that would tell the means as well (Gelman et al., BDA3, section 11.5)."""
        chains, count, _ = self.weights.shape
        centred = self.weights - self.weights.mean(axis=(0, 1))
        variance = np.mean(centred**2, axis=(0, 1))
        total = np.ones(self.weights.shape[2])
        running = np.ones(self.weights.shape[2], bool)
        for lag in range(1, count // 2, 2):
            pair = sum(
                np.mean(centred[:, k:] * centred[:, : count - k], axis=(0, 1)) / variance for k in (lag, lag + 1)
            )
            running &= pair > 0
            total += np.where(running, 2 * pair, 0)
            if not running.any():
                break
        return chains * count / total

    def r_hat(self) -> np.ndarray:
        """By how much the chains differ: near 1 where they have mixed (section 11.4 there)."""
        count = self.weights.shape[1]
        within = self.weights.var(axis=1, ddof=1).mean(axis=0)
        between = self.weights.mean(axis=1).var(axis=0, ddof=1)
        return np.sqrt((count - 1) / count + between / within)


def draw_samples(data: Data, chains: int, samples: int, walk: Walk = Walk(), seed: int = 0) -> Samples:
    """Run the chains, from random starts; the first tenth of each is left away."""
    centre, covariance = mode(data)
    scale = np.linalg.cholesky(covariance)
    rng = np.random.default_rng(seed)
    d = len(centre)
    start = np.linalg.solve(scale, centre) + 2 * rng.standard_normal((chains, d))
    random = rng.standard_normal((chains, samples, d)), rng.random((chains, samples))
    run = ml.compile(ml.vmap(chain(walk), in_axes=(0, 0, 0, None, None, None)))
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        weights, accepted = run(start, *random, scale, data.x, data.y)
        times.append(time.perf_counter() - begin)
    return Samples(weights[:, samples // 10 :], float(np.mean(accepted)), times[1], times[0])


def importance(data: Data, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior means and their standard errors in plain NumPy, and how many samples these are worth.

    From a Student distribution of 8 degrees around the mode, weighted by the posterior.
    """
    centre, covariance = mode(data)
    rng = np.random.default_rng(seed)
    degrees, d = 8, len(centre)
    scale = np.linalg.cholesky(covariance)
    unit = rng.standard_normal((count, d)) / np.sqrt(rng.chisquare(degrees, (count, 1)) / degrees)
    weights = centre + unit @ scale.T
    scores = weights @ data.x.T
    energies = (np.logaddexp(0, scores) - data.y * scores).sum(axis=1) + (weights**2).sum(axis=1) / (2 * PRIOR_VARIANCE)
    density = -(degrees + d) / 2 * np.log1p((unit**2).sum(axis=1) / degrees)
    logs = -energies - density
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    means = shares @ weights
    errors = np.sqrt((shares**2) @ (weights - means) ** 2)
    return means, errors, float(1 / np.sum(shares**2))


def numpy_seconds(data: Data, walk: Walk, samples: int) -> float:
    """The time of one chain of so many samples where the same code runs in NumPy, with the gradient by hand."""
    scale = np.linalg.cholesky(mode(data)[1])
    rng = np.random.default_rng(0)
    position = np.zeros(scale.shape[0])

    def force(q: np.ndarray) -> np.ndarray:
        weights = scale @ q
        shares = 1 / (1 + np.exp(-(data.x @ weights)))
        return scale.T @ (data.x.T @ (shares - data.y) + weights / PRIOR_VARIANCE)

    begin = time.perf_counter()
    for _ in range(samples):
        momentum = rng.standard_normal(len(position))
        q, p = position, momentum - walk.length / 2 * force(position)
        for _ in range(walk.leapfrogs):
            q = q + walk.length * p
            p = p - walk.length * force(q)
        p = p + walk.length / 2 * force(q)
        before = potential(scale @ position, data.x, data.y) + np.sum(momentum**2) / 2
        if np.log(rng.random()) < before - potential(scale @ q, data.x, data.y) - np.sum(p**2) / 2:
            position = q
    return time.perf_counter() - begin


def main() -> None:
    """Sample, check and report."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chains", type=int, default=4, help="that run side by side (4)")
    parser.add_argument("--samples", type=int, default=2000, help="of each chain (2000)")
    options = parser.parse_args()
    out = Console(highlight=False)
    data, walk = load(), Walk()
    found = draw_samples(data, options.chains, options.samples, walk)
    means, effective, r_hat = found.weights.mean(axis=(0, 1)), found.effective(), found.r_hat()
    spread = found.weights.std(axis=(0, 1))
    expected, errors, worth = importance(data, 40_000)
    laplace, _ = mode(data)

    results = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("weight of", "mode", "mean", "+-", "check", "+-", "spread", "worth", "R-hat"):
        results.add_column(column, justify="left" if column == "weight of" else "right", no_wrap=True)
    for i, name in enumerate(data.names):
        figures = laplace[i], means[i], spread[i] / np.sqrt(effective[i]), expected[i], errors[i], spread[i]
        results.add_row(name, *(f"{x:.3f}" for x in figures), f"{effective[i]:.0f}", f"{r_hat[i]:.3f}")
    out.print(f"{len(data.y)} tumours, {options.chains} chains of {options.samples} samples: the posterior's weights")
    out.print(results)
    off = np.abs(means - expected) / np.sqrt(errors**2 + spread**2 / effective)
    out.print(
        f"means differ by at most {off.max():.1f} standard errors from importance sampling ({worth:,.0f} samples)"
    )

    gradients = options.chains * options.samples * (walk.leapfrogs + 2)
    few = max(1, options.samples // 20)
    by_hand = numpy_seconds(data, walk, few) / (few * (walk.leapfrogs + 2))
    by_mlirml = found.seconds / gradients
    times = Table("", "NumPy", "mlirml", box=box.SIMPLE_HEAD, pad_edge=False)
    times.add_row("proposals accepted", "", f"{found.accepted:.0%}")
    faster = f"({by_hand / by_mlirml:.1f}x)"
    times.add_row("one gradient, in NumPy by hand", f"{1e6 * by_hand:.1f} us", f"{1e6 * by_mlirml:.1f} us {faster}")
    times.add_row(f"all {gradients:,} of them", "", f"{found.seconds:.2f} s")
    times.add_row("compilation", "", f"{found.first_seconds - found.seconds:.1f} s")
    out.print(times)


if __name__ == "__main__":
    main()
