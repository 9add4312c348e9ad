"""What an optimiser is: `init` and `update` over the float arrays of a pytree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef
from mlirml.errors import ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.state.objects import flatten_floats
from mlirml.ir.text.dtypes import describe

__all__ = ["Optimiser"]

State = dict[str, Any]
Rate = Any
"""A number, or a function from the number of updates that are done to one."""


@dataclass(frozen=True)
class Optimiser:
    """`init(params)` is the state before the first update, `update(grads, state, params)` the next params and state."""

    init: Callable[[Any], State]
    update: Callable[[Any, State, Any], tuple[Any, State]]


@dataclass(frozen=True)
class Step:
    """The numbers of one update: `count`, from 1 on, and the learning rate, as 0-d arrays of one dtype."""

    count: Any
    rate: Any

    def one_minus_power(self, base: float) -> Any:
        """1 - base ** count, without the cancellation that f32 has for a base near 1."""
        return 1 - 0 * self.count if base == 0 else -np.expm1(self.count * float(np.log(base)))


Rule = Callable[[Any, Any, dict[str, Any], Step], tuple[Any, dict[str, Any]]]


def zeros(*names: str) -> Callable[[Any], dict[str, Any]]:
    """The slots of a parameter that begin with zeros."""
    return lambda p: {name: np.zeros(p.shape, p.dtype) for name in names}


def decayed(g: Any, p: Any, weight_decay: float, step: Step, decoupled: bool = False) -> tuple[Any, Any]:
    """The gradient and the parameter after the decay of weights, which is part of the one or the other."""
    if weight_decay and decoupled:
        return g, p * (1 - step.rate * weight_decay)
    return (g + weight_decay * p if weight_decay else g), p


def by_parameter(rate: Rate, slots: Callable[[Any], dict[str, Any]], rule: Rule) -> Optimiser:
    """The optimiser of a rule for one parameter: `rule(gradient, parameter, slots, step)` is its next value and slots.

    `slots(parameter)` are the arrays that are kept for it.
    """

    def init(params: Any) -> State:
        leaves, _ = flatten_floats(params)
        found = [slots(computed(leaf)) for leaf in leaves]
        return {"count": np.zeros((), np.int32), **{name: [each[name] for each in found] for name in slots(_ONE)}}

    def update(grads: Any, state: State, params: Any) -> tuple[Any, State]:
        with at_user_line():
            leaves, gradients, structure = matched(params, grads)
            names = [name for name in state if name != "count"]
            kept: dict[str, list[Any]] = {name: [] for name in names}
            results = []
            for number, (leaf, gradient) in enumerate(zip(leaves, gradients)):
                p, g = computed(leaf), computed(gradient)
                own = {name: state[name][number] for name in names}
                value, own = rule(g, p, own, step_of(rate, state["count"], p.dtype))
                results.append(value.astype(leaf.dtype) if value.dtype != leaf.dtype else value)
                for name in names:
                    kept[name].append(own[name])
            return structure.unflatten(results), {"count": state["count"] + np.int32(1), **kept}

    return Optimiser(init, update)


_ONE = np.ones((1, 1), np.float32)


def step_of(rate: Rate, count: Any, dtype: np.dtype) -> Step:
    """The numbers of the update after `count` others."""
    value = rate(count) if callable(rate) else rate
    return Step((count + np.int32(1)).astype(dtype), value.astype(dtype) if hasattr(value, "astype") else value)


def matched(params: Any, grads: Any) -> tuple[list[Any], list[Any], TreeDef]:
    """Parameters and gradients, and the structure; `ShapeError` names the parameter whose gradient does not fit."""
    leaves, structure = flatten_floats(params)
    gradients, _ = flatten_floats(grads)
    if len(leaves) != len(gradients):
        raise ShapeError(f"update: there are {len(leaves)} parameters and {len(gradients)} gradients")
    for name, leaf, gradient in zip(paths(structure), leaves, gradients):
        if tuple(leaf.shape) != tuple(gradient.shape):
            shown = [describe(tuple(x.shape), x.dtype) for x in (leaf, gradient)]
            raise ShapeError(f"update: {name} is {shown[0]}, and its gradient {shown[1]}")
    return leaves, gradients, structure


def paths(structure: TreeDef) -> Sequence[str]:
    """The names of parameters in messages."""
    return structure.paths("params")


def computed(x: Any) -> Any:
    """A parameter in the dtype that it is computed in: 16-bit floats become f32."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x
