"""Whether derivatives are right: along random directions they must be what differences of the function say.

Where a function has kinks, differences say too little: there the derivative is written out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Arguments, Workload

_DIRECTIONS = 3
_STEP = 1e-5
RATE = 0.1
"""By how much a training step goes against the gradient, where there was no momentum."""


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of nested tuples, lists and dicts, those of a dict in the order of its keys."""
    if isinstance(tree, dict):
        return [x for key in sorted(tree) for x in leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [x for item in tree for x in leaves(item)]
    return [np.asarray(tree)]


def expected(workload: Workload, arguments: Arguments) -> np.ndarray:
    """The derivatives along the directions, by central differences of the fourth order or as they are written out."""
    if workload.derivative is not None:
        return _along(workload, arguments, leaves(workload.derivative(*arguments)))
    function = workload.function if workload.value is None else workload.value

    def moved(direction: list[Any], far: float) -> np.ndarray:
        changed = list(arguments)
        for place, change in zip(workload.wrt, direction):
            changed[place] = _plus(arguments[place], change, far * _STEP)
        return np.asarray(function(*changed))

    found = []
    for direction in _directions(workload, arguments):
        near = moved(direction, 1) - moved(direction, -1)
        found.append((8 * near - (moved(direction, 2) - moved(direction, -2))) / (12 * _STEP))
    return np.stack(found)


def seen(workload: Workload, arguments: Arguments, result: Any, kind: type[np.floating]) -> np.ndarray:
    """The same of what a peer computed; NaN where that has other shapes or another dtype."""
    if workload.transform == "value and gradient":
        _, result = result
    found, wanted = leaves(result), leaves([arguments[place] for place in workload.wrt])
    if workload.transform == "step":  # parameters and momenta: what is left of the gradient in each
        count = len(wanted)
        gradient = [(old - new) / RATE for old, new in zip(wanted, found)]
        worst = max(float(np.max(np.abs(a - b))) for a, b in zip(gradient, found[count:]))
        if len(found) != 2 * count or not worst < 1e-4:
            return np.full(_DIRECTIONS, np.nan)
        found = found[count:]
    alike = workload.transform.startswith("jacobian") or [x.shape for x in found] == [x.shape for x in wanted]
    if not alike or any(x.dtype != kind for x in found):
        return np.full(_DIRECTIONS, np.nan)
    return _along(workload, arguments, found)


def _along(workload: Workload, arguments: Arguments, found: list[np.ndarray]) -> np.ndarray:
    projected = []
    for direction in _directions(workload, arguments):
        pairs = list(zip(found, leaves(direction)))
        if workload.transform == "jacobian":
            projected.append(sum(_per_example(x, v) for x, v in pairs))
        elif workload.transform == "jacobian of few":
            projected.append(sum(np.tensordot(x, v, v.ndim) for x, v in pairs))
        else:
            projected.append(sum(np.sum(x * v) for x, v in pairs))
    return np.stack(projected)


def _per_example(jacobian: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return np.einsum("noi,ni->no", jacobian.reshape(*jacobian.shape[:2], -1), direction.reshape(len(direction), -1))


def _directions(workload: Workload, arguments: Arguments) -> list[list[Any]]:
    rng = np.random.default_rng(1)

    def like(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: like(tree[key]) for key in sorted(tree)}
        return rng.standard_normal(np.shape(tree))

    return [[like(arguments[place]) for place in workload.wrt] for _ in range(_DIRECTIONS)]


def _plus(tree: Any, change: Any, far: float) -> Any:
    if isinstance(tree, dict):
        return {key: _plus(x, change[key], far) for key, x in tree.items()}
    return tree + far * change
