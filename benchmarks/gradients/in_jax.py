"""The functions as a JAX user writes them, and what `jax` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import logsumexp, sigmoid

from benchmarks.gradients.functions import BENDS, BENT, PARENTS, SPREADS, gmm_constant, lower_places
from benchmarks.workload import Workload


def _gmm(alphas: Any, means: Any, factors: Any, x: Any) -> Any:
    count, width = x.shape
    clusters = len(alphas)
    logs, below = factors[:, :width], factors[:, width:]
    diagonal, sums = jnp.exp(logs), jnp.sum(logs, axis=1)
    rows, columns = lower_places(width)
    lower = jnp.zeros((clusters, width, width), x.dtype).at[:, rows, columns].set(below)
    centred = x[:, None, :] - means
    scaled = diagonal * centred + jnp.einsum("kij,nkj->nki", lower, centred)
    likelihood = jnp.sum(logsumexp(alphas + sums - 0.5 * jnp.sum(scaled**2, axis=-1), axis=1))
    prior = 0.5 * (jnp.sum(diagonal**2) + jnp.sum(below**2))
    return likelihood - count * logsumexp(alphas) + prior + gmm_constant(count, width, clusters)


def _reprojected(cameras: Any, points: Any, weights: Any, seen: Any) -> Any:
    rx, ry, rz = cameras[..., 0], cameras[..., 1], cameras[..., 2]
    x, y, z = (points[..., i] - cameras[..., 3 + i] for i in range(3))
    angle = jnp.sqrt(rx * rx + ry * ry + rz * rz)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    ax, ay, az = rx / angle, ry / angle, rz / angle
    along = (ax * x + ay * y + az * z) * (1 - cosine)
    depth = z * cosine + (ax * y - ay * x) * sine + az * along
    across = (x * cosine + (ay * z - az * y) * sine + ax * along) / depth
    down = (y * cosine + (az * x - ax * z) * sine + ay * along) / depth
    square = across * across + down * down
    scale = cameras[..., 6] * (1 + cameras[..., 9] * square + cameras[..., 10] * square * square)
    horizontal = weights * (across * scale + cameras[..., 7] - seen[..., 0])
    return horizontal, weights * (down * scale + cameras[..., 8] - seen[..., 1])


def _bundle(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, seen: Any) -> Any:
    horizontal, vertical = _reprojected(cameras[camera], points[point], weights, seen)
    return jnp.sum(horizontal**2) + jnp.sum(vertical**2) + jnp.sum((1 - weights**2) ** 2)


def _hand(
    pose: Any, moved: Any, at: Any, relatives: Any, inverses: Any, rest: Any, weights: Any, triangles: Any,
    points: Any, seen: Any,
) -> Any:  # fmt: skip
    angles = jnp.zeros((len(PARENTS), 2), pose.dtype).at[jnp.array(BENT), 0].set(pose[jnp.array(BENDS)])
    angles = angles.at[jnp.array(BENT[::3]), 1].set(pose[jnp.array(SPREADS)])
    (cx, cz), (sx, sz) = jnp.cos(angles).T, jnp.sin(angles).T
    zero = jnp.zeros_like(cx)
    rows = [cz, -sz * cx, sz * sx], [sz, cz * cx, -cz * sx], [zero, sx, cx]
    turns = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
    local = jnp.concatenate([relatives[:, :, :3] @ turns, relatives[:, :, 3:]], axis=-1)
    placed: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        placed.append(local[bone] if parent < 0 else placed[parent] @ local[bone])
    skin = jnp.einsum("vb,bij,vj->vi", weights, (jnp.stack(placed) @ inverses)[:, :3], rest)
    angle = jnp.sqrt(jnp.sum(pose[:3] ** 2))
    x, y, z = pose[:3] / angle
    across = jnp.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x]).reshape(3, 3)
    turned = jnp.eye(3) + jnp.sin(angle) * across + (1 - jnp.cos(angle)) * across @ across
    corners = (skin @ turned.T + pose[3:6])[triangles[seen]]
    first, second = at[:, :1] + moved[0], at[:, 1:] + moved[1]
    return points - (first * corners[:, 0] + second * corners[:, 1] + (1 - first - second) * corners[:, 2])


def _lstm(parameters: Any, states: Any, sequence: Any) -> Any:
    def step(states: Any, pair: Any) -> Any:
        output = pair[0] * parameters["scale_in"]
        new = []
        for layer in range(states.shape[0]):
            weights, biases = parameters["weights"][layer], parameters["biases"][layer]
            hidden, cell = states[layer, 0], states[layer, 1]
            forget = sigmoid(output * weights[0] + biases[0])
            take = sigmoid(hidden * weights[1] + biases[1])
            give = sigmoid(output * weights[2] + biases[2])
            cell = cell * forget + take * jnp.tanh(hidden * weights[3] + biases[3])
            output = give * jnp.tanh(cell)
            new.append(jnp.stack([output, cell]))
        predicted = output * parameters["scale_out"] + parameters["shift_out"]
        return jnp.stack(new), jnp.sum(pair[1] * (predicted - jnp.log(2 + jnp.sum(jnp.exp(predicted)))))

    _, losses = jax.lax.scan(step, states, (sequence[:-1], sequence[1:]))
    return -jnp.mean(losses)


def _llsq(x: Any, t: Any, s: Any) -> Any:
    return 0.5 * jnp.sum((s - t[:, None] ** jnp.arange(len(x)) @ x) ** 2)


def _kmeans(centres: Any, points: Any) -> Any:
    return jnp.sum(jnp.min(jnp.sum((points[:, None, :] - centres) ** 2, axis=-1), axis=1))


def _determinant(matrix: Any) -> Any:
    if len(matrix) == 1:
        return matrix[0, 0]
    total = 0.0
    for column in range(len(matrix)):
        minor = jnp.concatenate([matrix[1:, :column], matrix[1:, column + 1 :]], axis=1)
        total = total + (-1) ** column * matrix[0, column] * _determinant(minor)
    return total


def _ode(x: Any) -> Any:
    h = 1 / 10

    def slope(y: Any) -> Any:
        return jnp.concatenate([x[:1], x[1:] * y[:-1]])

    def step(i: int, y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return jax.lax.fori_loop(0, 10, step, jnp.zeros_like(x)).sum()


def _mlp_step(p: Any, momentum: Any, x: Any, labels: Any) -> Any:
    def loss(p: Any) -> Any:
        logits = jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * labels, axis=1))

    gradient = jax.grad(loss)(p)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda w, m: w - 0.1 * m, p, momentum), momentum


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gradients_gmm": _gmm,
    "gradients_bundle_jacobian": lambda *xs: jnp.stack(_reprojected(*xs)),
    "gradients_bundle": _bundle,
    "gradients_hand_jacobian": _hand,
    "gradients_lstm": _lstm,
    "gradients_lse": logsumexp,
    "gradients_llsq": _llsq,
    "gradients_kmeans": _kmeans,
    "gradients_det": _determinant,
    "gradients_ode": _ode,
    "gradients_mlp": _mlp_step,
}


def transformed(function: Callable[..., Any], workload: Workload) -> Callable[..., Any]:
    """The derivative that a workload is about."""
    if workload.transform == "gradient":
        return jax.grad(function, workload.wrt)
    if workload.transform == "value and gradient":
        return jax.value_and_grad(function, workload.wrt)
    if workload.transform == "jacobian":
        return jax.vmap(jax.jacrev(function, workload.wrt))
    if workload.transform == "jacobian of few":
        return jax.jacfwd(function, workload.wrt)
    if workload.transform == "hvp":

        def product(x: Any, *rest: Any) -> Any:
            return jax.jvp(jax.grad(lambda x: function(x, *rest)), (x,), (jnp.ones_like(x),))[1]

        return product
    return function
