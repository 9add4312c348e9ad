"""Packing: copies panels of an operand into the order in which the register tile reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlirml.codegen.cpu.contract.kernel import convert
from mlirml.codegen.cpu.contract.plan import Piece, pieces
from mlirml.codegen.cpu.contract.problem import Cast
from mlirml.codegen.cpu.elementwise.transpose import exchange
from mlirml.codegen.cpu.emitter import Emitter, Index, Value, View, vector
from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class KAxis:
    """One loop of a block of k and its stride in an operand."""

    size: Value
    stride: int


@dataclass(frozen=True)
class Panel:
    """`width` rows of an operand with distance `row`, from `base` on."""

    source: View
    base: Index
    row: int
    width: int
    casts: tuple[Cast, ...]


@dataclass(frozen=True)
class Room:
    """The destination of a panel: element [k][row] at `base + k * stride + row`."""

    view: View
    base: Index
    stride: int


def pack_panel(e: Emitter, panel: Panel, axes: tuple[KAxis, ...], room: Room, lanes: int, prefetch: int = 0) -> None:
    """Copy one panel, by vectors along its rows or along k if one of them is contiguous.

    `prefetch`: the number of iterations of k by which prefetches are ahead, 0 for none.
    """
    if panel.row == 1:
        _pack_rows(e, panel, axes, room, lanes, prefetch)
    elif axes[-1].stride == 1 and panel.width > 1:
        _pack_squares(e, panel, axes, room, lanes)
    else:
        _pack_scalars(e, panel, axes, room)


@contextmanager
def _k_nest(e: Emitter, axes: tuple[KAxis, ...], base: Index, step: int = 1) -> Iterator[tuple[Index, Index, Index]]:
    """Loops over k: the index in the block, the offset in memory, and the remaining iterations of the inner loop."""
    if len(axes) == 1:
        with e.loop(0, axes[0].size, step, "k") as k:
            yield k, base + k * axes[0].stride, Index.of(axes[0].size) - k
        return
    inner = 1
    for axis in axes[1:]:
        assert isinstance(axis.size, int), "only a single loop of k is split into blocks"
        inner *= axis.size
    with (
        e.loop(0, axes[0].size, 1, "k") as k,
        _k_nest(e, axes[1:], base + k * axes[0].stride, step) as (number, at, left),
    ):
        yield k * inner + number, at, left


def _pack_rows(e: Emitter, panel: Panel, axes: tuple[KAxis, ...], room: Room, lanes: int, prefetch: int) -> None:
    with _k_nest(e, axes, panel.base) as (k, at, _):
        for piece in pieces(panel.width, lanes):
            if prefetch:
                e.prefetch(panel.source, at + prefetch * axes[-1].stride + piece.offset)
            value = e.load(panel.source, at + piece.offset, piece.lanes, piece.valid)
            value = convert(e, value, panel.casts, piece.lanes)
            e.store(value, room.view, room.base + k * room.stride + piece.offset, piece.lanes)


def _pack_scalars(e: Emitter, panel: Panel, axes: tuple[KAxis, ...], room: Room) -> None:
    with _k_nest(e, axes, panel.base) as (k, at, _), e.loop(0, panel.width, 1, "row") as row:
        value = convert(e, e.load_scalar(panel.source, at + row * panel.row), panel.casts, None)
        e.store_scalar(value, room.view, room.base + k * room.stride + row)


def _pack_squares(e: Emitter, panel: Panel, axes: tuple[KAxis, ...], room: Room, lanes: int) -> None:
    """Load vectors along k, transpose squares, store vectors along the rows."""
    size = axes[-1].size
    whole = isinstance(size, int) and size % lanes == 0
    rows = [panel.base + row * panel.row for row in range(panel.width)]
    with _k_nest(e, axes, Index(), lanes) as (k, at, left):
        columns: list[tuple[Piece, list[str]]] = []
        for piece in pieces(panel.width, lanes):
            square = []
            for row in rows[piece.offset : piece.offset + piece.valid]:
                value = e.load(panel.source, row + at, lanes, None if whole else left)
                square.append(convert(e, value, panel.casts, lanes))
            columns.append(
                (
                    piece,
                    transpose(
                        e, square, piece.lanes, lanes, panel.casts[-1].target if panel.casts else panel.source.element
                    ),
                )
            )
        for step in range(lanes):
            for piece, values in columns:
                e.store(values[step], room.view, room.base + (k + step) * room.stride + piece.offset, piece.lanes)


def transpose(e: Emitter, rows: list[str], height: int, lanes: int, element: str) -> list[str]:
    """The columns of up to `height` rows of `lanes` elements, as `lanes` vectors of `height` elements."""
    rows = exchanged(e, rows + [e.zeros(lanes, element)] * (lanes - len(rows)), lanes, element)
    if height == lanes:
        return rows
    types = f"{vector(lanes, element)} to {vector(height, element)}"
    part = f"{{offsets = [0], sizes = [{height}], strides = [1]}}"
    return [e.let(f"vector.extract_strided_slice {row} {part} : {types}") for row in rows]


def exchanged(e: Emitter, rows: list[str], lanes: int, element: str) -> list[str]:
    """Vectors of `lanes` elements, as many as a power of two, with each square of as many columns transposed."""
    return exchange(rows, lanes, lambda a, b, order: e.shuffle(a, b, list(order), lanes, element))
