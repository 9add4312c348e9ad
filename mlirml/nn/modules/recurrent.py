"""Recurrent layers: one loop over time for each layer and direction, which stays a loop in compiled code."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np

from mlirml import random
from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.control import scan
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn.define import as_array, known, shown
from mlirml.nn.modules.module import Module, keys_of, within

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]

Self = TypeVar("Self", bound="Recurrent")
Cell = TypeVar("Cell", bound="RNNCell")


@dataclass(eq=False, repr=False)
class Recurrent(Module):
    """The base of `RNN`, `LSTM` and `GRU`, with torch's parameters: lists with an item for each layer and direction.

    `layer(x, state)` takes x [N, L, I], N may be missing, and returns the pair of the outputs [N, L, H], those of both
    directions beside each other, and the state after the last position, which begins with zeros by default. A state is
    [layers * directions, N, H], of `LSTM` a pair of such arrays; the directions of a layer follow each other. With a
    `key`, elements of the outputs of all layers but the last are dropped with probability `dropout`.
    """

    weight_ih: list[Any]
    weight_hh: list[Any]
    bias_ih: list[Any]
    bias_hh: list[Any]
    bidirectional: bool = static_field(default=False)
    dropout: float = static_field(default=0.0)
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    @classmethod
    def init(
        cls: type[Self], key: Any, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False,
        bias: bool = True, dropout: float = 0.0, dtype: Any = np.float32, **options: Any,
    ) -> Self:  # fmt: skip
        """Layers of `hidden` elements with weights and biases up to 1 / sqrt(hidden), as torch draws them."""
        directions, rows = 1 + bidirectional, cls.gates * hidden
        parameters: list[list[Any]] = [[], [], [], []]
        for number, each in enumerate(keys_of(key, layers * directions)):
            width = inputs if number < directions else directions * hidden
            shapes: list[tuple[int, ...]] = [(rows, width), (rows, hidden), (rows,), (rows,)]
            for kept, one, shape in zip(parameters, keys_of(each, 4), shapes):
                kept.append(within(one, shape, hidden, dtype) if bias or len(shape) > 1 else None)
        ih, hh, bias_ih, bias_hh = parameters
        return cls(ih, hh, bias_ih, bias_hh, bidirectional, dropout, **options)

    def init_state(self, batch: int | None = None, dtype: Any = None) -> Any:
        """Zeros: the state before the first position."""
        weight = self.weight_hh[0]
        shape = (len(self.weight_hh), *(() if batch is None else (batch,)), weight.shape[1])
        zeros = known(np.zeros(shape, weight.dtype if dtype is None else dtype))
        return zeros if self.states == 1 else (zeros,) * self.states

    def __call__(self, input: Any, state: Any = None, key: Any = None) -> tuple[Any, Any]:
        x, first = as_array(input), self.weight_ih[0]
        with at_user_line():
            if len(x.shape) not in (2, 3) or x.shape[-1] != first.shape[1]:
                name = type(self).__name__
                raise ShapeError(
                    f"{name}: the input must be [N, L, {first.shape[1]}], N may be missing, got {shown(x)}"
                )
            batch = x.shape[0] if len(x.shape) == 3 else None
            given = self.init_state(batch, x.dtype) if state is None else state
            carried = self._checked((given,) if self.states == 1 else given, batch)
        x = np.swapaxes(x, 0, 1) if batch is not None else x
        directions, last = 1 + self.bidirectional, []
        for number in range(0, len(self.weight_ih), directions):
            outputs = []
            for direction in range(directions):
                after, found = self._over_time(number + direction, x, carried, reverse=direction == 1)
                outputs.append(found)
                last.append(after)
            x = outputs[0] if directions == 1 else np.concatenate(outputs, axis=-1)
            if key is not None and number + directions < len(self.weight_ih):
                x = F.dropout(x, self.dropout, key=random.fold_in(key, number))
        output = np.swapaxes(x, 0, 1) if batch is not None else x
        stacked = tuple(np.stack(each) for each in zip(*last))
        return output, stacked[0] if self.states == 1 else stacked

    def _checked(self, state: Any, batch: int | None) -> tuple[Any, ...]:
        shape = (len(self.weight_hh), *(() if batch is None else (batch,)), self.weight_hh[0].shape[1])
        if not isinstance(state, (tuple, list)) or len(state) != self.states:
            raise ArgumentError(f"{type(self).__name__}: the state must be {self.states} arrays of shape {list(shape)}")
        arrays = tuple(as_array(one) for one in state)
        for one in arrays:
            if tuple(one.shape) != shape:
                raise ShapeError(
                    f"{type(self).__name__}: the state must have shape {list(shape)}, got {shown(one)}",
                    help="make one with `init_state(batch)`",
                )
        return arrays

    def _over_time(self, number: int, x: Any, states: tuple[Any, ...], reverse: bool) -> tuple[Any, Any]:
        """The last state and all outputs of one direction of a layer, for x [L, N, I] or [L, I]."""
        weight, bias = self.weight_hh[number], self.bias_hh[number]

        def step(carry: Any, row: Any) -> tuple[Any, Any]:
            after = self._step(row, F.linear(carry[0], weight, bias), *carry)
            return after, after[0]

        # The product with the input is one for all positions.
        rows = F.linear(x, self.weight_ih[number], self.bias_ih[number])
        return scan(step, tuple(one[number].astype(rows.dtype) for one in states), rows, reverse=reverse)

    def _step(self, row: Any, product: Any, *state: Any) -> tuple[Any, ...]:
        """The next state, of the products with the input and with the last output, both with their biases."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class RNN(Recurrent):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or `relu` for tanh (Elman, "Finding structure in time", section 2)."""

    nonlinearity: str = static_field(default="tanh")

    def _step(self, row: Any, product: Any, *state: Any) -> tuple[Any, ...]:
        if self.nonlinearity not in ("tanh", "relu"):
            with at_user_line():
                raise ArgumentError(f"RNN: nonlinearity must be 'tanh' or 'relu', got {self.nonlinearity!r}")
        return (np.tanh(row + product) if self.nonlinearity == "tanh" else F.relu(row + product),)


@dataclass(eq=False, repr=False)
class LSTM(Recurrent):
    """c = f c + i g and h = o tanh(c), for the gates i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of the products.

    Hochreiter and Schmidhuber, "Long short-term memory", with the forget gate of Gers, Schmidhuber and Cummins.
    """

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2

    def _step(self, row: Any, product: Any, *state: Any) -> tuple[Any, ...]:
        i, f, g, o = np.split(row + product, 4, axis=-1)
        cell = F.sigmoid(f) * state[1] + F.sigmoid(i) * np.tanh(g)
        return F.sigmoid(o) * np.tanh(cell), cell


@dataclass(eq=False, repr=False)
class GRU(Recurrent):
    """h = (1 - z) n + z h for r, z = sigmoid of the products, and n = tanh(W_in x + b_in + r (W_hn h + b_hn)).

    Cho et al., "Learning phrase representations using RNN encoder-decoder", section 2.3, with r after the product.
    """

    gates: ClassVar[int] = 3

    def _step(self, row: Any, product: Any, *state: Any) -> tuple[Any, ...]:
        (row_r, row_z, row_n), (r, z, n) = np.split(row, 3, axis=-1), np.split(product, 3, axis=-1)
        update = F.sigmoid(row_z + z)
        new = np.tanh(row_n + F.sigmoid(row_r + r) * n)
        return ((1 - update) * new + update * state[0],)


@dataclass(eq=False, repr=False)
class RNNCell(Module):
    """One step of `RNN`: `cell(x, state)` is the next state [N, H] for x [N, I]; N may be missing in both.

    The state begins with zeros by default. `LSTMCell` has a pair of arrays as state.
    """

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any = None
    bias_hh: Any = None
    nonlinearity: str = static_field(default="tanh")
    layer: ClassVar[type[Recurrent]] = RNN

    @classmethod
    def init(
        cls: type[Cell], key: Any, inputs: int, hidden: int, bias: bool = True, dtype: Any = np.float32, **options: Any
    ) -> Cell:
        """A cell of `hidden` elements with weights and biases up to 1 / sqrt(hidden), as torch draws them."""
        whole = cls.layer.init(key, inputs, hidden, bias=bias, dtype=dtype)
        return cls(whole.weight_ih[0], whole.weight_hh[0], whole.bias_ih[0], whole.bias_hh[0], **options)

    def __call__(self, input: Any, state: Any = None) -> Any:
        x, (_, inputs), (_, hidden) = as_array(input), self.weight_ih.shape, self.weight_hh.shape
        name, count = type(self).__name__, self.layer.states
        with at_user_line():
            if len(x.shape) not in (1, 2) or x.shape[-1] != inputs:
                raise ShapeError(f"{name}: the input must be [N, {inputs}], N may be missing, got {shown(x)}")
            shape = (*x.shape[:-1], hidden)
            given = (known(np.zeros(shape, x.dtype)),) * count if state is None else state if count > 1 else (state,)
            if not isinstance(given, (tuple, list)) or len(given) != count:
                raise ArgumentError(f"{name}: the state must be {count} arrays of shape {list(shape)}")
            states = [as_array(one) for one in given]
            for one in states:
                if tuple(one.shape) != tuple(shape):
                    raise ShapeError(f"{name}: the state must have shape {list(shape)}, got {shown(one)}")
            row = F.linear(x, self.weight_ih, self.bias_ih)
            product = F.linear(states[0], self.weight_hh, self.bias_hh)
            # The rule of a layer reads no field but `nonlinearity`, which a cell has, too.
            after = self.layer._step(self, row, product, *states)  # type: ignore[arg-type]
        return after[0] if count == 1 else after


class LSTMCell(RNNCell):
    """One step of `LSTM`: `cell(x, (h, c))` is the next pair."""

    layer = LSTM


class GRUCell(RNNCell):
    """One step of `GRU`."""

    layer = GRU
