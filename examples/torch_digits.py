"""The training steps of examples/digits.py in torch, to compare their times with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch.nn.functional as F

Params = Mapping[str, torch.Tensor]


def mlp(params: Params, images: torch.Tensor) -> torch.Tensor:
    """The scores of a batch."""
    hidden = F.relu(F.linear(images.flatten(1), params["w1"], params["b1"]))
    hidden = F.relu(F.linear(hidden, params["w2"], params["b2"]))
    return F.linear(hidden, params["w3"], params["b3"])


def convnet(params: Params, images: torch.Tensor) -> torch.Tensor:
    """The scores of a batch."""
    hidden = F.max_pool2d(F.relu(F.conv2d(images[:, None], params["w1"], params["b1"], padding=1)), 2)
    hidden = F.max_pool2d(F.relu(F.conv2d(hidden, params["w2"], params["b2"], padding=1)), 2)
    return F.linear(hidden.flatten(1), params["w3"], params["b3"])


def training_step(
    model: str,
    params: Mapping[str, np.ndarray],
    velocity: Mapping[str, np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    momentum: float,
    place: str = "cpu",
) -> Callable[[], torch.Tensor]:
    """A step that changes its own copies of the weights in place, with arrays that are torch's already."""
    torch.set_num_threads(1)
    scores = {"mlp": mlp, "convnet": convnet}[model]
    weights = {name: torch.tensor(array, device=place, requires_grad=True) for name, array in params.items()}
    speeds = {name: torch.tensor(array, device=place) for name, array in velocity.items()}
    x, y = torch.tensor(images, device=place), torch.tensor(labels, dtype=torch.long, device=place)

    def step() -> torch.Tensor:
        loss = F.cross_entropy(scores(weights, x), y)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for (name, weight), gradient in zip(weights.items(), gradients):
                speeds[name].mul_(momentum).add_(gradient)
                weight.sub_(speeds[name], alpha=0.01)
        return loss

    return step
