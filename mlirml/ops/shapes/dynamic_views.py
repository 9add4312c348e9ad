"""Dynamic views: elements and slices at dynamic offsets, each one step from the base array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.ir.text.builder import Builder, Region, Value
from mlirml.ops.shapes.views import Slice, Transpose, ViewOp

Start = int | str


@dataclass(frozen=True)
class Moving(ViewOp):
    """Dynamic slice: for each dimension of the base a start, which may be the name of an `index`, a length and a
    positive step.

    The dimensions in `drop` are not in the view. `sources` identify the starts, so that equal slices are equal.
    """

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    drop: tuple[int, ...]
    sources: tuple[object, ...]
    starts: tuple[Start, ...] = field(compare=False)
    region: Region = field(compare=False)

    def forward(self, b: Builder, base: Value) -> Value:
        return b.extract_slice(base, self.starts, self.sizes, self.steps, self.drop)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        return b.insert_slice(new, base, self.starts, self.sizes, self.steps)

    def apply(self, array: np.ndarray) -> np.ndarray:
        raise NotImplementedError("the offsets are dynamic")

    def like(self, array: np.ndarray) -> np.ndarray:
        kept = [slice(0, n * s, s) for n, s in zip(self.sizes, self.steps)]
        return array[tuple(0 if d in self.drop else part for d, part in enumerate(kept))]

    @property
    def known(self) -> bool:
        return False


def moving(
    shape: tuple[int, ...],
    starts: Sequence[Start],
    sizes: Sequence[int],
    steps: Sequence[int],
    drop: Sequence[int],
    sources: Sequence[object],
    region: Region,
) -> Moving:
    """A dynamic slice of an array of this shape."""
    kept = tuple(n for d, n in enumerate(sizes) if d not in drop)
    assert len(starts) == len(shape)
    return Moving(kept, tuple(sizes), tuple(steps), tuple(drop), tuple(sources), tuple(starts), region)


def placed(b: Builder, views: tuple[ViewOp, ...], new: Moving) -> tuple[ViewOp, ...]:
    """The views that compose a slice of a view: one slice of the base array where the two can be merged."""
    rest = list(views)
    after: list[ViewOp] = []
    while rest:
        last = rest[-1]
        if isinstance(last, Transpose):
            new, moved = _under_transpose(last, new)
            after[:0] = moved
        elif isinstance(last, (Slice, Moving)) and _ascends(last, new):
            new = _under_slice(b, last, new)
        else:
            break
        rest.pop()
    return (*rest, new, *after)


def _under_transpose(last: Transpose, new: Moving) -> tuple[Moving, list[ViewOp]]:
    """A slice of a transposed array as a transposed slice of the base."""
    order = last.permutation
    place = [order.index(d) for d in range(len(order))]
    drop = tuple(sorted(order[d] for d in new.drop))
    kept = [d for d in range(len(order)) if d not in drop]
    permutation = tuple(kept.index(order[d]) for d in range(len(order)) if d not in new.drop)
    sizes = tuple(new.sizes[p] for p in place)
    moved = moving(
        sizes,
        [new.starts[p] for p in place],
        sizes,
        [new.steps[p] for p in place],
        drop,
        [new.sources[p] for p in place],
        new.region,
    )
    plain = permutation == tuple(range(len(permutation)))
    return moved, [] if plain else [Transpose(new.shape, permutation)]


def _ascends(last: Slice | Moving, new: Moving) -> bool:
    kept = [step for d, step in enumerate(last.steps) if d not in last.drop]
    return all(step > 0 or d in new.drop for d, step in enumerate(kept))


def _under_slice(b: Builder, last: Slice | Moving, new: Moving) -> Moving:
    """A slice of a slice as one slice of the base."""
    starts: list[Start] = []
    sizes, steps, drop, sources = [], [], [], []
    inner = 0
    known = last.sources if isinstance(last, Moving) else last.starts
    for d, (start, step) in enumerate(zip(last.starts, last.steps)):
        if d in last.drop:
            part: tuple[Start, int, int, object] = start, 1, 1, known[d]
            drop.append(d)
        else:
            at = _sum(b, start, _product(b, new.starts[inner], step))
            source = new.sources[inner] if known[d] == 0 and step == 1 else (known[d], step, new.sources[inner])
            part = at, new.sizes[inner], abs(step) * new.steps[inner], source
            if inner in new.drop:
                drop.append(d)
            inner += 1
        starts.append(part[0])
        sizes.append(part[1])
        steps.append(part[2])
        sources.append(part[3])
    return moving(tuple(sizes), starts, sizes, steps, drop, sources, new.region)


def _sum(b: Builder, one: Start, other: Start) -> Start:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if one == 0 or other == 0:
        return other if one == 0 else one
    return b.named(f"arith.addi {_index(b, one)}, {_index(b, other)} : index")


def _product(b: Builder, start: Start, step: int) -> Start:
    if isinstance(start, int) or step == 1:
        return start * step if isinstance(start, int) else start
    return b.named(f"arith.muli {start}, {b.index(step)} : index")


def _index(b: Builder, start: Start) -> str:
    return b.index(start) if isinstance(start, int) else start
