"""The plan of a convolution: which kernel, its register tile, and how the work is cut for threads."""

from __future__ import annotations

import math

from mlirml.codegen.cpu.conv.problem import Problem
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch

MOST_TAPS = 64
"""Windows with more taps are walked by loops."""
ROWS = 4
"""Output rows that share the loads of a window."""
VECTORS = 4
"""Vectors in a tile of pixels, at least where rows are so long: each is a chain of additions of its own."""
_BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}
_TASK_NS = 20_000
_PARALLEL_NS = 60_000
_CHUNKS = 64


@dataclass(frozen=True)
class Plan:
    """`kernel` is "filters" (vector lanes are filters) or "pixels".

    A tile of "filters" is `vectors` vectors of filters for `rows` times `columns` pixels; one of "pixels" is
    `vectors` vectors in each of `rows` rows. `grain` is the least number of parallel rounds worth a chunk, 0 for none.
    """

    kernel: str
    lanes: int
    vectors: int
    rows: int
    columns: int
    grain: int = 0

    @property
    def width(self) -> int:
        """Filters in a tile."""
        return self.lanes * self.vectors

    @property
    def pixels(self) -> int:
        return self.rows * self.columns


def plan(problem: Problem, vector_bits: int) -> Plan:
    """The plan with the least estimated time; `NoMatch` where loops do as well."""
    if any(slide.count == 0 or slide.kernel == 0 for slide in problem.slides):
        raise NoMatch("there is nothing to compute")
    lanes = vector_bits // 8 // _BYTES[problem.element]
    if problem.product and problem.combiner in ("addf", "addi") and problem.filters.size >= max(lanes // 2, 2):
        return filter_plan(problem, lanes, 32 if vector_bits == 512 else 16)
    return pixel_plan(problem, lanes)


def filter_plan(problem: Problem, lanes: int, registers: int) -> Plan:
    """Lanes are filters: the tile that wastes least, by counting multiplications and loads."""
    height, width = problem.slides[1].count, problem.slides[2].count
    if problem.slides[2].out != 1:
        raise NoMatch("rows of the out do not lie in one piece")
    if problem.is_padded and problem.slides[2].x != 1:
        raise NoMatch("rows of the input do not lie in one piece")
    best: tuple[float, Plan] | None = None
    for vectors in (1, 2, 3):
        blocks = -(-problem.filters.size // (lanes * vectors))
        for pixels in range(1, lanes + 1):
            if vectors * pixels + vectors + 1 > registers:
                continue
            if width >= pixels:
                rows, columns = 1, pixels
            elif pixels % width == 0 and pixels // width <= height and is_flat(problem):
                rows, columns = pixels // width, width
            else:
                continue
            tiles = -(-height // rows) * -(-width // columns)
            cycles = max(vectors * pixels / 2, (pixels + vectors) / 2, 4.0) + 0.5
            time = blocks * tiles * cycles
            if best is None or time < best[0]:
                best = time, Plan("filters", lanes, vectors, rows, columns)
    assert best is not None
    time, chosen = best
    total = time * problem.taps * problem.channels.size * problem.slides[0].count / 3.0
    total *= math.prod(axis.size for axis in problem.planes)
    rounds = filter_rounds(problem, chosen)
    return Plan("filters", lanes, chosen.vectors, chosen.rows, chosen.columns, grain(rounds, total))


def is_flat(problem: Problem) -> bool:
    """True if the places of a plane lie row after row."""
    _, rows, columns = problem.slides
    return columns.out == 1 and rows.out == columns.count


def filter_rounds(problem: Problem, chosen: Plan) -> int:
    """Parallel rounds: planes, blocks of filters, rows of tiles."""
    blocks = -(-problem.filters.size // chosen.width)
    depth, height, _ = problem.slides
    return math.prod(a.size for a in problem.planes) * blocks * depth.count * -(-height.count // chosen.rows)


def pixel_plan(problem: Problem, lanes: int) -> Plan:
    """Lanes are pixels of a row."""
    _, height, width = problem.slides
    if width.out != 1 or width.x != 1:
        raise NoMatch("rows do not lie in one piece")
    while lanes > width.count:
        lanes //= 2
    rows = min(ROWS, height.count)
    vectors = max(1, min(VECTORS // rows, width.count // lanes))
    rounds = -(-width.count // (lanes * vectors)) if shares_columns(problem) else pixel_rounds(problem)
    each = (0.45 if width.stride == 1 else 1.6) + (0.6 if problem.combiner.endswith("imumf") else 0)
    total = problem.operations / lanes * each
    return Plan("pixels", lanes, vectors, rows, lanes * vectors, grain(rounds, total))


def shares_columns(problem: Problem) -> bool:
    """True if all that threads can share is one row of pixels."""
    depth, height, _ = problem.slides
    return not problem.is_padded and pixel_rounds(problem) == depth.count == height.count == 1


def pixel_rounds(problem: Problem) -> int:
    """Parallel rounds: planes and filters, or planes alone where padding one serves all of its filters."""
    planes = math.prod(a.size for a in problem.planes)
    return planes if problem.is_padded else planes * problem.filters.size


def grain(rounds: int, total_ns: float) -> int:
    """The least number of rounds for one thread; 0 where the whole is too small to share."""
    if rounds < 2 or total_ns < _PARALLEL_NS:
        return 0
    return max(1, math.ceil(_TASK_NS * rounds / total_ns), -(-rounds // _CHUNKS))
