"""Builder that writes captured programs as MLIR text: types, attributes and operations with source locations.

Text is the cheap way (about 3 us to write an operation and 15 us to parse it, against 15 to 290 us through the
bindings), and a program whose text is already known need not be parsed at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Extent, Size, is_size, same, same_shape, static_needed
from mlirml.errors import DTypeError, SourceLocation
from mlirml.ir.text.dtypes import describe, is_float, mlir_name, short_name, tensor_type
from mlirml.ir.text.index_masks import match_computed
from mlirml.ir.text.pointwise import NotPointwise, Pointwise
from mlirml.ir.text.sizes import SizeTable, common_groups, is_within

# Marks in operation text where a location goes.
LOC = "\x01"
SMALL_CONSTANT_BYTES = 1024
SHARED_CONSTANT_BYTES = 1 << 20
"""Larger constants are not compared for equality."""


@dataclass(frozen=True)
class Value:
    """An SSA value of tensor type. `weak`: it comes from a Python scalar and yields to other dtypes in promotion."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype, weak: bool = False) -> None:
        values = self.__dict__  # a program has several for each operation, and this takes a third of the time
        values["name"], values["shape"], values["dtype"], values["weak"] = name, shape, dtype, weak

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return describe(self.shape, self.dtype)


@dataclass(frozen=True)
class Scalar:
    """A scalar known at trace time; `weak` for Python's own bool, int, float and complex."""

    value: bool | int | float | complex | np.generic
    weak: bool = True

    shape = ()

    @property
    def dtype(self) -> np.dtype:
        return np.asarray(self.value).dtype

    def __str__(self) -> str:
        return f"{self.value!r}" if self.weak else describe((), self.dtype)


Operand = Value | Scalar


def literal(value: object, dtype: np.dtype) -> str:
    """A scalar as the text of an MLIR attribute value of this dtype, exact to the bit."""
    if dtype == np.bool_:
        return "true" if value else "false"
    array = np.asarray(value).astype(dtype)
    if is_float(dtype):
        bits = int(array.view(f"u{dtype.itemsize}"))
        return f"0x{bits:0{2 * dtype.itemsize}X}"
    return str(int(array))


@dataclass
class Body:
    """The scalar body of one `linalg.generic`, written op by op."""

    lines: list[str] = field(default_factory=list)
    prefix: str = "%s"

    def op(self, text: str, result_type: str = "") -> str:
        """Append `%N = text [: type]` and return its name."""
        name = f"{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}{' : ' + result_type if result_type else ''}{LOC}")
        return name

    def several(self, text: str, count: int) -> list[str]:
        """Append `%N:count = text` and return the names of the results."""
        name = f"{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name}:{count} = {text}{LOC}")
        return [f"{name}#{number}" for number in range(count)]

    def constant(self, value: object, dtype: np.dtype) -> str:
        """A scalar constant."""
        if dtype == np.bool_:
            return self.op(f"arith.constant {literal(value, dtype)}")
        return self.op(f"arith.constant {literal(value, dtype)}", mlir_name(dtype))

    def cast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        """Convert a scalar as `ndarray.astype` does."""
        if source == target:
            return x
        s, t = mlir_name(source), mlir_name(target)
        if target == np.bool_:
            return self._to_bool(x, source, s)
        if is_float(source):
            return self._cast_float(x, source, target)
        if is_float(target):
            wide = np.dtype(np.float32) if target.itemsize == 2 else target  # 16-bit floats: by way of f32, as NumPy
            convert = "arith.sitofp" if source.kind == "i" else "arith.uitofp"
            return self.cast(self.op(f"{convert} {x}", f"{s} to {mlir_name(wide)}"), wide, target)
        width, wanted = (1 if source == np.bool_ else 8 * source.itemsize), 8 * target.itemsize
        if width == wanted:
            return x
        convert = "arith.trunci" if width > wanted else "arith.extsi" if source.kind == "i" else "arith.extui"
        return self.op(f"{convert} {x}", f"{s} to {t}")

    def _to_bool(self, x: str, source: np.dtype, result_type: str) -> str:
        zero = self.constant(0, source)
        compare = "arith.cmpf une" if is_float(source) else "arith.cmpi ne"
        return self.op(f"{compare}, {x}, {zero}", result_type)

    def _cast_float(self, x: str, source: np.dtype, target: np.dtype) -> str:
        s, t = mlir_name(source), mlir_name(target)
        if is_float(target):
            if source.itemsize == target.itemsize:  # f16 and bf16 meet in f32
                single = np.dtype(np.float32)
                return self.cast(self.cast(x, source, single), single, target)
            return self.op(f"arith.{'extf' if source.itemsize < target.itemsize else 'truncf'} {x}", f"{s} to {t}")
        return self._float_to_integer(x, source, target)

    def _float_to_integer(self, x: str, source: np.dtype, target: np.dtype) -> str:
        """Float to integer conversion with x86 semantics: a narrow integer is the low part of a wider one, so that -1.0
        converts to the largest unsigned integer.
        """
        s, t = mlir_name(source), mlir_name(target)
        if target.itemsize < 4 or target == np.uint32:
            wide = np.dtype(np.int64 if target == np.uint32 else np.int32)
            return self.cast(self._float_to_integer(x, source, wide), wide, target)
        if target != np.uint64:
            return self.op(f"arith.fptosi {x}", f"{s} to {t}")
        if source.itemsize == 2:
            single = np.dtype(np.float32)
            return self._float_to_integer(self.cast(x, source, single), single, target)
        limit, lowest = self.constant(2.0**63, source), self.constant(-(2**63), np.dtype(np.int64))
        above = self.op(f"arith.cmpf oge, {x}, {limit}", s)
        rest = self.op(f"arith.select {above}, {self.op(f'arith.subf {x}, {limit}', s)}, {x}", s)
        signed = self.op(f"arith.fptosi {rest}", f"{s} to i64")
        flipped = self.op(f"arith.xori {signed}, {lowest}", "i64")
        return self.op(f"arith.select {above}, {flipped}, {signed}", "i64")


@dataclass(eq=False)
class Region:
    """A region of an operation, or the body of `@main`. Values defined in it may be used while it is open.

    `owner` is the user's name for it: "the body of `ml.scan`".
    """

    parent: Region | None = None
    owner: str = ""
    open: bool = True
    construct: Any = None  # the loop or branch that handles stores into arrays defined outside of it
    inline: bool = False  # of an expression that is evaluated whether or not it is needed
    repeats: bool = False  # of a loop


@dataclass(frozen=True)
class Mark:
    """A position in a program, to which `Builder.rewind` takes it back."""

    operations: int
    ranges: int
    checks: int
    host_functions: int
    region: Region


@dataclass(frozen=True)
class Check:
    """The error that is raised when a `cf.assert` fails. `kind` is the name of the error's class.

    `raised` is the exception of a `raise` statement of the user's, which is raised itself.
    """

    kind: str
    message: str
    help: str | None = None
    location: SourceLocation | None = None
    raised: Exception | None = None
    about: str | None = None  # the message with "{}" for the checked index or value, where that is available


class Builder:
    """Collects the operations of `@main`. `location` returns the user's source location of the operation being written.

    Operations with regions are written between `begin` and `end`; `region` is the innermost one that is open.
    """

    def __init__(self, location: Callable[[], SourceLocation | None] = lambda: None) -> None:
        self._operations: list[str] = []
        self.requests = 0  # count of operations that delimit a differentiated, batched or recomputed part so far
        self._locations: list[SourceLocation | None] = []
        self._location = location
        self._count = 0
        self.region = Region()
        self.arguments: list[Value] = []
        self.constants: list[np.ndarray] = []
        self._constant_values: dict[int, Value] = {}
        self._transposed_constants: dict[tuple[int, tuple[int, ...], str], np.ndarray] = {}
        self._known_constants: dict[tuple[str, tuple[int, ...], bytes], np.ndarray] = {}
        self.int_ranges: list[tuple[int, int, int, str]] = []
        self.narrowed_at: list[SourceLocation | None] = []  # the source location of each of `int_ranges`
        self.lenient = False  # whether Python integers of unknown range may be narrowed, as they may yet be strong
        self.narrowed_leniently = False
        self.known_ranges: dict[str, tuple[int, int]] = {}  # the limits of weak integers other than arguments
        self.checks: list[Check] = []
        self.host_functions: list[Any] = []  # the Python functions that the program calls
        self._contents: dict[str, np.ndarray] = {}  # of constants, by name
        self.sizes = SizeTable()
        self.pointwise: Pointwise | None = None  # the function whose operations are written into one

    def argument(self, shape: tuple[int, ...], dtype: np.dtype, weak: bool = False) -> Value:
        """A new input of `@main`; all inputs come before the first constant."""
        value = Value(f"%arg{len(self.arguments)}", shape, dtype, weak)
        self.sizes.note(shape)
        self.arguments.append(value)
        return value

    def op(self, text: str, shape: Sequence[int], dtype: np.dtype) -> Value:
        """Append an operation with one tensor result."""
        value = Value(self.fresh(), tuple(shape), dtype)
        self.sizes.note(shape)
        self._append(f"{value.name} = {text}{LOC}")
        return value

    def op2(self, text: str, first: Value, second: Value) -> tuple[Value, Value]:
        """Append an operation with two tensor results, shaped like the two given values."""
        name = self.fresh()
        self._append(f"{name}:2 = {text}{LOC}")
        return (
            Value(f"{name}#0", first.shape, first.dtype),
            Value(f"{name}#1", second.shape, second.dtype),
        )

    @property
    def count(self) -> int:
        """The number of names that `fresh` has given."""
        return self._count

    def fresh(self) -> str:
        """A name that no value has."""
        name = f"%{self._count}"
        self._count += 1
        return name

    def line(self, text: str) -> None:
        """Append an operation without results."""
        self._append(f"{text}{LOC}")

    def named(self, text: str) -> str:
        """Append an operation with one result of any type; the result's name."""
        name = self.fresh()
        self._append(f"{name} = {text}{LOC}")
        return name

    def _append(self, text: str) -> None:
        if self.pointwise is not None:
            self.pointwise.check(text)
        if "mlirml." in text[:32]:
            self.requests += 1
        self._operations.append(text)
        self._locations.append(self._location())

    def last_line(self) -> tuple[int, str]:
        """The index of the line written last, and the line."""
        return len(self._operations) - 1, self._operations[-1] if self._operations else ""

    def has_line(self, number: int, text: str) -> bool:
        """True if this line is still at the index where it was written."""
        return 0 <= number < len(self._operations) and self._operations[number] is text

    def has_text(self, text: str) -> bool:
        """True if this line, the same object, is in the program."""
        return any(line is text for line in self._operations)

    # Regions.

    def begin(self, owner: str, *, repeats: bool = False) -> int:
        """Open a region of a new operation or loop; returns the index of its first line, for `set_line`."""
        if self.pointwise is not None:
            raise NotPointwise
        self.region = Region(self.region, owner, repeats=repeats)
        self._append("")
        return len(self._operations) - 1

    def set_line(self, number: int, text: str) -> None:
        """Fill in a line reserved by `begin`; it has no location."""
        self._operations[number] = text

    def next_region(self, text: str, owner: str | None = None) -> None:
        """Close the innermost region and open another one of the same operation; `text` is written between them."""
        before = self.region
        before.open = False
        self.region = Region(before.parent, before.owner if owner is None else owner, repeats=before.repeats)
        self._append(text)

    def end(self, attributes: str = "") -> None:
        """Close the innermost region and its operation, which may have attributes."""
        assert self.region.parent is not None
        self.region.open = False
        self.region = self.region.parent
        self._append(f"}}{' ' + attributes if attributes else ''}{LOC}")

    def insert(self, number: int, text: str) -> str:
        """Insert an operation with one result before line `number`; returns the result's name."""
        name = self.fresh()
        self._operations.insert(number, f"{name} = {text}{LOC}")
        self._locations.insert(number, self._location())
        return name

    def mark(self) -> Mark:
        """The current end of the program, for `rewind`."""
        return Mark(
            len(self._operations), len(self.int_ranges), len(self.checks), len(self.host_functions), self.region
        )

    def rewind(self, mark: Mark) -> None:
        """Erase the operations after a mark, and close the regions opened since."""
        region: Region | None = self.region
        while region is not None and region is not mark.region:
            region.open = False
            region = region.parent
        self.region = mark.region
        del self._operations[mark.operations :], self._locations[mark.operations :]
        del self.int_ranges[mark.ranges :], self.narrowed_at[mark.ranges :], self.checks[mark.checks :]
        del self.host_functions[mark.host_functions :]

    def since(self, mark: Mark) -> list[str]:
        """The operations after a mark."""
        return self._operations[mark.operations :]

    # Operations.

    def scalar(self, value: object, dtype: np.dtype) -> str:
        """An `arith.constant` of element type; its name."""
        name = self.fresh()
        kind = "" if dtype == np.bool_ else f" : {mlir_name(dtype)}"
        self._append(f"{name} = arith.constant {literal(value, dtype)}{kind}{LOC}")
        return name

    def check(self, condition: str, check: Check, base: int | None = None) -> None:
        """Let the call raise this error, after the program has run, if a scalar of type i1 is false.

        The operations after it are executed all the same, and must be safe. `base` is the offset that was added to the
        checked number before the comparison.
        """
        number = len(self.checks)
        self.checks.append(replace(check, location=self._location()))
        base_ = "" if base is None else f", mlirml.check_base = {base} : i64"
        self.line(f"cf.assert {condition}, {_quoted(check.message)} {{mlirml.check = {number} : i64{base_}}}")

    def contents(self, value: Value) -> np.ndarray | None:
        """The elements of a constant; None for anything else."""
        return self._contents.get(value.name)

    def index(self, value: Extent) -> str:
        """An `arith.constant` of index type, or a dynamic size; its name."""
        if type(value) is Size:
            return self.sizes.name(value)
        name = f"%{self._count}"
        self._count += 1
        self._append(f"{name} = arith.constant {value} : index{LOC}")
        return name

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        """An uninitialised tensor, for the inits of structured operations."""
        return self.op(f"tensor.empty() : {tensor_type(tuple(shape), dtype)}", shape, dtype)

    def size_number(self, size: Size) -> Value:
        """A dynamic size as a number, weak as Python's."""
        made = self.op(f"tensor.from_elements {self.sizes.number(size)} : tensor<i64>", (), np.dtype(np.int64))
        return replace(made, weak=True)

    def last_index(self, block: Body, size: Extent) -> str:
        """The last index of a dimension, in a body."""
        if type(size) is Size:
            return self.sizes.name(size - 1) if type(size - 1) is Size else block.op("arith.constant 0", "index")
        return block.op(f"arith.constant {size - 1}", "index")

    def filled(self, shape: Sequence[int], dtype: np.dtype, value: object) -> Value:
        """A tensor that holds one value everywhere."""
        scalar, out = self.scalar(value, dtype), self.empty(shape, dtype)
        kind = mlir_name(dtype)
        return self.op(f"linalg.fill ins({scalar} : {kind}) outs({out.name} : {out.type}) -> {out.type}", shape, dtype)

    def constant(self, array: np.ndarray, *, live: bool = False) -> Value:
        """An array as a value: a fill, a dense attribute, or a further argument of `@main` that shares the buffer.

        Large masks that are comparisons of indices, and integers that are sums of them, are computed.

        With `live` the array is always an argument, read anew at each call.
        """
        if not live:
            if is_uniform(array):
                value = self.filled(array.shape, array.dtype, array.reshape(-1)[0])
            elif array.nbytes <= SMALL_CONSTANT_BYTES:
                value = self._dense(array)
            elif (computed := match_computed(array)) is not None:
                value = self.elementwise([], [], array.dtype, array.shape, lambda block, _: computed.body(block))
            else:
                value = self._in_memory_order(self._shared(array))
            self._contents[value.name] = array
            return value
        return self._in_memory_order(array)

    def _in_memory_order(self, array: np.ndarray) -> Value:
        """A hidden argument, transposed in the program if the array is so in memory: no call has to copy it."""
        order = [int(axis) for axis in np.argsort([-stride for stride in array.strides], kind="stable")]
        view = array.transpose(order)
        if array.flags.c_contiguous or not view.flags.c_contiguous:
            return self._as_argument(array)
        base = array.base
        if isinstance(base, np.ndarray) and (base.shape, base.ctypes.data) == (view.shape, view.ctypes.data):
            view = base if base.dtype == view.dtype and base.flags.c_contiguous else view
        key = view.ctypes.data, view.shape, view.dtype.str
        view = self._transposed_constants.setdefault(key, view)
        return self.transpose(self._as_argument(view), [order.index(axis) for axis in range(array.ndim)])

    def _as_argument(self, array: np.ndarray) -> Value:
        return self.hidden_argument(array, array.shape, array.dtype)

    def hidden_argument(self, array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The argument that shares an array's buffer, with the shape and dtype that the program sees of it."""
        known = self._constant_values.get(id(array))
        if known is None:
            known = Value(f"%const{len(self.constants)}", shape, dtype)
            self.sizes.note(shape)
            self._constant_values[id(array)] = known
            self.constants.append(array)
        return known

    def _shared(self, array: np.ndarray) -> np.ndarray:
        """The first constant of these elements, so that what is computed from either is computed once."""
        if array.nbytes > SHARED_CONSTANT_BYTES:
            return array
        return self._known_constants.setdefault((array.dtype.str, array.shape, array.tobytes()), array)

    def _dense(self, array: np.ndarray) -> Value:
        kind = tensor_type(array.shape, array.dtype)
        if array.size == 0:
            return self.empty(array.shape, array.dtype)
        if array.dtype == np.bool_:
            words = ["true" if x else "false" for x in array.reshape(-1).tolist()]
            text = _nest(words, array.shape)
        else:
            text = f'"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"'
        return self.op(f"arith.constant dense<{text}> : {kind}", array.shape, array.dtype)

    def generic(
        self,
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        out: Value,
        out_map: Sequence[int],
        iterators: Sequence[str],
        body: Callable[[Body, list[str], str], str],
    ) -> Value:
        """A `linalg.generic` with one result. A map lists the loop number of each operand dimension.

        `body(block, inputs, accumulator)` writes the scalar body and returns what it yields.
        """
        block = Body()
        names = [f"%a{i}" for i in range(len(inputs))]
        result = body(block, names, "%acc")
        block.lines.append(f"linalg.yield {result} : {mlir_name(out.dtype)}{LOC}")
        signature = [f"{n}: {mlir_name(v.dtype)}{LOC}" for n, v in zip([*names, "%acc"], [*inputs, out])]
        return self.op(
            f"linalg.generic {_traits([*maps, out_map], iterators)} {_ins(inputs)}outs({out.name} : {out.type}) {{\n"
            f"^bb0({', '.join(signature)}):\n" + "\n".join(block.lines) + f"\n}} -> {out.type}",
            out.shape,
            out.dtype,
        )

    def generic2(
        self,
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        inits: tuple[Value, Value],
        out_map: Sequence[int],
        iterators: Sequence[str],
        body: Callable[[Body, list[str], list[str]], tuple[str, str]],
    ) -> tuple[Value, Value]:
        """A `linalg.generic` with two results that share one output map."""
        block = Body()
        names, accumulators = [f"%a{i}" for i in range(len(inputs))], ["%acc0", "%acc1"]
        results = body(block, names, accumulators)
        kinds = ", ".join(mlir_name(o.dtype) for o in inits)
        block.lines.append(f"linalg.yield {', '.join(results)} : {kinds}{LOC}")
        signature = [f"{n}: {mlir_name(v.dtype)}{LOC}" for n, v in zip([*names, *accumulators], [*inputs, *inits])]
        types = ", ".join(o.type for o in inits)
        return self.op2(
            f"linalg.generic {_traits([*maps, out_map, out_map], iterators)} {_ins(inputs)}"
            f"outs({', '.join(o.name for o in inits)} : {types}) {{\n"
            f"^bb0({', '.join(signature)}):\n" + "\n".join(block.lines) + f"\n}} -> ({types})",
            *inits,
        )

    def elementwise(
        self,
        operands: Sequence[Operand],
        in_dtypes: Sequence[np.dtype],
        out_dtype: np.dtype,
        shape: tuple[int, ...],
        body: Callable[[Body, list[str]], str],
    ) -> Value:
        """Cast the operands to `in_dtypes`, broadcast them to `shape` and apply a scalar body."""

        def write(block: Body, inputs: list[str], accumulator: str) -> str:
            names, rest = [], iter(inputs)
            for operand, dtype in zip(operands, in_dtypes):
                if isinstance(operand, Scalar):
                    names.append(block.constant(operand.value, dtype))
                else:
                    self.check_narrowing(operand, dtype)
                    names.append(block.cast(next(rest), operand.dtype, dtype))
            return body(block, names)

        values = [operand for operand in operands if isinstance(operand, Value)]
        if self.pointwise is not None and self.pointwise.takes(values, shape):
            return self.pointwise.add(Value(self.fresh(), tuple(shape), out_dtype), values, write)
        tensors = [self.squeezed(value, shape) for value in values]
        maps, identity = [map_ for _, map_ in tensors], range(len(shape))
        out, iterators = self.empty(shape, out_dtype), ["parallel"] * len(shape)
        return self.generic([tensor for tensor, _ in tensors], maps, out, identity, iterators, write)

    def check_narrowing(self, value: Value, dtype: np.dtype) -> None:
        # A Python integer that arrives at run time must fit as a literal would have to.
        if not value.weak or value.dtype.kind != "i" or dtype.kind not in "iu" or dtype == value.dtype:
            return
        limits = np.iinfo(dtype)
        least, greatest = self.known_ranges.get(value.name, (None, None))
        if least is not None and greatest is not None and limits.min <= least and greatest <= limits.max:
            return
        if value not in self.arguments and self.lenient:
            self.narrowed_leniently = True
            return
        if value not in self.arguments:
            raise DTypeError(
                f"a value computed from Python integers is narrowed to {short_name(dtype)}, and may not fit",
                help=f"convert it, `np.asarray(n).astype(np.{dtype.name})`, or pass the argument as a NumPy scalar",
            )
        narrow = self.arguments.index(value), int(limits.min), int(limits.max), dtype.name
        if narrow not in self.int_ranges:
            self.int_ranges.append(narrow)
            self.narrowed_at.append(self._location())

    def squeezed(self, value: Value, shape: tuple[int, ...]) -> tuple[Value, list[int]]:
        """Drop the dimensions along which `value` is broadcast to `shape`; the loop number of each that is left."""
        first = len(shape) - len(value.shape)
        kept = [i for i, n in enumerate(value.shape) if same(n, shape[first + i])]
        if len(kept) < len(value.shape):
            value = self.reshape(value, tuple(value.shape[i] for i in kept))
        return value, [first + i for i in kept]

    def reduce(
        self,
        value: Value,
        axes: Sequence[int],
        out_dtype: np.dtype,
        initial: object,
        body: Callable[[Body, str, str], str],
    ) -> Value:
        """Reduce over `axes`; `body(block, element, accumulator)`."""
        kept = [i for i in range(len(value.shape)) if i not in axes]
        out = self.filled([value.shape[i] for i in kept], out_dtype, initial)
        kinds = ["reduction" if i in axes else "parallel" for i in range(len(value.shape))]
        return self.generic(
            [value], [range(len(value.shape))], out, kept, kinds, lambda b, ins, acc: body(b, ins[0], acc)
        )

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """`value.astype(dtype)`."""
        if value.dtype == dtype:
            return value
        return self.elementwise([value], [dtype], dtype, value.shape, lambda block, xs: xs[0])

    def broadcast(self, operand: Operand, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The operand with exactly this shape and dtype."""
        if isinstance(operand, Scalar):
            return self.filled(shape, dtype, operand.value)
        if same_shape(operand.shape, shape):
            return self.cast(operand, dtype)
        return self.elementwise([operand], [dtype], dtype, shape, lambda block, xs: xs[0])

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Row-major reshape to a shape of the same size."""
        if same_shape(value.shape, shape):
            return value
        if value.size == 0:
            return self.empty(shape, value.dtype)
        if not value.shape or not shape:  # all dimensions are 1
            name = "tensor.collapse_shape" if value.shape else "tensor.expand_shape"
            return self._reassociate(name, value, [], shape)
        groups = common_groups(value.shape, shape)
        if groups is None and 1 in (len(value.shape), len(shape)):
            groups = [(list(range(len(value.shape))), list(range(len(shape))))]
        if groups is None:
            flat = self.reshape(value, (value.size,))
            return self.reshape(flat, shape)
        middle = tuple(math.prod(value.shape[i] for i in old) for old, _ in groups)
        if not same_shape(middle, value.shape):
            value = self._reassociate("tensor.collapse_shape", value, [old for old, _ in groups], middle)
        if not same_shape(middle, shape):
            value = self._reassociate("tensor.expand_shape", value, [new for _, new in groups], shape)
        return value

    def _reassociate(self, name: str, value: Value, groups: list[list[int]], shape: tuple[int, ...]) -> Value:
        text = "[" + ", ".join("[" + ", ".join(map(str, g)) + "]" for g in groups) + "]"
        sizes = f" output_shape {self.sizes.listed(shape)}" if name.endswith("expand_shape") else ""
        result = tensor_type(shape, value.dtype)
        return self.op(f"{name} {value.name} {text}{sizes} : {value.type} into {result}", shape, value.dtype)

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Result dimension i is dimension `permutation[i]` of the value."""
        if list(permutation) == list(range(len(value.shape))):
            return value
        shape = tuple(value.shape[i] for i in permutation)
        out = self.empty(shape, value.dtype)
        return self.op(
            f"linalg.transpose ins({value.name} : {value.type}) outs({out.name} : {out.type}) "
            f"permutation = {list(permutation)}",
            shape,
            value.dtype,
        )

    def extract_slice(
        self,
        value: Value,
        offsets: Sequence[int | str],
        sizes: Sequence[int],
        strides: Sequence[int],
        drop: Sequence[int] = (),
    ) -> Value:
        """A slice with positive strides; the dimensions in `drop` (of size 1) are left out of the result.

        An offset may be the name of a value of type `index`.
        """
        shape = tuple(n for i, n in enumerate(sizes) if i not in drop)
        if value.size == 0 or 0 in shape:
            return self.empty(shape, value.dtype)
        if not is_within(value.shape, offsets, sizes, strides):
            kept = [i for i in range(len(sizes)) if i not in drop]
            return self.gather(
                value, shape, lambda block, loops: self.sizes.sliced(block, loops, kept, offsets, strides)
            )
        text = " ".join(map(self.sizes.listed, (offsets, sizes, strides)))
        result = tensor_type(shape, value.dtype)
        return self.op(f"tensor.extract_slice {value.name}{text} : {value.type} to {result}", shape, value.dtype)

    def insert_slice(
        self, source: Value, into: Value, offsets: Sequence[int | str], sizes: Sequence[int], strides: Sequence[int]
    ) -> Value:
        """`into` with the slice overwritten; `source` may lack dimensions of size 1."""
        if source.size == 0:
            return into
        if not is_within(into.shape, offsets, sizes, strides):
            dynamic: list[Any] = [n for n in (*offsets, *sizes) if is_size(n)]
            raise static_needed(dynamic[0], "its value for a store")
        text = " ".join(map(self.sizes.listed, (offsets, sizes, strides)))
        return self.op(
            f"tensor.insert_slice {source.name} into {into.name}{text} : {source.type} into {into.type}",
            into.shape,
            into.dtype,
        )

    def gather(self, value: Value, shape: tuple[int, ...], index: Callable[[Body, list[str]], list[str]]) -> Value:
        """`out[i...] = value[index(i...)]`, with static index arithmetic written by `index`."""
        return self.gather_at(value, shape, [], [], lambda block, loops, inputs: index(block, loops))

    def gather_at(
        self,
        value: Value,
        shape: tuple[int, ...],
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        index: Callable[[Body, list[str], list[str]], list[str]],
    ) -> Value:
        """`out[i...] = value[index(i..., inputs)]`; the inputs are read at the loops that `maps` list."""
        out = self.empty(shape, value.dtype)

        def write(block: Body, names: list[str], accumulator: str) -> str:
            loops = [block.op(f"linalg.index {i}", "index") for i in range(len(shape))]
            where = ", ".join(index(block, loops, names))
            return block.op(f"tensor.extract {value.name}[{where}]", value.type)

        return self.generic(inputs, maps, out, range(len(shape)), ["parallel"] * len(shape), write)

    def text(
        self,
        results: Sequence[Value],
        *,
        locations: bool = True,
        entry: SourceLocation | None = None,
        writebacks: Sequence[tuple[int, int]] = (),
        donated: Sequence[int] = (),
    ) -> str:
        """The module. Without locations it is the key of the program: equal text, equal program.

        `writebacks` are pairs (result, argument): what the argument's memory holds after the call. A call that fails
        leaves it as it was, but for that of the `donated` ones.
        """
        table: dict[SourceLocation | None, str] = {}

        def location_suffix(location: SourceLocation | None) -> str:
            if not locations:
                return ""
            location = location or entry
            if location not in table:
                table[location] = f"#loc{len(table)}"
            return f" loc({table[location]})"

        suffix = location_suffix(entry)
        types = ", ".join(v.type for v in results)
        pairs = [f"{result}, {argument}" for result, argument in writebacks]
        arrays = {"writebacks": pairs, "donated": donated if pairs else (), "marked_sizes": self.sizes.marks}
        given = [f"mlirml.{name} = array<i64: {', '.join(map(str, a))}>" for name, a in arrays.items() if a]
        attributes = f"attributes {{{', '.join(given)}}} " if given else ""
        inputs = [f"{v.name}: {v.type}" for v in [*self.arguments, *self._constant_values.values()]]
        inputs += [self.sizes.parameter] if self.sizes.entries else []
        arguments = ", ".join(f"{given}{suffix}" for given in inputs)
        lines = [f"module {{\nfunc.func @main({arguments}) -> ({types}) {attributes}{{"]
        lines += [f"{definition}{suffix}" for definition in self.sizes.definitions()]
        lines += [t.replace(LOC, location_suffix(at)) for t, at in zip(self._operations, self._locations)]
        names = ", ".join(v.name for v in results)
        lines.append(f"return {names}{' : ' if results else ''}{types}{suffix}\n}}{suffix}\n}}{suffix}")
        lines += [f"{alias} = {_location_text(at)}" for at, alias in table.items()]
        return "\n".join(lines) + "\n"


def is_uniform(array: np.ndarray) -> bool:
    """True if all elements have the same bits."""
    if array.size == 0:
        return False
    if not any(array.strides):
        return True
    first = array.reshape(-1)[0]
    if not (array == first).all():
        return False
    return first != 0 or not is_float(array.dtype) or bool((np.signbit(array) == np.signbit(first)).all())


def _location_text(location: SourceLocation | None) -> str:
    if location is None:
        return 'loc("<unknown source>":0:0)'
    end = f" to {location.end_line}:{location.end_column}" if location.end_line and location.end_column else ""
    place = f"{_quoted(location.file)}:{location.line}:{max(location.column, 1)}{end}"
    return f"loc({_quoted(location.function)}({place}))" if location.function else f"loc({place})"


_ESCAPES = {code: f"\\{code:02X}" for code in (*range(32), ord('"'), ord("\\"), 127)}


def _quoted(text: str) -> str:
    plain = text.encode(errors="replace").decode()  # without the surrogates of file names that are no text
    return f'"{plain.translate(_ESCAPES)}"'


def _traits(maps: Sequence[Sequence[int]], iterators: Sequence[str]) -> str:
    dims = ", ".join(f"d{i}" for i in range(len(iterators)))
    texts = [f"affine_map<({dims}) -> ({', '.join(f'd{i}' for i in m)})>" for m in maps]
    kinds = ", ".join(f'"{k}"' for k in iterators)
    return f"{{indexing_maps = [{', '.join(texts)}], iterator_types = [{kinds}]}}"


def _ins(inputs: Sequence[Value]) -> str:
    if not inputs:
        return ""
    return f"ins({', '.join(v.name for v in inputs)} : {', '.join(v.type for v in inputs)}) "


def _nest(elements: list[str], shape: tuple[int, ...]) -> str:
    for n in reversed(shape):
        elements = ["[" + ", ".join(elements[i : i + n]) + "]" for i in range(0, len(elements), n)]
    return elements[0]
