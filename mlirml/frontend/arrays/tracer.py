"""What replaces an array while a function is traced: a chain of views of an allocation, which is read and stored into.

NumPy arrays are mutable and views share memory, MLIR values are neither. A `Cell` holds the current value of one
allocation; a `Tracer` is a cell and the chain of view operations that leads to the array. A store computes the new
value of the whole cell, so every view sees it. `arrays/array.py` adds the interface of `numpy.ndarray`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlirml.core.sizes import same_shape
from mlirml.errors import (
    CaptureError,
    DTypeError,
    LeakedTracerError,
    ShapeError,
    SourceLocation,
    UnsupportedSyntaxError,
)
from mlirml.frontend.arrays.constructs import note_store
from mlirml.frontend.arrays.strides import joins_dimensions, strided
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.ir.text.builder import Region, Value
from mlirml.ir.text.dtypes import check_rank, describe, part_dtype
from mlirml.ops.shapes.dynamic_views import Moving, placed
from mlirml.ops.shapes.views import Bits, Broadcast, Part, Reshape, Select, Slice, Transpose, ViewOp, resolved_shape

if TYPE_CHECKING:
    from typing_extensions import Self

    from mlirml.frontend.tracing.trace import Trace

_IN_ORDER = (Bits, Moving, Part, Reshape, Select, Slice)
"""Views that keep the order of the dimensions."""


class Cell:
    """One allocation: a value in the program, or a NumPy array while its contents are constant."""

    __slots__ = (
        "c_order",
        "emitted",
        "frozen",
        "number",
        "owned",
        "region",
        "root",
        "stored_at",
        "strides",
        "value",
        "version",
        "watched",
        "written",
    )

    numbers = itertools.count()
    """The numbers of allocations in the order in which they are made."""

    oldest_stored: ClassVar[float] = math.inf
    """The least number of an allocation that was stored into since this was set."""

    def __init__(self, value: Value | np.ndarray, *, c_order: bool = True, owned: bool = False) -> None:
        self.value = value
        self.number = next(Cell.numbers)
        self.version = 0
        self.written = False
        self.stored_at: SourceLocation | None = None  # of the first store
        self.c_order = c_order  # False when NumPy might have chosen another memory order for this result
        self.strides: tuple[int, ...] | None = None  # of an argument that is known not to be C-contiguous, in elements
        self.owned = owned  # a known array that nobody else holds may be stored into
        self.emitted: tuple[Value, Region] | None = None
        self.region: Region | None = None  # the region that allocated it: it cannot be stored into in another one
        self.root: Cell | None = None  # the allocation that this takes the place of, in whose buffer it is computed
        self.frozen: str | None = None  # the reason why stores are refused
        self.watched: tuple[tuple[Cell, int], ...] = ()  # the cells that this is a copy of, where NumPy has a reference

    def store(self, value: Value | np.ndarray) -> None:
        """Replace the contents."""
        if not self.written:
            self.stored_at = user_location(2)
        Cell.oldest_stored = min(Cell.oldest_stored, self.number)
        self.value = value
        self.version += 1
        self.written = True
        self.emitted = None


class Tracer:
    """A chain of views of a cell: an array whose elements are computed by the compiled program."""

    __slots__ = ("_ambiguous", "_cached", "_cell", "_scalar", "_shape", "_trace", "_views")

    def __init__(
        self,
        trace: Trace,
        cell: Cell,
        views: tuple[ViewOp, ...] = (),
        *,
        scalar: bool = False,
        ambiguous: int | None = None,
    ) -> None:
        self._trace = trace
        self._cell = cell
        self._views = views
        self._scalar = scalar  # NumPy scalars are immutable: in-place operators make a new one
        # The version of the cell up to which a view and a copy have equal contents, if NumPy might return either; for a
        # scalar that may be an array, its own version.
        self._ambiguous = ambiguous
        self._cached: tuple[int, Value, Region] | None = None
        if cell.region is None:
            cell.region = trace.builder.region
        last = views[-1].shape if views else cell.value.shape
        self._shape: tuple[int, ...] = tuple(last)
        check_rank(self._shape, "the result")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions, Python integers."""
        return self._shape

    @shape.setter
    def shape(self, new: Any) -> None:
        with at_user_line():
            self._check_alive()
            if any(self is given for given in self._trace.inputs):
                raise UnsupportedSyntaxError(
                    "assigning to the `.shape` of an argument would change the caller's array",
                    help="write `x = x.reshape(...)`",
                )
            view = self._viewed(Reshape(resolved_shape("shape", self._shape, new)))
            if self._scalar or view._cell is not self._cell:
                raise ShapeError(
                    f"{self._describe()} cannot get another shape in place, as it does not lie in one piece",
                    help="write `x = x.reshape(...)`, which makes a copy",
                )
            self._views, self._shape, self._ambiguous, self._cached = view._views, view._shape, view._ambiguous, None

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        dtype = self._cell.value.dtype
        for view in self._views:
            if isinstance(view, Bits):
                dtype = view.dtype
            elif isinstance(view, Part) and dtype.kind == "c":
                dtype = part_dtype(dtype)
        return dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    def _describe(self) -> str:
        return describe(self._shape, self.dtype)

    # Reading and writing.

    def _is_weak(self) -> bool:
        """True if the value comes from Python numbers alone."""
        return isinstance(self._cell.value, Value) and self._cell.value.weak

    def _check_alive(self) -> None:
        region = self._cell.region
        if region is not None and not region.open:
            with at_user_line():
                self._check_region()
        if self._trace.done:
            with at_user_line():
                raise LeakedTracerError(
                    f"a traced array ({self._describe()}) is used after `{self._trace.name}` was traced",
                    help="return it from the function; do not keep it in a global, a closure or an attribute",
                )

    def _check_region(self) -> None:
        """Refuse a value computed in a region that is closed; a constant array moves to the open region."""
        cell = self._cell
        if cell.region is None or cell.region.open or self._trace.done:
            return
        if not isinstance(cell.value, np.ndarray):
            raise LeakedTracerError(
                f"a traced array ({self._describe()}) from {cell.region.owner} is used outside of it",
                help="return it from there; do not keep it in a list, a closure or an attribute",
            )
        cell.region = self._trace.builder.region

    def _check_views(self) -> None:
        """Refuse a view at an offset that was computed in a region that is closed."""
        for view in self._views:
            if isinstance(view, (Select, Moving)) and not view.region.open:
                raise LeakedTracerError(
                    f"a view ({self._describe()}) is used outside of {view.region.owner}, which computed its offset",
                    help="return it from there; do not keep it in a list, a closure or an attribute",
                )

    def _known(self) -> np.ndarray | None:
        """The contents, if they are constant at trace time."""
        array = self._cell.value
        if not isinstance(array, np.ndarray) or not all(view.known for view in self._views):
            return None
        for lanes in self._trace.lanes:
            lanes.note_read(self._cell, self._views)
        for view in self._views:
            array = view.apply(array)
        return array

    def _read(self) -> Value:
        """The current value in the program."""
        for lanes in self._trace.lanes:
            lanes.note_read(self._cell, self._views)
        return self._value()

    def _value(self) -> Value:
        """`_read` of what a store replaces, or a loop carries."""
        self._check_alive()
        self._check_ambiguous("read")
        cell = self._cell
        if any(other.version != version for other, version in cell.watched):
            raise CaptureError(
                "this may be one of several arrays, and one of them was stored into since then",
                help="take a `.copy()` where the array is chosen",
            )
        if self._cached is not None and self._cached[0] == cell.version and self._cached[2].open:
            return self._cached[1]
        known = self._known() if self._views else None
        if known is not None:
            value = self._trace.builder.constant(known.copy())
        else:
            if not isinstance(cell.value, np.ndarray):
                value = cell.value
            else:
                if cell.emitted is None or not cell.emitted[1].open:
                    cell.owned = False  # the program may share the buffer: copy before the next store
                    cell.emitted = self._trace.builder.constant(cell.value), self._trace.builder.region
                value = cell.emitted[0]
            self._check_views()
            if self._views:
                value = self._value_of_views(value)
        self._cached = cell.version, value, self._trace.builder.region
        return value

    def _value_of_views(self, value: Value) -> Value:
        """The view of a value, which is remembered, and so is never written into the body of a pointwise function."""
        builder = self._trace.builder
        body, builder.pointwise = builder.pointwise, None
        try:
            if body is not None and value.name:
                body.check(value.name)
            for view in self._views:
                value = view.forward(builder, value)
        finally:
            builder.pointwise = body
        return value

    def _check_ambiguous(self, verb: str) -> None:
        if self._ambiguous is None:
            return
        if verb == "write" or self._ambiguous != self._cell.version:
            error = CaptureError(
                "a store meets a reshaped array of which NumPy may or may not have made a copy",
                help="take a `.copy()` before storing, or store into the array before reshaping it",
            )
            error.layout = True
            raise error

    def _check_array(self) -> None:
        """Refuse a store into a number, whose views are new arrays: what they get would be lost."""
        if self._scalar:
            raise DTypeError(
                "a NumPy scalar cannot be stored into: only arrays change in place",
                help="make a new value, `x = x + 1`, or a 0-d array first, `np.array(x)`",
            )

    def _write(self, new: Tracer | Value | np.ndarray) -> None:
        """Store a value of exactly this shape and dtype."""
        self._check_alive()
        self._check_array()
        self._check_ambiguous("write")
        if self._cell.frozen is not None:
            raise CaptureError(self._cell.frozen, help="take a `.copy()` first, and store into that")
        region = self._trace.builder.region
        if self._cell.region is not region:
            note_store(self._trace, self._cell)
            raise CaptureError(
                f"a store into an array from outside of {region.owner}",
                help="pass the array in and return its new value, or store into a `.copy()`",
            )
        for view in self._views:
            if not view.writable:
                kind = "broadcast view" if isinstance(view, Broadcast) else "diagonal"
                raise ShapeError(f"assignment destination is read-only: a {kind}", help="take a `.copy()` first")
        cell, builder = self._cell, self._trace.builder
        for lanes in self._trace.lanes:
            lanes.note_store(cell, self._views, region)
        here = all(view.known for view in self._views)
        if isinstance(cell.value, np.ndarray) and isinstance(new, np.ndarray) and here:
            base_array = cell.value if cell.owned else cell.value.copy()
            cell.owned = True
            target = base_array
            for view in self._views:
                target = view.apply(target)
            target[...] = new
            cell.store(base_array)
            return
        if isinstance(new, np.ndarray):
            new = builder.constant(new.copy())
        value = new._read() if isinstance(new, Tracer) else new
        base = type(self)(self._trace, cell)._value()
        bases = [base]
        for view in self._views[:-1]:
            bases.append(view.forward(builder, bases[-1]))
        for view, under in zip(reversed(self._views), reversed(bases)):
            value = view.backward(builder, under, value)
        cell.store(replace(value, weak=False))

    def _viewed(self, *views: ViewOp) -> Self:
        """A further view of the same cell; a copy if NumPy's reshape would copy."""
        self._check_alive()
        if self._scalar:
            stays = all(isinstance(view, (Reshape, Transpose)) and not view.shape for view in views)
            if stays:
                return self
            copy = self._copy()._viewed(*views)
            if self._ambiguous is None:
                return copy
            return type(self)(copy._trace, copy._cell, copy._views, ambiguous=copy._cell.version)
        result = self
        for view in views:
            if isinstance(view, Reshape) and same_shape(view.shape, result._shape):
                continue
            if isinstance(view, Moving):
                steps = placed(result._trace.builder, result._views, view)
                result = type(self)(result._trace, result._cell, steps, ambiguous=result._ambiguous)
                continue
            ambiguous = result._ambiguous
            if isinstance(view, Reshape) and result.size > 1:
                cell = result._cell
                contiguous = cell.strides is None and all(isinstance(v, Reshape) for v in result._views)
                if not cell.c_order:
                    if ambiguous is None and joins_dimensions(result._shape, view.shape):
                        ambiguous = cell.version
                elif not contiguous and strided(cell.value.shape, cell.strides, (*result._views, view)) is None:
                    result, ambiguous = type(self)(result._trace, Cell(result._contents())), None
            result = type(self)(result._trace, result._cell, (*result._views, view), ambiguous=ambiguous)
        return result

    def _raveled(self) -> Self:
        """All elements in one dimension: a view of a contiguous array, a copy of any other."""
        flat = Reshape((self.size,))
        if self.size > 1 and not self._cell.c_order:
            self._check_alive()
            version = self._cell.version if self._ambiguous is None else self._ambiguous
            return type(self)(self._trace, self._cell, (*self._views, flat), ambiguous=version)
        dummy = strided(self._cell.value.shape, self._cell.strides, self._views)
        if self.size > 1 and (dummy is None or not dummy.flags.c_contiguous):
            return self._copy()._viewed(flat)
        return self._viewed(flat)

    def _contents(self) -> Value | np.ndarray:
        known = self._known()
        return replace(self._read(), weak=False) if known is None else known.copy()

    def _copy(self, *, c_order: bool = True) -> Self:
        return type(self)(self._trace, Cell(self._contents(), owned=True, c_order=c_order))

    def _keeps_c_order(self) -> bool:
        """True if NumPy gives results that follow the memory order of this array C order."""
        ordered = all(isinstance(view, _IN_ORDER) for view in self._views)
        return self.ndim < 2 or (self._cell.c_order and self._cell.strides is None and ordered)

    def _is_same_part(self, other: Any) -> bool:
        return isinstance(other, Tracer) and other._cell is self._cell and other._views == self._views
