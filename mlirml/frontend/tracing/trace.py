"""The state of one capture, and the operations of the arrays in it, which write MLIR."""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.config import config
from mlirml.core.sizes import CONDITIONS, KEYS, LOCATE, NUMBERS, Conditions, Size, is_dynamic_shape
from mlirml.errors import (
    CaptureError,
    DTypeError,
    IndexOutOfBoundsError,
    IntegerRangeError,
    KeyReuseWarning,
    ShapeError,
    SourceLocation,
    UnsupportedSyntaxError,
)
from mlirml.frontend.advice import REAL_ARRAY, STORE, in_user_words, return_place
from mlirml.frontend.arrays.array import FOLD_ELEMENTS, Traced, is_complex_object
from mlirml.frontend.arrays.constructs import is_certain
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import PartedList
from mlirml.frontend.arrays.optional import Optional
from mlirml.frontend.arrays.scattering import apply_at
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.captured import Guard
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line, function_location, is_of_user, user_location
from mlirml.frontend.spec import has_own_arithmetic
from mlirml.frontend.state.concrete_arrays import Watched, original
from mlirml.frontend.state.reachable import Reached
from mlirml.frontend.tracing import float_errors, scipy_functions
from mlirml.frontend.tracing.common_scalars import SharedScalars
from mlirml.frontend.tracing.integer_limits import note_range
from mlirml.frontend.tracing.mixed_booleans import not_mixed
from mlirml.frontend.tracing.trace_limits import LocationTracker
from mlirml.frontend.tracing.unsupported import refuse
from mlirml.ir.text.builder import Operand, Scalar, Value
from mlirml.ir.text.complex import ComplexBuilder
from mlirml.ir.text.dtypes import as_dtype, check_integer, is_supported
from mlirml.ops import BY_FUNCTION, BY_METHOD, OPS, OpDef
from mlirml.ops.registry import COMPLEX, refuse_complex
from mlirml.ops.shapes.rearrange import diagonal_view
from mlirml.ops.shapes.views import ViewOp

if TYPE_CHECKING:
    from mlirml.frontend.arrays.lanes import Lanes
    from mlirml.frontend.tracing.handlers import Handlers

LOOPS = "loops"
"""The key in the memo of `retarget` that says that loops and branches are captured as those of the program."""

# Arguments of NumPy functions that have no effect here, with the values that are accepted.
_HARMLESS = {"casting": "same_kind", "order": "K", "subok": True, "like": None, "where": True, "optimize": None}

# Operators for which Python's bool is an int.
_ARITHMETIC = {
    np.add, np.subtract, np.multiply, np.floor_divide, np.remainder, np.power, np.negative, np.positive, np.absolute,
    np.invert, np.left_shift, np.right_shift,
}  # fmt: skip

# Functions that return a view or a copy, depending on the arguments.
_LIMITED = ("argmax", "argmin", "searchsorted", "minimum", "maximum", "count_nonzero", "sum")
"""Functions whose results have a known range."""
_VIEWS_AT_TIMES = ("diagonal", "diag", "einsum")

_WIDE = "compiled code computes with 64-bit integers, or floats: write `float(x)`"

_HARMLESS_HELP = {
    "where": "select with `np.where`",
    "order": "results are in C order",
    "casting": "convert the operands with `.astype(...)`",
}


def _on_sizes(ufunc: str, operands: tuple[Any, ...]) -> Any:
    """An operation on dynamic sizes as numbers of the program."""
    trace = current_trace()
    if trace is None or all(type(x) not in (int, float, bool, complex, Size, Traced) for x in operands):
        return NotImplemented
    return trace.call_operator(getattr(np, ufunc), operands)


NUMBERS[:] = [_on_sizes]
CONDITIONS[:] = [lambda: None if (trace := current_trace()) is None else trace.conditions]
KEYS[:] = [lambda frame: current_trace() is not None and is_of_user(frame)]
LOCATE[:] = [lambda: user_location(3) if current_trace() is not None else None]


class Trace:
    """The state of one capture."""

    def __init__(self, name: str, handlers: Handlers) -> None:
        self.name, self.handlers = name, handlers
        self.functions = handlers.functions
        self.location_tracker = LocationTracker(id(sys._getframe(1)))
        self.builder = ComplexBuilder(self.location_tracker)
        self.done, self.errors = False, np.geterr()
        self.rooms: dict[str, Any] = {}  # of the lists whose lengths only the data decide, by their sites
        self.changes: Callable[[], list[Any]] = list  # those of the user's objects since tracing began
        self.copied_items: list[Any] = []  # containers that are items of lists, which may not be changed
        self.open_items: list[Any] = []  # items of lists that may still be changed, as their rows are updated
        self.lists_without_items = False  # whether lists of those have no items yet, so that these have no type
        self.marked: list[Traced] = []  # values with placeholders in texts for `print`
        self.conditions: Conditions | None = None  # on dynamic sizes, where it is for those of a call
        self.sizes: dict[str, frozenset[str]] = {}  # the Python integer arguments that a number is computed from
        self.guards: dict[Any, Guard] = {}
        self.reached = Reached(self.guards)
        self.methods: Any = None  # the replaced methods of the user's classes
        self.watches: dict[int, Watched] = {}  # the real arrays that it has seen
        self.refused: CaptureError | None = None  # the last error for a value that is not known yet
        self.state_of: Callable[[np.ndarray], BaseException | None] = lambda array: None  # why it is state
        self.stored_in: dict[Any, list[Cell]] = {}  # the cells that loops and branches, by their code, store into
        self.changed_elements: dict[Any, list[Any]] = {}  # and the elements of containers that they changed last
        self.unrolled: dict[SourceLocation, str] = {}  # loops of the loop front end, and why
        self.drops_unused = False
        self._loops_memo: dict[Any, Any] = {}
        self.learned: dict[Any, Any] = {}  # facts about loops and branches, by the types of the variables before them
        self.signed: list[Any] = []  # objects in its keys, kept alive so that their addresses are not reused
        self.assigned: set[Any] = set()  # variables that a check says to have a value, with the code of loops
        self.unassigned: dict[str, str] = {}  # the names of variables by those of bools that tell if they have a value
        self.masks: set[Any] = set()  # the locations of masks whose elements are side by side from the beginning
        self.unbound: dict[str, Any] = {}  # the loop or branch because of which a variable may be unassigned
        self.drawn: dict[Any, Any] = {}  # the first use of each key of `mlirml.random`
        self.reused: dict[tuple[SourceLocation, str], list[str]] = {}  # warnings, and the lines that they are about
        self.batches: list[int] = []  # of each `ml.vmap` whose function is traced now, the names before it
        self.lanes: list[Lanes] = []  # the reads and stores of the functions of each `ml.vmap` that is traced now
        self.compactions: dict[str, Any] = {}  # of masks, by the names of their values
        self.has_source = False  # whether the function can be captured with its loops instead
        self._requests = 0
        self.nested: dict[CodeType, int] = {}  # how often the code of a loop or branch is nested in itself
        self.inputs: Sequence[Traced] = ()  # the function's arguments
        self.donated: Sequence[int] = ()  # the indices of those that hold results after the call
        self.derivatives = 0  # the order of differentiation of the code traced now

    def warn_of_reuse(self) -> None:
        """Warn of keys that the program uses twice; what other attempts at its loops have done does not count."""
        for (location, message), lines in self.reused.items():
            if any(map(self.builder.has_text, lines)):
                warnings.warn_explicit(message, KeyReuseWarning, location.file, location.line)

    def note_unrolled(self, why: str) -> None:
        """Record that the loop at the user's current location is unrolled, with the reason."""
        location = user_location()
        if location is not None:
            self.unrolled[location] = f"unrolled: {why}"

    @cached_property
    def integers(self) -> Any:
        """The ranges and linear forms of loop integers."""
        from mlirml.frontend.tracing.affine import Integers

        return Integers()

    @cached_property
    def shared(self) -> SharedScalars:
        """The table of scalars for common subexpression elimination."""
        return SharedScalars(self.builder)

    @cached_property
    def hooks(self) -> Any:
        """The functions that rewritten functions call."""
        return self.handlers.loop_hooks(self)

    @contextmanager
    def in_loops(self) -> Iterator[None]:
        """Context manager: operations are those of a function that is captured with its loops, if this one is."""
        outer, self.builder.direct = self.builder.direct, self.drops_unused
        try:
            yield
        finally:
            self.builder.direct = outer

    def call_loops(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function with its loops and branches captured as those of the program."""
        builder, errors = self.builder, np.geterr()
        outer, builder.direct = builder.direct, True
        builder.limits_of, builder.extremes_of = self.integers.limits_of, self._extremes_of
        builder.checked, self.drops_unused = config.checks, True
        self._loops_memo[LOOPS] = True
        try:
            with loop_errors(self):
                return self.handlers.retarget(function, self, self._loops_memo)(*args, **kwargs)
        finally:
            builder.direct = outer
            np.seterr(**errors)

    def _extremes_of(self, value: Value) -> tuple[int, int] | None:
        """The least and the greatest value of an index in a region that is certainly executed."""
        found: tuple[int, int] | None = self.integers.extremes_of(value)
        return found if found is not None and is_certain(self.builder.region) else None

    def new_request(self) -> int:
        """The index of a new request for derivatives or a batch."""
        self._requests += 1
        return self._requests - 1

    @contextmanager
    def differentiated(self, times: int = 1) -> Iterator[None]:
        """Context manager: code traced within is differentiated `times` times more."""
        self.derivatives += times
        try:
            yield
        finally:
            self.derivatives -= times

    def wrap(self, value: Any, *, scalar: bool = True, c_order: bool = True) -> Any:
        """Results of an op record as traced arrays; 0-d results are NumPy scalars."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.wrap(v, scalar=scalar, c_order=c_order) for v in value)
        return Traced(self, Cell(value, c_order=c_order, owned=True), scalar=scalar and value.shape == ())

    def lift(self, x: Any) -> Operand:
        """Any operand of an expression as an operand of an op record."""
        if isinstance(x, Traced):
            if x._trace is not self:
                x._check_alive()
                raise CaptureError(
                    f"an array of the trace of `{x._trace.name}` is used in the trace of `{self.name}`",
                    help="pass it as an argument",
                )
            known = x._known()
            if known is not None and known.shape == ():
                return Scalar(known.dtype.type(known), weak=False)
            return x._read()
        if type(x) in (bool, int, float, complex):
            return Scalar(x)
        if type(x) is Size:
            return self.builder.size_number(x)
        if isinstance(x, (list, tuple, range)):
            return self.lift(self.array(list(x) if type(x) is range else x))
        return self._lift_array(x)

    def _lift_array(self, x: Any) -> Operand:
        if type(x) is Optional:
            return self.lift(x._mlirml_given())
        if not isinstance(x, (np.ndarray, np.generic)) and not hasattr(x, "__array__"):
            raise DTypeError(f"{_a(type(x).__name__)} is no array or number: {reprlib.repr(x)}")
        if has_own_arithmetic(x):
            raise DTypeError(
                f"{_a(type(x).__name__)} has an arithmetic of its own, which is not compiled",
                help="use `np.asarray(x)`",
            )
        array = np.asarray(original(x))
        if not is_supported(array.dtype):
            raise DTypeError(f"an array of dtype {array.dtype} cannot be used in compiled code")
        if isinstance(x, np.generic):
            return Scalar(x, weak=False)
        return self.builder.constant(array, live=True)

    # Calls.

    def call_operator(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
        """A Python operator: as the ufunc, but on Python numbers the result is a Python number."""
        with at_user_line():
            key = self.shared.key(ufunc, operands)
            if key is not None and (known := self.shared.find(key)) is not None:
                return self.wrap(known)
            if any(_is_foreign(x) for x in operands):
                return NotImplemented
            python = all(map(is_weak, operands))
            if not python and any(type(x) in (list, tuple) for x in operands) and any(map(is_weak, operands)):
                if ufunc in (np.equal, np.not_equal):
                    return ufunc is np.not_equal
                names = " and ".join("a number" if isinstance(x, Traced) else _a(type(x).__name__) for x in operands)
                raise DTypeError(
                    f"{ufunc.__name__}: Python has none for {names}", help="make an array, `np.array(items)`"
                )
            if ufunc in _ARITHMETIC:
                operands = tuple(self._as_integer(x) for x in operands) if python else not_mixed(operands)
            if python:
                operands = self._checked(ufunc, operands)
            if ufunc is np.power and _is_square_of_bools(*operands):
                ufunc, operands = np.square, operands[:1]
            result = self._apply(BY_FUNCTION[ufunc], operands, {})
            if key is not None and not python:
                self.shared.note(key, result._cell.value)
            if python and isinstance(result._cell.value, Value):
                result._cell.value = replace(result._cell.value, weak=True)
                self.note_sizes(operands, result._cell.value)
                note_range(self, ufunc, operands, result._cell.value)
            if self.builder.direct and isinstance(result._cell.value, Value):
                self.integers.note(ufunc, operands, result._cell.value)
            return result

    def _checked(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands of an operator on Python's numbers, checked; a negative power of integers is one of floats."""
        from mlirml.frontend.tracing.number_checks import check_numbers

        if ufunc is np.power and type(operands[1]) is int and operands[1] < 0 and isinstance(operands[0], Traced):
            operands = self.call_operator(np.multiply, (operands[0], 1.0)), float(operands[1])
        check_numbers(self, ufunc, operands)
        return operands

    def note_sizes(self, operands: Iterable[Any], result: Value) -> None:
        """Record that a value is computed from the Python integer arguments that its operands are computed from."""
        found = [x._sizes() for x in operands if isinstance(x, Traced)]
        if all(found):
            self.sizes[result.name] = frozenset().union(*found)

    def _as_integer(self, x: Any) -> Any:
        if isinstance(x, bool):
            return int(x)
        if not isinstance(x, Traced) or x.dtype != np.bool_:
            return x
        value = replace(self.builder.cast(x._read(), np.dtype(np.int64)), weak=True)
        self.note_sizes((x,), value)
        return Traced(self, Cell(value), scalar=True)

    def call_ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`__array_ufunc__`: calls, `out=`, `reduce`, `accumulate`, `reduceat`, `outer`."""
        with at_user_line():
            name = f"{'np.' if hasattr(np, ufunc.__name__) else ''}{ufunc.__name__}"
            if scipy_functions.is_special(ufunc):
                name = f"scipy.special.{ufunc.__name__}"
                own = scipy_functions.NUMPY.get(ufunc.__name__)
                if method == "__call__" and (own is not None or ufunc.__name__ in scipy_functions.OPERATIONS):
                    inputs = scipy_functions.converted(ufunc, inputs)
                    ufunc = own or ufunc
            name += "" if method == "__call__" else f".{method}"
            out = kwargs.pop("out", None)
            if method == "reduce":
                kwargs.setdefault("axis", 0)
                function: Any = ufunc.reduce
            elif method in ("accumulate", "reduceat"):
                kwargs.setdefault("axis", 0)
                function = getattr(ufunc, method)
            elif method == "outer":
                x, y = (v if isinstance(v, Traced) and not is_weak(v) else self.array(v) for v in inputs)
                inputs, function = (x.reshape(x.shape + (1,) * y.ndim), y), ufunc
            elif method == "__call__" and kwargs.get("where", True) is not True:
                return self._where_true(ufunc, inputs, kwargs, out)
            elif method == "__call__" and (special := scipy_functions.compiled_form(ufunc)) is not None:
                result = special(*scipy_functions.converted(ufunc, inputs))
                target = out[0] if isinstance(out, tuple) else out
                return result if target is None else self._store_out(target, result)
            elif method == "__call__":
                function = ufunc
            elif method == "at" and ufunc.nin == 2:
                return apply_at(self, self._record(ufunc, name), name, *inputs)
            else:
                raise refuse(getattr(ufunc, method), name)
            if method == "__call__" and ufunc.nout == 2:
                outputs = out or (None, None)
                parts = self._apply(self._record(function, name), inputs, kwargs)
                return tuple(part if o is None else self._store_out(o, part) for o, part in zip(outputs, parts))
            return self._apply(self._record(function, name), inputs, kwargs, out[0] if isinstance(out, tuple) else out)

    def _where_true(self, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """`ufunc(x, where=mask, out=y)`: stores the results into `y` under the mask."""
        mask = kwargs.pop("where")
        target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if target is None or isinstance(target, tuple):
            raise UnsupportedSyntaxError(
                f"`np.{ufunc.__name__}`: with `where` and without `out` elements are left without a value",
                help="give `out=np.zeros_like(x)`, or select with `np.where`",
            )
        result = self.call_ufunc(ufunc, "__call__", inputs, kwargs)
        chosen = self.array(mask, copy=False)
        if not hasattr(target, "_cell"):
            raise self.real_array_error()
        if not np.can_cast(result.dtype, target.dtype, "same_kind"):
            raise DTypeError(
                f"cannot store {result._describe()} in place into {target._describe()}",
                help=f"convert the result with `.astype(np.{target.dtype.name})`",
            )
        if chosen.dtype != np.bool_:
            raise DTypeError(f"`np.{ufunc.__name__}`: `where` is {chosen.dtype}, not bool", help="compare: `x != 0`")
        target._assign_where(chosen, result)
        return target

    def call_function(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """`__array_function__`: a NumPy function with a traced argument."""
        with at_user_line():
            name = f"np.{getattr(function, '__name__', function)}"
            module = getattr(function, "__module__", "numpy") or "numpy"
            if module.startswith("numpy.") and not module.startswith(("numpy._", "numpy.lib")):
                name = f"np.{module.removeprefix('numpy.')}.{function.__name__}"
            own = self.functions.get(np.nonzero if function is np.where and len(args) == 1 else function)
            if own is not None:
                return own(self, *args, **kwargs)
            if function not in _MUTATORS and self._foldable(args, kwargs) and function not in BY_FUNCTION:
                return self._fold(function, args, kwargs)
            return self._apply(self._record(function, name), args, dict(kwargs))

    def call_method(self, name: str, array: Traced, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A method of an array that has an op record."""
        with at_user_line():
            if name in ("conj", "conjugate") and array.dtype.kind != "c" and not args and not kwargs:
                return array  # no copy, as in NumPy
            if name == "repeat":
                return self.call_function(np.repeat, (array, *args), kwargs)
            return self._apply(BY_METHOD[name], (array, *args), dict(kwargs))

    def _record(self, function: Any, name: str) -> OpDef:
        if isinstance(function, np.ufunc) and function.__name__ in scipy_functions.OPERATIONS:
            return OPS[function.__name__]
        record = BY_FUNCTION.get(function)
        if record is None:
            raise refuse(function, name)
        return record

    def _apply(self, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any], out: Any = None) -> Any:
        if self.done:
            next(x for x in _arrays((args, kwargs, out)) if isinstance(x, Traced))._check_alive()
        args, kwargs, out = self._bound(record, args, kwargs, out)
        if self.derivatives and (result := self.handlers.by_formula(self, record, args, kwargs)) is not None:
            pass
        elif record.kind == "view" and not record.composed:
            result = self._view(record, args, kwargs)
        elif record.name in _VIEWS_AT_TIMES and out is None and (view := self._view_at_times(record, args, kwargs)):
            (result,) = view
        elif self._foldable(args, kwargs):
            result = self._fold(record.reference, args, kwargs)
        elif record.composed:
            if COMPLEX[0] not in record.takes and any(map(is_complex_object, [*args, *kwargs.values()])):
                raise refuse_complex(record.name)
            try:
                result = record.build(self.handlers.namespace(self), *args, **kwargs)
            except np.exceptions.DTypePromotionError as error:
                raise DTypeError(f"{record.name}: {error}") from None
            if record.kind in _REDUCING:
                result = self._as_scalars(result, record.scalars)
            if record.name == "sliding_window_view" and isinstance(args[0], Traced):
                args[0]._cell.frozen = "a store into an array of which `sliding_window_view` made a view"
        else:
            lifted = [self._lift_argument(record, i, a) for i, a in enumerate(args)]
            options = {k: self._lift_option(record, k, v) for k, v in kwargs.items()}
            c_order = all(map(keeps_c_order, _arrays(args)))
            try:
                value = record.build(self.builder, *lifted, **options)
            except CaptureError as error:
                error.help = error.help and in_user_words(error.help, user_location())
                error.sizes |= self.sizes.get(error.asked, frozenset())
                raise
            result = self.wrap(value, scalar=record.scalars, c_order=c_order)
            limited = self.builder.direct and record.name in _LIMITED and isinstance(value, Value)
            if limited and "initial" not in record.signature.bind(*args, **kwargs).arguments:  # it is added to a sum
                self.integers.note_limits(record.name, args, value)
        if np.geterr() != self.errors:
            float_errors.check(self, record, args, result)
        return result if out is None else self._store_out(out, result)

    def _bound(
        self, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any], out: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """The arguments bound to the record's parameters, without `out` and those that have no effect here."""
        if not kwargs and out is None and len(args) in record.bound_as_given:
            return tuple(args), {}, None
        out = kwargs.pop("out", out)
        for option, default in _HARMLESS.items():
            if option in kwargs and option not in record.signature.parameters:
                given = kwargs.pop(option)
                if given is not default and not (isinstance(given, str) and given == default):
                    raise UnsupportedSyntaxError(
                        f"`np.{record.name}`: the argument `{option}` is not compiled",
                        help=_HARMLESS_HELP.get(option),
                    )
        try:
            bound = record.signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(n for n in record.signature.parameters if n != "out")
            raise UnsupportedSyntaxError(f"`np.{record.name}`: {error}", help=f"compiled are {takes}") from None
        out = bound.arguments.pop("out", out)  # given by position
        if isinstance(out, Traced) and record.kind == "reduction" and "dtype" in record.signature.parameters:
            bound.arguments["dtype"] = bound.arguments.get("dtype") or out.dtype
        return bound.args, bound.kwargs, out

    def _lift_argument(self, record: OpDef, position: int, x: Any) -> Any:
        if record.arrays == -1 and position == 0:
            return [self.lift(v) for v in x]
        if position < record.arrays and (x is not None or record.required[position]):
            return self.lift(x)
        name = list(record.signature.parameters)[position] if record.array_options else ""
        if name in record.array_options:
            return self._lift_option(record, name, x)
        return self.lift(x) if isinstance(x, (Traced, np.ndarray, np.generic)) and record.arrays < 1 else x

    def _lift_option(self, record: OpDef, name: str, x: Any) -> Any:
        if name in record.array_options and type(x) not in (bool, int, float, type(None)):
            return self.lift(x)
        return self.lift(x) if isinstance(x, (Traced, np.ndarray)) else x

    def _as_scalars(self, result: Any, scalar: bool) -> Any:
        """The result of a composed operation, with 0-d results as NumPy scalars or arrays, as in NumPy."""
        if isinstance(result, tuple):
            parts = [self._as_scalars(part, scalar) for part in result]
            return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
        if isinstance(result, Traced) and result._scalar != scalar and not result.shape:
            return Traced(self, Cell(result._contents()), scalar=scalar)
        return result

    def _view_at_times(self, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[()] | tuple[Traced]:
        """The view that NumPy makes for these arguments, in a tuple; an empty one for others, or if they are wrong."""
        if record.name == "einsum":
            from mlirml.ops.shapes.einsum_view import einsum_view

            found = einsum_view(args)
            return (found[0]._viewed(found[1]),) if found is not None and isinstance(found[0], Traced) else ()
        source = args[0]
        if not isinstance(source, Traced) or any(isinstance(x, Traced) for x in [*args[1:], *kwargs.values()]):
            return ()
        named = {"offset" if name == "k" else name: value for name, value in kwargs.items()}
        view = diagonal_view(source.shape, *args[1:], **named)
        return () if view is None else (source._viewed(view),)

    def _view(self, record: OpDef, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        source = args[0]
        if not isinstance(source, Traced):
            source = self.wrap(self.builder.constant(np.asarray(original(source)), live=isinstance(source, np.ndarray)))
        if is_weak(source):
            source = source._copy()
        views = record.build(source.shape, *args[1:], **kwargs)
        if record.name == "ravel":
            return source._raveled() if isinstance(views, ViewOp) else source._viewed(views[0])._raveled()
        if record.name == "flip" and not source.shape:
            return Traced(self, Cell(source._contents()), scalar=True)
        if isinstance(views, ViewOp):
            return source._viewed(views)
        if isinstance(views, tuple):  # a chain of views
            return source._viewed(*views)
        return [source._viewed(v) for v in views]

    def _foldable(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        arrays = _arrays((args, kwargs))  # a real array is read anew at each call
        return bool(arrays) and all(
            isinstance(x, Traced) and x._known() is not None and x.size <= FOLD_ELEMENTS for x in arrays
        )

    def _fold(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Fold a call with constant arrays only, by calling NumPy."""
        real_args, real_kwargs = _replace_known((list(args), dict(kwargs)))
        try:
            with np.errstate(all="ignore"):
                result = function(*real_args, **real_kwargs)
        except (TypeError, OverflowError, IndexError, ValueError) as error:
            raise capture_error(error) from None
        return self._known_result(result, [x for x in _arrays((args, kwargs)) if isinstance(x, Traced)])

    def _known_result(self, result: Any, sources: list[Traced]) -> Any:
        if isinstance(result, (list, tuple)):
            results = [self._known_result(r, sources) for r in result]
            return tuple(results) if isinstance(result, tuple) else results
        if not isinstance(result, (np.ndarray, np.generic)):
            return result
        known = self.known(np.asarray(result), scalar=not isinstance(result, np.ndarray))
        known._cell.c_order &= all(map(keeps_c_order, sources))
        for source in sources:
            if np.may_share_memory(known._cell.value, source._cell.value):
                reason = "a store into an array of which a NumPy function made a view"
                source._cell.frozen = known._cell.frozen = reason
        return known

    def watched(self, array: np.ndarray) -> Any:
        """A real array as the function sees it: a proxy that records reads."""
        if array.dtype.hasobject or not is_supported(array.dtype):
            return array
        known = self.watches.get(id(array))
        if known is None:
            known = self.watches[id(array)] = Watched.of(array, self._refuse_store)
        return known

    def _refuse_store(self, array: np.ndarray) -> BaseException:
        state, error = self.state_of(array), self.real_array_error()
        error.location = user_location(2)
        return state or error

    def real_array_error(self) -> CaptureError:
        """The error for a store into an array that is not traced."""
        error = CaptureError(
            "the array to store into is a real NumPy array, which compiled code cannot fill", help=REAL_ARRAY
        )
        error.subject = STORE
        return error

    def _store_out(self, out: Any, result: Traced) -> Traced:
        if not isinstance(out, Traced):
            raise (self.state_of(out.record.array) if type(out) is Watched else None) or self.real_array_error()
        if not np.can_cast(result.dtype, out.dtype, "same_kind"):
            raise DTypeError(
                f"cannot store {result._describe()} in place into {out._describe()}",
                help=f"make a new array, `x = x + y`, or convert the result with `.astype(np.{out.dtype.name})`",
            )
        out._assign(result)
        return out

    # Arrays.

    def known(self, array: np.ndarray, *, scalar: bool = False) -> Traced:
        """A constant array; nothing is emitted until an operation combines it with a traced one."""
        if not is_supported(array.dtype):
            raise DTypeError(f"an array of dtype {array.dtype} cannot be used in compiled code")
        c_order = array.flags.c_contiguous or not any(array.strides)
        return Traced(
            self, Cell(array, owned=array.flags.writeable, c_order=c_order), scalar=scalar and array.shape == ()
        )

    def filled(self, shape: Any, value: Any, dtype: Any = None) -> Traced:
        """`np.full`: a constant array of one value."""
        if isinstance(value, Traced) and value._known() is None:
            spread = self.call_function(np.broadcast_to, (value, shape), {})._copy()
            return spread if dtype is None else spread.astype(dtype)
        number = value._known() if isinstance(value, Traced) else value
        if is_dynamic_shape(shape if isinstance(shape, tuple) else (shape,)) or type(number) is Size:
            return self._filled_dynamically(shape, number, dtype)
        if type(number) is int and dtype is not None:
            check_integer("fill", number, as_dtype(dtype))
        if dtype is not None and as_dtype(dtype).kind not in "cb" and is_complex_object(number):
            self.builder.warn_of_discarded_parts(as_dtype(dtype))
            number = np.real(np.asarray(number))
        try:
            array = np.broadcast_to(np.asarray(number, dtype), np.zeros(0).reshape(0).shape if shape == 0 else shape)
        except (TypeError, OverflowError, ValueError) as error:
            raise capture_error(error) from None
        return self.known(array)

    def _filled_dynamically(self, shape: Any, number: Any, dtype: Any) -> Traced:
        """`np.full` of a dynamic shape."""
        spread = self.array(number, dtype) if type(number) is not Size else self.size_number(number)
        result: Traced = self.call_function(np.broadcast_to, (spread, shape), {})._copy()
        return result if dtype is None else result.astype(dtype)

    def size_number(self, size: Size) -> Traced:
        """A dynamic size as a number of the program."""
        return Traced(self, Cell(self.builder.size_number(size)), scalar=True)

    def array(self, data: Any, dtype: Any = None, *, copy: bool = True) -> Traced:
        """`np.array`: nested lists of numbers and traced arrays."""
        if isinstance(data, Traced):
            if data._is_weak() and data.dtype.kind == "c" and dtype is not None and as_dtype(dtype).kind in "iuf":
                raise DTypeError(f"a complex number cannot become {as_dtype(dtype).name}", help="take its real part")
            result = data._copy(c_order=data._keeps_c_order()) if copy or data._scalar else data
            return result if dtype is None else result.astype(dtype, copy=False)
        if isinstance(data, PartedList) and data.has_rows:
            rows: Traced = data.array()
            return rows if dtype is None else rows.astype(dtype)
        if isinstance(data, (list, tuple)) and any(isinstance(x, Traced) for x in _arrays(data)):
            parts = [self.array(x, dtype) if isinstance(x, (list, tuple)) else x for x in data]
            options = {} if dtype is None else {"dtype": dtype}
            if dtype is not None and not any(getattr(x, "dtype", None) in COMPLEX for x in parts):
                parts = [self.array(x, dtype, copy=False) for x in parts]  # each is cast, also floats to integers
            return self.call_function(np.stack, (parts,), options)
        if isinstance(data, np.ndarray):  # captured
            value = self._lift_array(data)
            assert isinstance(value, Value)
            result = Traced(self, Cell(value, c_order=bool(data.flags.c_contiguous)))
            result._cell.frozen = None if copy else "a store into a captured array, which compiled code only reads"
            return result if dtype is None else result.astype(dtype, copy=False)
        try:
            return self.known(np.array(data, dtype))
        except (TypeError, OverflowError, ValueError) as error:
            raise capture_error(error) from None

    def astype(self, array: Traced, dtype: np.dtype) -> Traced:
        """A copy in another element type."""
        if not is_supported(dtype):
            raise DTypeError(f"astype: dtype {dtype} is not supported")
        known = array._known()
        if known is not None and known.size <= FOLD_ELEMENTS:
            if known.dtype.kind == "c" and dtype.kind not in "cb":
                self.builder.warn_of_discarded_parts(dtype)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                return self.known(known.astype(dtype), scalar=array._scalar)
        value, c_order = self.builder.cast(array._read(), dtype), array._keeps_c_order()
        return Traced(self, Cell(value, c_order=c_order, owned=True), scalar=array._scalar)


def capture_error(error: Exception) -> CaptureError:
    """NumPy's error as the corresponding error of this package."""
    kinds: dict[type[Exception], type[CaptureError]] = {
        OverflowError: IntegerRangeError, IndexError: IndexOutOfBoundsError, TypeError: DTypeError
    }  # fmt: skip
    return next((ours for kind, ours in kinds.items() if isinstance(error, kind)), ShapeError)(str(error))


def keeps_c_order(x: Any) -> bool:
    """True if NumPy gives an elementwise result C order because of this operand."""
    return x._keeps_c_order() if isinstance(x, Traced) else bool(x.flags.c_contiguous)


def is_weak(x: Any) -> bool:
    if isinstance(x, Traced):
        return isinstance(x._cell.value, Value) and x._cell.value.weak
    return type(x) in (bool, int, float, complex, Size)


def _is_square_of_bools(base: Any, exponent: Any) -> bool:
    """True if NumPy's operator computes `base ** exponent` as a square, whose dtype differs (i8)."""
    squared = type(exponent) is int and exponent == 2
    return squared and isinstance(base, Traced) and base.dtype == np.bool_ and not base._scalar


def _is_foreign(x: Any) -> bool:
    """True for an operand with its own rules for combining with arrays, such as a sparse matrix."""
    if isinstance(x, Traced):
        return False
    return getattr(type(x), "__array_ufunc__", 0) is None or is_dynamic(x) or type(x) is Optional


def _arrays(tree: Any) -> list[Any]:
    if isinstance(tree, (Traced, np.ndarray)):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [a for item in tree for a in _arrays(item)]
    return []


def _replace_known(tree: Any) -> Any:
    if isinstance(tree, Traced):
        known = tree._known()
        return known[()] if known is not None and tree._scalar else known
    if isinstance(tree, dict):
        return {k: _replace_known(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_replace_known(v) for v in tree)
    return tree


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


# Sections of composed operations whose 0-d results are NumPy scalars; views and joins of arrays are arrays.
_REDUCING = ("elementwise", "reduction", "statistics", "numeric", "contraction")

# NumPy functions that store into an argument: it must not be a copy.
_MUTATORS = (np.place,)


def value_of(state: Trace, leaf: Any, path: str) -> Value:
    """A leaf of the result in the program."""
    if isinstance(leaf, Traced) and leaf._trace is state:
        leaf._check_region()
        return leaf._read()
    if is_dynamic(leaf):
        if not hasattr(leaf, "of_one_length"):
            raise leaf.as_result(path)
        return value_of(state, leaf.of_one_length(path), path)
    if type(leaf) is int and not -(1 << 63) <= leaf < 1 << 64:
        raise IntegerRangeError(f"{path} is an integer of more than 64 bits, {reprlib.repr(leaf)}", help=_WIDE)
    try:
        operand = state.lift(leaf)
    except DTypeError as error:
        help_ = error.help or "compiled code returns arrays, numbers, and containers of them"
        raise DTypeError(f"{path}: {error.message}", help=help_) from None
    return operand if isinstance(operand, Value) else state.builder.filled((), operand.dtype, operand.value)


@contextmanager
def loop_errors(state: Trace) -> Iterator[None]:
    """Context manager: errors of unassigned variables name the user's variable."""
    try:
        yield
    except NameError as error:
        from mlirml.frontend.source.unbound import in_user_words

        found = in_user_words(error, state.unbound)
        if found is None:
            raise
        raise found from None


class at_function:
    """Context manager: a `CaptureError` without a location gets that of the `return`, or else of the `def`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __enter__(self) -> None:
        return None

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, CaptureError) and error.location is None:
            error.location = return_place(definition(self.function))


def definition(function: Any) -> SourceLocation | None:
    """The line of a function's `def`, looked for through partials, methods and callable objects."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__mlirml_loops__", function)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    if str(getattr(function, "__globals__", {}).get("__name__")).partition(".")[0] == "mlirml":
        return None  # a transform, whose result is not that of the transformed function
    return function_location(code) if code is not None else None
