"""What is put around an optimiser: clipping, accumulation, means of parameters, mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import ArgumentError
from mlirml.frontend.state.objects import flatten_floats
from mlirml.optim.optimiser import Optimiser, State, computed, matched

__all__ = [
    "Plateau", "accumulate", "clip_by_global_norm", "clip_by_value", "ema", "global_norm", "maximize",
    "mixed_precision", "reduce_on_plateau",
]  # fmt: skip


def maximize(optimiser: Optimiser) -> Optimiser:
    """The optimiser that goes up: torch's option `maximize` of any of them."""

    def update(grads: Any, state: State, params: Any) -> tuple[Any, State]:
        leaves, structure = flatten_floats(grads)
        return optimiser.update(structure.unflatten([-x for x in leaves]), state, params)

    return Optimiser(optimiser.init, update)


@dataclass(frozen=True)
class Plateau:
    """`init()` is the first state; `update(state, value)` the next one. `state["rate"]` is the learning rate."""

    init: Callable[[], State]
    update: Callable[[State, Any], State]


def reduce_on_plateau(
    rate: float, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, cooldown: int = 0,
    least: float = 0.0, *, largest: bool = False, relative: bool = True,
) -> Plateau:  # fmt: skip
    """A rate that falls by `factor` after more than `patience` values without a better one (`ReduceLROnPlateau`).

    A value is better if it is smaller than the best one by `threshold`, a part of that or with `relative=False` an
    amount, or larger with `largest`. For `cooldown` values after a fall none is counted. A step of training takes the
    rate from the state: `optim.adam(state["rate"]).update(...)`.
    """
    if not 0 < factor < 1:
        raise ArgumentError(f"reduce_on_plateau: factor must be between 0 and 1, got {factor!r}")

    def init() -> State:
        best = np.full((), -np.inf if largest else np.inf, np.float32)
        numbers = {name: np.zeros((), np.int32) for name in ("worse", "waits")}
        return {"rate": np.full((), rate, np.float32), "best": best, **numbers}

    def update(state: State, value: Any) -> State:
        best = state["best"]
        found = value.astype(np.float32) if hasattr(value, "astype") else np.float32(value)
        gap = np.float32(threshold if largest else -threshold)
        limit = best * (1 + gap * np.sign(best)) if relative else best + gap
        better = found > limit if largest else found < limit
        worse = np.where(better, np.int32(0), state["worse"] + np.int32(1))
        waits = np.maximum(state["waits"] - np.int32(1), np.int32(0))
        worse = np.where(state["waits"] > 0, np.int32(0), worse)
        falls = worse > patience
        new = np.maximum(state["rate"] * np.float32(factor), np.float32(least))
        new = np.where(state["rate"] - new > np.float32(1e-8), new, state["rate"])
        return {
            "rate": np.where(falls, new, state["rate"]),
            "best": np.where(better, found, best),
            "worse": np.where(falls, np.int32(0), worse),
            "waits": np.where(falls, np.int32(cooldown), waits),
        }

    return Plateau(init, update)


def clip_by_value(grads: Any, most: float) -> Any:
    """The gradients with elements from -most to most (`torch.nn.utils.clip_grad_value_`)."""
    leaves, structure = flatten_floats(grads)
    return structure.unflatten([np.minimum(np.maximum(x, -most), most) for x in leaves])


def global_norm(tree: Any) -> Any:
    """The Euclidean norm of all float arrays of a tree together."""
    leaves, _ = flatten_floats(tree)
    if not leaves:
        return np.zeros((), np.float32)
    squares = [np.sum(np.square(computed(x))) for x in leaves]
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    return np.sqrt(total)


def clip_by_global_norm(grads: Any, most: float) -> Any:
    """The gradients, scaled so that their norm is at most `most` (`torch.nn.utils.clip_grad_norm_`)."""
    leaves, structure = flatten_floats(grads)
    scale = np.minimum(most / (global_norm(grads) + 1e-6), 1.0)
    return structure.unflatten([(computed(x) * scale.astype(computed(x).dtype)).astype(x.dtype) for x in leaves])


def ema(average: Any, params: Any, decay: float = 0.999) -> Any:
    """decay * average + (1 - decay) * params; the first average are the parameters themselves."""
    before, after, structure = matched(average, params)
    return structure.unflatten(
        [(decay * computed(x) + (1 - decay) * computed(y)).astype(x.dtype) for x, y in zip(before, after)]
    )


def _chosen(condition: Any, new: list[Any], old: list[Any]) -> list[Any]:
    return [np.where(condition, x, y) for x, y in zip(new, old)]


def _arrays(state: State) -> tuple[list[Any], Any]:
    """The arrays of a state, integers among them, and the function that puts others in their positions."""
    names = list(state)
    flat = [x for name in names for x in (state[name] if isinstance(state[name], list) else [state[name]])]

    def rebuilt(values: list[Any]) -> State:
        items = iter(values)
        return {
            name: [next(items) for _ in state[name]] if isinstance(state[name], list) else next(items) for name in names
        }

    return flat, rebuilt


def accumulate(optimiser: Optimiser, every: int) -> Optimiser:
    """An optimiser that updates once in `every` calls, by the mean of the gradients of these."""
    if every < 1:
        raise ArgumentError(f"accumulate: every must be at least 1, got {every!r}")

    def init(params: Any) -> State:
        leaves, _ = flatten_floats(params)
        sums = [np.zeros(computed(x).shape, computed(x).dtype) for x in leaves]
        return {"calls": np.zeros((), np.int32), "sums": sums, **_inner(optimiser.init(params))}

    def update(grads: Any, state: State, params: Any) -> tuple[Any, State]:
        leaves, gradients, structure = matched(params, grads)
        sums = [total + computed(x) for total, x in zip(state["sums"], gradients)]
        calls = state["calls"] + np.int32(1)
        due = calls == every
        inner = _outer(state)
        means = structure.unflatten([total / every for total in sums])
        new, after = optimiser.update(means, inner, params)
        old_arrays, rebuilt = _arrays(inner)
        results = _chosen(due, flatten_floats(new)[0], leaves)
        kept = rebuilt(_chosen(due, _arrays(after)[0], old_arrays))
        sums = [np.where(due, np.zeros((), total.dtype), total) for total in sums]
        return structure.unflatten(results), {"calls": np.where(due, np.int32(0), calls), "sums": sums, **_inner(kept)}

    return Optimiser(init, update)


_PREFIX = "inner."


def _inner(state: State) -> State:
    return {_PREFIX + name: value for name, value in state.items()}


def _outer(state: State) -> State:
    return {name.removeprefix(_PREFIX): value for name, value in state.items() if name.startswith(_PREFIX)}


def mixed_precision(
    optimiser: Optimiser, scale: float = 2.0**16, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000
) -> Optimiser:
    """Parameters of 16 bits with copies in f32, and a loss that is scaled, as `torch.amp.GradScaler` does.

    The gradients must be those of the loss times `state["scale"]`. Where one of them is not finite nothing is
    updated, and the scale is multiplied by `backoff`; after `interval` updates in a row it is multiplied by `growth`
    (Micikevicius et al., "Mixed precision training", section 3).
    """

    def init(params: Any) -> State:
        leaves, _ = flatten_floats(params)
        copies = [np.array(computed(x)) for x in leaves]
        numbers = {"scale": np.full((), scale, np.float32), "good": np.zeros((), np.int32)}
        return {**numbers, "params": copies, **_inner(optimiser.init(copies))}

    def update(grads: Any, state: State, params: Any) -> tuple[Any, State]:
        leaves, gradients, structure = matched(params, grads)
        factor = 1 / state["scale"]
        gradients = [computed(x) * factor.astype(computed(x).dtype) for x in gradients]
        finite = np.all(np.stack([np.all(np.isfinite(x)) for x in gradients])) if gradients else np.True_
        inner = _outer(state)
        new, after = optimiser.update(gradients, inner, state["params"])
        old_arrays, rebuilt = _arrays(inner)
        copies = _chosen(finite, new, state["params"])
        kept = rebuilt(_chosen(finite, _arrays(after)[0], old_arrays))
        good = np.where(finite, state["good"] + np.int32(1), np.int32(0))
        grown = good == interval
        ratio = np.where(finite, np.where(grown, np.float32(growth), np.float32(1)), np.float32(backoff))
        numbers = {"scale": state["scale"] * ratio, "good": np.where(grown, np.int32(0), good)}
        results = [copy.astype(leaf.dtype) for copy, leaf in zip(copies, leaves)]
        return structure.unflatten(results), {**numbers, "params": copies, **_inner(kept)}

    return Optimiser(init, update)
