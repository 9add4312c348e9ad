"""Emits kernels as MLIR text: index arithmetic, loops, flat views of memrefs, vector loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import LONG_CHUNKS


class Index(NamedTuple):
    """A linear form over index values: `terms` are (SSA name, factor) pairs.

    A tuple, because kernels create thousands and look them up by value.
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(value: Index | int) -> Index:
        return value if isinstance(value, Index) else Index((), value)

    def __add__(self, other: Index | int) -> Index:  # type: ignore[override]
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        factors = dict(self.terms)
        for name, factor in other.terms:
            factors[name] = factors.get(name, 0) + factor
        kept = tuple((name, factor) for name, factor in factors.items() if factor)
        return Index(kept, self.constant + other.constant)

    def __radd__(self, other: int) -> Index:
        return self + other

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other

    def __mul__(self, factor: int) -> Index:  # type: ignore[override]
        terms = tuple((name, f * factor) for name, f in self.terms) if factor else ()
        return Index(terms, self.constant * factor)

    def __rmul__(self, factor: int) -> Index:  # type: ignore[override]
        return self * factor

    def __sub__(self, other: Index | int) -> Index:
        return self + other * -1


Value = Index | int
_LONGEST_IN_PARTS = 256
"""The bits of the longest vectors of which a known part is stored as shorter ones; AVX-512 has fast masks."""


@dataclass(frozen=True)
class View:
    """A one-dimensional memref value: its SSA name, its element type and its memref type."""

    name: str
    element: str
    type: str


def vector(lanes: int, element: str) -> str:
    """The text of a vector type."""
    return f"vector<{lanes}x{element}>"


def _bits(element: str) -> int:
    """The bits of a type of elements; those of an index are 64."""
    return int("".join(filter(str.isdigit, element)) or 64)


class Emitter:
    """Collects the lines of one function body; methods that build a value return its SSA name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[int, str] = {}
        self._known: list[dict[Index, str]] = [{}]  # by region, the innermost last
        self._count = 0

    def fresh(self, hint: str) -> str:
        """A new SSA name."""
        self._count += 1
        return f"%{hint}_{self._count}"

    def do(self, line: str) -> None:
        """Add an operation without results, or a line of structure."""
        self.lines.append(line)

    def body(self) -> list[str]:
        """All lines, constants first."""
        return [f"{name} = arith.constant {number} : index" for number, name in self.constants.items()] + self.lines

    def let(self, text: str, hint: str = "v") -> str:
        """Add an operation with one result."""
        name = self.fresh(hint)
        self.do(f"{name} = {text}")
        return name

    def constant(self, number: int) -> str:
        """A constant of index type; all of them are at the start of the function."""
        if number not in self.constants:
            self.constants[number] = f"%c{number}" if number >= 0 else f"%minus{-number}"
        return self.constants[number]

    def at(self, index: Value) -> str:
        """The SSA value of a linear form; a form is computed once in a region."""
        index = Index.of(index)
        if not index.terms:
            return self.constant(index.constant)
        for known in self._known:
            if index in known:
                return known[index]
        name = self._known[-1][index] = self._compute(index)
        return name

    def _compute(self, index: Index) -> str:
        if index.constant:
            return self._arith("addi", self.at(Index(index.terms)), self.constant(index.constant))
        *front, (name, factor) = index.terms
        term = name if factor == 1 else self._arith("muli", name, self.constant(factor))
        return self._arith("addi", self.at(Index(tuple(front))), term) if front else term

    @contextmanager
    def region(self, head: str, tail: str = "}") -> Iterator[None]:
        """The lines of a region between `head` and `tail`; its values are unknown outside of it."""
        self._known.append({})
        self.do(head)
        yield
        self.do(tail)
        self._known.pop()

    def _arith(self, op: str, first: str, second: str) -> str:
        exact = " overflow<nsw>" if op in ("addi", "muli") else ""
        return self.let(f"arith.{op} {first}, {second}{exact} : index", "i")

    def minimum(self, first: Value, second: Value) -> Index:
        """The smaller of two linear forms."""
        first, second = Index.of(first), Index.of(second)
        if not (second - first).terms:
            return first if (second - first).constant >= 0 else second
        return Index(((self._arith("minsi", self.at(first), self.at(second)), 1),))

    def maximum(self, first: Value, second: Value) -> Index:
        """The larger of two linear forms."""
        first, second = Index.of(first), Index.of(second)
        if not (second - first).terms:
            return first if (second - first).constant <= 0 else second
        return Index(((self._arith("maxsi", self.at(first), self.at(second)), 1),))

    def product(self, first: Value, second: Value) -> Index:
        """The product of two linear forms."""
        return Index(((self._arith("muli", self.at(first), self.at(second)), 1),))

    def digits(self, index: Index, sizes: Sequence[int]) -> list[Index]:
        """The coordinates of a row-major linear index in a box of these sizes."""
        digits: list[Index] = []
        for size in reversed(sizes[1:]):
            name, by = self.at(index), self.constant(size)
            digits.append(Index(((self._arith("remui", name, by), 1),)))
            index = Index(((self._arith("divui", name, by), 1),))
        return [index, *reversed(digits)] if sizes else []

    @contextmanager
    def loop(self, lower: Value, upper: Value, step: int = 1, hint: str = "i") -> Iterator[Index]:
        """`scf.for`; a loop with trip count 1 is inlined. The caller omits zero-trip loops."""
        length = Index.of(upper) - lower
        if not length.terms and 0 < length.constant <= step:
            yield Index.of(lower)
            return
        low, high, by = self.at(lower), self.at(upper), self.at(step)
        name = self.fresh(hint)
        with self.region(f"scf.for {name} = {low} to {high} step {by} {{"):
            yield Index(((name, 1),))

    def carry(
        self,
        bounds: tuple[Value, Value, int],
        initial: Sequence[str],
        types: Sequence[str],
        body: Callable[[Index, list[str]], list[str]],
    ) -> list[str]:
        """`scf.for` over (lower, upper, step) with carried values; returns its results."""
        lower, upper, step = bounds
        length = Index.of(upper) - lower
        if not length.terms and length.constant <= step:
            return body(Index.of(lower), list(initial)) if length.constant > 0 else list(initial)
        low, high, by = self.at(lower), self.at(upper), self.at(step)
        name, result = self.fresh("k"), self.fresh("r")
        carried = [self.fresh("x") for _ in initial]
        pairs = ", ".join(f"{inner} = {outer}" for inner, outer in zip(carried, initial, strict=True))
        listed = ", ".join(types)
        loop = f"scf.for {name} = {low} to {high} step {by} iter_args({pairs}) -> ({listed}) {{"
        with self.region(f"{result}:{len(initial)} = {loop}"):
            values = body(Index(((name, 1),)), carried)
            self.do(f"scf.yield {', '.join(values)} : {listed}")
        return [f"{result}#{position}" for position in range(len(initial))]

    def either(
        self,
        condition: str,
        types: Sequence[str],
        then: Callable[[], list[str]],
        otherwise: Callable[[], list[str]],
    ) -> list[str]:
        """`scf.if`; returns its results."""
        result, listed = self.fresh("r"), ", ".join(types)
        with self.region(f"{result}:{len(types)} = scf.if {condition} -> ({listed}) {{", ""):
            self.do(f"scf.yield {', '.join(then())} : {listed}")
        with self.region("} else {"):
            self.do(f"scf.yield {', '.join(otherwise())} : {listed}")
        return [f"{result}#{position}" for position in range(len(types))]

    @contextmanager
    def parallel(self, count: Value, grain: int, *, long: bool = False) -> Iterator[Index]:
        """A 1-D `scf.parallel` from 0 to `count`; `grain` iterations are worth a chunk.

        `long`: chunks should be as long as the number of threads allows.
        """
        low, high, one = self.at(0), self.at(count), self.at(1)
        name = self.fresh("p")
        tail = f"scf.reduce\n}} {{mlirml.grain = {grain} : i64{f', {LONG_CHUNKS}' if long else ''}}}"
        with self.region(f"scf.parallel ({name}) = ({low}) to ({high}) step ({one}) {{", tail):
            yield Index(((name, 1),))

    def span(self, index: Index, count: int) -> tuple[Index, Index]:
        """The bounds of the iterations of a parallel loop that one thread runs in order, `index` among them.

        Those of the whole loop until mlirml-outline-parallel substitutes the bounds of the chunk.
        """
        ends = []
        for op, bound, name in (("minsi", 0, "start"), ("maxsi", count, "end")):
            text = f'arith.{op} {self.at(index)}, {self.at(bound)} {{mlirml.span = "{name}"}} : index'
            ends.append(Index(((self.let(text, name), 1),)))
        return ends[0], ends[1]

    def zeros(self, lanes: int, element: str) -> str:
        """A vector of zeros."""
        zero = "0.0" if element[0] in "fb" else "0"
        return self.let(f"arith.constant dense<{zero}> : {vector(lanes, element)}", "zero")

    def load(self, view: View, index: Value, lanes: int, valid: int | Index | None = None) -> str:
        """A vector; lanes from `valid` on are zero and their memory is not read."""
        kind = vector(lanes, view.element)
        place = f"{view.name}[{self.at(index)}]"
        if valid is None or valid == lanes:
            return self.let(f"vector.load {place} : {view.type}, {kind}")
        return self.load_masked(view, index, lanes, self.mask(lanes, valid))

    def load_masked(self, view: View, index: Value, lanes: int, mask: str) -> str:
        """A vector; masked lanes are zero and their memory is not read."""
        kind, zero = vector(lanes, view.element), self.zeros(lanes, view.element)
        place = f"{view.name}[{self.at(index)}]"
        return self.let(
            f"vector.maskedload {place}, {mask}, {zero} : {view.type}, vector<{lanes}xi1>, {kind} into {kind}"
        )

    def store(self, value: str, view: View, index: Value, lanes: int, valid: int | Index | None = None) -> None:
        """Store the first `valid` lanes."""
        kind = vector(lanes, view.element)
        place = f"{view.name}[{self.at(index)}]"
        if valid is None or valid == lanes:
            self.do(f"vector.store {value}, {place} : {view.type}, {kind}")
        elif isinstance(valid, int) and lanes * _bits(view.element) <= _LONGEST_IN_PARTS:
            self._store_parts(value, view, Index.of(index), lanes, valid)
        else:
            mask = self.mask(lanes, valid)
            self.do(f"vector.maskedstore {place}, {mask}, {value} : {view.type}, vector<{lanes}xi1>, {kind}")

    def _store_parts(self, value: str, view: View, index: Index, lanes: int, valid: int) -> None:
        """Store the first `valid` lanes as shorter vectors: a masked store of AVX2 takes some 12 cycles on AMD."""
        first = 0
        while first < valid:
            count = 1 << (valid - first).bit_length() - 1
            if count > 1:
                part = self.shuffle(value, value, range(first, first + count), lanes, view.element)
                self.store(part, view, index + first, count)
            else:
                kind = vector(lanes, view.element)
                element = self.let(f"vector.extract {value}[{first}] : {view.element} from {kind}", "s")
                self.store_scalar(element, view, index + first)
            first += count

    def mask(self, lanes: int, valid: int | Index) -> str:
        """A mask that is true for the first `valid` lanes."""
        if isinstance(valid, Index):
            return self.let(f"vector.create_mask {self.at(valid)} : vector<{lanes}xi1>", "mask")
        return self.let(f"vector.constant_mask [{valid}] : vector<{lanes}xi1>", "mask")

    def prefetch(self, view: View, index: Value, locality: int = 3) -> None:
        """Prefetch memory into cache level 1 (3) or 2 (2); the index may be out of the bounds of the view."""
        self.do(f"memref.prefetch {view.name}[{self.at(index)}], read, locality<{locality}>, data : {view.type}")

    def load_scalar(self, view: View, index: Value) -> str:
        """Load one element."""
        return self.let(f"memref.load {view.name}[{self.at(index)}] : {view.type}", "s")

    def store_scalar(self, value: str, view: View, index: Value) -> None:
        """Store one element."""
        self.do(f"memref.store {value}, {view.name}[{self.at(index)}] : {view.type}")

    def shuffle(self, first: str, second: str, lanes: Sequence[int], width: int, element: str) -> str:
        """`vector.shuffle` of two vectors of `width` lanes."""
        kind = vector(width, element)
        return self.let(f"vector.shuffle {first}, {second} [{', '.join(map(str, lanes))}] : {kind}, {kind}")
