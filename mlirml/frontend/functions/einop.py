"""`einop`: einsum, reshape, transpose, reduce and repeat in one pattern of named axes."""

from __future__ import annotations

import functools
import math
import re
import string
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import ArgumentError, MlirmlError, ShapeError
from mlirml.frontend.frames import at_user_line, user_location

_TOKEN = re.compile(r"\s*(->|\.\.\.|[A-Za-z_]\w*|\d+|[(),])")
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all")


@dataclass(frozen=True)
class _Axis:
    """An axis of the pattern: a name, or a number, at a column."""

    name: str
    column: int

    @property
    def size(self) -> int | None:
        """The size that a number is."""
        return int(self.name) if self.name.isdigit() else None

    @property
    def key(self) -> str:
        """The name of the axis; numbers are axes of their own."""
        return f"{self.name}@{self.column}" if self.name.isdigit() else self.name


_Group = tuple[_Axis, ...]
"""The axes of one dimension of an array; those of an ellipsis become groups of one each."""


@dataclass(frozen=True)
class _Pattern:
    text: str
    inputs: tuple[tuple[_Group, ...], ...]
    output: tuple[_Group, ...]


def einop(pattern: str, *operands: Any, reduction: str = "sum", **sizes: int) -> Any:
    """Einsum, reshape, transpose, reduction and repetition of arrays, in one pattern of named axes.

    On the left of `->` the axes of each operand, on the right those of the result. Axes that the result lacks are
    reduced, by `reduction`: "sum", "mean", "max", "min", "prod", "any" or "all"; several operands are multiplied first,
    and summed products are contractions, as in `np.einsum`. Axes that only the result has repeat it. Parentheses hold
    the axes that are one dimension of the array, in C order. A number is an axis of that size
    without a name, `...` any number of axes, and an axis that an operand has twice is its diagonal. Sizes that the
    shapes do not tell are given by name: `h=8`.

    Raises `ShapeError`, which shows the axis in the pattern, and `ArgumentError` where no pattern is one.

    >>> import numpy as np, mlirml as ml
    >>> image = np.arange(24.0).reshape(4, 6)
    >>> ml.einop("(h 2) (w 2) -> h w", image, reduction="max").tolist()
    [[7.0, 9.0, 11.0], [19.0, 21.0, 23.0]]
    >>> ml.einop("l (h d), s (h d) -> h l s", image, image, h=2).shape
    (2, 4, 4)
    """
    with at_user_line():
        if reduction not in _REDUCTIONS:
            raise _at_user_line(
                ArgumentError(f"einop: there is no reduction {reduction!r}", help=f"one of {', '.join(_REDUCTIONS)}")
            )
        parsed = _parsed(pattern) if isinstance(pattern, str) else None
        if parsed is None:
            raise _at_user_line(ArgumentError(f"einop: the pattern must be text, got {type(pattern).__name__}"))
        arrays = [x if hasattr(x, "__array_function__") else np.asarray(x) for x in operands]
        if len(parsed.inputs) != len(arrays):
            given = f"{len(arrays)} operand{'s' * (len(arrays) != 1)}"
            error = ShapeError(f"einop: the pattern has {len(parsed.inputs)} on the left, and there are {given}")
            raise _shown(error, parsed.text, 0, max(parsed.text.find("->"), 1))
        known = _given_sizes(parsed, sizes)
        inputs, output = _without_dots(parsed, arrays)
        for number, (groups, array) in enumerate(zip(inputs, arrays)):
            _infer(parsed.text, number, groups, array, known)
        _check_output(parsed, inputs, output, known)
        return _evaluated(inputs, output, arrays, known, reduction)


def _at_user_line(error: MlirmlError) -> MlirmlError:
    error.location = user_location()
    return error


def _shown(error: MlirmlError, text: str, column: int, width: int) -> MlirmlError:
    """An error with the pattern, and carets under a part of it."""
    error.notes = (*error.notes, text, " " * column + "^" * max(width, 1))
    return _at_user_line(error)


def _wrong(text: str, axis: _Axis, message: str, help: str | None = None) -> MlirmlError:
    return _shown(ShapeError(f"einop: {message}", help=help), text, axis.column, len(axis.name))


# Patterns.


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> _Pattern:
    tokens = list(_tokens(text))
    arrows = [position for position, token in enumerate(tokens) if token.name == "->"]
    if len(arrows) != 1:
        last = tokens[arrows[1]].column if arrows else len(text)
        error = ArgumentError(f"einop: the pattern has {len(arrows) or 'no'} `->`", help='write "inputs -> result"')
        raise _shown(error, text, last, 2 if arrows else 1)
    left, right = tokens[: arrows[0]], tokens[arrows[0] + 1 :]
    inputs: list[list[_Axis]] = [[]]
    for token in left:
        if token.name == ",":
            inputs.append([])
        else:
            inputs[-1].append(token)
    commas = [token for token in right if token.name == ","]
    if commas:
        raise _shown(ArgumentError("einop: there is one result"), text, commas[0].column, 1)
    result = _Pattern(text, tuple(_grouped(text, part) for part in inputs), _grouped(text, right))
    _check_names(result)
    return result


def _tokens(text: str) -> Iterator[_Axis]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            error = ArgumentError(
                f"einop: the pattern has {text[position]!r}", help="names, numbers, (), `...`, `,`, `->`"
            )
            raise _shown(error, text, position, 1)
        yield _Axis(match[1], match.start(1))
        position = match.end()


def _grouped(text: str, tokens: Sequence[_Axis]) -> tuple[_Group, ...]:
    groups: list[_Group] = []
    opened: _Axis | None = None
    inside: list[_Axis] = []
    for token in tokens:
        if token.name == "(":
            if opened is not None:
                raise _shown(ArgumentError("einop: parentheses in parentheses"), text, token.column, 1)
            opened, inside = token, []
        elif token.name == ")":
            if opened is None:
                raise _shown(ArgumentError("einop: nothing is open here"), text, token.column, 1)
            alone = len(inside) == 1 and inside[0].name == "..."  # one dimension, not one for each
            groups.append((*inside, _Axis("1", opened.column)) if alone else tuple(inside))
            opened = None
        elif opened is not None:
            inside.append(token)
        else:
            groups.append((token,))
    if opened is not None:
        raise _shown(ArgumentError("einop: this is not closed"), text, opened.column, 1)
    return tuple(groups)


def _check_names(pattern: _Pattern) -> None:
    text = pattern.text
    for groups in pattern.inputs:
        dots = [axis for group in groups for axis in group if axis.name == "..."]
        if any(len(group) > 1 and axis in group for group in groups for axis in dots):
            raise _shown(ArgumentError("einop: `...` on the left is in no parentheses"), text, dots[0].column, 3)
        if len(dots) > 1:
            raise _shown(ArgumentError("einop: `...` twice in one operand"), text, dots[1].column, 3)
    left = [axis for groups in pattern.inputs for group in groups for axis in group]
    seen: set[str] = set()
    for axis in (axis for group in pattern.output for axis in group):
        if axis.name == "..." and not any(other.name == "..." for other in left):
            raise _wrong(text, axis, "the result has `...`, and no operand has")
        if axis.size is None and axis.name in seen:
            raise _wrong(text, axis, f"the result has axis {axis.name} twice")
        if axis.size is not None and axis.size > 1 and any(other.name == axis.name for other in left):
            raise _wrong(
                text,
                axis,
                f"the {axis.name} of an operand is reduced, and this {axis.name} repeats the result",
                "give the axis a name if both are one",
            )
        seen.add(axis.name)


# Sizes.


def _given_sizes(pattern: _Pattern, sizes: dict[str, Any]) -> dict[str, int]:
    every = [axis for groups in (*pattern.inputs, pattern.output) for group in groups for axis in group]
    names = {axis.name for axis in every}
    for name, size in sizes.items():
        if name not in names:
            error = ArgumentError(f"einop: the pattern has no axis {name}, of which a size is given")
            raise _shown(error, pattern.text, 0, len(pattern.text))
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            axis = next(axis for axis in every if axis.name == name)
            raise _wrong(pattern.text, axis, f"the size of axis {name} must be an integer from 0 on, got {size!r}")
    return {name: int(size) for name, size in sizes.items()} | {a.key: a.size for a in every if a.size is not None}


def _without_dots(pattern: _Pattern, arrays: Sequence[Any]) -> tuple[list[tuple[_Group, ...]], tuple[_Group, ...]]:
    """The groups of operands and result with axes in place of `...`; they are aligned at the last."""
    inputs, widest = [], 0
    for number, (groups, array) in enumerate(zip(pattern.inputs, arrays)):
        dots = next((axis for group in groups for axis in group if axis.name == "..."), None)
        count = len(array.shape) - len(groups) + (dots is not None)
        if count < 0 or (count and dots is None):
            start, end = _extent(pattern, number)
            many = f"{len(groups) - (dots is not None)} dimension{'s' * (len(groups) - (dots is not None) != 1)}"
            error = ShapeError(
                f"einop: operand {number + 1} has the shape {list(array.shape)}, and the pattern "
                f"{'at least ' if dots else ''}{many}"
            )
            raise _shown(error, pattern.text, start, end - start)
        widest = max(widest, count if dots is not None else 0)
        inputs.append(tuple(new for group in groups for new in _spread(group, count)))
    output = tuple(
        tuple(new for axis in group for (new,) in _spread((axis,), widest)) if len(group) != 1 else group
        for group in pattern.output
    )
    return inputs, tuple(new for group in output for new in _spread(group, widest))


def _extent(pattern: _Pattern, number: int) -> tuple[int, int]:
    """The columns of an operand in the pattern."""
    parts = pattern.text.partition("->")[0].split(",")
    start = sum(len(part) + 1 for part in parts[:number])
    return start + len(parts[number]) - len(parts[number].lstrip()), start + len(parts[number].rstrip())


def _spread(group: _Group, count: int) -> list[_Group]:
    if len(group) != 1 or group[0].name != "...":
        return [group]
    return [(_Axis(f"...{count - i}", group[0].column),) for i in range(count)]


def _infer(text: str, number: int, groups: Sequence[_Group], array: Any, known: dict[str, int]) -> None:
    """Add the sizes of the axes of an operand to the known ones."""
    for group, size in zip(groups, array.shape):
        unknown = [axis for axis in group if axis.key not in known]
        rest = math.prod(known[axis.key] for axis in group if axis.key in known)
        whole = f"dimension of size {size} of operand {number + 1}, of the shape {list(array.shape)}"
        if len({axis.key for axis in unknown}) > 1:
            help_ = f"give one by name: `{unknown[0].name}=...`"
            names = " and ".join(axis.name for axis in unknown)
            raise _wrong(text, unknown[0], f"the sizes of {names} are not known, in the {whole}", help_)
        if unknown and (rest == 0 or size % rest):
            raise _wrong(text, unknown[0], f"the {whole}, does not divide by {rest}")
        if unknown:
            known[unknown[0].key] = size // rest
        elif len(group) == 1 and group[0].name.startswith("..."):
            axis = group[0]
            if size != known[axis.key] and 1 not in (size, known[axis.key]):
                raise _shown(
                    ShapeError(f"einop: sizes {known[axis.key]} and {size} of `...` do not broadcast"),
                    text, axis.column, 3,
                )  # fmt: skip
            known[axis.key] = size if known[axis.key] == 1 else known[axis.key]
        elif rest != size:
            shown = f"axis {group[0].name} is" if len(group) == 1 and group[0].size is None else "the axes make"
            axis = group[0] if group else _Axis("()", text.find("()"))
            shown = shown if group else "an empty pair of parentheses is"
            raise _wrong(text, axis, f"{shown} {rest}, not the {whole}")


def _check_output(
    pattern: _Pattern, inputs: Sequence[Sequence[_Group]], output: Sequence[_Group], known: dict[str, int]
) -> None:
    for axis in (axis for group in output for axis in group):
        if axis.key not in known:
            raise _wrong(
                pattern.text, axis, f"no operand has axis {axis.name}", f"give its size to repeat: `{axis.name}=...`"
            )


# Values.


def _evaluated(
    inputs: Sequence[Sequence[_Group]],
    output: Sequence[_Group],
    arrays: list[Any],
    known: dict[str, int],
    reduction: str,
) -> Any:
    keys, parts = [], []
    for groups, array in zip(inputs, arrays):
        # Axes of size 1 with a number for a name are dropped here; those of an ellipsis keep the size of the operand.
        pairs = [
            (axis.key, size if axis.name.startswith("...") else known[axis.key])
            for group, size in zip(groups, array.shape)
            for axis in group
            if axis.name != "1"
        ]
        keys.append([key for key, _ in pairs])
        parts.append(_reshaped(array, tuple(size for _, size in pairs)))
    present = set().union(*keys)
    every = [axis.key for group in output for axis in group]
    kept = [key for key in every if key in present]
    value = _contracted(keys, parts, kept, known, reduction)
    if len(kept) < len(every):
        value = _reshaped(value, tuple(known[key] if key in present else 1 for key in every))
        value = np.broadcast_to(value, tuple(known[key] for key in every))
    shape = tuple(math.prod(known[axis.key] for axis in group) for group in output)
    value = _reshaped(value, shape)
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


def _reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    return value if tuple(value.shape) == shape else np.reshape(value, shape)


def _contracted(keys: list[list[str]], parts: list[Any], kept: list[str], known: dict[str, int], reduction: str) -> Any:
    """The product of the operands, reduced to the axes `kept`, in that order."""
    reduced = [key for key in dict.fromkeys(key for names in keys for key in names) if key not in kept]
    if len(parts) > 1 and reduction in ("sum", "mean") and all(part.dtype == np.bool_ for part in parts):
        parts = [part.astype(np.int64) for part in parts]  # counted, as of one operand
    letters = dict(zip([*kept, *reduced], string.ascii_letters))
    if len(parts) > 1 and (reduction in ("sum", "mean") or not reduced):
        total = np.einsum(_subscripts(keys, kept, letters), *parts)
        return total / math.prod(known[key] for key in reduced) if reduction == "mean" and reduced else total
    order = [*kept, *reduced]
    product: Any = None
    for names, part in zip(keys, parts):
        aligned = _aligned(names, part, order, letters, bare=len(parts) == 1)
        product = aligned if product is None else product * aligned
    if not reduced:
        return product
    return getattr(np, reduction)(product, axis=tuple(range(len(kept), len(order))))


def _subscripts(keys: list[list[str]], kept: list[str], letters: dict[str, str]) -> str:
    left = ",".join("".join(letters[key] for key in names) for names in keys)
    return f"{left}->{''.join(letters[key] for key in kept)}"


def _aligned(names: list[str], part: Any, order: list[str], letters: dict[str, str], *, bare: bool) -> Any:
    """An operand with its axes in this order, those that it lacks of size 1."""
    unique = [key for key in order if key in names]
    if len(unique) < len(names):
        part = np.einsum(_subscripts([names], unique, letters), part)
    elif unique != names:
        part = np.transpose(part, [names.index(key) for key in unique])
    if bare:
        return part
    sizes = dict(zip(unique, part.shape))
    return _reshaped(part, tuple(sizes.get(key, 1) for key in order))
