"""Linear layers, embeddings, dropout, and layers in sequence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml import random
from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ArgumentError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn import initializers
from mlirml.nn.modules.module import Module, keys_of, within

__all__ = ["Bilinear", "Dropout", "Embedding", "EmbeddingBag", "Linear", "PReLU", "Sequential"]


@dataclass(eq=False, repr=False)
class Linear(Module):
    """`input` [..., I] times the transpose of `weight` [O, I], plus `bias` [O] or None.

    >>> from mlirml import nn, random
    >>> layer = nn.Linear.init(random.key(0), 4, 3)
    >>> layer, layer(np.ones((2, 4), np.float32)).shape
    (Linear(weight=f32[3,4], bias=f32[3]), (2, 3))
    """

    weight: Any
    bias: Any = None

    @classmethod
    def init(cls, key: Any, inputs: int, outputs: int, bias: bool = True, dtype: Any = np.float32) -> Linear:
        """A layer with weights and biases up to 1 / sqrt(inputs), as torch draws them."""
        first, second = keys_of(key, 2)
        weight = within(first, (outputs, inputs), inputs, dtype)
        return cls(weight, within(second, (outputs,), inputs, dtype) if bias else None)

    def __call__(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)


@dataclass(eq=False, repr=False)
class Bilinear(Module):
    """`input1` [..., I] times `weight` [O, I, J] times `input2` [..., J], plus `bias` [O] or None."""

    weight: Any
    bias: Any = None

    @classmethod
    def init(
        cls, key: Any, inputs1: int, inputs2: int, outputs: int, bias: bool = True, dtype: Any = np.float32
    ) -> Bilinear:
        """A layer with weights and biases up to 1 / sqrt(inputs1), as torch draws them."""
        first, second = keys_of(key, 2)
        weight = within(first, (outputs, inputs1, inputs2), inputs1, dtype)
        return cls(weight, within(second, (outputs,), inputs1, dtype) if bias else None)

    def __call__(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)


@dataclass(eq=False, repr=False)
class PReLU(Module):
    """The input, times `weight` where it is negative: one number, or one for each channel of [N, C, ...]."""

    weight: Any

    @classmethod
    def init(cls, channels: int = 1, value: float = 0.25, dtype: Any = np.float32) -> PReLU:
        """A layer with weight `value`."""
        return cls(initializers.constant(None, (channels,), dtype, value=value))

    def __call__(self, input: Any) -> Any:
        return F.prelu(input, self.weight)


@dataclass(eq=False, repr=False)
class EmbeddingBag(Module):
    """The sum, mean or maximum of the rows of `weight` [V, E] that the integers of each bag name.

    Bags are the rows of [B, N], or slices of [L] from each of `offsets` [B] on, or with `include_last_offset` between
    those of `offsets` [B + 1].
    """

    weight: Any
    mode: str = static_field(default="mean")
    padding_idx: int | None = static_field(default=None)
    include_last_offset: bool = static_field(default=False)

    @classmethod
    def init(
        cls, key: Any, count: int, size: int, mode: str = "mean", padding_idx: int | None = None,
        dtype: Any = np.float32, include_last_offset: bool = False,
    ) -> EmbeddingBag:  # fmt: skip
        """`count` rows of `size` normal numbers, zeros for `padding_idx`."""
        return cls(_rows(key, count, size, padding_idx, dtype), mode, padding_idx, include_last_offset)

    def __call__(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input, self.weight, offsets, self.mode, per_sample_weights, self.padding_idx, self.include_last_offset
        )


def _rows(key: Any, count: int, size: int, padding_idx: int | None, dtype: Any) -> Any:
    rows = initializers.normal(key, (count, size), dtype)
    if padding_idx is None:
        return rows
    return np.where(np.arange(count)[:, None] == padding_idx % count, 0, rows).astype(dtype)


@dataclass(eq=False, repr=False)
class Embedding(Module):
    """The rows of `weight` [V, E] that integers name; row `padding_idx` has no derivative."""

    weight: Any
    padding_idx: int | None = static_field(default=None)

    @classmethod
    def init(
        cls, key: Any, count: int, size: int, padding_idx: int | None = None, dtype: Any = np.float32
    ) -> Embedding:
        """`count` rows of `size` normal numbers, zeros for `padding_idx`."""
        return cls(_rows(key, count, size, padding_idx, dtype), padding_idx)

    def __call__(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx)


@dataclass(eq=False, repr=False)
class Dropout(Module):
    """With a key, zeros with probability `p`, and the rest divided by 1 - p; without a key, the input itself."""

    p: float = static_field(default=0.5)

    def __call__(self, input: Any, key: Any = None) -> Any:
        return F.dropout(input, self.p, training=key is not None, key=key)


@dataclass(eq=False, repr=False)
class Sequential(Module):
    """Layers and functions, each called with the result of the one before it.

    A key makes one of its own for each layer that takes one, such as `Dropout`. Layers with running statistics take
    and return them: `init_state()` is a list of the statistics of all layers, None for those that have none, and with
    `state` the result is the pair of the output and the new list.

    >>> from mlirml import nn, random
    >>> first, second = random.split(random.key(0))
    >>> model = nn.Sequential([nn.Linear.init(first, 4, 8), nn.functional.relu, nn.Linear.init(second, 8, 1)])
    >>> model(np.ones((2, 4), np.float32)).shape
    (2, 1)
    """

    layers: Sequence[Any]

    def init_state(self) -> list[Any]:
        """The statistics of each layer before the first batch."""
        return [layer.init_state() if hasattr(layer, "init_state") else None for layer in self.layers]

    def __call__(self, input: Any, key: Any = None, state: Any = None, training: bool = False) -> Any:
        states = [None] * len(self.layers) if state is None else list(state)
        if len(states) != len(self.layers):
            with at_user_line():
                raise ArgumentError(
                    f"Sequential: a state of {len(states)} items is no state of {len(self.layers)} layers",
                    help="begin with `init_state()`",
                )
        for number, layer in enumerate(self.layers):
            options = {}
            if key is not None and takes_key(layer):
                options["key"] = random.fold_in(key, number)
            if not hasattr(layer, "init_state") or (states[number] is None and isinstance(layer, Sequential)):
                input = layer(input, **options)
            elif states[number] is None:
                with at_user_line():
                    raise ArgumentError(
                        f"Sequential: layer {number}, a {type(layer).__name__}, needs its running statistics",
                        help="pass `state=model.init_state()`, then the state that comes back",
                    )
            else:
                input, states[number] = layer(input, state=states[number], training=training, **options)
        return input if state is None else (input, states)


def takes_key(layer: Any) -> bool:
    """True for a layer that draws random numbers by an argument `key`."""
    return _takes_key(layer if isinstance(layer, type(takes_key)) else type(layer).__call__)


@functools.lru_cache(maxsize=1024)
def _takes_key(function: Callable[..., Any]) -> bool:
    try:
        return "key" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
