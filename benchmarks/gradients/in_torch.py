"""The functions as a PyTorch user writes them, and their derivatives by `torch.autograd` and `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.gradients.functions import BENDS, BENT, PARENTS, SPREADS, gmm_constant, lower_places
from benchmarks.workload import Workload

Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]


def _gmm(alphas: Any, means: Any, factors: Any, x: Any) -> Any:
    count, width = x.shape
    clusters = len(alphas)
    logs, below = factors[:, :width], factors[:, width:]
    diagonal, sums = torch.exp(logs), logs.sum(1)
    rows, columns = (torch.from_numpy(i) for i in lower_places(width))
    places = torch.arange(clusters)[:, None], rows[None], columns[None]
    lower = torch.zeros(clusters, width, width, dtype=x.dtype).index_put(places, below)
    centred = x[:, None, :] - means
    scaled = diagonal * centred + torch.einsum("kij,nkj->nki", lower, centred)
    likelihood = torch.logsumexp(alphas + sums - 0.5 * (scaled**2).sum(-1), 1).sum()
    prior = 0.5 * ((diagonal**2).sum() + (below**2).sum())
    return likelihood - count * torch.logsumexp(alphas, 0) + prior + gmm_constant(count, width, clusters)


def _reprojected(cameras: Any, points: Any, weights: Any, seen: Any) -> Any:
    rx, ry, rz = cameras[..., 0], cameras[..., 1], cameras[..., 2]
    x, y, z = (points[..., i] - cameras[..., 3 + i] for i in range(3))
    angle = torch.sqrt(rx * rx + ry * ry + rz * rz)
    cosine, sine = torch.cos(angle), torch.sin(angle)
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
    return (horizontal**2).sum() + (vertical**2).sum() + ((1 - weights**2) ** 2).sum()


def _hand(
    pose: Any, moved: Any, at: Any, relatives: Any, inverses: Any, rest: Any, weights: Any, triangles: Any,
    points: Any, seen: Any,
) -> Any:  # fmt: skip
    angles = torch.zeros(len(PARENTS), 2, dtype=pose.dtype)
    bends = angles.index_put((torch.tensor(BENT), torch.tensor(0)), pose[BENDS])
    angles = bends.index_put((torch.tensor(BENT[::3]), torch.tensor(1)), pose[SPREADS])
    (cx, cz), (sx, sz) = torch.cos(angles).T, torch.sin(angles).T
    zero = torch.zeros_like(cx)
    rows = [cz, -sz * cx, sz * sx], [sz, cz * cx, -cz * sx], [zero, sx, cx]
    turns = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    local = torch.cat([relatives[:, :, :3] @ turns, relatives[:, :, 3:]], dim=-1)
    placed: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        placed.append(local[bone] if parent < 0 else placed[parent] @ local[bone])
    skin = torch.einsum("vb,bij,vj->vi", weights, (torch.stack(placed) @ inverses)[:, :3], rest)
    angle = torch.sqrt(torch.sum(pose[:3] ** 2))
    x, y, z = pose[:3] / angle
    across = torch.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x]).reshape(3, 3)
    turned = torch.eye(3, dtype=pose.dtype) + torch.sin(angle) * across + (1 - torch.cos(angle)) * across @ across
    corners = (skin @ turned.T + pose[3:6])[triangles[seen]]
    first, second = at[:, :1] + moved[0], at[:, 1:] + moved[1]
    return points - (first * corners[:, 0] + second * corners[:, 1] + (1 - first - second) * corners[:, 2])


def _lstm_step(parameters: Any, states: Any, x: Any, right: Any) -> Any:
    output = x * parameters["scale_in"]
    new = []
    for layer in range(states.shape[0]):
        weights, biases = parameters["weights"][layer], parameters["biases"][layer]
        hidden, cell = states[layer, 0], states[layer, 1]
        forget = torch.sigmoid(output * weights[0] + biases[0])
        take = torch.sigmoid(hidden * weights[1] + biases[1])
        give = torch.sigmoid(output * weights[2] + biases[2])
        cell = cell * forget + take * torch.tanh(hidden * weights[3] + biases[3])
        output = give * torch.tanh(cell)
        new.append(torch.stack([output, cell]))
    predicted = output * parameters["scale_out"] + parameters["shift_out"]
    return torch.stack(new), (right * (predicted - torch.log(2 + torch.exp(predicted).sum()))).sum()


def _lstm(step: Callable[..., Any]) -> Callable[..., Any]:
    """A loop in Python over a step, which is what is compiled: the loop unrolled takes minutes to compile."""

    def loss(parameters: Any, states: Any, sequence: Any) -> Any:
        losses = []
        for i in range(len(sequence) - 1):
            states, found = step(parameters, states, sequence[i], sequence[i + 1])
            losses.append(found)
        return -torch.stack(losses).mean()

    return loss


def _llsq(x: Any, t: Any, s: Any) -> Any:
    return 0.5 * ((s - t[:, None] ** torch.arange(len(x)) @ x) ** 2).sum()


def _kmeans(centres: Any, points: Any) -> Any:
    return ((points[:, None, :] - centres) ** 2).sum(-1).min(1).values.sum()


def _determinant(matrix: Any) -> Any:
    if len(matrix) == 1:
        return matrix[0, 0]
    total = 0.0
    for column in range(len(matrix)):
        minor = torch.cat([matrix[1:, :column], matrix[1:, column + 1 :]], dim=1)
        total = total + (-1) ** column * matrix[0, column] * _determinant(minor)
    return total


def _ode(x: Any) -> Any:
    h = 1 / 10

    def slope(y: Any) -> Any:
        return torch.cat([x[:1], x[1:] * y[:-1]])

    y = torch.zeros_like(x)
    for _ in range(10):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y.sum()


def _mlp(p: Any, x: Any, labels: Any) -> Any:
    logits = torch.addmm(p["b2"], torch.relu(torch.addmm(p["b1"], x, p["w1"])), p["w2"])
    return F.cross_entropy(logits, labels)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gradients_gmm": _gmm,
    "gradients_bundle_jacobian": lambda *xs: torch.stack(_reprojected(*xs)),
    "gradients_bundle": _bundle,
    "gradients_hand_jacobian": _hand,
    "gradients_lstm": _lstm_step,
    "gradients_lse": lambda x: torch.logsumexp(x, 0),
    "gradients_llsq": _llsq,
    "gradients_kmeans": _kmeans,
    "gradients_det": _determinant,
    "gradients_ode": _ode,
    "gradients_mlp": _mlp,
}


def build(function: Callable[..., Any], workload: Workload, arguments: Any, compiled: Compiler) -> Callable[[], Any]:
    """A call of the derivative that a workload is about, or of the function itself."""
    if workload.transform == "jacobian":
        jacobian = compiled(torch.func.vmap(torch.func.jacrev(function, workload.wrt)))
        return lambda: jacobian(*arguments)
    if workload.transform == "jacobian of few":
        jacobian = compiled(torch.func.jacfwd(function, workload.wrt))
        return lambda: jacobian(*arguments)
    if workload.transform == "hvp":
        x, *rest = arguments

        def product(x: Any) -> Any:
            gradient = torch.func.grad(lambda x: function(x, *rest))
            return torch.func.jvp(gradient, (x,), (torch.ones_like(x),))[1]

        product = compiled(product)
        return lambda: product(x)
    function = _lstm(compiled(function)) if function is _lstm_step else compiled(function)
    if workload.transform == "":
        return lambda: function(*arguments)
    if workload.transform == "step":
        return _step(function, *arguments)
    wanted = [x.requires_grad_() for place in workload.wrt for x in _leaves(arguments[place])]

    def gradient() -> Any:
        with torch.enable_grad():
            value = function(*arguments)
            found = torch.autograd.grad(value, wanted)
            return found if workload.transform == "gradient" else (value, found)

    return gradient


def _step(loss: Callable[..., Any], p: Any, momentum: Any, x: Any, labels: Any) -> Callable[[], Any]:
    wanted = [w.requires_grad_() for w in _leaves(p)]
    momenta = list(_leaves(momentum))

    def step() -> Any:
        with torch.enable_grad():
            gradient = torch.autograd.grad(loss(p, x, labels), wanted)
        new = torch._foreach_add(gradient, momenta, alpha=0.9)
        return torch._foreach_add([w.detach() for w in wanted], new, alpha=-0.1), new

    return step


def _leaves(tree: Any) -> list[Any]:
    return [tree[key] for key in sorted(tree)] if isinstance(tree, dict) else [tree]
