"""Logistic regression by L-BFGS: which tumours are malignant, beside scikit-learn's own solution.

    python examples/logistic_regression.py

The loss is written once, and its gradient and the steps of L-BFGS are compiled as one program (Liu and Nocedal, "On the
limited memory BFGS method for large scale optimization", 1989). The penalty is that of scikit-learn's
LogisticRegression, whose coefficients must come out. They are drawn, with the receiver operating characteristic on the
held-out tumours, in logistic_regression.png.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import optim


@dataclass(frozen=True)
class Tumours:
    """Measurements of tumours, standardised, and whether they are malignant; every fourth is held out."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    names: list[str]


def load() -> Tumours:
    """The 569 tumours that scikit-learn brings (Wolberg, Street and Mangasarian, "Breast cancer Wisconsin", 1995)."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    held_out = np.arange(len(data.data)) % 4 == 3
    x, y = data.data, (data.target == 0).astype(np.float64)
    x = (x - x[~held_out].mean(axis=0)) / x[~held_out].std(axis=0)
    return Tumours(x[~held_out], y[~held_out], x[held_out], y[held_out], list(data.feature_names))


def loss(parameters: dict[str, Any], x: Any, y: Any, penalty: float) -> Any:
    """Minus the logarithm of the likelihood of the labels, and half of the penalty times the squared weights."""
    scores = x @ parameters["weights"] + parameters["offset"]
    return np.sum(np.logaddexp(0, scores) - y * scores) + 0.5 * penalty * np.sum(parameters["weights"] ** 2)


def fitted(x: np.ndarray, y: np.ndarray, penalty: float, iterations: int) -> tuple[dict[str, Any], list[float]]:
    """The parameters with the least loss, and the loss before each iteration."""
    optimiser = optim.lbfgs()

    @ml.compile
    def step(parameters: dict[str, Any], state: Any, x: Any, y: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(parameters, x, y, penalty)
        parameters, state = optimiser.update(gradient, state, parameters)
        return value, parameters, state

    parameters: dict[str, Any] = {"weights": np.zeros(x.shape[1]), "offset": np.zeros(())}
    state, losses = optimiser.init(parameters), []
    for _ in range(iterations):
        value, parameters, state = step(parameters, state, x, y)
        losses.append(float(value))
    return parameters, losses


def characteristic(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of the harmless and of the malignant ones that have a score above each threshold."""
    order = np.argsort(-scores)
    right = np.concatenate([[0], np.cumsum(y[order])]) / y.sum()
    wrong = np.concatenate([[0], np.cumsum(1 - y[order])]) / (1 - y).sum()
    return wrong, right


def draw(data: Tumours, parameters: dict[str, Any], losses: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    order = np.argsort(np.abs(parameters["weights"]))[-12:]
    left.barh([data.names[i] for i in order], parameters["weights"][order])
    left.set_title("the twelve largest weights", fontsize=9)
    middle.plot(*characteristic(data.test_x @ parameters["weights"], data.test_y))
    middle.set(xlabel="harmless, taken for malignant", ylabel="malignant, found")
    right.semilogy(np.array(losses) - min(losses) + 1e-12)
    right.set(xlabel="iteration of L-BFGS", title="loss above the least one")
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penalty", type=float, default=1.0, help="weight of the penalty (default: 1)")
    parser.add_argument("--iterations", type=int, default=60, help="iterations of L-BFGS (default: 60)")
    parser.add_argument("--png", type=Path, default=Path("logistic_regression.png"), help="the picture")
    given = parser.parse_args()
    data = load()
    start = time.perf_counter()
    parameters, losses = fitted(data.x, data.y, given.penalty, given.iterations)
    seconds = time.perf_counter() - start
    print(f"{given.iterations} iterations in {seconds:.2f} s, compilation included")
    print(f"loss {losses[0]:.2f} at first, {losses[-1]:.6f} at last")
    found = data.test_x @ parameters["weights"] + parameters["offset"] > 0
    print(f"{np.mean(found == data.test_y):.1%} of the {len(found)} held-out tumours are classified right")

    from sklearn.linear_model import LogisticRegression

    start = time.perf_counter()
    other = LogisticRegression(C=1 / given.penalty, tol=1e-10, max_iter=1000).fit(data.x, data.y)
    seconds = time.perf_counter() - start
    difference = np.max(np.abs(other.coef_[0] - parameters["weights"]))
    print(f"scikit-learn, in {seconds:.2f} s, has the same weights but for {difference:.1e}")
    draw(data, parameters, losses, given.png)
    print(f"drawn in {given.png}")


if __name__ == "__main__":
    main()
