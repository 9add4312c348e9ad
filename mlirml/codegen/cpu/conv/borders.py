"""Tiles of a row of positions whose windows reach into padding, and the positions that meet elements at each tap."""

from __future__ import annotations

from mlirml.codegen.cpu.conv.problem import Slide
from mlirml.core.dataclass import dataclass

LEAST_MISSED = 0.03
"""The least part of the products of a row that leaving out those with padding must save."""
MOST_PRODUCTS = 512
"""The most vector products in the code of all borders, whose taps are unrolled."""


@dataclass(frozen=True)
class Border:
    """The numbers of tiles that meet padding alike; `met` are the positions in a tile that meet elements, by tap."""

    tiles: tuple[int, ...]
    met: tuple[tuple[int, ...], ...]


def borders_of(slide: Slide, tile: int, vectors: int) -> list[Border]:
    """The borders of a row in tiles of `tile` positions, of `vectors` vectors each; none if they are not worth it.

    The tiles are those of `clamped`: the last one ends at the last position.
    """
    found: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for number, first in enumerate(range(0, slide.count, tile)):
        found.setdefault(met_positions(slide, min(first, slide.count - tile), tile), []).append(number)
    every = tile * slide.kernel
    tiles = sum(map(len, found.values()))
    missed = sum((every - products(met)) * len(numbers) for met, numbers in found.items())
    borders = [Border(tuple(numbers), met) for met, numbers in found.items() if products(met) < every]
    code = sum(products(border.met) for border in borders) * vectors
    return borders if missed >= LEAST_MISSED * every * tiles and code <= MOST_PRODUCTS else []


def met_positions(slide: Slide, start: int, tile: int) -> tuple[tuple[int, ...], ...]:
    """The positions, counted from `start` on, that meet elements at each tap."""

    def is_met(position: int, tap: int) -> bool:
        return 0 <= (start + position) * slide.stride + tap * slide.dilation - slide.low < slide.size

    return tuple(tuple(i for i in range(tile) if is_met(i, tap)) for tap in range(slide.kernel))


def products(met: tuple[tuple[int, ...], ...]) -> int:
    """The number of products of a tile in one row of taps."""
    return sum(map(len, met))
