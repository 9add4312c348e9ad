"""Hooks that rewritten functions call: each decides whether Python executes a statement, or the program gets a loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mlirml.analysis.traits import INTEGER_DIVISIONS
from mlirml.errors import CaptureError, TracedValueError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import common, joined, leaf_type_of, several
from mlirml.frontend.arrays.constructs import InlineStore, inline, is_certain
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.number_lists import element_at, exchange, is_dynamic_integer
from mlirml.frontend.arrays.optional import Optional, assigned, given
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.frontend.iteration_limits import MOST_COPIES
from mlirml.frontend.loops.branch import Branch
from mlirml.frontend.loops.containers import Snapshot
from mlirml.frontend.loops.failing import FAILURES, failing_apart
from mlirml.frontend.loops.for_loop import ForLoop
from mlirml.frontend.loops.functions import divisor, replaced
from mlirml.frontend.loops.generator_hooks import GeneratorHooks
from mlirml.frontend.loops.iterations import Iteration, run_over
from mlirml.frontend.loops.iterators import Iterators
from mlirml.frontend.loops.list_hooks import Part, nothing, unchanged
from mlirml.frontend.loops.membership import contains
from mlirml.frontend.loops.narrowing import is_same, narrowed, truth_of
from mlirml.frontend.loops.orders import compared, have_items_of_program
from mlirml.frontend.loops.ranges import (
    ENDLESS,
    ConstantRows,
    Items,
    Parallel,
    TracedRange,
    is_constant_array,
    lists_in,
    numbered,
)
from mlirml.frontend.loops.real_arrays import check_target, is_real
from mlirml.frontend.loops.variables import UNBOUND, Tree, Variables, is_number, value_of_type
from mlirml.frontend.loops.while_loop import WhileLoop
from mlirml.frontend.source.unbound import name_of
from mlirml.frontend.tracing.affine import Condition, value_in
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check, Value
from mlirml.ir.text.dtypes import mlir_name

_BOOL = np.dtype(np.bool_)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
    "Is": is_same,
    "In": lambda a, b: contains(b, a),
}  # fmt: skip
_NEGATED = {"IsNot": "Is", "NotIn": "In"}
_CHEAP = ("arith.", "math.", "tensor.from_elements", "tensor.empty")
UNROLLED = 256  # the most iterations of a loop that has to be unrolled
MOST_UNROLLED = 1 << 14
_LONG = 32  # the most rows of a constant array that are constants of unrolled iterations
Names = Sequence[str]


def _asks_for_more(error: Exception) -> bool:
    """True for an error that does not arise where the function is traced once more, as for room in a list."""
    return isinstance(error, CaptureError) and bool(error.lists or error.unassigned or error.masks)


class Hooks(GeneratorHooks):
    """The hooks of a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.iterators = Iterators(trace)
        self._rows: dict[Any, int] = {}  # rows of constant arrays that a statement loops over, outside of loops
        self._branching: set[Any] = set()  # the code of expressions that are better computed in branches

    # Statements.

    def for_(self, iterable: Any, body: Part, *names: Any) -> None:
        """A `for` statement. `body` takes the item; `names` are the further arguments of `_emit_loop`."""
        self.iterators.check(iterable)
        self._loop_over(iterable, body, *names)
        stop = Variables(body).get(names[5]) if names[5] else False
        self.iterators.spend(iterable, is_complete=stop is False)

    def _loop_over(self, iterable: Any, body: Part, *names: Any) -> None:
        if self._emit_loop(iterable, body, *names):  # after peeling, the others are alike
            iterable, item = self._numbered(iterable)
            body(iterable[0] if item is None else item(iterable[0]))
            rest = iterable[1:] if item is None else Items(iterable[1:], item)
            self._emit_loop(rest, body, *names, peels=False)

    def _numbered(self, iterable: Any) -> tuple[Any, Callable[[Any], Any] | None]:
        """An iterable as a range, and the item of a number: of a constant array, too, where unrolling it is long.

        The array has many rows, or the function that loops over arrays is called for many of them.
        """
        if not is_constant_array(iterable):
            return numbered(iterable)
        place, count = user_location(), len(iterable)
        if self._trace.builder.region.parent is None:
            self._rows[place] = count = self._rows.get(place, 0) + len(iterable)
        is_long = len(iterable) > _LONG or (count > MOST_COPIES and len(iterable) > 1)
        return (range(len(iterable)), ConstantRows(iterable)) if is_long else (iterable, None)

    def _emit_loop(
        self,
        iterable: Any,
        body: Part,
        own: Names,
        head: Names,
        after: Names,
        changed: Names,
        target: str,
        stop: str,
        nests: bool,
        renewed: Names = (),
        *,
        peels: bool = True,
    ) -> bool:
        """Emit `scf.for`, or unroll it; returns True, having emitted nothing, if the first iteration must be peeled.

        `stop` is the flag that ends the loop, if there is one. A loop that contains others (`nests`), or that is
        differentiated, executes all of its iterations, with those after the end predicated.
        """
        nests = nests or self._trace.derivatives > 0
        lists = lists_in(iterable)
        iterable, item = self._numbered(iterable)
        constant = item.array if isinstance(item, ConstantRows) else None
        why = f"iterates over a {iterable.__class__.__name__}"
        if isinstance(iterable, (range, TracedRange, Parallel)):
            if isinstance(iterable, range) and not len(iterable):
                return False
            if isinstance(iterable, range) and len(iterable) == 1 and not stop:
                body(iterable[0] if item is None else item(iterable[0]))
                return False
            with at_user_line():
                unassigned: list[str] = []
                later = sorted({*head, *after, stop})
                loop = ForLoop(
                    self._trace,
                    [body],
                    own,
                    changed,
                    iterable=iterable,
                    body=self._guarded(body, item, (own, later, changed), stop if nests else "", unassigned),
                    predicated=unassigned if stop and nests else None,
                    target="" if stop or item is not None else target,
                    stop="" if nests else stop,
                    head=sorted({*head, *after}) if stop and nests else head,  # carried after the end
                    after=after,
                    renewed=renewed,
                )
                loop.peels = peels and not stop and isinstance(iterable, range) and len(iterable) > 1
                try:
                    if not loop.info.differ:
                        run_over(loop, lists)
                        return False
                except CaptureError as error:
                    if self._is_peeled(loop, error, UNROLLED if constant is None else MOST_UNROLLED):
                        return True
                except NameError as error:  # of a variable that the first iteration assigns
                    name = name_of(error)
                    if not loop.peels or name is None or name not in own or loop.variables.get(name) is not UNBOUND:
                        raise
                    return True
                why = loop.info.differ
        if item is not None:
            iterable = Items(iterable, item if constant is None else constant.__getitem__)
        self._trace.note_unrolled(why)
        self._unrolled(iterable, body, own, head, after, changed, stop)
        return False

    def _is_peeled(self, loop: ForLoop, error: CaptureError, most: int) -> bool:
        """True if only the first iteration of a loop differs from others; False if it is to be unrolled.

        An error that neither avoids is raised; `most` iterations are unrolled at most.
        """
        name, structures = error.chosen
        if loop.peels and name in loop.named and Tree.of(loop.variables.get(name)).treedef in structures:
            return True  # it may have this structure, that of `rows = []`, before the loop only
        if loop not in error.roots:
            raise error
        if error.first and loop.peels:
            return True
        around = loop.roots()
        if loop.count is None and around:  # the bounds become constant if the enclosing loops are unrolled
            error.roots = around
            raise error
        if loop.count is None or most < loop.count < ENDLESS - 1:
            error.sizes |= loop.argument_sizes()
            raise self._stays(error, loop.count) from None
        loop.info.differ = error.message
        return False

    def _stays(self, error: CaptureError, count: int | None) -> CaptureError:
        """The error for a loop that cannot be unrolled."""
        error.roots = frozenset()
        iterations = "an unknown number of iterations" if count is None else f"{count} iterations"
        error.notes += (
            f"it differs between iterations of a loop with {iterations}; up to {UNROLLED} would be unrolled",
        )
        return error

    def _guarded(
        self,
        body: Part,
        item: Callable[[Any], Any] | None,
        names: tuple[Names, Names, Names],
        stop: str,
        unassigned: Sequence[str],
    ) -> Callable[[Any], None]:
        """A function that traces an iteration for its index; with a flag, predicated on that.

        The variables `unassigned` have values after the loop only, and none at the start of an iteration.
        """
        variables, (own, later, changed) = Variables(body), names

        def guarded(number: Any) -> None:
            given = number if item is None else item(number)
            if not stop:
                body(given)
                return
            self.if_(
                self.not_(variables.get(stop)),
                Iteration(body, given, unassigned),
                nothing,
                own,
                (),
                later,
                changed,
                own,
            )

        return guarded

    def _unrolled(
        self, iterable: Any, body: Part, own: Names, head: Names, after: Names, changed: Names, stop: str
    ) -> None:
        """Unroll a loop, with a constant item in each iteration."""
        variables, copies = Variables(body), self.copies
        is_long = isinstance(iterable, Sized) and len(iterable) < ENDLESS - 1
        self.copies *= max(len(iterable), 1) if is_long else 1  # else it ends by a `break`
        try:
            self._check_copies()
            self._in_turn(iterable, body, variables, own, head, after, changed, stop)
        finally:
            self.copies = copies

    def _check_copies(self, further: int = 1) -> None:
        if self.copies * further > MOST_UNROLLED:
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"loops that have to be unrolled would make {self.copies * further:,} copies of what is in them, "
                    f"and the most are {MOST_UNROLLED:,}",
                    notes=tuple(f"{place}: {why}" for place, why in self._trace.unrolled.items()),
                    help="keep numbers in arrays, `np.zeros(n)`, and index them with loop variables",
                )

    def _check_end(self, is_near: bool) -> None:
        if not is_near:
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"the data decide when a loop over an iterator ends, of which up to {UNROLLED} items are taken",
                    help="loop over a `range` or `itertools.count()`, and end that by a `break`",
                )

    def _in_turn(
        self,
        iterable: Any,
        body: Part,
        variables: Variables,
        own: Names,
        head: Names,
        after: Names,
        changed: Names,
        stop: str,
    ) -> None:
        is_sized = isinstance(iterable, Sized) and len(iterable) < ENDLESS - 1
        for number, item in enumerate(iterable, 1):
            self._check_copies(1 if is_sized else number)
            flag = self.truth(variables.get(stop)) if stop else False
            if flag is True:
                break
            if isinstance(flag, Value):
                self._check_end(is_sized or number <= UNROLLED)
                going_on, later = self.not_(variables.get(stop)), sorted({*head, *after, stop})
                self.if_(going_on, Iteration(body, item), nothing, own, (), later, changed, ())
            else:
                body(item)

    def while_(
        self, test: Part, body: Part, own: Names, head: Names, after: Names, changed: Names, renewed: Names
    ) -> None:
        """A `while` statement. A counting loop's first iterations are unrolled; only those have a derivative in reverse
        mode.
        """
        for _ in range(UNROLLED if self._trace.derivatives else 0):
            truth = self.truth(test())
            if truth is False:
                return
            if truth is not True:
                break
            body()
        if self._trace.lists_without_items and self._is_never(test):
            return
        with at_user_line():
            names: dict[str, Names] = {"head": head, "after": after, "renewed": renewed}
            try:
                WhileLoop(self._trace, [body, test], own, changed, test=test, body=body, **names).run()
            except (*FAILURES, CaptureError) as error:  # in a body that is never executed
                if _asks_for_more(error) or not self._is_never(test):
                    raise

    def _is_never(self, test: Part) -> bool:
        """True if a condition is known not to hold, as far as nothing was appended to lists."""
        mark = self._trace.builder.mark()
        found = self.truth(test())
        self._trace.builder.rewind(mark)
        return found is False

    def if_(
        self,
        test: Any,
        then: Any,
        other: Any,
        first: Names,
        second: Names,
        after: Names,
        changed: Names,
        fills: Names,
        again: Callable[[], Any] | None = None,
    ) -> None:
        """An `if` statement. Names in `fills` that only one branch assigns are not read after the other one.

        `again` recomputes the test, if a branch appends to a list.
        """
        truth = self.truth(test)
        if not isinstance(truth, Value):
            (then if truth else other)()
            return
        integers = self._trace.integers
        in_itself = isinstance(then, Part) and self._trace.nested.get(then.__code__, 0)  # recursion would unfold
        known = None if in_itself else integers.decided(integers.condition(truth))
        if known is not None:
            (then if known else other)()
            return
        with at_user_line():
            own = sorted({*first, *second})
            Branch(
                self._trace,
                [then, other],
                own,
                changed,
                condition=control.to_scalar(self._trace.builder, truth),
                assumptions=self._trace.integers.condition(truth),
                sizes=test._sizes() if isinstance(test, Traced) else frozenset(),
                parts=(then, other),
                assigned=(first, second),
                after=after,
                fills=fills,
                test=again,
            ).run()

    def raising(self, error: Any, class_: Callable[[], Any] | None = None, text: str = "") -> Any:
        """The exception of a `raise` statement; None if it is raised depending on dynamic values.

        `error` makes one of which `class_` gives the class: with `text` as the message if that needs dynamic values.
        """
        if class_ is not None:
            try:
                error = error()
            except TracedValueError as refused:
                if refused.sizes:
                    raise
                error = class_()(text)
        region, b = self._trace.builder.region, self._trace.builder
        if region.parent is None or is_certain(region):
            return error
        with at_user_line():
            raised = error() if isinstance(error, type) and issubclass(error, Exception) else error
            if not isinstance(raised, Exception):
                raise UnsupportedSyntaxError(
                    f"`raise` of {raised!r} in a branch of the program", help="raise an `Exception`"
                )
            b.check(b.scalar(False, _BOOL), Check("MlirmlError", str(raised), raised=raised))
        return None

    def shown(self, text: str, value: Any, formatted: Callable[[Any], str]) -> str:
        """A part of an f-string in a `raise`: the value, or its source if it is dynamic."""
        try:
            found = formatted(value)
            return text if isinstance(value, Traced) and value._known() is None else found
        except TracedValueError as error:
            if error.sizes:
                raise
            return text

    def assert_(self, test: Any, text: str, message: Callable[[], Any] | None = None) -> None:
        """An `assert` statement; `text` is its condition as the user wrote it."""
        truth = self.truth(test)
        if not isinstance(truth, Value):
            if not truth:
                raise AssertionError(*([] if message is None else [message()]))
            return
        with at_user_line():
            b, shown = self._trace.builder, f"`{text}` does not hold"
            with suppress(CaptureError):  # a message with dynamic numbers
                shown = shown if message is None else str(message())
            b.check(control.to_scalar(b, truth), Check("FailedAssertionError", shown))

    # Expressions.

    def truth(self, x: Any) -> bool | Value:
        """The truth of a value: a constant, or a rank-0 bool of the program."""
        if type(x) is GrowingList and x.rows is not None and x.rows.counter is not None:
            x = x.rows.length > 0
        x = assigned(x)
        if type(x) is Optional:
            x = truth_of(x)
        if not isinstance(x, Traced):
            return bool(x)
        known = x._known()
        if known is not None:
            return bool(known)
        with at_user_line():
            if x.shape:
                raise several("if", "a condition", leaf_type_of(x, "a condition"))
            found = self._trace.builder.cast(x._read(), _BOOL)
            if x.dtype.kind == "i":
                self._trace.integers.note(np.not_equal, (x, 0), found)
            return found

    def as_truth(self, x: Any) -> Any:
        """A bool for an operand of which only the truth is used; numbers stay as they are."""
        if isinstance(x, Traced):
            return x
        truth = self.truth(x)
        return self._wrapped(truth) if isinstance(truth, Value) else truth

    def not_(self, x: Any) -> Any:
        """`not x`."""
        truth = self.truth(x)
        if not isinstance(truth, Value):
            return not truth
        with at_user_line():
            return self._logical(np.logical_not, self._wrapped(truth))

    def and_(self, first: Any, *later: Callable[[], Any]) -> Any:
        """`first and ...`."""
        for one in later:
            first = self._both(first, one, True)
        return first

    def or_(self, first: Any, *later: Callable[[], Any]) -> Any:
        """`first or ...`."""
        for one in later:
            first = self._both(first, one, False)
        return first

    def _both(self, first: Any, later: Callable[[], Any], conjunction: bool) -> Any:
        truth = self.truth(first)
        if not isinstance(truth, Value):
            return later() if truth is conjunction else first
        if type(first) is GrowingList:
            first, later = self._wrapped(truth), partial(_truth_beside_list, later)
        alone = partial(unchanged, first)  # no code of its own, which would be that of all such expressions
        if conjunction:
            return self._choose(truth, later, alone, np.logical_and)
        return self._choose(truth, alone, later, np.logical_or)

    def compare(self, names: Names, left: Any, *later: Callable[[], Any]) -> Any:
        """`a < b < c`."""
        result: Any = True
        for number, (name, one) in enumerate(zip(names, later)):
            if number:
                truth = self.truth(result)
                if truth is False:
                    return result
                if isinstance(truth, Value):
                    rest = partial(self.compare, names[number:], left, *later[number:])
                    return self._choose(truth, rest, partial(unchanged, result), np.logical_and)
            right = one()
            if name in _NEGATED:
                result = self.not_(_COMPARISONS[_NEGATED[name]](left, right))
            else:
                result = self.compare_two(name, left, right)
            left = right
        return result

    def compare_two(self, name: str, left: Any, right: Any) -> Any:
        """`a < b`."""
        if have_items_of_program(name, left, right):
            return compared(self._trace, name, left, right)
        return _COMPARISONS[name](left, right)

    def select(self, test: Any, body: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """`body if test else other`."""
        truth = self.truth(test)
        if not isinstance(truth, Value):
            return body() if truth else other()
        return self._choose(truth, body, other, None)

    def _choose(self, truth: Value, body: Callable[[], Any], other: Callable[[], Any], logical: np.ufunc | None) -> Any:
        """One of two expressions: a select if both are cheap and safe to compute, else branches."""
        trace, b = self._trace, self._trace.builder
        parts = {getattr(part, "__code__", None) for part in (body, other)} - {None}
        if parts & self._branching:
            return self._branches(truth, body, other, logical)
        mark, held = b.mark(), Snapshot([("", body), ("", other)])
        assumptions = trace.integers.condition(truth)
        found: Traced | None = None
        with suppress(InlineStore), inline(b):
            with failing_apart(), trace.integers.given(assumptions.true), narrowed([body], assumptions.true_presence):
                one = body()
            with (
                failing_apart(),
                trace.integers.given(assumptions.false),
                narrowed([other], assumptions.false_presence),
            ):
                two = other()
            if is_number(one) and is_number(two) and all(map(_is_cheap, b.since(mark))):
                if logical is not None and _is_bool(one) and _is_bool(two):
                    weak = joined(*(leaf_type_of(x, "a value") for x in (one, two)))
                    operands = self._wrapped(truth), two if logical is np.logical_or else one
                    found = self._logical(logical, *operands, weak=weak and weak.weak)
                else:
                    found = self._select_value(truth, one, two)
        if held.restore() or found is None:
            b.rewind(mark)
            self._branching |= parts
            return self._branches(truth, body, other, logical)
        return Traced(trace, Cell(found._cell.value), scalar=True)

    def _logical(self, ufunc: np.ufunc, *operands: Any, weak: Any = True) -> Any:
        """A logical function of bools: if `weak` one of Python's, an integer in arithmetic, and no `np.bool_`."""
        result = self._trace.call_function(ufunc, operands, {})
        value = value_in(result)
        if value is None:
            return result
        self._trace.integers.note(ufunc, operands, value)
        return self._wrapped(value, weak)

    def _select_value(self, truth: Value, one: Any, two: Any) -> Traced | None:
        """A select of two numbers; None if they have no common dtype."""
        leaf_types = leaf_type_of(one, "a value"), leaf_type_of(two, "a value")
        leaf_type = joined(*leaf_types) or common(*leaf_types)
        if leaf_type.dtype.kind == "c":
            return None
        values = [value_of_type(self._trace, leaf, leaf_type, "a value") for leaf in (one, two)]
        name = mlir_name(leaf_type.dtype)
        value = self._trace.builder.elementwise(
            [truth, *values],
            [_BOOL, leaf_type.dtype, leaf_type.dtype],
            leaf_type.dtype,
            (),
            lambda block, xs: block.op(f"arith.select {xs[0]}, {xs[1]}, {xs[2]}", name),
        )
        self._trace.note_sizes((self._wrapped(truth), one, two), value)
        self._trace.integers.note_choice(self._trace.integers.condition(truth), one, two, value)
        return self._wrapped(value, leaf_type.weak)

    def _branches(
        self, truth: Value, body: Callable[[], Any], other: Callable[[], Any], logical: np.ufunc | None
    ) -> Any:
        value: Any = None
        one = two = None
        integers = self._trace.integers
        assumptions, first, second = integers.condition(truth), Condition(), Condition()

        def then() -> None:
            nonlocal value, one, first
            with narrowed([body], assumptions.true_presence):
                value = one = body()
            first = integers.condition(value)

        def otherwise() -> None:
            nonlocal value, two, second
            with narrowed([other], assumptions.false_presence):
                value = two = other()
            second = integers.condition(value)

        with at_user_line():
            Branch(
                self._trace,
                [then, otherwise],
                ["value"],
                [],
                condition=control.to_scalar(self._trace.builder, truth),
                assumptions=assumptions,
                parts=(then, otherwise),
                assigned=(["value"], ["value"]),
                after=["value"],
            ).run()
        found = value_in(value)
        if found is not None:
            self._trace.note_sizes((self._wrapped(truth), one, two), found)
        if logical is not None and found is not None:
            inner = first if logical is np.logical_and else second
            integers.conditions[found.name] = Condition.combined(logical, [assumptions, inner])
        return value

    def _wrapped(self, value: Value, weak: bool = True) -> Traced:
        return Traced(self._trace, Cell(replace(value, weak=weak)), scalar=True)

    def named(self, value: Any) -> Any:
        """The value that a variable gets in an assignment."""
        if is_dynamic(value) or (type(value) in (tuple, list) and any(map(is_dynamic, value))):
            from mlirml.frontend.loops.dynamic_slices.slices import named

            with at_user_line():
                return named(value)
        return value

    def renamed(self, value: Any) -> Any:
        """The value of a variable that another one gets, which has one then."""
        return assigned(value)

    def captured(self, x: Any) -> Any:
        """A value of which a copy is stored into: one of the program for an array that it captures."""
        return self._trace.array(x, copy=False) if is_real(x) else x

    def fresh(self, x: Any) -> Any:
        """A new array that is stored into: one of the program."""
        return self._trace.known(x) if is_real(x) and x.base is None else x

    def target(self, x: Any) -> Any:
        """The array or container that a statement stores into."""
        check_target(self._trace, x)
        return x

    def addend(self, x: Any, target: Any) -> Any:
        """The right side of `target += x`."""
        check_target(self._trace, target)
        return x

    def exchange(self, one: Any, first: Any, other: Any, second: Any) -> None:
        """`one[first], other[second] = other[second], one[first]`."""
        check_target(self._trace, one)
        check_target(self._trace, other)
        if one is other and type(one) is GrowingList and is_dynamic_integer(first) | is_dynamic_integer(second):
            with at_user_line():
                one.becomes_rows(first if is_dynamic_integer(first) else second)
                if one.rows is not None and one.rows.depth:
                    exchange(one, first, second)
                    return
        one[first], other[second] = other[second], one[first]

    def item(self, items: Any, index: Any) -> Any:
        """`items[index]`, read."""
        index = given(index)
        if type(items) in (list, tuple) and is_dynamic_integer(index):
            with at_user_line():
                return element_at(self._trace, items, index)
        return items[index]

    def divisor(self, callee: Any) -> Any:
        """The callee for a function whose result is the divisor of `/`."""
        return divisor(self._trace, callee)

    def function(self, callee: Any) -> Any:
        """The callee for a function: Python's functions of numbers accept dynamic ones too, `list` dynamic slices."""
        called = replaced(self._trace, callee)
        if callee is not list:
            return called
        return lambda items=(): self.list_(list, items, grows=True) if is_dynamic(items) else called(items)


def _truth_beside_list(later: Callable[[], Any]) -> Any:
    """The other operand of `items and x`: a truth value, as compiled code knows no value that may be a list or not."""
    found = later()
    if not _is_bool(found):
        raise UnsupportedSyntaxError(
            "`and` and `or` of a list whose length the data decide and of something else than a truth value",
            help="compare the length, `len(items) > 0`",
        )
    return found


def _is_bool(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) or (isinstance(x, Traced) and x.dtype == _BOOL)


def _is_cheap(text: str) -> bool:
    operation = text.partition(" = ")[2]
    return operation.startswith(_CHEAP) and not operation.startswith(INTEGER_DIVISIONS)
