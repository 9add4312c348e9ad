"""Handwritten digits: a residual network of `mlirml.nn` with batch normalization learns them, and is saved.

    python examples/digits_resnet.py
    python examples/digits_resnet.py --epochs 20 --save resnet.safetensors

The model is a dataclass of layers (He, Zhang, Ren and Sun, "Deep residual learning for image recognition", figure 2,
with 3 blocks of 16 and 32 channels). Its running statistics are passed to it and returned, its parameters are updated
by AdamW, and a step is one compiled program. Prints the loss and the accuracy on the held-out images after each epoch;
they are drawn in digits_resnet.png, beside the held-out digits that it is least sure of.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))
from digits import Digits, load

BATCH = 32
State = dict[str, Any]


@dataclass
class Block:
    """Two convolutions whose result is added to the input; with a stride, to a convolution of it by single points."""

    conv1: nn.Conv2d
    norm1: nn.BatchNorm
    conv2: nn.Conv2d
    norm2: nn.BatchNorm
    shortcut: nn.Conv2d | None

    @classmethod
    def init(cls, key: Any, inputs: int, outputs: int, stride: int) -> Block:
        """A block with random weights."""
        keys = random.split(key, 3)
        return cls(
            nn.Conv2d.init(keys[0], inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm.init(outputs),
            nn.Conv2d.init(keys[1], outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm.init(outputs),
            nn.Conv2d.init(keys[2], inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else None,
        )  # fmt: skip

    def init_state(self) -> State:
        """The running statistics before the first batch."""
        return {"norm1": self.norm1.init_state(), "norm2": self.norm2.init_state()}

    def __call__(self, x: Any, state: State, training: bool = False) -> tuple[Any, State]:
        h, first = self.norm1(self.conv1(x), state["norm1"], training)
        h, second = self.norm2(self.conv2(F.relu(h)), state["norm2"], training)
        return F.relu(h + (x if self.shortcut is None else self.shortcut(x))), {"norm1": first, "norm2": second}


@dataclass
class ResNet:
    """A convolution and three blocks, the mean of all pixels, and the scores of the ten classes."""

    body: nn.Sequential
    head: nn.Linear

    @classmethod
    def init(cls, key: Any) -> ResNet:
        """A network with random weights."""
        keys = random.split(key, 5)
        first = [nn.Conv2d.init(keys[0], 1, 16, 3, padding=1, bias=False), nn.BatchNorm.init(16), F.relu]
        blocks = [Block.init(keys[1], 16, 16, 1), Block.init(keys[2], 16, 32, 2), Block.init(keys[3], 32, 32, 1)]
        return cls(nn.Sequential([*first, *blocks]), nn.Linear.init(keys[4], 32, 10))

    def init_state(self) -> list[Any]:
        """The running statistics before the first batch."""
        return self.body.init_state()

    def __call__(self, images: Any, state: Any, training: bool = False) -> tuple[Any, Any]:
        h, state = self.body(images[:, None], state=state, training=training)
        return self.head(np.mean(h, axis=(2, 3))), state


def loss(model: ResNet, state: Any, images: Any, labels: Any) -> tuple[Any, Any]:
    """The mean loss of a batch, and the next running statistics."""
    scores, state = model(images, state, training=True)
    return F.cross_entropy(scores, labels, label_smoothing=0.05), state


def training_step(optimiser: optim.Optimiser) -> Any:
    """(model, state, slots, images, labels) -> (loss, the next model, state and slots of the optimiser), compiled."""

    @ml.compile
    def step(model: ResNet, state: Any, slots: Any, images: Any, labels: Any) -> Any:
        (value, state), gradient = ml.value_and_grad(loss, has_aux=True)(model, state, images, labels)
        model, slots = optimiser.update(gradient, slots, model)
        return value, model, state, slots

    return step


@ml.compile
def predicted(model: ResNet, state: Any, images: Any) -> Any:
    """The classes of images, by the running statistics."""
    return np.argmax(model(images, state)[0], axis=1)


def train(data: Digits, epochs: int, seed: int = 0) -> tuple[ResNet, Any, list[tuple[float, float]]]:
    """The trained model, its running statistics, and after each epoch the loss and the held-out images' accuracy."""
    steps = len(data.images) // BATCH
    optimiser = optim.adamw(optim.cosine(1e-2, epochs * steps), weight_decay=1e-3)
    model = ResNet.init(random.key(seed))
    state, slots, step = model.init_state(), optimiser.init(model), training_step(optimiser)
    rng = np.random.default_rng(seed)
    history = []
    for epoch in range(epochs):
        start, losses = time.perf_counter(), []
        order = rng.permutation(len(data.images))
        for number in range(steps):
            chosen = order[number * BATCH : (number + 1) * BATCH]
            value, model, state, slots = step(model, state, slots, data.images[chosen], data.labels[chosen])
            losses.append(float(value))
        accuracy = float(np.mean(predicted(model, state, data.test_images) == data.test_labels))
        history.append((float(np.mean(losses)), accuracy))
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1:2}: loss {np.mean(losses):.4f}, accuracy {accuracy:.2%}, {seconds:.1f} s", flush=True)
    return model, state, history


def draw(history: list[tuple[float, float]], data: Digits, scores: np.ndarray, path: Path) -> None:
    """Draw the loss and the accuracy, and the held-out digits with the least difference of the two highest scores."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(10, 4), layout="constrained")
    curves, digits = figure.subfigures(1, 2)
    left = curves.subplots()
    left.plot([loss for loss, _ in history], color="tab:blue")
    left.set_xlabel("epoch")
    left.set_ylabel("loss", color="tab:blue")
    right = left.twinx()
    right.plot([100 * accuracy for _, accuracy in history], color="tab:orange")
    right.set_ylabel("accuracy on held-out digits, %", color="tab:orange")
    second, first = np.sort(scores, axis=1)[:, -2:].T
    digits.suptitle("held-out digits that it is least sure of", fontsize=9)
    for axes, number in zip(digits.subplots(3, 4).flat, np.argsort(first - second)):
        axes.set_axis_off()
        axes.imshow(data.test_images[number], cmap="Greys")
        axes.set_title(f"{data.test_labels[number]}, read as {np.argmax(scores[number])}", fontsize=8)
    figure.savefig(path, dpi=80)


def main() -> None:
    """Train, and save what was learned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--save", type=Path, help="a file of safetensors for the model")
    parser.add_argument("--png", type=Path, default=Path("digits_resnet.png"), help="the picture")
    options = parser.parse_args()
    data = load()
    print(f"{len(data.images)} digits to learn from, {len(data.test_images)} are held out")
    model, state, history = train(data, options.epochs)
    accuracy = history[-1][1] if history else 0.0
    print(f"accuracy on the held-out digits: {accuracy:.2%}")
    draw(history, data, ml.compile(model)(data.test_images, state)[0], options.png)
    print(f"drawn in {options.png}")
    if options.save:
        nn.save(options.save, {"model": model, "state": state}, metadata={"accuracy": f"{accuracy:.4f}"})
        print(f"the model is in {options.save}")


if __name__ == "__main__":
    main()
