"""Rejection: every element is proposed until all are accepted.

After the first proposal those that wait are few: they are gathered, and proposed without the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.frontend.current import current_trace
from mlirml.ir.text.control import REJECTION
from mlirml.random.checks import repeated
from mlirml.random.keys import as_array
from mlirml.random.threefry import WORD

Propose = Callable[..., tuple[Any, Any]]
"""Of the number of the iteration, the positions of the elements or None for all, and their parameters: whether each
proposal is accepted, and its value."""

_LEAST = 1 << 7
"""Elements from which on they are gathered."""


def accepted(propose: Propose, parameters: tuple[Any, ...], done: Any, result: Any, share: int = 8) -> Any:
    """The first accepted value of each element that is not `done`, and the `result` of the others.

    An element is drawn from its position and the number of the iteration, with and without the others. After the first
    proposal there is room for one of `share` elements.
    """
    shape = tuple(done.shape)
    iteration = as_array(np.uint32(0))
    if not any(is_size(n) for n in shape) and math.prod(shape) >= _LEAST:
        done, result = _proposed(propose, iteration, None, parameters, done, result)
        iteration = iteration + np.uint32(1)
        done, result = _gathered(propose, iteration, parameters, done, result, math.prod(shape) // share)
    return _until_all(propose, iteration, None, parameters, done, result)[1]


def _proposed(
    propose: Propose, iteration: Any, at: Any, parameters: tuple[Any, ...], done: Any, result: Any
) -> tuple[Any, Any]:
    fits, value = propose(iteration, at, *parameters)
    return done | fits, np.where(done | ~fits, result, value)


def _until_all(
    propose: Propose, iteration: Any, at: Any, parameters: tuple[Any, ...], done: Any, result: Any
) -> tuple[Any, Any]:
    def step(carry: Any) -> Any:
        i, done, result = carry
        return i + np.uint32(1), *_proposed(propose, i, at, parameters, done, result)

    waits = lambda carry: ~np.all(carry[1])  # noqa: E731
    _, done, result = repeated(waits, step, (iteration, done, result), f"{{{REJECTION}}}")
    return done, result


def _gathered(
    propose: Propose, iteration: Any, parameters: tuple[Any, ...], done: Any, result: Any, room: int
) -> tuple[Any, Any]:
    """Elements that wait, proposed until they are accepted; where they are too many for the room, the first of them."""
    shape, size = tuple(done.shape), math.prod(done.shape)
    waiting = ~done.reshape(-1)
    number = np.cumsum(waiting)
    slot = np.where(waiting & (number <= room), number - 1, room)
    at = _stored_into(np.full(room + 1, size, np.int64))
    at[slot] = np.arange(size)
    taken = np.arange(room) < number[-1]
    at = np.where(taken, at[:room], 0)
    own = tuple(np.take(np.broadcast_to(p, shape).reshape(-1), at) for p in parameters)
    start = np.take(result.reshape(-1), at)
    ready, value = _until_all(propose, iteration, at.astype(WORD), own, ~taken, start)
    target = np.where(taken, at, size)  # the others go after the end
    after = np.concatenate([result.reshape(-1), np.zeros_like(result, shape=(1,))])
    after[target] = value
    finished = np.concatenate([done.reshape(-1), np.ones_like(done, shape=(1,))])
    finished[target] = ready
    return finished[:size].reshape(shape), after[:size].reshape(shape)


def _stored_into(x: np.ndarray) -> Any:
    trace = current_trace()
    return x if trace is None else trace.array(x)
