"""L-BFGS without line search, over all parameters as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.frontend.frames import at_user_line
from mlirml.frontend.state.objects import flatten_floats
from mlirml.optim.optimiser import Optimiser, Rate, State, computed, matched, step_of

__all__ = ["lbfgs"]


def lbfgs(rate: Rate = 1.0, history: int = 10) -> Optimiser:
    """Limited-memory BFGS (Nocedal and Wright, "Numerical optimization", algorithm 7.4), one iteration an update.

    As `torch.optim.LBFGS` with `max_iter=1` and no line search: the first step is at most 1 long in the sum of its
    elements, and pairs whose curvature is at most 1e-10 are left out.
    """

    def init(params: Any) -> State:
        leaves, _ = flatten_floats(params)
        size, dtype = sum(int(np.prod(x.shape)) for x in leaves), np.result_type(np.float32, *(x.dtype for x in leaves))
        rows = {name: np.zeros((history, size), dtype) for name in ("steps", "changes")}
        kept = {name: np.zeros(size, dtype) for name in ("gradient", "step")}
        return {"count": np.zeros((), np.int32), "curvatures": np.zeros(history, dtype), **rows, **kept}

    def update(grads: Any, state: State, params: Any) -> tuple[Any, State]:
        with at_user_line():
            leaves, gradients, structure = matched(params, grads)
            dtype = state["gradient"].dtype
            g = np.concatenate([np.reshape(computed(x), (-1,)).astype(dtype) for x in gradients])
            step = step_of(rate, state["count"], dtype)
            first = step.count == 1
            change, last = g - state["gradient"], state["step"]
            curvature = np.sum(change * last)
            taken = np.logical_and(np.logical_not(first), curvature > 1e-10)
            steps = np.where(taken, _pushed(state["steps"], last), state["steps"])
            changes = np.where(taken, _pushed(state["changes"], change), state["changes"])
            curvatures = np.where(taken, _pushed(state["curvatures"], curvature), state["curvatures"])
            direction = _direction(g, steps, changes, curvatures, history)
            most = np.minimum(1.0, 1 / np.maximum(np.sum(np.abs(g)), np.finfo(dtype).tiny))
            taken_step = np.where(first, most * step.rate, step.rate + 0 * most) * direction
            results, offset = [], 0
            for leaf in leaves:
                size = int(np.prod(leaf.shape))
                part = np.reshape(taken_step[offset : offset + size], leaf.shape)
                results.append((computed(leaf) + part.astype(computed(leaf).dtype)).astype(leaf.dtype))
                offset += size
            kept = {"curvatures": curvatures, "steps": steps, "changes": changes, "gradient": g, "step": taken_step}
            return structure.unflatten(results), {"count": state["count"] + np.int32(1), **kept}

    return Optimiser(init, update)


def _pushed(rows: Any, row: Any) -> Any:
    """The rows with a new one at the end in place of the first."""
    return np.concatenate([rows[1:], row[None]])


def _direction(g: Any, steps: Any, changes: Any, curvatures: Any, history: int) -> Any:
    """The two loops over the history; rows of no curvature are not filled, and count for nothing."""
    filled = curvatures > 0
    inverse = np.where(filled, 1 / np.where(filled, curvatures, 1), 0)
    q, factors = -g, []
    for row in reversed(range(history)):
        factors.append(inverse[row] * np.sum(steps[row] * q))
        q = q - factors[-1] * changes[row]
    square = np.sum(changes[-1] * changes[-1])
    q = q * np.where(filled[-1], curvatures[-1] / np.where(square > 0, square, 1), 1)
    for row in range(history):
        q = q + steps[row] * (factors[history - 1 - row] - inverse[row] * np.sum(changes[row] * q))
    return q
