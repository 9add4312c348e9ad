"""The array that replaces an argument while a function is traced: a `Tracer` that behaves as `numpy.ndarray` does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.errors import (
    DTypeError,
    IndexOutOfBoundsError,
    IntegerRangeError,
    ShapeError,
    SourceLocation,
    TracedBoolError,
    TracedValueError,
    UnsupportedSyntaxError,
)
from mlirml.frontend import advice
from mlirml.frontend.arrays import printing, scattering, unreachable_indices
from mlirml.frontend.arrays.flat import Flat, repeated
from mlirml.frontend.arrays.indexing import (
    DYNAMIC,
    Index,
    UnknownLengthError,
    is_dynamic,
    known_truth,
    parse_index,
    with_arrays,
)
from mlirml.frontend.arrays.number_methods import has_method, number_method, python_values
from mlirml.frontend.arrays.operators import install_operators
from mlirml.frontend.arrays.tracer import Cell, Tracer
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.frontend.iteration_limits import LIMITED, MOST_COPIES, LongIteration
from mlirml.ir.text.builder import Scalar, Value
from mlirml.ir.text.dtypes import as_dtype, check_integer
from mlirml.ops import BY_METHOD, elementwise
from mlirml.ops.shapes.views import Bits, Part, Reshape, Transpose, ViewOp, is_column_major, reversal

# Operations on constant arrays up to this size are folded by NumPy.
FOLD_ELEMENTS = 1 << 16

_Advise = Callable[[SourceLocation | None, str], advice.Advice | None]


class Traced(Tracer):
    """A NumPy array whose elements are computed by the compiled program."""

    __slots__ = ()
    __array_priority__ = 1000

    # Attributes of `numpy.ndarray`.

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def flat(self) -> Flat:
        """The elements in C order, to read and store."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        with at_user_line():
            values = repeated(value, self.size)
            self[...] = values.reshape(self.shape) if np.ndim(values) else values

    @property
    def T(self) -> Traced:
        """Dimensions reversed, a view."""
        return self._viewed(reversal(self._shape))

    @property
    def mT(self) -> Traced:
        """The last two dimensions exchanged, a view."""
        with at_user_line():
            if self.ndim < 2:
                raise ShapeError(f"mT: needs at least 2 dimensions, {self._describe()}")
        order = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
        return self._viewed(Transpose(tuple(self._shape[i] for i in order), order))

    @property
    def real(self) -> Traced:
        """The real parts, a view; of a real array the array itself."""
        return self._part("real")

    @real.setter
    def real(self, value: Any) -> None:
        with at_user_line():
            self._part("real")._assign(value)

    @property
    def imag(self) -> Traced:
        """The imaginary parts, a view; of a real array zeros, which cannot be stored into."""
        if self.dtype.kind == "c":
            return self._part("imag")
        if self._is_weak():
            return self._trace.call_operator(np.multiply, (self.real, 0))
        zeros = self._trace.known(np.broadcast_to(np.zeros((), self.dtype), self._shape), scalar=self._scalar)
        zeros._cell.frozen = "the imaginary part of a real array is read-only"
        return zeros

    @imag.setter
    def imag(self, value: Any) -> None:
        with at_user_line():
            if self.dtype.kind != "c":
                raise DTypeError("a real array has no imaginary part to set", help="convert it: `x.astype(complex)`")
            self._part("imag")._assign(value)

    def _part(self, name: str) -> Traced:
        if self.dtype.kind != "c":
            return self if not self._is_weak() else self._trace._as_integer(self)  # that of Python's True is 1
        return self._seen_as(Part(self._shape, name))

    def view(self, dtype: Any = None) -> Traced:
        """A view of the bits of the elements as numbers of another dtype of the same size."""
        with at_user_line():
            wanted = self.dtype if dtype is None else as_dtype(dtype)
            known = self.dtype.kind != "c" and wanted.kind != "c" and (wanted.kind != "b" or self.dtype.kind == "b")
            if wanted != self.dtype and not (known and wanted.itemsize == self.dtype.itemsize):
                raise UnsupportedSyntaxError(
                    f"`.view({wanted})` of {self._describe()} is not compiled",
                    help="the bits of elements can be read as numbers of the same size; convert with `x.astype(...)`",
                )
            return self._seen_as(Bits(self._shape, wanted))

    def _seen_as(self, part: ViewOp) -> Traced:
        if self._scalar:
            read = Traced(self._trace, self._cell, (*self._views, part))._contents()
            value = replace(read, weak=self._is_weak()) if isinstance(read, Value) else read
            return Traced(self._trace, Cell(value), scalar=True)
        return Traced(self._trace, self._cell, (*self._views, part), ambiguous=self._ambiguous)

    @property
    def at(self) -> Any:
        """`x.at[index].set(values)`, `add`, `subtract`, `multiply`, `min`, `max`, `get`: a new array, `x` stays."""
        from mlirml.frontend.arrays.at import At

        return At(self)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Store values into the array in one dimension, as `np.put`."""
        self._trace.call_function(np.put, (self, indices, values, mode), {})

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Iterator[Traced]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        is_long = LIMITED.get() and (is_size(self._shape[0]) or self._shape[0] > MOST_COPIES)
        if is_long and not self._trace.builder.direct:
            raise LongIteration
        return (self[i] for i in range(self._shape[0]))

    def __repr__(self) -> str:
        if printing.is_called_by_program(self):
            return printing.text_of(self, repr)
        known = self._known()
        return f"Traced({self._describe()}{'' if known is None or known.size > 16 else f' = {known.tolist()}'})"

    # The array API standard: https://data-apis.org/array-api/2024.12.

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `mlirml.numpy`, of which every function is compiled; ValueError for a later standard."""
        if api_version not in (None, *STANDARDS):
            with at_user_line():
                raise ShapeError(f"the array API standard {api_version!r} is none of {', '.join(STANDARDS)}")
        return importlib.import_module("mlirml.numpy")

    @property
    def device(self) -> str:
        """The device of NumPy's arrays, "cpu", on every target: the program is the same on all of them."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Traced:
        """The array itself: there is no other device than its own."""
        check_device(device)
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU

    def __dlpack__(self, **options: Any) -> Any:
        found = self._convert("exchange through DLPack", help="return the array, and exchange the result")
        return found.__dlpack__(**options)

    # Indexing.

    def __getitem__(self, index: Any) -> Any:
        with at_user_line():
            self._check_alive()
            index = with_arrays(index)
            truth = known_truth(index)
            if truth is not None:
                return self._viewed(Reshape((1, *self._shape)))[: int(truth)]._copy()
            try:
                return self._indexed(index)
            except IndexOutOfBoundsError as error:
                return unreachable_indices.stand_in(self, error)[index]

    def _indexed(self, index: Any) -> Any:
        if is_dynamic(index) or (type(index) is tuple and any(map(is_dynamic, index))):
            return self._trace.handlers.gathered(self, index)
        try:
            parsed = parse_index(self._trace, self._shape, index)
        except UnknownLengthError:
            return self._dynamic_slice(index)
        except ShapeError:
            masked = scattering.unknown_mask(self, index)
            if masked is None:
                raise
            from mlirml.frontend.arrays.masked import masked_elements

            return masked_elements(masked)
        result = self._viewed(*parsed.views)
        if parsed.arrays:
            return self._gathered(result, parsed)
        if parsed.full:
            return Traced(self._trace, Cell(result._contents()), scalar=True)  # NumPy gives a scalar, a copy
        return result._copy() if parsed.copies else result

    def _dynamic_slice(self, index: Any = ...) -> Any:
        """A slice of dynamic length."""
        return self._trace.handlers.dynamic_slice(self, index)

    def _gathered(self, part: Traced, index: Index) -> Traced:
        """The elements of a view at the positions given by index arrays."""
        c_order = not index.first_dim and self._keeps_c_order()  # with 0, NumPy's order follows the array
        known = self._known()
        if known is not None and index.known is not None and known.size <= FOLD_ELEMENTS:
            index.positions(self._trace.builder, part._shape)
            return Traced(self._trace, Cell(np.ascontiguousarray(known[index.known]), c_order=c_order, owned=True))
        return Traced(self._trace, Cell(index.load(part), c_order=c_order, owned=True))

    def __setitem__(self, index: Any, value: Any) -> None:
        with at_user_line():
            self._check_alive()
            self._check_array()
            index = with_arrays(index)
            truth = known_truth(index)
            if truth is not None:
                self._viewed(Reshape((1, *self._shape)))[: int(truth)][...] = value
                return
            if is_dynamic(index) or (type(index) is tuple and any(map(is_dynamic, index))):
                self._trace.handlers.scattered(self, index, value)
                return
            masked = scattering.masked_part(self, index)
            if masked is not None and (not masked.known or np.ndim(value) <= masked.free):
                value = self._trace.array(value) if isinstance(value, (list, tuple)) else value
                if is_dynamic(value) or np.ndim(value) > masked.free:
                    from mlirml.frontend.arrays.masked import store_masked

                    store_masked(masked, value)
                else:
                    masked.part._assign_where(masked.mask, value)
                return
            try:
                self._store(index, value)
            except IndexOutOfBoundsError as error:
                unreachable_indices.stand_in(self, error)[index] = value

    def _store(self, index: Any, value: Any) -> None:
        try:
            parsed = parse_index(self._trace, self._shape, index)
        except UnknownLengthError:
            self._dynamic_slice()[index] = value
            return
        target = self._viewed(*parsed.views)
        if target._shape:
            self._trace.location_tracker.store()
        if is_dynamic(value) and not parsed.arrays:
            target._dynamic_slice().store(value)
        elif parsed.arrays:
            scattering.store(target, parsed, value)
        elif not target._is_same_part(value):
            target._assign(value)

    def _assign_where(self, mask: Any, value: Any) -> None:
        """`self[mask] = value` for a mask and a value that broadcast; elements outside of the mask are not cast."""
        if type(value) is int:
            elementwise.check_literal("assignment", Scalar(value), self.dtype)
        self._check_part(value)
        new = self._trace.array(value, copy=False).astype(self.dtype, copy=False)
        self._assign(self._trace.call_function(np.where, (mask, new, self), {}))

    def _assign(self, value: Any) -> None:
        """`self[...] = value`: broadcast and cast as NumPy's assignment does."""
        trace = self._trace
        known = value._known() if isinstance(value, Traced) else value
        if type(known) is int:
            check_integer("assignment", known, self.dtype)
        self._check_part(value)
        if isinstance(self._cell.value, np.ndarray) and known is not None and not _has_traced(known):
            array = np.asarray(known)
            try:
                filled = np.empty(self._shape, self.dtype)
                filled[...] = array if isinstance(value, Traced) else known
            except OverflowError as error:
                raise IntegerRangeError(f"assignment: {error}") from None
            except ValueError as error:
                raise ShapeError(f"assignment: {error}") from None
            self._write(filled)
            return
        operand = trace.lift(value)
        shape = scattering.assigned_shape(operand, self._shape, self._describe())
        if isinstance(operand, Value):
            operand = trace.builder.reshape(operand, shape)
        self._write(trace.builder.broadcast(operand, self._shape, self.dtype))

    def _check_part(self, value: Any) -> None:
        """Refuse Python complex numbers stored into a real array, as NumPy does; warn of others."""
        if self.dtype.kind in "cb" or not is_complex_object(value):
            return
        weak = isinstance(value, Traced) and value._is_weak()
        if weak or (isinstance(value, complex) and not isinstance(value, np.generic)):
            raise DTypeError(f"assignment: a complex number cannot be stored into {self._describe()}", help=_REAL_PART)
        if isinstance(self._cell.value, np.ndarray):
            self._trace.builder.warn_of_discarded_parts(self.dtype)

    # Methods that have no op record.

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Traced:
        """A copy with another element type."""
        with at_user_line():
            wanted = as_dtype(dtype)
            if not np.can_cast(self.dtype, wanted, casting):  # type: ignore[arg-type]
                raise DTypeError(f"astype: cannot cast {self.dtype} to {wanted} with casting={casting!r}")
            if wanted == self.dtype and not copy:
                return self
            return self._trace.astype(self, wanted)

    def copy(self, order: str = "C") -> Traced:
        """A new array with the same contents."""
        with at_user_line():
            return self if self._scalar else self._copy()

    def flatten(self, order: str = "C") -> Traced:
        """A copy in one dimension."""
        with at_user_line():
            source = self._viewed(reversal(self._shape)) if is_column_major("flatten", order) else self
            return source._copy()._viewed(Reshape((self.size,)))

    def fill(self, value: Any) -> None:
        """Store one value everywhere."""
        with at_user_line():
            self._assign(value)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Traced:
        """The same elements in another shape; a view where NumPy gives one."""
        new = shape[0] if len(shape) == 1 else shape
        result: Traced = self._trace.call_method("reshape", self, (new,), {"order": order})
        if copy is False and result._cell is not self._cell:
            with at_user_line():
                raise ShapeError("reshape: this shape needs a copy, and `copy=False` forbids it", help=_COPIES)
        return result._copy() if copy else result

    def transpose(self, *axes: Any) -> Traced:
        """Dimensions permuted, a view."""
        order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes or None
        return self._trace.call_method("transpose", self, (order,), {})

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Put the elements in order along an axis, in place."""
        with at_user_line():
            self._assign(self._trace.call_function(np.sort, (self, axis, kind, order), {"stable": stable}))

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        """`np.partition` in place."""
        with at_user_line():
            self._assign(self._trace.call_function(np.partition, (self, kth, axis, kind, order), {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in BY_METHOD:
            return lambda *args, **kwargs: self._trace.call_method(name, self, args, kwargs)
        with at_user_line():
            if name in ("item", "tolist", "tobytes"):
                known = self._known()
                if known is None and name != "tobytes" and (method := python_values(self, name)) is not None:
                    return method
                return getattr(self._convert(f"`.{name}()`"), name)
            if name == "nonzero":
                return lambda: self._trace.call_function(np.nonzero, (self,), {})
            if self._scalar and (method := number_method(self, name)) is not None:
                return method
            if hasattr(np.ndarray, name):
                raise UnsupportedSyntaxError(
                    f"the array attribute `.{name}` is not compiled", help=_ATTRIBUTE_HELP.get(name)
                )
            if self._scalar and has_method(self, name):
                known = self._known()
                if known is not None:
                    return getattr(known[()], name)
                raise UnsupportedSyntaxError(
                    f"the method `.{name}` of a number is not compiled", help=_ATTRIBUTE_HELP.get(name)
                )
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    # Conversions to Python values: possible only while the contents are known.

    def _convert(
        self,
        what: str,
        advise: _Advise = lambda location, what: None,
        help: str | None = None,
        *,
        truth: bool = False,
    ) -> np.ndarray:
        self._check_alive()
        known = self._known()
        if known is not None:
            return known
        location, conversion = user_location(2), what
        found = advise(location, what)
        if found is not None:
            what, location, help = found.subject, found.location, found.help
        if what in ("a branch", "a loop") and self._is_weak():
            help = f"{help}, or {advice.STATIC}"
        kind = TracedBoolError if truth else TracedValueError
        error = kind(
            f"{what} needs the value of {self._describe()}, known only at run time",
            location=location,
            help=help or "compute with the array itself; return it to see its value",
        )
        error.subject, error.conversion, error.sizes = what, conversion, self._sizes()
        if isinstance(error, TracedBoolError):
            error.of_array = self.size != 1
        if self._trace.builder.direct:
            error.roots = self._trace.integers.roots(self)
        self._trace.refused = error
        raise error

    def _sizes(self) -> frozenset[str]:
        """The Python integer arguments that this value is computed from, if it is computed from nothing else."""
        value = self._cell.value
        return self._trace.sizes.get(value.name, frozenset()) if isinstance(value, Value) else frozenset()

    def __bool__(self) -> bool:
        help = "select with `np.where(condition, a, b)`"
        return bool(self._convert("a truth test", advice.on_truth_test, help, truth=True))

    def __int__(self) -> int:
        return int(self._convert("`int()`", advice.on_conversion))

    def __float__(self) -> float:
        return float(self._convert("`float()`", advice.on_conversion))

    def __complex__(self) -> complex:
        return complex(self._convert("`complex()`", advice.on_conversion))

    def __index__(self) -> int:
        return int(self._convert("an index or a size", advice.on_conversion).__index__())

    def __hash__(self) -> int:
        if not self._scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._convert("a key of a dict or an item of a set", advice.on_key, advice.KEY)[()])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._convert("conversion to a real NumPy array", advice.on_conversion), dtype)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._convert("`round()`", help="use `np.rint(x)`").item(), digits)

    def __str__(self) -> str:
        return printing.text_of(self, str) if printing.is_called_by_program(self) else repr(self)

    def __format__(self, specification: str) -> str:
        return printing.formatted(self, specification)

    def __contains__(self, value: Any) -> bool:
        found = self._trace.call_function(np.any, (self == value,), {})
        return bool(found._convert("`in`", help="look for a value with `np.any(x == value)`", truth=True))

    def __delitem__(self, index: Any) -> None:
        with at_user_line():
            raise ShapeError(
                "cannot delete array elements", help="join what is left: `np.concatenate([x[:i], x[i + 1:]])`"
            )

    def __copy__(self) -> Traced:
        return self if self._scalar else self._copy(c_order=self._keeps_c_order())

    def __deepcopy__(self, memo: Any) -> Traced:
        return self.__copy__()

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(is_dynamic, inputs)):
            return NotImplemented
        return self._trace.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if any(hasattr(kind, DYNAMIC) for kind in types):
            return NotImplemented
        other = next(filter(is_dynamic, (*args, *kwargs.values())), None)
        if other is not None:  # one that NumPy does not ask, as the indices of `np.take`
            return other.__array_function__(function, types, args, kwargs)
        return self._trace.call_function(function, args, kwargs)


def check_device(device: Any) -> None:
    """Raise `ShapeError`, which is a ValueError, for another device than that of NumPy's arrays."""
    if device not in (None, "cpu"):
        with at_user_line():
            raise ShapeError(
                f'the device of an array of the program is "cpu", got {device!r}',
                help="choose the device of the whole program: `ml.compile(f, target)`",
            )


def check_uncopied(given: Any, result: Traced) -> None:
    """Raise `ShapeError`, which is a ValueError, where `copy=False` forbids the copy that a conversion needs."""
    scalar = isinstance(given, Traced) and given._scalar
    if scalar or not isinstance(given, (Traced, np.ndarray)) or given.dtype != result.dtype:
        raise ShapeError("this conversion needs a copy, and `copy=False` forbids it", help=_COPIES)


STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the array API standard."""
_COPIES = "leave `copy` out: a copy is made only where it is needed"
_REAL_PART = "store its real part, or make the array complex: `x.astype(complex)`"
_LAYOUT = "compiled code chooses the memory layout itself; use `shape` and `dtype`"
_ATTRIBUTE_HELP = {
    "bit_count": "use `np.bitwise_count(x)`",
    **dict.fromkeys(("strides", "flags", "ctypes", "data", "base", "__array_interface__"), _LAYOUT),
    "resize": "use `x.reshape(...)`, which returns the array",
}


def _operate(self: Traced, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
    if len(operands) == 3:  # `pow` with a modulus
        return pow(*(x._convert("`pow()`").item() if isinstance(x, Traced) else x for x in operands))
    return self._trace.call_operator(ufunc, operands)


def _operate_in_place(self: Traced, ufunc: np.ufunc, other: Any) -> Any:
    if self._scalar:
        return self._trace.call_operator(ufunc, (self, other))
    if is_dynamic(other):
        with at_user_line():
            self._dynamic_slice().store_in_place(ufunc, other)
        return self
    self._trace.call_ufunc(ufunc, "__call__", (self, other), {"out": (self,)})
    return self


install_operators(Traced, _operate, _operate_in_place)


def is_complex_object(x: Any) -> bool:
    """`np.iscomplexobj`, for nested lists with traced items too."""
    if isinstance(x, (list, tuple)):
        return any(map(is_complex_object, x))
    dtype = getattr(x, "dtype", None)
    return isinstance(x, complex) or getattr(dtype, "kind", None) == "c"


def _has_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_traced(v) for v in value)
    return isinstance(value, Traced) and value._known() is None
