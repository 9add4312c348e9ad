"""The view that `np.einsum` makes of one operand of which nothing is summed: transposed, diagonals taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import ShapeError
from mlirml.ir.text.builder import Builder, Value
from mlirml.ops.contractions import from_lists, parsed_subscripts
from mlirml.ops.shapes.views import ViewOp


@dataclass(frozen=True)
class Subscripts(ViewOp):
    """Dimension d of the base is indexed by dimension `dims[d]` of the view; several may be by one, a diagonal."""

    dims: tuple[int, ...]

    def forward(self, b: Builder, base: Value) -> Value:
        if 0 in self.shape:
            return b.empty(self.shape, base.dtype)
        flat = self._flat(b, base)
        return b.extract_slice(flat, (0,) * len(self.shape), self.shape, self._steps())

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        if 0 in self.shape:
            return base
        whole = b.insert_slice(new, self._flat(b, base), (0,) * len(self.shape), self.shape, self._steps())
        order = self._order()
        apart = b.reshape(whole, tuple(base.shape[d] for d in order))
        return b.transpose(apart, [order.index(d) for d in range(len(order))])

    def apply(self, array: np.ndarray) -> np.ndarray:
        return np.einsum(array, list(self.dims), list(range(len(self.shape))))

    def _order(self) -> list[int]:
        """The dimensions of the base, those of one dimension of the view next to each other."""
        return sorted(range(len(self.dims)), key=lambda d: self.dims[d])

    def _flat(self, b: Builder, base: Value) -> Value:
        """The base with those dimensions made one: the elements of the diagonal are at equal distances in it."""
        together = b.transpose(base, self._order())
        return b.reshape(together, tuple(n ** self.dims.count(d) for d, n in enumerate(self.shape)))

    def _steps(self) -> list[int]:
        counts = [self.dims.count(d) for d in range(len(self.shape))]
        return [sum(n**i for i in range(count)) if n > 1 else 1 for n, count in zip(self.shape, counts)]


def einsum_view(arguments: Sequence[Any]) -> tuple[Any, Subscripts] | None:
    """The operand of `np.einsum(*arguments)` and the view that the result is of it; None where it is an array anew."""
    subscripts, operands = arguments[0], tuple(arguments[1:])
    if not isinstance(subscripts, str):
        subscripts, operands = from_lists(arguments)
    if len(operands) != 1 or not np.ndim(operands[0]):
        return None
    shape = np.shape(operands[0])
    (term,), final = parsed_subscripts(subscripts, [Value("", shape, np.dtype(bool))])
    if set(term) != set(final):
        return None
    sizes = dict(zip(term, shape))
    for letter, n in zip(term, shape):
        if sizes[letter] != n:
            raise ShapeError(f"einsum: letter {letter!r} of {subscripts!r} has sizes {n} and {sizes[letter]}")
    return operands[0], Subscripts(tuple(sizes[c] for c in final), tuple(final.index(c) for c in term))
