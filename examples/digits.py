"""Handwritten digits: train two small networks, written in NumPy for one image, with gradients made by the compiler.

    python examples/digits.py
    python examples/digits.py --target vulkan     # on a GPU, where the weights stay

A perceptron and a convolutional network start from random weights, and learn by gradient descent with momentum. Both
are written for one image; `ml.vmap` makes batches of it, `ml.value_and_grad` the gradient, and `ml.compile` a program
of the whole step. Prints the accuracy on the held-out images, the time of a step (against torch, where it is
installed), the time to compile, and the size of the program after each stage of the compiler. The losses and the
accuracies are drawn in digits.png.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml.nn import functional as F

ROUNDS = 200
BATCH = 32
MOMENTUM = 0.9

Params = dict[str, np.ndarray]


def mlp(params: Params, image: np.ndarray) -> np.ndarray:
    """The scores of the ten classes for one image of 8 by 8 pixels: two hidden layers."""
    hidden = F.relu(F.linear(image.reshape(-1), params["w1"], params["b1"]))
    hidden = F.relu(F.linear(hidden, params["w2"], params["b2"]))
    return F.linear(hidden, params["w3"], params["b3"])


def convnet(params: Params, image: np.ndarray) -> np.ndarray:
    """The same from two convolutions, each followed by a pooling."""
    hidden = F.relu(F.conv2d(image[None], params["w1"], params["b1"], padding=1))
    hidden = F.max_pool2d(hidden, 2)
    hidden = F.relu(F.conv2d(hidden, params["w2"], params["b2"], padding=1))
    hidden = F.max_pool2d(hidden, 2)
    return F.linear(hidden.reshape(-1), params["w3"], params["b3"])


@dataclass(frozen=True)
class Model:
    """A network, the shapes of its weights, and how it is trained."""

    name: str
    layers: str
    scores: Callable[[Params, np.ndarray], np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    epochs: int
    rate: float

    def random_params(self, seed: int = 0) -> Params:
        """Weights as Kaiming He draws them ("Delving Deep into Rectifiers", section 2.2), biases of 0."""
        rng = np.random.default_rng(seed)
        params = {}
        for name, shape in self.shapes.items():
            scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0
            params[name] = (scale * rng.standard_normal(shape)).astype(np.float32)
        return params


MODELS = (
    Model(
        "perceptron",
        "64-64-32-10",
        mlp,
        {"w1": (64, 64), "b1": (64,), "w2": (32, 64), "b2": (32,), "w3": (10, 32), "b3": (10,)},
        epochs=40,
        rate=0.05,
    ),
    Model(
        "convolutional",
        "16 and 32 channels",
        convnet,
        {"w1": (16, 1, 3, 3), "b1": (16,), "w2": (32, 16, 3, 3), "b2": (32,), "w3": (10, 128), "b3": (10,)},
        epochs=15,
        rate=0.05,
    ),
)


def training_step(model: Model) -> Callable[..., tuple[Any, Params, Params]]:
    """(params, velocity, images, labels, rate) -> (loss, new params, new velocity), compiled as one program."""

    def loss(params: Params, image: np.ndarray, label: np.ndarray) -> np.ndarray:
        return F.cross_entropy(model.scores(params, image), label)

    def mean_loss(params: Params, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.mean(ml.vmap(loss, in_axes=(None, 0, 0))(params, images, labels))

    @ml.compile
    def step(params: Params, velocity: Params, images: np.ndarray, labels: np.ndarray, rate: float) -> Any:
        value, gradient = ml.value_and_grad(mean_loss)(params, images, labels)
        velocity = {name: MOMENTUM * velocity[name] + gradient[name] for name in params}
        return value, {name: params[name] - rate * velocity[name] for name in params}, velocity

    return step


def classifier(model: Model) -> Callable[[Params, np.ndarray], np.ndarray]:
    """(params, images) -> the scores of all images, compiled."""
    return ml.compile(lambda params, images: ml.vmap(model.scores, in_axes=(None, 0))(params, images))


def forward(params: Params, images: np.ndarray) -> np.ndarray:
    """The perceptron in plain NumPy, for many images at once."""
    hidden = np.maximum(images.reshape(len(images), -1) @ params["w1"].T + params["b1"], 0)
    hidden = np.maximum(hidden @ params["w2"].T + params["b2"], 0)
    return hidden @ params["w3"].T + params["b3"]


@dataclass(frozen=True)
class Digits:
    """The digits of the UCI repository, 8 by 8 pixels each: those to learn from, and a quarter that is held out."""

    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Shuffle and split, always in the same way; pixels are from 0 to 1."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    held_out, rest = order[: len(order) // 4], order[len(order) // 4 :]
    labels = labels.astype(np.int32)
    return Digits(images[rest], labels[rest], images[held_out], labels[held_out])


@dataclass
class History:
    """A network on its way: after each epoch the mean loss of its steps, and the accuracy on the held-out images."""

    model: Model
    params: Params
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    predictions: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    seconds: float = 0.0


def train(model: Model, data: Digits, epochs: int, watch: Callable[[History], None] = lambda _: None) -> History:
    """Learn from random weights; `watch` is called after each epoch. The rate falls to 0 in a straight line."""
    step, scores = training_step(model), classifier(model)
    history = History(model, model.random_params())
    velocity = {name: np.zeros_like(array) for name, array in history.params.items()}
    if step.target.device != "cpu":
        history.params, velocity = ml.put((history.params, velocity), step.target.device)
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for epoch in range(epochs):
        order = rng.permutation(len(data.images))
        losses = []
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            rate = model.rate * (1 - (epoch + first / len(order)) / epochs)
            loss, history.params, velocity = step(
                history.params, velocity, data.images[chosen], data.labels[chosen], np.float32(rate)
            )
            losses.append(float(loss))
        history.predictions = np.argmax(np.asarray(scores(history.params, data.test_images)), axis=1)
        history.losses.append(statistics.mean(losses))
        history.accuracies.append(float(np.mean(history.predictions == data.test_labels)))
        history.seconds = time.perf_counter() - start
        watch(history)
    return history


def microseconds(*calls: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The median time of each call on one thread, measured in turns."""
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    samples: list[list[float]] = [[] for _ in calls]
    with threadpool_limits(1), ml.config.override(threads=1):
        for _ in range(rounds):
            for call, times in zip(calls, samples):
                start = time.perf_counter()
                call()
                times.append(1e6 * (time.perf_counter() - start))
    return [statistics.median(times) for times in samples]


def step_times(history: History, data: Digits) -> list[float]:
    """Microseconds of a training step: with mlirml, and on the CPU, on one thread, with torch where it is installed."""
    model, images, labels = history.model, data.images[:BATCH], data.labels[:BATCH]
    step = training_step(model)
    velocity = {name: np.zeros_like(array) for name, array in history.params.items()}
    arguments = history.params, velocity, images, labels, np.float32(0.01)
    if step.target.device != "cpu":
        arguments = *ml.put((history.params, velocity, images, labels), step.target.device), arguments[-1]
    step(*arguments)
    calls: list[Callable[[], object]] = [lambda: float(step(*arguments)[0])]
    if step.target.device == "cpu" and find_spec("torch") is not None:
        from torch_digits import training_step as torch_step

        calls.append(torch_step(model.scores.__name__, *arguments[:-1], MOMENTUM))
    return microseconds(*calls, rounds=ROUNDS if step.target.device == "cpu" else ROUNDS // 10)


def first_call() -> dict[str, object]:
    """Compile the forward pass in this fresh process; the milliseconds that the first call takes."""
    params = {name: np.zeros(shape, np.float32) for name, shape in MODELS[0].shapes.items()}
    compiled = ml.compile(forward)
    start = time.perf_counter()
    compiled(params, np.zeros((450, 8, 8), np.float32))
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


def draw(histories: list[History], data: Digits, path: Path) -> None:
    """Losses, accuracies and some of the digits that are taken for others, in a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subfigures(2, 1, height_ratios=[2.4, 1])
    loss, accuracy = upper.subplots(1, 2)
    for history in histories:
        epochs = range(1, len(history.losses) + 1)
        loss.plot(epochs, history.losses, marker=".", label=f"{history.model.name}, {history.model.layers}")
        accuracy.plot(
            epochs,
            [100 * a for a in history.accuracies],
            marker=".",
            label=f"{history.model.name}, {history.model.layers}",
        )
    loss.set(title="mean loss of an epoch's steps", xlabel="epoch", yscale="log")
    accuracy.set(title=f"accuracy on {len(data.test_images)} held-out digits, %", xlabel="epoch", ylim=(80, 100.5))
    accuracy.axhline(97, color="grey", linewidth=0.8, linestyle=":")
    accuracy.legend(loc="lower right")
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
    last = histories[-1]
    wrong = np.flatnonzero(last.predictions != data.test_labels)[:10]
    lower.suptitle(f"what the {last.model.name} network takes for another digit")
    for axes, number in zip(lower.subplots(1, 10), [*wrong, *[None] * 10]):
        axes.axis("off")
        if number is not None:
            axes.imshow(data.test_images[number], cmap="gray_r")
            axes.set_title(f"{data.test_labels[number]}, said {last.predictions[number]}", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train, draw, compare and report."""
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, help="instead of the number that each network has")
    parser.add_argument("--target", default=ml.config.target, help="what to compile for: cpu, vulkan, cuda, ...")
    parser.add_argument("--png", type=Path, default=Path("digits.png"), help="where the curves go (digits.png)")
    options = parser.parse_args()
    ml.config.target = options.target
    out = Console(highlight=False)
    data = load()
    out.print(f"{len(data.images)} digits to learn from, {len(data.test_images)} are held out")
    histories = []
    columns = (
        TextColumn("{task.description:13}"), BarColumn(12), MofNCompleteColumn(),
        TextColumn("epochs  loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.2%}"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=out) as progress:
        for model in MODELS:
            epochs = model.epochs if options.epochs is None else options.epochs
            task = progress.add_task(model.name, total=epochs, loss=float("nan"), accuracy=0.0)

            def watch(history: History, task: Any = task) -> None:
                progress.update(task, advance=1, loss=history.losses[-1], accuracy=history.accuracies[-1])

            histories.append(train(model, data, epochs, watch))
    draw(histories, data, options.png)
    out.print(f"the curves are in {options.png}")

    results = Table("", *(h.model.name for h in histories), box=box.SIMPLE_HEAD, pad_edge=False)
    results.add_row("layers", *(h.model.layers for h in histories))
    results.add_row("accuracy on the held-out digits", *(f"{h.accuracies[-1]:.2%}" for h in histories))
    results.add_row("training, with compilation", *(f"{h.seconds:.1f} s" for h in histories))
    times = [step_times(history, data) for history in histories]
    where = "one thread" if options.target == "cpu" else options.target
    results.add_row(f"a step of {BATCH} images, {where}", *(f"{t[0]:.0f} us" for t in times))
    if all(len(t) > 1 for t in times):
        results.add_row("the same in torch", *(f"{t[1]:.0f} us ({t[1] / t[0]:.1f}x)" for t in times))
    out.print(results)
    if options.target == "cpu":
        tell_of_compilation(histories[0].params, data.test_images, out)


def tell_of_compilation(params: Params, images: np.ndarray, out: Any) -> None:
    """Compare the perceptron's forward pass with NumPy's, and tell what compiling it takes."""
    from rich import box
    from rich.table import Table

    from mlirml.cli.explain import follow, stage_table

    compiled = ml.compile(forward)
    np.testing.assert_allclose(compiled(params, images), forward(params, images), rtol=1e-3, atol=1e-4)
    numpy_us, mlirml_us = microseconds(lambda: forward(params, images), lambda: compiled(params, images))
    cold, warm = compile_times()
    results = Table("the perceptron's forward pass", "NumPy", "mlirml", box=box.SIMPLE_HEAD, pad_edge=False)
    mlirml = f"{mlirml_us:.0f} us ({numpy_us / mlirml_us:.1f}x)"
    results.add_row(f"all {len(images)} held-out digits, one thread", f"{numpy_us:.0f} us", mlirml)
    results.add_row("first call, nothing cached", "", f"{cold:.0f} ms")
    results.add_row("first call, from the disk cache", "", f"{warm:.0f} ms")
    out.print(results)
    out.print("its program after each stage:", stage_table(follow(compiled, params, images)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--first-call"]:
        print(json.dumps(first_call()))
    else:
        main()
