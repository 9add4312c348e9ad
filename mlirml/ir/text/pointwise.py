"""Pointwise functions: their operations are written into the body of one `linalg.generic`, not into one for each.

%y = linalg.generic ins(%x) {          log(x) * x + 1 as a pointwise function
^bb0(%a0, %acc):
  %s0 = math.log %a0
  %s1 = arith.mulf %s0, %a0
  %s2 = arith.constant 1.0
  %s3 = arith.addf %s1, %s2
  linalg.yield %s3
}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlirml.core.sizes import same_shape

if TYPE_CHECKING:
    from mlirml.ir.text.builder import Body, Builder, Value

    Write = Callable[[Body, list[str], str], str]

_NAME = re.compile(r"%\w+")


class NotPointwise(Exception):
    """Something other than an elementwise operation uses a value of the function."""


class Pointwise:
    """The operations of a function whose arrays have one shape."""

    def __init__(self, builder: Builder, block: Body, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._builder = builder
        self._block = block
        self._inputs: list[Value] = []
        self._maps: list[list[int]] = []
        self._scalars: dict[str, str] = {}  # the name in the body of each value, by its name
        self._own: set[str] = set()

    def has(self, value: Value) -> bool:
        """True if a value is computed in the body."""
        return value.name in self._own

    def check(self, text: str) -> None:
        """Raise where another operation uses a value of the body."""
        if self._own and not self._own.isdisjoint(_NAME.findall(text)):
            raise NotPointwise

    def takes(self, operands: Sequence[Value], shape: tuple[int, ...]) -> bool:
        """True if an operation is one of the function, not of numbers that it uses."""
        if same_shape(shape, self.shape):
            return True
        if any(map(self.has, operands)):
            raise NotPointwise
        return False

    def add(self, out: Value, operands: Sequence[Value], write: Write) -> Value:
        """Write an elementwise operation, whose result is `out`."""
        self._scalars[out.name] = write(self._block, [self._scalar(x) for x in operands], "")
        self._own.add(out.name)
        return out

    def _scalar(self, value: Value) -> str:
        if value.name not in self._scalars:
            tensor, map_ = self._builder.squeezed(value, self.shape)
            self._scalars[value.name] = f"%a{len(self._inputs)}"
            self._inputs.append(tensor)
            self._maps.append(map_)
        return self._scalars[value.name]

    def result(self, value: Value) -> Value:
        """A value of the body as the result of the structured operation."""

        def write(block: Body, inputs: list[str], accumulator: str) -> str:
            block.lines += self._block.lines
            return self._scalars[value.name]

        out, rank = self._builder.empty(self.shape, value.dtype), len(self.shape)
        return self._builder.generic(self._inputs, self._maps, out, range(rank), ["parallel"] * rank, write)
