"""Normalizations with their parameters; running statistics are passed and returned."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.nn import functional as F
from mlirml.nn.define import known
from mlirml.nn.modules.module import Module
from mlirml.nn.normalizations import normalized_batch

__all__ = ["BatchNorm", "BatchStatistics", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]


def _pair(shape: Any, affine: bool, dtype: Any) -> tuple[Any, Any]:
    """A weight of ones and a bias of zeros."""
    return (known(np.ones(shape, dtype)), known(np.zeros(shape, dtype))) if affine else (None, None)


@dataclass(eq=False, repr=False)
class BatchStatistics(Module):
    """Running means and variances [C] of the channels that `BatchNorm` has seen."""

    mean: Any
    variance: Any


@dataclass(eq=False, repr=False)
class BatchNorm(Module):
    """`batch_norm` of [N, C, ...], which takes its running statistics and returns new ones.

    `layer(x, state)` normalizes by the running statistics and returns the pair of the result and these;
    `layer(x, state, training=True)` normalizes by those of the batch, and returns the next running ones.

    >>> from mlirml import nn
    >>> layer = nn.BatchNorm.init(3)
    >>> y, state = layer(np.ones((4, 3, 2, 2), np.float32), layer.init_state(), training=True)
    >>> state.mean.round(2).tolist()
    [0.10000000149011612, 0.10000000149011612, 0.10000000149011612]
    """

    weight: Any
    bias: Any
    channels: int = static_field()
    eps: float = static_field(default=1e-5)
    momentum: float = static_field(default=0.1)

    @classmethod
    def init(
        cls, channels: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, dtype: Any = np.float32
    ) -> BatchNorm:
        """A layer with weight 1 and bias 0, or None for both without `affine`."""
        return cls(*_pair(channels, affine, dtype), channels, eps, momentum)

    def init_state(self, dtype: Any = np.float32) -> BatchStatistics:
        """Mean 0 and variance 1: the statistics before the first batch."""
        return BatchStatistics(known(np.zeros(self.channels, dtype)), known(np.ones(self.channels, dtype)))

    def __call__(self, input: Any, state: BatchStatistics, training: bool = False) -> tuple[Any, BatchStatistics]:
        if not training:
            options = self.weight, self.bias, False, self.momentum, self.eps
            return F.batch_norm(input, state.mean, state.variance, *options), state
        output, mean, variance = normalized_batch(
            input, state.mean, state.variance, self.weight, self.bias, self.momentum, self.eps
        )
        return output, BatchStatistics(mean, variance)


@dataclass(eq=False, repr=False)
class LayerNorm(Module):
    """`layer_norm` over the last dimensions, those of `normalized_shape`."""

    weight: Any
    bias: Any
    normalized_shape: Any = static_field()
    eps: float = static_field(default=1e-5)

    @classmethod
    def init(
        cls, normalized_shape: Any, eps: float = 1e-5, affine: bool = True, bias: bool = True, dtype: Any = np.float32
    ) -> LayerNorm:
        """A layer with weight 1 and bias 0."""
        weight, shift = _pair(normalized_shape, affine, dtype)
        shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
        return cls(weight, shift if bias else None, shape, eps)

    def __call__(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@dataclass(eq=False, repr=False)
class RMSNorm(Module):
    """`rms_norm` over the last dimensions, those of `normalized_shape`."""

    weight: Any
    normalized_shape: Any = static_field()
    eps: float | None = static_field(default=None)

    @classmethod
    def init(
        cls, normalized_shape: Any, eps: float | None = None, affine: bool = True, dtype: Any = np.float32
    ) -> RMSNorm:
        """A layer with weight 1."""
        shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
        return cls(_pair(shape, affine, dtype)[0], shape, eps)

    def __call__(self, input: Any) -> Any:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


@dataclass(eq=False, repr=False)
class GroupNorm(Module):
    """`group_norm` of [N, C, ...] over each of `num_groups` groups of channels."""

    weight: Any
    bias: Any
    num_groups: int = static_field()
    eps: float = static_field(default=1e-5)

    @classmethod
    def init(
        cls, num_groups: int, channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = np.float32,
        bias: bool = True,
    ) -> GroupNorm:  # fmt: skip
        """A layer with weight 1 and bias 0."""
        weight, shift = _pair(channels, affine, dtype)
        return cls(weight, shift if bias else None, num_groups, eps)

    def __call__(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


@dataclass(eq=False, repr=False)
class InstanceNorm(Module):
    """`instance_norm` of [N, C, ...]; no running statistics are kept."""

    weight: Any = None
    bias: Any = None
    eps: float = static_field(default=1e-5)

    @classmethod
    def init(cls, channels: int, eps: float = 1e-5, affine: bool = False, dtype: Any = np.float32) -> InstanceNorm:
        """A layer without parameters, or, with `affine`, with weight 1 and bias 0."""
        return cls(*_pair(channels, affine, dtype), eps)

    def __call__(self, input: Any) -> Any:
        return F.instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)
