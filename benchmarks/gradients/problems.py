"""The workloads that are derivatives, and the functions themselves, to see what a gradient costs more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.gradients import derivatives, functions
from benchmarks.workload import Arguments, Workload


def _gmm(width: int, clusters: int, count: int) -> Arguments:
    rng = np.random.default_rng(7)
    factors = rng.standard_normal((clusters, width * (width + 1) // 2))
    means = rng.random((clusters, width))
    return rng.standard_normal(clusters), means, factors, rng.standard_normal((count, width))


def _bundle(cameras: int, points: int, observations: int) -> Arguments:
    rng = np.random.default_rng(8)
    centres = np.array([0.01, 0.01, 0.01, 0.0, 0.0, -5.0, 1.0, 0.0, 0.0, 0.01, 0.01])
    return (
        centres + 0.1 * rng.standard_normal((cameras, 11)),
        rng.standard_normal((points, 3)),
        rng.random(observations),
        rng.integers(0, cameras, observations),
        rng.integers(0, points, observations),
        0.1 * rng.standard_normal((observations, 2)),
    )


def _observations(count: int) -> Arguments:
    cameras, points, weights, camera, point, seen = _bundle(49, 7776, count)
    return cameras[camera], points[point], weights, seen


def _hand(vertices: int, count: int) -> Arguments:
    rng = np.random.default_rng(14)
    bones = len(functions.PARENTS)
    relatives, placed = np.tile(np.eye(4), (bones, 1, 1)), []
    for bone, parent in enumerate(functions.PARENTS):
        relatives[bone, :3, :3] = np.linalg.qr(np.eye(3) + 0.3 * rng.standard_normal((3, 3)))[0]
        relatives[bone, :3, 3] = 0.04 * rng.standard_normal(3)
        placed.append(relatives[bone] if parent < 0 else placed[parent] @ relatives[bone])
    weights = rng.random((vertices, bones)) * (rng.random((vertices, bones)) < 0.2)
    weights[np.arange(vertices), rng.integers(0, bones, vertices)] += 0.5
    rest = np.concatenate([0.1 * rng.standard_normal((vertices, 3)), np.ones((vertices, 1))], axis=1)
    triangles = rng.integers(0, vertices, (2 * vertices, 3))
    return (
        np.concatenate([rng.standard_normal(3), 0.2 * rng.standard_normal(23)]), np.zeros(2),
        rng.random((count, 2)) / 2, relatives, np.linalg.inv(np.stack(placed)), rest,
        weights / weights.sum(axis=1, keepdims=True), triangles, 0.1 * rng.standard_normal((count, 3)),
        rng.integers(0, 2 * vertices, count),
    )  # fmt: skip


def _lstm(layers: int, length: int, width: int) -> Arguments:
    rng = np.random.default_rng(9)
    parameters = {
        "weights": rng.standard_normal((layers, 4, width)),
        "biases": rng.standard_normal((layers, 4, width)),
        "scale_in": rng.standard_normal(width),
        "scale_out": rng.standard_normal(width),
        "shift_out": rng.standard_normal(width),
    }
    return parameters, rng.standard_normal((layers, 2, width)), (rng.random((length, width)) > 0.5).astype(np.float64)


def _llsq(points: int, terms: int) -> Arguments:
    t = np.linspace(-1, 1, points)
    return np.random.default_rng(10).standard_normal(terms), t, np.sign(t)


def _kmeans(points: int, centres: int, width: int) -> Arguments:
    rng = np.random.default_rng(11)
    return rng.standard_normal((centres, width)), rng.standard_normal((points, width))


def _mlp(batch: int, inputs: int, hidden: int, classes: int) -> Arguments:
    rng = np.random.default_rng(12)
    shapes = {"w1": (inputs, hidden), "b1": (hidden,), "w2": (hidden, classes), "b2": (classes,)}
    parameters = {name: rng.standard_normal(shape, np.float32) * np.float32(0.05) for name, shape in shapes.items()}
    momentum = {name: np.zeros_like(x) for name, x in parameters.items()}
    labels = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)]
    return parameters, momentum, rng.standard_normal((batch, inputs), np.float32), labels


def _both(
    name: str,
    function: Callable[..., Any],
    inputs: Callable[..., Arguments],
    sizes: tuple[int, ...],
    quick: tuple[int, ...],
    wrt: tuple[int, ...] = (0,),
    derivative: Callable[..., Any] | None = None,
) -> tuple[Workload, Workload]:
    """A function and its gradient."""
    value = Workload(f"gradients_{name}_value", function, inputs, sizes, quick, double=True)
    return replace(value, name=f"gradients_{name}", transform="gradient", wrt=wrt, derivative=derivative), value


PROBLEMS = (
    *_both("gmm10x25", functions.gmm, _gmm, (10, 25, 1000), (3, 4, 9), (0, 1, 2)),
    *_both("gmm20x50", functions.gmm, _gmm, (20, 50, 1000), (3, 5, 9), (0, 1, 2)),
    *_both("gmm64x25", functions.gmm, _gmm, (64, 25, 1000), (5, 4, 9), (0, 1, 2)),
    *_both("bundle", functions.bundle, _bundle, (49, 7776, 31843), (3, 5, 12), (0, 1, 2)),
    Workload(
        "gradients_bundle_jacobian", functions.reprojection, _observations, (31843,), (12,), double=True,
        transform="jacobian", wrt=(0, 1, 2), value=lambda *xs: np.stack(functions.reprojected(*xs), axis=-1),
    ),
    Workload(
        "gradients_hand_jacobian", functions.hand, _hand, (544, 12800), (30, 20), double=True,
        transform="jacobian of few", wrt=(0, 1),
    ),
    *_both("lstm", functions.lstm, _lstm, (2, 1024, 14), (2, 5, 3)),
    *_both("lse", functions.log_sum_exp, lambda n: (np.random.default_rng(0).standard_normal(n),), (100_000,), (50,)),
    *_both("llsq", functions.llsq, _llsq, (4096, 128), (20, 5)),
    *_both(
        "kmeans", functions.kmeans, _kmeans, (10_000, 100, 16), (30, 4, 3), derivative=derivatives.kmeans_gradient
    ),
    Workload(
        "gradients_kmeans_hvp", functions.kmeans, _kmeans, (10_000, 100, 16), (30, 4, 3), double=True,
        transform="hvp", derivative=derivatives.kmeans_hvp,
    ),
    *_both("det", functions.determinant, lambda n: (np.random.default_rng(13).random((n, n)),), (5,), (3,)),
    *_both("ode", lambda x: functions.ode(x, 10), lambda n: (np.random.default_rng(0).random(n),), (10_000,), (6,)),
    *(
        Workload(
            f"gradients_mlp{batch}", functions.mlp_step, _mlp, (batch, 784, 128, 10), (8, 20, 16, 10),
            transform="step", derivative=derivatives.mlp_gradient,
        )
        for batch in (64, 512)
    ),
)  # fmt: skip
