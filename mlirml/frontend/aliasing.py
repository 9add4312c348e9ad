"""Arguments that share memory with one that is stored into: they become views of one argument, their common base.

Programs are compiled under the assumption that arguments do not overlap. If they do, and one of them is stored into,
the function is captured for this overlap: `f(A, A[1:])` as `lambda base: f(base, base[1:])`. The base is a C-contiguous
array over the memory of the whole group, with as few dimensions as let every member be a view of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.frontend.spec import TensorSpec
from mlirml.ir.text.dtypes import describe, short_name
from mlirml.ops.shapes.views import Broadcast, Reshape, Slice, Transpose, ViewOp, Window

# As in the runtime: the exact answer can take exponential time, and arrays that need more steps count as shared.
_MAX_WORK: Any = 100000
# Strides up to this one are tried as sizes of the base's rows, planes and so on.
_MAX_STRIDES = 6


class NotCompiled(Exception):
    """The error for overlapping arguments that are not compiled: the positions of two of them, and the reason."""

    def __init__(self, first: int, second: int, reason: str) -> None:
        super().__init__(reason)
        self.first, self.second, self.reason = first, second, reason


@dataclass(frozen=True)
class Group:
    """A base and the arguments, by leaf index, that are views of it."""

    base: TensorSpec
    members: tuple[tuple[int, tuple[ViewOp, ...]], ...]


@dataclass(frozen=True)
class Aliasing:
    """The overlaps between the arguments of a call, a part of the signature.

    The program has one input for each group, at the position of its first member, and one for each other argument.
    """

    groups: tuple[Group, ...] = ()
    layouts: tuple[tuple[int, ...] | None, ...] | None = None
    """The strides of the program's inputs in elements, for programs that depend on them; None for C-contiguous
    inputs.
    """

    def order(self, count: int) -> list[int | Group]:
        """The program's inputs in order: leaves by index, and groups."""
        first = {group.members[0][0]: group for group in self.groups}
        others = {leaf for group in self.groups for leaf, _ in group.members[1:]}
        return [first.get(leaf, leaf) for leaf in range(count) if leaf not in others]

    def input_specs(self, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        """The specs of the program's inputs, from those of the leaves."""
        return tuple(x.base if isinstance(x, Group) else specs[x] for x in self.order(len(specs)))

    def input_paths(self, paths: Sequence[str]) -> list[str]:
        """The names of the program's inputs in messages; a base has the name of its first member."""
        return [paths[x.members[0][0] if isinstance(x, Group) else x] for x in self.order(len(paths))]

    def views_of_base(self, count: int) -> list[tuple[int, tuple[ViewOp, ...]]]:
        """For each leaf the index of the program's input that it is a view of, and the view operations."""
        found: dict[int, tuple[int, tuple[ViewOp, ...]]] = {}
        for number, x in enumerate(self.order(count)):
            for leaf, views in x.members if isinstance(x, Group) else ((x, ()),):
                found[leaf] = number, views
        return [found[leaf] for leaf in range(count)]


NONE = Aliasing()


def may_overlap(leaves: Sequence[Any]) -> bool:
    """True if the address ranges of two arrays meet; quick, also for many arrays."""
    bounds = sorted(np.lib.array_utils.byte_bounds(x) for x in leaves if isinstance(x, np.ndarray) and x.size)
    end = 0
    for low, high in bounds:
        if low < end:
            return True
        end = max(end, high)
    return False


def find(leaves: Sequence[Any], stored: Sequence[int]) -> tuple[Aliasing, list[Any]]:
    """The overlaps of arrays with those that are stored into, and the program's inputs: bases, and the other leaves.

    Raises `NotCompiled` if no base has all members of a group as views.
    """
    groups: list[tuple[list[int], Group, np.ndarray]] = []
    for numbers in _connected(leaves, stored):
        group, base = _based(leaves, numbers)
        groups.append((numbers, group, base))
    # A base also covers the memory between its members, and must not overlap any other argument.
    while (pair := _meeting(leaves, groups)) is not None:
        joined = sorted({*pair[0], *pair[1]})
        groups = [g for g in groups if not joined or not set(g[0]) & set(joined)]
        groups.append((joined, *_based(leaves, joined)))
    groups.sort(key=lambda g: g[0][0])
    aliasing = Aliasing(tuple(group for _, group, _ in groups))
    bases = {group: base for _, group, base in groups}
    return aliasing, [bases[x] if isinstance(x, Group) else leaves[x] for x in aliasing.order(len(leaves))]


def with_layouts(aliasing: Aliasing, inputs: Sequence[Any]) -> Aliasing:
    """The same overlaps, with the memory layouts of the program's inputs."""
    return Aliasing(aliasing.groups, tuple(map(_layout, inputs)))


def _layout(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return None
    return tuple(stride // value.itemsize for stride in value.strides)


def share_elements(a: Any, b: Any) -> bool:
    """True if two values are arrays that may share elements."""
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b, _MAX_WORK)


def _connected(leaves: Sequence[Any], stored: Sequence[int]) -> list[list[int]]:
    """The sets of two or more arguments that overlap, each with one that is stored into."""
    sets: list[set[int]] = []
    for target in stored:
        near = {i for i, leaf in enumerate(leaves) if i == target or share_elements(leaves[target], leaf)}
        touching = [s for s in sets if s & near]
        sets = [s for s in sets if not s & near] + [near.union(*touching)]
    return sorted(sorted(s) for s in sets if len(s) > 1)


def _meeting(
    leaves: Sequence[Any], groups: list[tuple[list[int], Group, np.ndarray]]
) -> tuple[list[int], list[int]] | None:
    """A group and an argument or group that overlaps its base, as leaf indices; None if there is none."""
    for i, (numbers, _, base) in enumerate(groups):
        for others, _, other in groups[i + 1 :]:
            if share_elements(base, other):
                return numbers, others
        for leaf, array in enumerate(leaves):
            if leaf not in numbers and share_elements(base, array):
                return numbers, [leaf]
    return None


@dataclass(frozen=True)
class _Member:
    """An argument in units of elements: its start, counted from address 0, and its dimensions longer than 1 and not
    broadcast, as (dimension, size, stride).
    """

    leaf: int
    shape: tuple[int, ...]
    start: int
    dims: tuple[tuple[int, int, int], ...]

    @property
    def first(self) -> int:
        """The lowest element."""
        return self.start + sum((n - 1) * min(stride, 0) for _, n, stride in self.dims)

    @property
    def end(self) -> int:
        """One past the highest element."""
        return self.start + sum((n - 1) * max(stride, 0) for _, n, stride in self.dims) + 1


def _based(leaves: Sequence[Any], numbers: list[int]) -> tuple[Group, np.ndarray]:
    """The group of these arguments, and its base in memory."""
    members = _members(leaves, numbers)
    arrays = [leaves[i] for i in numbers]
    size = arrays[0].itemsize
    rest = _address(arrays[0]) % size
    low, high = _room(arrays, rest, size)
    for start, shape in _candidates(members, low, high):
        found = [_placed(member, start, shape) for member in members]
        if all(views is not None for views in found):
            break
    else:
        # Without such a base, each member is a view of the flat base.
        widest = max((abs(stride) for m in members for _, _, stride in m.dims), default=1)
        start = max(low, min(m.first for m in members) - widest)
        shape = (min(high, max(m.end for m in members) + widest) - start,)
        found = [_windowed(member, start, shape[0]) for member in members]
    base = TensorSpec(shape, arrays[0].dtype)
    group = Group(base, tuple((m.leaf, views) for m, views in zip(members, found) if views is not None))
    return group, _memory(start * size + rest, shape, arrays)


def _members(leaves: Sequence[Any], numbers: list[int]) -> list[_Member]:
    first = leaves[numbers[0]]
    size = first.itemsize
    members = []
    for number in numbers:
        array = leaves[number]
        if array.dtype != first.dtype:
            reason = f"one is of {short_name(first.dtype)}, the other of {short_name(array.dtype)}"
            raise NotCompiled(numbers[0], number, reason)
        pointer, origin = _address(array), _address(first)
        dims = [(d, n, s) for d, (n, s) in enumerate(zip(array.shape, array.strides)) if n > 1 and s]
        if (pointer - origin) % size or any(stride % size for _, _, stride in dims):
            raise NotCompiled(numbers[0], number, "their elements are a fraction of an element apart")
        members.append(_Member(number, array.shape, pointer // size, tuple((d, n, s // size) for d, n, s in dims)))
    return members


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _room(arrays: Sequence[np.ndarray], rest: int, size: int) -> tuple[int, int]:
    """The range of addresses that certainly belongs to the arrays' allocations: its first element and its end."""
    low, high = zip(*(np.lib.array_utils.byte_bounds(_root(array)) for array in arrays))
    return -((rest - min(low)) // size), (max(high) - rest) // size


def _root(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _candidates(members: Sequence[_Member], low: int, high: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Starts and shapes of bases, those of few dimensions first."""
    strides = sorted({abs(stride) for m in members for _, _, stride in m.dims} - {1}, reverse=True)[:_MAX_STRIDES]
    first, end = min(m.first for m in members), max(m.end for m in members)
    for count in range(len(strides) + 1):
        for chosen in combinations(strides, count):
            chain = (*chosen, 1)
            if any(a % b for a, b in pairwise(chain)):
                continue
            aligned = low + (first - low) // chain[0] * chain[0]
            for start in dict.fromkeys((first, aligned)):
                rows = -((start - end) // chain[0])
                if start + rows * chain[0] <= high:
                    yield start, (rows, *(a // b for a, b in pairwise(chain)))


def _placed(member: _Member, start: int, shape: tuple[int, ...]) -> tuple[ViewOp, ...] | None:
    """The views that lead from a C-contiguous base to a member; None if it is no slice along the base's dimensions."""
    units = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    starts, rest = [], member.first - start
    for unit in units:
        starts.append(rest // unit)
        rest %= unit
    sizes, steps = [1] * len(shape), [1] * len(shape)
    axis: dict[int, int] = {}  # of the base, by dimension of the member
    for dim, size, stride in member.dims:
        dim_of_base = next(d for d, unit in enumerate(units) if abs(stride) % unit == 0 and abs(stride) >= unit)
        step = abs(stride) // units[dim_of_base]
        last = starts[dim_of_base] + (size - 1) * step
        if dim_of_base in axis.values() or last >= shape[dim_of_base]:
            return None
        axis[dim], sizes[dim_of_base], steps[dim_of_base] = dim_of_base, size, step
        if stride < 0:
            starts[dim_of_base], steps[dim_of_base] = last, -step
    if starts[0] >= shape[0]:
        return None
    kept = sorted(axis.values())
    drop = tuple(d for d in range(len(shape)) if d not in kept)
    inner = tuple(sizes[d] for d in kept)
    views: list[ViewOp] = []
    if (starts, sizes, steps) != ([0] * len(shape), list(shape), [1] * len(shape)) or drop:
        views.append(Slice(inner, tuple(starts), tuple(sizes), tuple(steps), drop))
    order = tuple(kept.index(axis[dim]) for dim in sorted(axis))
    if order != tuple(range(len(order))):
        inner = tuple(inner[i] for i in order)
        views.append(Transpose(inner, order))
    return (*views, *_completed(member, inner))


def _completed(member: _Member, inner: tuple[int, ...]) -> Iterator[ViewOp]:
    """The views that add dimensions of size 1 and broadcast ones."""
    long = [d for d, _, _ in member.dims]
    plain = tuple(n if d in long else 1 for d, n in enumerate(member.shape))
    if plain != inner:
        yield Reshape(plain)
    if plain != member.shape:
        yield Broadcast(member.shape)


def _windowed(member: _Member, start: int, size: int) -> tuple[ViewOp, ...]:
    """The views from a flat base to a member of any strides: rows of the base, or else elements one by one."""
    strides = sorted({abs(stride) for _, _, stride in member.dims} | {1}, reverse=True)
    if not any(a % b for a, b in pairwise(strides)):
        rows = next((n for _, n, stride in member.dims if abs(stride) == strides[0]), 1)
        length = rows * strides[0]
        for first in dict.fromkeys((member.first, start + size - length)):
            if start <= first <= member.first and first + length <= start + size:
                shape = (rows, *(a // b for a, b in pairwise(strides)))
                views = _placed(member, first, shape)
                if views is not None:
                    part = Slice((length,), (first - start,), (length,), (1,), ())
                    return (part, Reshape(shape), *views)
    inner = tuple(n for _, n, _ in member.dims)
    window = Window(inner, member.start - start, tuple(stride for _, _, stride in member.dims))
    return (window, *_completed(member, inner))


class _Pointer:
    """An array interface over an address range, with the arrays that keep the memory alive."""

    def __init__(self, address: int, size: int, owners: Sequence[np.ndarray]) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
        self.owners = tuple(owners)


def _memory(address: int, shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> np.ndarray:
    dtype = arrays[0].dtype
    flat = np.asarray(_Pointer(address, math.prod(shape) * dtype.itemsize, arrays))
    return flat.view(dtype).reshape(shape)


def described(group: Group, paths: Sequence[str]) -> str:
    """A description of a group for messages."""
    names = [f"`{paths[leaf]}`" for leaf, _ in group.members]
    return f"{', '.join(names[:-1])} and {names[-1]} share {describe(group.base.shape, group.base.dtype)}"
