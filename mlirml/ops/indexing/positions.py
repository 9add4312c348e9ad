"""Index values as positions: checked against the size of their axis, negative ones counted from its end.

A check is an assertion of the program; the positions are clamped as well, since a program goes on after a failed check
until it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import is_size, static_needed
from mlirml.errors import IndexOutOfBoundsError, UnsupportedSyntaxError
from mlirml.ir.text.builder import Body, Builder, Check, Value
from mlirml.ir.text.dtypes import marked, mlir_name
from mlirml.ir.text.elements import ElementBuilder

MODES = ("raise", "wrap", "clip")
INT64 = np.dtype(np.int64)


class Inline(Body):
    """Scalar operations at the insertion point of the builder, outside of any body."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self.builder = builder

    def op(self, text: str, result_type: str = "") -> str:
        return self.builder.named(f"{text} : {result_type}" if result_type else text)


@dataclass(frozen=True)
class Positions:
    """Positions along an axis of a size. `mode` names the conversion still to do: "exact" if the values are positions
    already.
    """

    values: Value
    size: int
    mode: str

    def write(self, block: Body, value: str) -> str:
        """The in-bounds position, of type `index`, for a scalar of the values."""
        dtype, last = self.values.dtype, self.size - 1
        kind = mlir_name(dtype)
        if self.mode == "exact":
            return block.op(f"arith.index_castui {value}", f"{kind} to index")
        if dtype.kind == "u" and self.mode != "wrap":
            # Before the cast, which would make large ones negative.
            limit = np.iinfo(dtype).max
            if last < limit:
                value = block.op(f"arith.minui {value}, {block.constant(last, dtype)}", kind)
            return block.op(f"arith.index_castui {value}", f"{kind} to index")
        cast = "arith.index_castui" if dtype.kind == "u" else "arith.index_cast"
        if self.mode == "wrap" and dtype.kind == "u":
            if self.size <= np.iinfo(dtype).max:
                value = block.op(f"arith.remui {value}, {block.constant(self.size, dtype)}", kind)
            return block.op(f"arith.index_castui {value}", f"{kind} to index")
        index = block.op(f"{cast} {value}", f"{kind} to index")
        zero, end = block.op("arith.constant 0", "index"), block.op(f"arith.constant {marked(last)}", "index")
        if self.mode == "clip":
            return block.op(f"arith.minsi {block.op(f'arith.maxsi {index}, {zero}', 'index')}, {end}", "index")
        size = block.op(f"arith.constant {marked(self.size)}", "index")
        if self.mode == "wrap":
            index = block.op(f"arith.remsi {index}, {size}", "index")
        negative = block.op(f"arith.cmpi slt, {index}, {zero}", "index")
        from_end = block.op(f"arith.addi {index}, {size}", "index")
        index = block.op(f"arith.select {negative}, {from_end}, {index}", "index")
        # What is still negative is large when taken as unsigned.
        return index if self.mode == "wrap" else block.op(f"arith.minui {index}, {end}", "index")


def positions(b: Builder, values: Value, size: int, axis: int, mode: str = "raise") -> Positions:
    """The positions for index values of an integer dtype; constants that are out of bounds are refused.

    With mode "raise" dynamic values are checked at run time.
    """
    if values.size and not size:
        if mode != "raise":
            raise IndexOutOfBoundsError("cannot take elements from an axis of size 0")
        first = b.contents(values)
        number = 0 if first is None else int(first.reshape(-1)[0])
        raise out_of_bounds(number, size, axis)
    if is_size(size):
        return dynamic_positions(b, values, size, axis, mode)
    known = b.contents(values)
    if known is not None and values.size:
        exact = known_positions(known, size, axis, mode)
        return Positions(values if exact is known else b.constant(exact), size, "exact")
    least, greatest = b.known_ranges.get(values.name, (None, None))
    if least is not None and greatest is not None and -size <= least and greatest < size:  # the variable of a loop
        return Positions(values, size, "exact" if least >= 0 else "raise")
    if mode == "raise" and values.size:
        check_values(b, values, size, axis)
    return Positions(values, size, mode)


def dynamic_positions(b: Builder, values: Value, size: Any, axis: int, mode: str) -> Positions:
    """The positions along an axis of dynamic size."""
    values = b.cast(values, INT64) if values.dtype != np.uint64 else values
    if values.dtype == np.uint64:
        raise static_needed(size, "the limit of indices of uint64")
    b.sizes.note((size, size - 1))
    if mode == "raise":
        limit = b.sizes.number(2 * size)

        def moved(block: Body, value: str) -> str:
            return block.op(f"arith.addi {value}, {b.sizes.number(size)}", "i64")

        flat = b.reshape(values, (values.size,))
        largest = b.reduce(
            flat, [0], INT64, 0, lambda block, x, acc: block.op(f"arith.maxui {moved(block, x)}, {acc}", "i64")
        )
        number = b.named(f"tensor.extract {largest.name}[] : {largest.type}")
        inside = b.named(f"arith.cmpi ult, {number}, {limit} : i64")
        message = f"an index is out of bounds for axis {axis} with size {size}"
        b.check(inside, Check("IndexOutOfBoundsError", message, "`np.take` can clip or wrap what lies outside"))
    return Positions(values, size, mode)


def known_positions(values: np.ndarray, size: int, axis: int, mode: str = "raise") -> np.ndarray:
    """Constant index values as positions; the same array if no value changes."""
    if mode == "raise":
        wrong = (values < -size) | (values >= size)
        if wrong.any():
            number = int(values.reshape(-1)[np.argmax(wrong)])
            raise out_of_bounds(number, size, axis)
        negative = values < 0
        return np.where(negative, values.astype(np.int64) + size, values) if negative.any() else values
    if mode == "clip":
        last = min(size - 1, int(np.iinfo(values.dtype).max))
        return np.asarray(np.clip(values, 0, last))
    wide = values.astype(np.int64) if values.dtype != np.uint64 else values
    return np.asarray(np.remainder(wide, wide.dtype.type(size)))


def out_of_bounds(number: int, size: int, axis: int) -> IndexOutOfBoundsError:
    """The error for an index that is out of bounds at trace time."""
    error = IndexOutOfBoundsError(
        f"index {number} is out of bounds for axis {axis} with size {size}",
        help=f"an index lies between {-size} and {size - 1}" if size else "the axis is empty",
    )
    error.needs = axis, max(-number, number + 1)
    return error


def check_values(b: Builder, values: Value, size: int, axis: int) -> None:
    """Assert that every value is in bounds."""
    dtype = values.dtype
    # Moved up by the size, values in bounds are below twice the size as unsigned numbers, and no others are.
    shift = 0 if dtype.kind == "u" else size
    limit = size + shift
    bits = 8 * dtype.itemsize
    if size > np.iinfo(dtype).max and dtype.kind == "u":
        return
    wide = np.dtype(f"{dtype.kind}{dtype.itemsize}") if limit < 1 << bits and size < 1 << (bits - 1) else INT64
    kind = mlir_name(wide)

    def moved(block: Body, value: str) -> str:
        value = block.cast(value, dtype, wide)
        return block.op(f"arith.addi {value}, {constant(block, shift, wide)}", kind) if shift else value

    if values.shape:
        values = b.reshape(values, (values.size,))
        largest = b.reduce(
            values,
            range(len(values.shape)),
            wide,
            0,
            lambda block, x, acc: block.op(f"arith.maxui {moved(block, x)}, {acc}", kind),
        )
        number = b.named(f"tensor.extract {largest.name}[] : {largest.type}")
    else:
        number = moved(Inline(b), b.named(f"tensor.extract {values.name}[] : {values.type}"))
    inside = b.named(f"arith.cmpi ult, {number}, {constant(Inline(b), limit, wide)} : {kind}")
    some = "an index" if values.shape else "the index"
    message = f"{some} is out of bounds for axis {axis} with size {size}"
    help_ = f"an index lies between {-size} and {size - 1}; `np.take` can clip or wrap what lies outside"
    about = f"index {{}} is out of bounds for axis {axis} with size {size}"
    b.check(inside, Check("IndexOutOfBoundsError", message, help_, about=about), shift)


def constant(block: Body, number: int, dtype: np.dtype) -> str:
    """A constant of the bits of a number."""
    wrapped = np.array(number, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    return block.constant(wrapped, dtype)


def scalar_position(b: ElementBuilder, values: Value, size: int, axis: int) -> str:
    """The position for a 0-d index, as a value of type `index` outside of any body."""
    direct = _direct_position(b, values, size, axis) if b.direct and size else None
    if direct is not None:
        return direct
    place = positions(b, values, size, axis)
    return place.write(Inline(b), b.element(place.values))


def _direct_position(b: ElementBuilder, values: Value, size: int, axis: int) -> str | None:
    """As `scalar_position`, in loops, without a conversion that is not needed; None for an index that has to be
    checked.
    """
    for number in b.extremes_of(values) or ():
        if not -size <= number < size:
            raise out_of_bounds(number, size, axis)
    least, greatest = b.limits_of(values)
    inside = least is not None and greatest is not None and -size <= least and greatest < size
    if b.checked and not inside:
        return None
    index = b.element_index(values)
    if least is not None and least >= 0:
        return index
    from_end = b.named(f"arith.addi {index}, {b.index(size)} : index")
    if greatest is not None and greatest < 0:
        return from_end
    negative = b.named(f"arith.cmpi slt, {index}, {b.index(0)} : index")
    return b.named(f"arith.select {negative}, {from_end}, {index} : index")


def checked_mode(name: str, mode: Any) -> str:
    """One of NumPy's modes for indices out of bounds."""
    if mode not in MODES:
        raise UnsupportedSyntaxError(f"{name}: mode is {mode!r}, not one of 'raise', 'wrap' and 'clip'")
    return str(mode)
