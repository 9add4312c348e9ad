"""K-means by Newton's method: the centres of handwritten digits, from the Hessian of the cost.

    python examples/clusters.py

The cost of some centres is the sum of the squared distances of all points to the nearest centre. Where every point
keeps its centre it is a quadratic function, whose Hessian is diagonal: the product of the Hessian with a vector of
ones, `ml.hvp`, has all of it, and a Newton step goes to where Lloyd's algorithm goes (Bottou and Bengio, "Convergence
properties of the k-means algorithms", section 3). The whole iteration is one compiled `ml.while_loop`. It is checked
against Lloyd's algorithm in NumPy; the centres are drawn in clusters.png.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml


def cost(centres: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The sum of the squared distances of points [n, d] to the nearest of the centres [k, d]."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(centres**2, axis=1)
    return np.sum(np.min(squares - 2 * points @ centres.T, axis=1))


def newton_step(centres: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The centres after a step. A centre without points has neither slope nor curvature, and stays."""
    gradient = ml.grad(cost)(centres, points)
    curvature = ml.hvp(lambda c: cost(c, points), (centres,), (np.ones_like(centres),))
    return centres - gradient / np.where(curvature == 0, 1, curvature)


@ml.compile
def newton(centres: np.ndarray, points: np.ndarray, most: int) -> Any:
    """Steps until the centres stay where they are, but no more than `most`: the centres, and how many steps it took."""

    def moves(state: Any) -> Any:
        _, moved, count = state
        return (moved > 1e-12) & (count < most)

    def step(state: Any) -> Any:
        old, _, count = state
        new = newton_step(old, points)
        return new, np.max(np.abs(new - old)), count + 1

    centres, _, count = ml.while_loop(moves, step, (centres, np.inf, 0))
    return centres, count


def lloyd(centres: np.ndarray, points: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """The same in plain NumPy: each point to its nearest centre, each centre to the mean of its points."""
    count, moved = 0, np.inf
    while moved > 1e-12 and count < most:
        squares = np.sum(centres**2, axis=1) - 2 * points @ centres.T
        labels = np.argmin(squares, axis=1)
        new = np.stack([
            points[labels == k].mean(axis=0) if np.any(labels == k) else centres[k] for k in range(len(centres))
        ])  # fmt: skip
        moved, centres, count = np.abs(new - centres).max(), new, count + 1
    return centres, count


def load() -> tuple[np.ndarray, np.ndarray]:
    """Images of 64 pixels from 0 to 1, and the digits on them."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


def first_centres(points: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Points, each drawn by its squared distance from those before (Arthur and Vassilvitskii, "k-means++")."""
    rng = np.random.default_rng(seed)
    centres = [points[rng.integers(len(points))]]
    while len(centres) < count:
        squares = np.min([np.sum((points - centre) ** 2, axis=1) for centre in centres], axis=0)
        centres.append(points[rng.choice(len(points), p=squares / squares.sum())])
    return np.stack(centres)


def median_seconds(call: Callable[[], object]) -> float:
    """Of some calls."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def draw(centres: np.ndarray, points: np.ndarray, labels: np.ndarray, path: Path) -> float:
    """The centres and what most of their points are, in a PNG file; gives the share of points that are such."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    nearest = np.argmin(np.sum(centres**2, axis=1) - 2 * points @ centres.T, axis=1)
    figure = Figure(figsize=(1.4 * len(centres), 2.2), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("the centres, and the digit that most of their points are")
    right = 0
    for number, (axes, centre) in enumerate(zip(figure.subplots(1, len(centres)), centres)):
        counts = np.bincount(labels[nearest == number], minlength=10)
        right += int(counts.max())
        axes.imshow(centre.reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{counts.argmax()}: {counts.max()} of {counts.sum()}", fontsize=9)
        axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return right / len(points)


def main() -> None:
    """Find the centres, check, draw and report."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clusters", type=int, default=10, help="how many (10)")
    parser.add_argument("--points", type=int, help="how many digits, at most 1797")
    parser.add_argument("--png", type=Path, default=Path("clusters.png"), help="where the centres go (clusters.png)")
    options = parser.parse_args()
    out = Console(highlight=False)
    points, labels = (array[: options.points] for array in load())
    start = first_centres(points, options.clusters)

    begin = time.perf_counter()
    centres, steps = newton(start, points, 200)
    compilation = time.perf_counter() - begin
    expected, expected_steps = lloyd(start, points, 200)
    np.testing.assert_allclose(centres, expected, rtol=1e-9, atol=1e-12)
    newton_seconds = median_seconds(lambda: newton(start, points, 200))
    lloyd_seconds = median_seconds(lambda: lloyd(start, points, 200))
    share = draw(centres, points, labels, options.png)

    title = f"{len(points)} points, {options.clusters} centres"
    results = Table(title, "Lloyd in NumPy", "Newton in mlirml", box=box.SIMPLE_HEAD, pad_edge=False)
    results.add_row("cost at the start", "", f"{cost(start, points):.3f}")
    results.add_row("cost at the end", f"{cost(expected, points):.3f}", f"{cost(centres, points):.3f}")
    results.add_row("steps", str(expected_steps), str(int(steps)))
    faster = f"({lloyd_seconds / newton_seconds:.1f}x)"
    results.add_row("all steps", f"{1e3 * lloyd_seconds:.1f} ms", f"{1e3 * newton_seconds:.1f} ms {faster}")
    results.add_row("compilation", "", f"{compilation - newton_seconds:.1f} s")
    out.print(results)
    out.print(f"{share:.0%} of the digits lie with digits of their kind; the centres are in {options.png}")


if __name__ == "__main__":
    main()
