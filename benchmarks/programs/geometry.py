"""Geometry and graphics, as a newcomer writes it."""

from __future__ import annotations

import math

import numpy as np


def ray_traced(width, height, spheres, light):
    """Spheres with radii, lit from one side."""
    image = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            x = (column - width / 2) / width
            y = (row - height / 2) / width
            length = math.sqrt(x * x + y * y + 1)
            dx, dy, dz = x / length, y / length, 1 / length
            nearest = 1e30
            shade = 0.0
            for s in range(len(spheres)):
                cx, cy, cz, radius = spheres[s]
                b = dx * cx + dy * cy + dz * cz
                c = cx * cx + cy * cy + cz * cz - radius * radius
                inside = b * b - c
                if inside > 0:
                    t = b - math.sqrt(inside)
                    if 0 < t < nearest:
                        nearest = t
                        nx, ny, nz = (dx * t - cx) / radius, (dy * t - cy) / radius, (dz * t - cz) / radius
                        shade = max(0.0, nx * light[0] + ny * light[1] + nz * light[2])
            image[row, column] = shade
    return image


def julia(width, height, c, limit):
    """How fast points escape from a Julia set."""
    counts = np.zeros((height, width), dtype=np.int32)
    for i in range(height):
        for j in range(width):
            z = complex(3 * j / width - 1.5, 2 * i / height - 1)
            n = 0
            while abs(z) <= 2 and n < limit:
                z = z * z + c
                n += 1
            counts[i, j] = n
    return counts


def rotated(points, axis, angle):
    """Points turned around an axis, by a quaternion."""
    axis = axis / np.linalg.norm(axis)
    w = np.cos(angle / 2)
    x, y, z = axis * np.sin(angle / 2)
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return points @ matrix.T


def inside(polygon, points):
    """Which points are in a polygon, by counting edges that a ray crosses."""
    result = np.zeros(len(points), dtype=bool)
    for k in range(len(points)):
        x, y = points[k]
        odd = False
        j = len(polygon) - 1
        for i in range(len(polygon)):
            xi, yi = polygon[i]
            xj, yj = polygon[j]
            if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
                odd = not odd
            j = i
        result[k] = odd
    return result


def closest_pair(points):
    """The two points that are nearest to each other."""
    best = math.inf
    pair = (0, 0)
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            d = math.hypot(points[i, 0] - points[j, 0], points[i, 1] - points[j, 1])
            if d < best:
                best = d
                pair = (i, j)
    return best, pair


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    spheres = np.column_stack(
        [rng.uniform(-2, 2, 5), rng.uniform(-1, 1, 5), rng.uniform(4, 7, 5), rng.uniform(0.3, 1, 5)]
    )
    angles = np.sort(rng.random(40)) * 2 * np.pi
    return {
        "ray_traced": (120, 80, spheres, np.array([0.6, -0.6, -0.5])),
        "julia": (80, 60, complex(-0.4, 0.6), 100),
        "rotated": (rng.normal(size=(20_000, 3)), np.array([1.0, 2.0, 3.0]), 0.7),
        "inside": (np.column_stack([np.cos(angles), np.sin(angles)]), rng.uniform(-1, 1, (500, 2))),
        "closest_pair": (rng.random((300, 2)),),
    }[name]
