"""A variational autoencoder of handwritten digits: from an image to two numbers, and back.

    python examples/vae.py

The encoder gives a normal distribution of the two numbers, the decoder the probability of each pixel to be black
(Kingma and Welling, "Auto-encoding variational Bayes", 2014). The sample is written as mean + deviation * noise, with
noise drawn by a key, so that the gradient goes through it. A step of Adam is one compiled program. The digits that
belong to a grid of the two numbers, and where those of the held-out images lie, are drawn in vae.png.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.nn import functional as F

BATCH = 96


@dataclass
class Autoencoder:
    """From pixels to the mean and the logarithm of the variance of the code, and from the code to scores of pixels."""

    encoder: nn.Sequential
    decoder: nn.Sequential

    @classmethod
    def init(cls, key: Any, pixels: int = 64, hidden: int = 128, code: int = 2) -> Autoencoder:
        """A network with random weights."""
        keys = random.split(key, 6)
        encoder = [
            nn.Linear.init(keys[0], pixels, hidden), F.silu, nn.Linear.init(keys[1], hidden, hidden), F.silu,
            nn.Linear.init(keys[2], hidden, 2 * code),
        ]  # fmt: skip
        decoder = [
            nn.Linear.init(keys[3], code, hidden), F.silu, nn.Linear.init(keys[4], hidden, hidden), F.silu,
            nn.Linear.init(keys[5], hidden, pixels),
        ]  # fmt: skip
        return cls(nn.Sequential(encoder), nn.Sequential(decoder))

    def encode(self, images: Any) -> tuple[Any, Any]:
        """The means of the codes, and the logarithms of their variances."""
        mean, logarithm = np.split(self.encoder(images), 2, axis=-1)
        return mean, logarithm


def loss(model: Autoencoder, images: Any, key: Any) -> Any:
    """Minus the lower bound of the logarithm of the probability of an image, the mean over a batch."""
    mean, logarithm = model.encode(images)
    code = mean + np.exp(0.5 * logarithm) * random.normal(key, mean.shape, np.float32)
    pixels = F.binary_cross_entropy_with_logits(model.decoder(code), images, reduction="none")
    divergence = 0.5 * (np.exp(logarithm) + mean**2 - 1 - logarithm)
    return np.mean(np.sum(pixels, axis=1) + np.sum(divergence, axis=1))


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images to learn from with values from 0 to 1, and the held-out ones with their digits."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    held_out = np.arange(len(images)) % 6 == 5
    return images[~held_out], images[held_out], digits[held_out]


def train(images: np.ndarray, epochs: int, seed: int = 0) -> tuple[Autoencoder, list[float]]:
    """The trained model, and the mean loss of each epoch."""
    steps = len(images) // BATCH
    optimiser = optim.adam(optim.cosine(4e-3, epochs * steps))
    key, draws = random.split(random.key(seed))
    model = Autoencoder.init(key)

    @ml.compile
    def step(model: Autoencoder, state: Any, images: Any, key: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(model, images, key)
        model, state = optimiser.update(gradient, state, model)
        return value, model, state

    state, losses, rng = optimiser.init(model), [], np.random.default_rng(seed)
    for epoch in range(epochs):
        order, values = rng.permutation(len(images)), []
        for number in range(steps):
            batch = images[order[number * BATCH : (number + 1) * BATCH]]
            value, model, state = step(model, state, batch, random.fold_in(draws, epoch * steps + number))
            values.append(float(value))
        losses.append(float(np.mean(values)))
        if epoch % 20 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:3}: {losses[-1]:.2f} nats an image", flush=True)
    return model, losses


@ml.compile
def decoded(model: Autoencoder, code: Any) -> Any:
    """The images of codes."""
    return F.sigmoid(model.decoder(code))


def draw(model: Autoencoder, images: np.ndarray, digits: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    side = np.linspace(-2, 2, 16, dtype=np.float32)
    codes = np.stack(np.meshgrid(side, -side), axis=-1).reshape(-1, 2)
    grid = decoded(model, codes).reshape(16, 16, 8, 8).transpose(0, 2, 1, 3).reshape(128, 128)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    left.imshow(grid, cmap="Greys")
    left.set_axis_off()
    left.set_title("digits of a grid of codes", fontsize=9)
    mean, _ = model.encode(images)
    points = right.scatter(mean[:, 0], mean[:, 1], c=digits, cmap="tab10", s=8)
    figure.colorbar(points, ax=right, ticks=range(10))
    right.set_title("codes of the held-out digits", fontsize=9)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=150, help="times that all images are read (default: 150)")
    parser.add_argument("--png", type=Path, default=Path("vae.png"), help="the picture")
    given = parser.parse_args()
    images, held_out, digits = load()
    start = time.perf_counter()
    model, _ = train(images, given.epochs)
    print(f"{given.epochs} epochs in {time.perf_counter() - start:.1f} s, compilation included")
    found = float(ml.compile(loss)(model, held_out, random.key(1)))
    print(f"held-out images: {found:.2f} nats an image")
    draw(model, held_out, digits, given.png)
    print(f"drawn in {given.png}")


if __name__ == "__main__":
    main()
