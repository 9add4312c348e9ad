"""The functions to differentiate, in plain NumPy.

The problems are those of ADBench (Srajer, Kukelova, Fitzgibbon, "A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning", 2018) and of GradBench, which adds small ones.
"""

from __future__ import annotations

import math

import numpy as np

import mlirml as ml

Array = np.ndarray
Parameters = dict[str, Array]


def log_sum_exp(x: Array) -> Array:
    """The logarithm of the sum of exponentials of a vector, safe from overflow."""
    largest = np.max(x)
    return np.log(np.sum(np.exp(x - largest))) + largest


def lower_places(width: int) -> tuple[Array, Array]:
    """Row and column of the numbers below the diagonal of a matrix, column by column."""
    columns, rows = np.triu_indices(width, 1)
    return rows, columns


def gmm(alphas: Array, means: Array, factors: Array, x: Array) -> Array:
    """The negative log-likelihood's opposite of a Gaussian mixture with a Wishart prior (ADBench, section 4.1).

    `alphas` [k] are logarithms of weights up to a constant, `means` [k, d], `factors` [k, d + d (d - 1) / 2] the
    logarithms of the diagonal and the numbers below it of the factors of the inverse covariances, `x` [n, d].
    """
    count, width = x.shape
    clusters = len(alphas)
    logs, below = factors[:, :width], factors[:, width:]
    diagonal, sums = np.exp(logs), np.sum(logs, axis=1)
    lower = np.zeros((clusters, width, width))
    rows, columns = lower_places(width)
    lower[:, rows, columns] = below
    centred = x[:, None, :] - means
    scaled = diagonal * centred + np.einsum("kij,nkj->nki", lower, centred)
    inner = alphas + sums - 0.5 * np.sum(scaled**2, axis=-1)
    largest = np.max(inner, axis=1, keepdims=True)
    likelihood = np.sum(np.log(np.sum(np.exp(inner - largest), axis=1)) + largest[:, 0])
    prior = 0.5 * (np.sum(diagonal**2) + np.sum(below**2))
    return likelihood - count * log_sum_exp(alphas) + prior + gmm_constant(count, width, clusters)


def gmm_constant(count: int, width: int, clusters: int) -> float:
    """What does not depend on the parameters, for a prior with gamma 1 and m 0."""
    freedom = width + 1
    log_gamma = sum(math.lgamma(0.5 * (freedom + 1 - j)) for j in range(1, width + 1))
    log_gamma += 0.25 * width * (width - 1) * math.log(math.pi)
    normal = -0.5 * freedom * width * math.log(2) - log_gamma
    return -0.5 * count * width * math.log(2 * math.pi) - clusters * normal


def reprojected(cameras: Array, points: Array, weights: Array, seen: Array) -> tuple[Array, Array]:
    """The two errors of observations (ADBench, section 4.2), in the last dimension each: horizontal and vertical.

    `cameras` [..., 11] are rotation, centre, focal length, principal point, two radial distortions.
    """
    rx, ry, rz = cameras[..., 0], cameras[..., 1], cameras[..., 2]
    x, y, z = (points[..., i] - cameras[..., 3 + i] for i in range(3))
    angle = np.sqrt(rx * rx + ry * ry + rz * rz)
    cosine, sine = np.cos(angle), np.sin(angle)
    ax, ay, az = rx / angle, ry / angle, rz / angle
    along = (ax * x + ay * y + az * z) * (1 - cosine)
    depth = z * cosine + (ax * y - ay * x) * sine + az * along
    across = (x * cosine + (ay * z - az * y) * sine + ax * along) / depth
    down = (y * cosine + (az * x - ax * z) * sine + ay * along) / depth
    square = across * across + down * down
    scale = cameras[..., 6] * (1 + cameras[..., 9] * square + cameras[..., 10] * square * square)
    horizontal = weights * (across * scale + cameras[..., 7] - seen[..., 0])
    return horizontal, weights * (down * scale + cameras[..., 8] - seen[..., 1])


def bundle(cameras: Array, points: Array, weights: Array, camera: Array, point: Array, seen: Array) -> Array:
    """The sum of all squared errors of bundle adjustment; `camera` and `point` say who sees what."""
    horizontal, vertical = reprojected(cameras[camera], points[point], weights, seen)
    return np.sum(horizontal**2) + np.sum(vertical**2) + np.sum((1 - weights**2) ** 2)


def reprojection(camera: Array, point: Array, weight: Array, seen: Array) -> Array:
    """Both errors of one observation."""
    return np.stack(reprojected(camera, point, weight, seen))


FINGERS = range(1, 21, 4)
"""The first bones of five fingers, of four bones each, between the wrist (0) and the forearm (21)."""
PARENTS = (-1, *(0 if i in FINGERS else i - 1 for i in range(1, 21)), 0)
BENT = [first + i for first in FINGERS for i in (1, 2, 3)]
BENDS, SPREADS = [6 + 4 * i + k for i in range(5) for k in (0, 2, 3)], [7 + 4 * i for i in range(5)]
"""Bones that bend, and the numbers of a pose that say by how much these do, and the first of each finger sideways."""


def hand(
    pose: Array, moved: Array, at: Array, relatives: Array, inverses: Array, rest: Array, weights: Array,
    triangles: Array, points: Array, seen: Array,
) -> Array:  # fmt: skip
    """The errors [n, 3] of points from the surface of a hand (ADBench, section 4.3).

    `pose` [26] are a rotation by axis and angle, a translation, and four angles of each finger. Point i is seen at the
    barycentric coordinates `at[i] + moved` of triangle `seen[i]`: the derivative by `moved` [2] has in row i those by
    `at[i]`, as no other point depends on them. `relatives` and `inverses` [bones, 4, 4] are transformations of bones at
    rest, from that of the parent and to the bone; `rest` [vertices, 4] and `weights` [vertices, bones] are the skin.
    """
    angles = np.zeros((len(PARENTS), 2))
    angles[BENT, 0] = pose[BENDS]
    angles[BENT[::3], 1] = pose[SPREADS]
    (cx, cz), (sx, sz) = np.cos(angles).T, np.sin(angles).T
    zero = np.zeros(len(PARENTS))
    rows = [cz, -sz * cx, sz * sx], [sz, cz * cx, -cz * sx], [zero, sx, cx]  # about x, then about z
    turns = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    local = np.concatenate([relatives[:, :, :3] @ turns, relatives[:, :, 3:]], axis=-1)
    placed: list[Array] = []
    for bone, parent in enumerate(PARENTS):
        placed.append(local[bone] if parent < 0 else placed[parent] @ local[bone])
    skin = np.einsum("vb,bij,vj->vi", weights, (np.stack(placed) @ inverses)[:, :3], rest)
    skin = skin @ turned_by(pose[:3]).T + pose[3:6]
    corners = skin[triangles[seen]]
    first, second = at[:, :1] + moved[0], at[:, 1:] + moved[1]
    return points - (first * corners[:, 0] + second * corners[:, 1] + (1 - first - second) * corners[:, 2])


def turned_by(rotation: Array) -> Array:
    """The matrix of a rotation by axis and angle."""
    angle = np.sqrt(np.sum(rotation**2))
    x, y, z = rotation / angle
    across = np.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x]).reshape(3, 3)
    return np.eye(3) + np.sin(angle) * across + (1 - np.cos(angle)) * across @ across


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def lstm_step(parameters: Parameters, states: Array, x: Array) -> tuple[Array, Array]:
    """All layers of the diagonal LSTM of ADBench (section 4.4): the new states [layers, 2, width] and the output."""
    output = x * parameters["scale_in"]
    new = []
    for layer in range(states.shape[0]):
        weights, biases = parameters["weights"][layer], parameters["biases"][layer]
        hidden, cell = states[layer, 0], states[layer, 1]
        forget = sigmoid(output * weights[0] + biases[0])
        take = sigmoid(hidden * weights[1] + biases[1])
        give = sigmoid(output * weights[2] + biases[2])
        cell = cell * forget + take * np.tanh(hidden * weights[3] + biases[3])
        output = give * np.tanh(cell)
        new.append(np.stack([output, cell]))
    return np.stack(new), output * parameters["scale_out"] + parameters["shift_out"]


def lstm(parameters: Parameters, states: Array, sequence: Array) -> Array:
    """The mean log-loss of predicting each element of a sequence [length, width] from those before it."""

    def step(states: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        states, predicted = lstm_step(parameters, states, pair[0])
        return states, np.sum(pair[1] * (predicted - np.log(2 + np.sum(np.exp(predicted)))))

    _, losses = ml.scan(step, states, (sequence[:-1], sequence[1:]))
    return -np.mean(losses)


def llsq(x: Array, t: Array, s: Array) -> Array:
    """Half the squared error of a polynomial with coefficients `x` at places `t`."""
    return 0.5 * np.sum((s - t[:, None] ** np.arange(len(x)) @ x) ** 2)


def kmeans(centres: Array, points: Array) -> Array:
    """The squared distances of all points from their nearest centre."""
    return np.sum(np.min(np.sum((points[:, None, :] - centres) ** 2, axis=-1), axis=1))


def determinant(matrix: Array) -> Array:
    """The determinant of a matrix by minors of its first row, recursively."""
    if len(matrix) == 1:
        return matrix[0, 0]
    total = 0.0
    for column in range(len(matrix)):
        minor = np.concatenate([matrix[1:, :column], matrix[1:, column + 1 :]], axis=1)
        total = total + (-1) ** column * matrix[0, column] * determinant(minor)
    return total


def ode(x: Array, steps: int) -> Array:
    """The sum of y(1) where y_0' = x_0 and y_i' = x_i y_(i-1), by the classical Runge-Kutta method."""
    h = 1 / steps

    def slope(y: Array) -> Array:
        return np.concatenate([x[:1], x[1:] * y[:-1]])

    def step(i: int, y: Array) -> Array:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return np.sum(ml.fori_loop(0, steps, step, np.zeros_like(x)))


def mlp_loss(p: Parameters, x: Array, labels: Array) -> Array:
    """The cross entropy of a network of two layers; `labels` [batch, classes] are ones and zeros."""
    logits = np.maximum(x @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"]
    largest = np.max(logits, axis=1, keepdims=True)
    logs = np.log(np.sum(np.exp(logits - largest), axis=1)) + largest[:, 0]
    return np.mean(logs - np.sum(logits * labels, axis=1))


def mlp_step(p: Parameters, momentum: Parameters, x: Array, labels: Array) -> tuple[Parameters, Parameters]:
    """A step of stochastic gradient descent with momentum."""
    gradient = ml.grad(mlp_loss)(p, x, labels)
    momentum = {name: 0.9 * momentum[name] + gradient[name] for name in p}
    return {name: p[name] - 0.1 * momentum[name] for name in p}, momentum
