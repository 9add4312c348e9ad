"""The softmax over many classes that computes rare ones from fewer features."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ArgumentError, DTypeError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn.define import as_array, known, shown
from mlirml.nn.modules.linear import Linear, Sequential
from mlirml.nn.modules.module import Module, keys_of

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


@dataclass(eq=False, repr=False)
class AdaptiveLogSoftmaxWithLoss(Module):
    """Logarithms of the probabilities of classes, the frequent ones first, in clusters that end at `cutoffs`.

    `head` has an output for each class of the first cluster and for each further cluster, `tail` two linear layers for
    each of these, with fewer features the rarer the classes are. `layer(x, target)` takes x [N, I] and classes [N], N
    may be missing, and returns the pair of the logarithms [N] of the probabilities of these classes, and the loss, the
    opposite of their mean. Shapes are static: all clusters are computed for each row, though a row reads two of them
    at most. Grave, Joulin, Cisse, Grangier and Jegou, "Efficient softmax approximation for GPUs", section 4.

    >>> from mlirml import nn, random
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss.init(random.key(0), 16, 100, [10, 40])
    >>> output, loss = layer(np.ones((3, 16), np.float32), np.array([2, 30, 99]))
    >>> output.shape, layer.log_prob(np.ones((3, 16), np.float32)).shape
    ((3,), (3, 100))
    """

    head: Linear
    tail: list[Any]
    cutoffs: tuple[int, ...] = static_field()

    @classmethod
    def init(
        cls, key: Any, inputs: int, classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, dtype: Any = np.float32,
    ) -> AdaptiveLogSoftmaxWithLoss:  # fmt: skip
        """A layer for `classes` classes; cluster i has inputs / div_value ** i features."""
        ends = (*cutoffs, classes)
        if not cutoffs or ends[0] <= 0 or any(a >= b for a, b in itertools.pairwise(ends)):
            with at_user_line():
                raise ArgumentError(
                    f"AdaptiveLogSoftmaxWithLoss: cutoffs must be integers from 1 to {classes - 1} that grow, got "
                    f"{list(cutoffs)!r}"
                )
        first, *others = keys_of(key, len(ends))
        tail = []
        for number, each in enumerate(others):
            one, two = keys_of(each, 2)
            width = int(inputs // div_value ** (number + 1))
            size = ends[number + 1] - ends[number]
            layers = [Linear.init(one, inputs, width, False, dtype), Linear.init(two, width, size, False, dtype)]
            tail.append(Sequential(layers))
        return cls(Linear.init(first, inputs, ends[0] + len(tail), head_bias, dtype), tail, ends)

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        x, y = self._rows(input), as_array(target)
        single = len(as_array(input).shape) == 1
        with at_user_line():
            if y.dtype.kind not in "iu":
                raise DTypeError(f"{type(self).__name__}: the target must hold classes, got {shown(y)}")
            if tuple(y.shape) != (() if single else (x.shape[0],)):
                wanted = [] if single else [x.shape[0]]
                raise ShapeError(f"{type(self).__name__}: the target must have shape {wanted}, got {shown(y)}")
            numbers = np.repeat(np.arange(len(self.cutoffs)), np.diff((0, *self.cutoffs)))
            y = y.reshape(-1)
            cluster = known(numbers)[y]  # raises for what is no class
            shortlist = self.cutoffs[0]
            found = _chosen(F.log_softmax(self.head(x)), np.where(cluster == 0, y, shortlist - 1 + cluster))
            for number, layers in enumerate(self.tail):
                own = cluster == number + 1
                found = found + np.where(
                    own, _chosen(F.log_softmax(layers(x)), np.where(own, y - self.cutoffs[number], 0)), 0
                )
        return found[0] if single else found, -np.mean(found)

    def log_prob(self, input: Any) -> Any:
        """The logarithms of the probabilities of all classes [N, classes], for x [N, I]."""
        x = self._rows(input)
        with at_user_line():
            head, shortlist = F.log_softmax(self.head(x)), self.cutoffs[0]
            parts = [
                F.log_softmax(layers(x)) + head[:, shortlist + number, None] for number, layers in enumerate(self.tail)
            ]
            found = np.concatenate([head[:, :shortlist], *parts], axis=1)
        return found[0] if len(as_array(input).shape) == 1 else found

    def predict(self, input: Any) -> Any:
        """The most probable class [N] of each row of x [N, I]."""
        return np.argmax(self.log_prob(input), axis=-1)

    def _rows(self, input: Any) -> Any:
        x, size = as_array(input), self.head.weight.shape[1]
        if len(x.shape) not in (1, 2) or x.shape[-1] != size:
            with at_user_line():
                raise ShapeError(
                    f"{type(self).__name__}: the input must be [N, {size}], N may be missing, got {shown(x)}"
                )
        return x if len(x.shape) == 2 else x[None]


def _chosen(rows: Any, columns: Any) -> Any:
    """One element of each row."""
    return np.take_along_axis(rows, columns[:, None], axis=1)[:, 0]
