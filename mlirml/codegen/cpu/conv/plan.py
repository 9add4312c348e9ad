"""The plan of a convolution: its kernel, its register tile, and the grain of the parallel loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu.conv.problem import Problem
from mlirml.core.dataclass import dataclass, replace
from mlirml.passes import NoMatch
from mlirml.targets.machine import Processor

MOST_TAPS = 64
"""Windows with more taps become loops."""
ROWS = 4
"""Output rows that share the loads of a window."""
VECTORS = 4
"""The minimal number of vectors in a tile of pixels, if rows are long enough: each is a separate chain of additions."""
LEAST_TERMS = 48
"""The least terms of each sum in a chunk of channels."""
MOST_TERMS = 1024
"""The most terms of a sum that is not made of those of chunks: its error would be larger than that of a product."""
LEAST_SHARED = 4
"""The least tiles that share the weights of a chunk."""
_BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}
_CHUNKS = 64


@dataclass(frozen=True)
class Plan:
    """The plan of a kernel: "filters" (vector lanes are filters), "pixels", or "separable" (pixels, in two steps).

    A tile of "filters" is `vectors` vectors of filters for `rows` times `columns` pixels, where the last vector has
    `last` lanes; one of "pixels" is `vectors` vectors in each of `rows` rows. `grain` is the least number of parallel
    iterations worth a chunk, 0 for a serial loop. With `rows_first` a row of tiles is computed for all filters before
    the next one, else all rows for some filters. `tiles` of a plane, one row of them if `chunk` is 0, share the weights
    of `chunk` channels, and keep their sums in memory between chunks.
    """

    kernel: str
    lanes: int
    vectors: int
    rows: int
    columns: int
    last: int
    grain: int = 0
    rows_first: bool = False
    tiles: int = 0
    chunk: int = 0

    @property
    def width(self) -> int:
        """The number of filters in a tile."""
        return self.lanes * (self.vectors - 1) + self.last

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The first filter and the number of lanes of each vector of a tile."""
        starts = range(0, self.lanes * self.vectors, self.lanes)
        return [(start, min(self.lanes, self.width - start)) for start in starts]

    @property
    def pixels(self) -> int:
        return self.rows * self.columns


_APART, _APART_IN_STEPS = 5, 12
"""The most columns from one pixel to the next one of a vector, in one step and in two.

With AVX-512, poolings of 7 columns take 1.5 times as long as loops over rows, of 16 4 times, and longer to compile;
of 16 by 16 in two steps 1.4 to 1.6 times.
"""


def plan(problem: Problem, machine: Processor) -> Plan:
    """The plan with the least estimated time; `NoMatch` where loops are as fast."""
    lanes = lanes_of(problem, machine)
    if has_lanes_of_filters(problem, lanes):
        return filter_plan(problem, lanes, machine)
    return pixel_plan(problem, lanes)


def plans(problem: Problem, machine: Processor) -> list[Plan]:
    """All plans of a problem, those with the least estimated time first; `NoMatch` where loops are as fast."""
    lanes = lanes_of(problem, machine)
    found: list[Plan] = []
    if has_lanes_of_filters(problem, lanes):
        for each in (lanes, lanes // 2) if lanes >= 8 else (lanes,):
            timed = sorted(filter_plans(problem, each, machine.vector_registers), key=lambda pair: pair[0])
            found += [with_order(problem, chosen, time, machine.l2_bytes) for time, chosen in timed]
        return found
    default = pixel_plan(problem, lanes)
    highest = 1 if default.kernel == "separable" else min(2 * ROWS, problem.slides[1].count)
    vectors = range(1, max(1, min(2 * VECTORS, problem.slides[2].count // default.lanes)) + 1)
    sizes = [(r, v) for r in range(1, highest + 1) for v in vectors if r * v < machine.vector_registers]
    found = [replace(default, rows=r, vectors=v, columns=default.lanes * v) for r, v in sizes]
    return [default, *(each for each in found if each != default)]


def lanes_of(problem: Problem, machine: Processor) -> int:
    """The lanes of vectors of the problem's elements; `NoMatch` without vectors, or where nothing is computed."""
    if any(slide.count == 0 or slide.kernel == 0 for slide in problem.slides):
        raise NoMatch("there is nothing to compute")
    lanes = machine.lanes(8 * _BYTES[problem.element])
    if not lanes:
        raise NoMatch("the processor has no vectors")
    return lanes


def has_lanes_of_filters(problem: Problem, lanes: int) -> bool:
    """True if the lanes of vectors are filters."""
    sums = problem.product and problem.combiner in ("addf", "addi")
    return sums and problem.filters.size >= max(lanes // 2, 2)


def filter_plan(problem: Problem, lanes: int, machine: Processor) -> Plan:
    """Lanes are filters: the tile that wastes least, by the number of multiplications and loads."""
    time, chosen = min(filter_plans(problem, lanes, machine.vector_registers), key=lambda pair: pair[0])
    return with_order(problem, chosen, time, machine.l2_bytes)


def filter_plans(problem: Problem, lanes: int, registers: int) -> Iterator[tuple[float, Plan]]:
    """The tiles that fit the registers, with the cycles of one channel of one tap; the first of equals is preferred."""
    height, width = problem.slides[1].count, problem.slides[2].count
    if problem.slides[2].out != 1:
        raise NoMatch("rows of the out do not lie in one piece")
    if problem.is_padded and problem.slides[2].x != 1:
        raise NoMatch("rows of the input do not lie in one piece")
    halves = (lanes, lanes // 2) if lanes >= 4 else (lanes,)
    for vectors, last, pixels in itertools.product((1, 2, 3), halves, range(1, lanes + 1)):
        if vectors * pixels + vectors + 1 > registers:
            continue
        if width >= pixels:
            rows, columns = 1, pixels
        elif pixels % width == 0 and pixels // width <= height and is_flat(problem):
            rows, columns = pixels // width, width
        else:
            continue
        chosen = Plan("filters", lanes, vectors, rows, columns, last)
        tiles = -(-problem.filters.size // chosen.width) * -(-height // rows) * -(-width // columns)
        work = vectors - (costs().kernels.half if last < lanes else 0)
        yield tiles * costs().kernels.window_cycles(work * pixels, pixels + vectors), chosen


def with_order(problem: Problem, chosen: Plan, time: float, l2_bytes: int) -> Plan:
    """The plan with the order and the grain of its parallel loop, if one channel of one tap takes so many cycles."""
    chosen = with_chunks(problem, chosen)
    total = time * problem.taps * problem.channels.size * problem.slides[0].count / costs().ghz
    total *= math.prod(axis.size for axis in problem.planes)
    iterations = filter_iterations(problem, chosen)
    return replace(chosen, grain=grain(iterations, total), rows_first=is_rows_first(problem, chosen, l2_bytes))


def with_chunks(problem: Problem, chosen: Plan) -> Plan:
    """The plan with the channels in chunks, if the weights of all of them exceed the first-level cache by a quarter.

    A chunk's weights fit half of it, and take so many products that loading and storing the sums is cheap. The sums of
    a group of tiles fit the other half, and there are enough groups for the threads.
    """
    tiles, row = plane_tiles(problem, chosen), column_tiles(problem, chosen)
    each = problem.taps * chosen.width * _BYTES[problem.element]  # of a channel
    chunk = max(Processor.l1_bytes // 2 // each, -(-LEAST_TERMS // problem.taps))
    chunks = -(-problem.channels.size // chunk)
    fits = 4 * problem.channels.size * each <= 5 * Processor.l1_bytes or chunks == 1
    if fits and problem.channels.size * problem.taps <= MOST_TERMS:
        return replace(chosen, tiles=row)
    if fits:
        chunks = -(-problem.channels.size * problem.taps * 2 // MOST_TERMS)
    if fits or tiles < LEAST_SHARED:  # for the error of the sums alone
        return replace(chosen, tiles=row, chunk=-(-problem.channels.size // chunks))
    others = math.prod(a.size for a in problem.planes) * problem.slides[0].count
    others *= -(-problem.filters.size // chosen.width)
    sums = chosen.pixels * chosen.vectors * chosen.lanes * _BYTES[problem.element]
    groups = max(-(-tiles * sums // (Processor.l1_bytes // 2)), min(-(-_CHUNKS // others), tiles // LEAST_SHARED))
    return replace(chosen, tiles=-(-tiles // groups), chunk=-(-problem.channels.size // chunks))


def column_tiles(problem: Problem, chosen: Plan) -> int:
    """The number of tiles in a row."""
    return -(-problem.slides[2].count // chosen.columns)


def plane_tiles(problem: Problem, chosen: Plan) -> int:
    """The number of tiles of one plane of the output."""
    return -(-problem.slides[1].count // chosen.rows) * column_tiles(problem, chosen)


def is_rows_first(problem: Problem, chosen: Plan, l2_bytes: int) -> bool:
    """True if less memory is read from beyond the second-level cache when the loop over filters is inside that of rows.

    In that order the input is read once, and all weights are read for each row of tiles; in the other one all of the
    input is read for each block of filters. What half of the cache holds is read once.
    """
    depth = problem.slides[0]
    blocks, groups = -(-problem.filters.size // chosen.width), -(-plane_tiles(problem, chosen) // chosen.tiles)
    each = problem.channels.size * _BYTES[problem.element]
    read = each * math.prod(slide.padded for slide in problem.slides)
    weights = each * problem.taps * blocks * chosen.width

    def beyond(size: int, times: int) -> int:
        return size * (times if 2 * size > l2_bytes else 1)

    return beyond(weights, depth.count * groups) + read < weights + beyond(read, blocks)


def is_flat(problem: Problem) -> bool:
    """True if the outputs of a plane are contiguous, row by row."""
    _, rows, columns = problem.slides
    return columns.out == 1 and rows.out == columns.count


def filter_iterations(problem: Problem, chosen: Plan) -> int:
    """The parallel iterations: planes, blocks of filters, groups of tiles."""
    blocks, groups = -(-problem.filters.size // chosen.width), -(-plane_tiles(problem, chosen) // chosen.tiles)
    return math.prod(a.size for a in problem.planes) * blocks * problem.slides[0].count * groups


def pixel_plan(problem: Problem, lanes: int) -> Plan:
    """Lanes are pixels of a row."""
    _, height, width = problem.slides
    if width.out != 1 or width.x != 1:
        raise NoMatch("rows do not lie in one piece")
    if width.stride > (_APART_IN_STEPS if is_separable(problem) else _APART):
        raise NoMatch("pixels so far apart are loaded one by one, and reductions of rows are loops")
    while lanes > width.count:
        lanes //= 2
    if is_separable(problem):
        vectors = max(1, min(VECTORS, width.count // lanes))
        total = separable_operations(problem) / lanes * 0.5
        return Plan("separable", lanes, vectors, 1, lanes * vectors, lanes, grain(pixel_iterations(problem), total))
    rows = min(ROWS, height.count)
    vectors = max(1, min(VECTORS // rows, width.count // lanes))
    iterations = -(-width.count // (lanes * vectors)) if shares_columns(problem) else pixel_iterations(problem)
    each = (0.45 if width.stride == 1 else 1.6) + (0.6 if problem.combiner.endswith("imumf") else 0)
    total = problem.operations / lanes * each
    return Plan("pixels", lanes, vectors, rows, lanes * vectors, lanes, grain(iterations, total))


def is_separable(problem: Problem) -> bool:
    """True if a pooling is faster in two steps: over the rows of windows to a line in memory, then over its columns.

    The line costs a store and more loads, and outputs of a tile share loads if they are computed in one step: windows
    of 3 by 3 elements take 0.9 to 2 times the time in two steps, of 5 by 5 0.5 to 1.2 times, of 7 by 7 0.4 to 0.8.
    """
    depth, height, width = problem.slides
    rows = depth.kernel * height.kernel
    if problem.product or problem.channels.size != 1 or shares_columns(problem):
        return False
    return rows * width.kernel > 2 * (rows + width.kernel + 1)


def separable_operations(problem: Problem) -> int:
    """The number of operations of a pooling in two steps: each output has a line of as many elements as its stride."""
    depth, height, width = problem.slides
    each = width.stride * (depth.kernel * height.kernel + width.kernel + 1)
    return problem.operations // problem.taps * each


def shares_columns(problem: Problem) -> bool:
    """True if one row of pixels is all the parallelism there is."""
    depth, height, _ = problem.slides
    return not problem.is_padded and pixel_iterations(problem) == depth.count == height.count == 1


def pixel_iterations(problem: Problem) -> int:
    """The parallel iterations: planes and filters, or planes alone if padding one serves all of its filters."""
    planes = math.prod(a.size for a in problem.planes)
    return planes if problem.is_padded else planes * problem.filters.size


def grain(iterations: int, total_ns: float) -> int:
    """The least number of iterations for one thread; 0 if the whole is too small to parallelise."""
    found = costs().grain(iterations, total_ns / max(1, iterations))
    return max(found, -(-iterations // _CHUNKS)) if found else 0
