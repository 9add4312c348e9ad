"""Handwritten digits: train a small network with scikit-learn, then compile its forward pass, written in plain NumPy.

    python examples/digits.py

Prints the accuracy on the held-out images, the time for a batch against NumPy, the time to compile it (cold, and from
the disk cache in a fresh process), and the size of the program after each stage of the compiler.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import mlirml as ml

ROUNDS = 200


def forward(weights: list[np.ndarray], biases: list[np.ndarray], images: np.ndarray) -> np.ndarray:
    """The class probabilities of a batch of images: hidden layers with relu, then softmax."""
    hidden = images
    for w, b in zip(weights[:-1], biases[:-1]):
        hidden = np.maximum(hidden @ w + b, 0)
    scores = hidden @ weights[-1] + biases[-1]
    exponentials = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=1, keepdims=True)


@dataclass(frozen=True)
class Trained:
    """A network that scikit-learn has trained, and what it says about the held-out images."""

    weights: list[np.ndarray]
    biases: list[np.ndarray]
    images: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    training_images: int
    seconds: float


def train() -> Trained:
    """Fit a classifier to the handwritten digits of the UCI repository, 8 by 8 pixels each."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(
        (images / 16).astype(np.float32), labels, test_size=0.25, random_state=0, stratify=labels
    )
    network = MLPClassifier(
        hidden_layer_sizes=(64, 32), learning_rate_init=0.01, batch_size=64, max_iter=100, tol=1e-3, random_state=0
    )
    start = time.perf_counter()
    network.fit(x, y)
    seconds = time.perf_counter() - start
    weights, biases = ([np.ascontiguousarray(a) for a in group] for group in (network.coefs_, network.intercepts_))
    return Trained(weights, biases, x_test, y_test, network.predict(x_test), len(x), seconds)


def microseconds(*calls: Callable[[], object]) -> list[float]:
    """The median time of each call on one thread, measured in turns."""
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    samples: list[list[float]] = [[] for _ in calls]
    with threadpool_limits(1), ml.config.override(threads=1):
        for _ in range(ROUNDS):
            for call, times in zip(calls, samples):
                start = time.perf_counter()
                call()
                times.append(1e6 * (time.perf_counter() - start))
    return [statistics.median(times) for times in samples]


def first_call() -> dict[str, object]:
    """Compile in this fresh process, for shapes as in `train`; the milliseconds that the first call takes."""
    shapes = [(64, 64), (64, 32), (32, 10)]
    weights = [np.zeros(shape, np.float32) for shape in shapes]
    biases = [np.zeros(n, np.float32) for _, n in shapes]
    compiled = ml.compile(forward)
    start = time.perf_counter()
    compiled(weights, biases, np.zeros((450, 64), np.float32))
    return {"ms": 1e3 * (time.perf_counter() - start), "cached": "from the disk cache" in compiled.explain()}


def compile_times() -> tuple[float, float]:
    """Milliseconds of a first call in a fresh process: with an empty disk cache, and with what that call has left."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--first-call"]
        environment = {**os.environ, "MLIRML_CACHE_DIR": cache, "MLIRML_CACHE": "1"}
        cold, warm = (
            json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
            for _ in range(2)
        )
    assert not cold["cached"] and warm["cached"]
    return cold["ms"], warm["ms"]


def main() -> None:
    """Train, compile, compare and report."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from mlirml.cli.explain import follow, stage_table

    out = Console(highlight=False)
    net = train()
    out.print(
        f"scikit-learn trained 64-64-32-10 on {net.training_images} digits in {net.seconds:.1f} s; "
        f"{len(net.images)} are held out"
    )
    arguments = net.weights, net.biases, net.images
    compiled = ml.compile(forward)
    predictions = np.argmax(compiled(*arguments), axis=1)
    assert np.array_equal(predictions, net.predictions), "mlirml and scikit-learn disagree"
    np.testing.assert_allclose(compiled(*arguments), forward(*arguments), rtol=1e-4, atol=1e-6)
    out.print(f"all {len(predictions)} predictions are those of scikit-learn")

    numpy_us, mlirml_us = microseconds(lambda: forward(*arguments), lambda: compiled(*arguments))
    cold, warm = compile_times()
    results = Table("", "scikit-learn", "NumPy", "mlirml", box=box.SIMPLE_HEAD, pad_edge=False)
    accuracy = [f"{np.mean(p == net.labels):.2%}" for p in (net.predictions, predictions)]
    results.add_row("accuracy on the held-out digits", accuracy[0], "", accuracy[1])
    times = f"{numpy_us:.0f} us", f"{mlirml_us:.0f} us ({numpy_us / mlirml_us:.1f}x)"
    results.add_row(f"forward pass of all {len(net.images)}, one thread", "", *times)
    results.add_row("first call, nothing cached", "", "", f"{cold:.0f} ms")
    results.add_row("first call, from the disk cache", "", "", f"{warm:.0f} ms")
    out.print(results)
    out.print("the program after each stage:", stage_table(follow(compiled, *arguments)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--first-call"]:
        print(json.dumps(first_call()))
    else:
        main()
