"""Exact memory dependences between statement instances, by the loop that carries them.

For `for i: A[i] = A[i - 1]` the store of iteration i is read in iteration i + 1: a flow dependence of the statement on
itself, carried by the loop (level 0). A dependence within one iteration has the number of common loops as its level.

Indices that differ by constants are compared here; for all others isl decides (by way of `islpy`) whether two instances
can access the same element.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from mlirml.analysis.affine import Loop, Variable, loops_in
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.raising.nests.model import Access, Nest, Statement, common_loops

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir

Indices = Sequence[Linear]


@dataclass(frozen=True)
class Dependence:
    """Instances of `sink` depend on instances of `source`, in later iterations of common loop number `level`.

    `kind` is flow (read after write), anti (write after read) or output (write after write). `read` is the value that
    is read.
    """

    source: Statement
    sink: Statement
    level: int
    kind: str
    read: mlir.Value | None = None


def dependences(nest: Nest, isl: Isl) -> list[Dependence]:
    """The dependences of a nest: all on a statement's own stores, and one for each level on other statements."""
    found: list[Dependence] = []
    known: set[tuple[Statement, Statement, int]] = set()
    for a, b, kind, first, second, read in pairs(nest.statements):
        loops = common_loops(a, b)
        levels = [
            level for level in levels_of(a, b, first) if (kind != "output" and a is b) or (a, b, level) not in known
        ]
        for level in met(a, b, first, second, levels, isl):
            if level < len(loops) and loops[level].independent:
                continue
            known.add((a, b, level))
            found.append(Dependence(a, b, level, kind, read))
    return found


Pair = tuple[Statement, Statement, str, Access, Access, "mlir.Value | None"]


def pairs(statements: Sequence[Statement]) -> Iterator[Pair]:
    """All pairs of accesses of which one is a write, in both orders."""
    for a in statements:
        for b in statements:
            if a.write.array is b.write.array:
                yield a, b, "output", a.write, b.write, None
            for value, access in b.reads.items():
                if access.array is a.write.array:
                    yield a, b, "flow", a.write, access, value
            for value, access in a.reads.items():
                if access.array is b.write.array:
                    yield a, b, "anti", access, b.write, value


def levels_of(a: Statement, b: Statement, access: Access) -> list[int]:
    """The levels at which `b` may be after `a` at all, for accesses to the array of `access`."""
    depth = len(common_loops(a, b))
    later = a is not b and a.position < b.position
    return [*range(access.array.depth, depth), *([depth] if later else [])]


def met(
    a: Statement, b: Statement, first: Access, second: Access, candidates: Sequence[int], isl: Isl
) -> Sequence[int]:
    """Those of some levels at which an instance of `b` can access the same element as an earlier instance of `a`."""
    if not candidates:
        return []
    loops = common_loops(a, b)
    at, to = a.all_indices(first), b.all_indices(second)
    if at is None or to is None:
        return candidates
    if not first.indices and not second.indices:
        return candidates
    simple, exact = uniform(at, to, loops)
    simple = [level for level in simple if level in candidates]
    # Textual order may be assumed as a dependence, whether they access the same element or not.
    if exact or all(level == len(loops) for level in simple):
        return simple
    meetings = isl.meetings(a, b, first, second)
    if meetings.is_empty():
        return []
    return [level for level in candidates if isl.are_ordered(meetings, a, b, level)]


def uniform(at: Indices, to: Indices, loops: Sequence[Loop]) -> tuple[list[int], bool]:
    """The levels for indices that differ by constants in each dimension; True if that is so in all dimensions.

    An upper bound: the bounds of loops, and dimensions with other differences, are ignored.
    """
    distance: dict[Loop, int] = {}
    exact = True
    for one, other in zip(at, to, strict=True):
        inner = loops_in(one)
        if dict(one.factors) != dict(other.factors) or len(inner) > 1 or any(loop not in loops for loop in inner):
            exact = False
            continue
        if not inner:
            if one.constant != other.constant:
                return [], True
            continue
        # factor * i + c = factor * i' + c'
        steps, rest = divmod(one.constant - other.constant, one.factor(inner[0]))
        if rest or distance.get(inner[0], steps) != steps:
            return [], True
        distance[inner[0]] = steps
    found = []
    for level, loop in enumerate(loops):
        steps = distance.get(loop, 0)
        if loop not in distance or steps > 0:
            found.append(level)
        if loop in distance and steps != 0:
            return found, exact
    return [*found, len(loops)], exact


def load_isl() -> Any:
    """The extension module of `islpy`, without its Python modules.

    These add operators and look up the package's version, for which they import sixty modules, `email` and `socket`
    among them; that takes four times as long as isl itself.
    """
    name = "islpy._isl"
    if name not in sys.modules:
        package = importlib.util.find_spec("islpy")  # does not import it
        spec = PathFinder.find_spec(name, package.submodule_search_locations if package is not None else None)
        if spec is None or spec.loader is None:
            return importlib.import_module("islpy")  # raises an error that names what is missing
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module  # a later `import islpy` reuses it: it must not be loaded twice
    return sys.modules[name]


class Isl:
    """Queries to isl, which is loaded at the first one. Sets are parsed once for each access, as that takes longest."""

    def __init__(self) -> None:
        self._isl: Any = None
        self._context: Any = None
        self._parameters: dict[Variable, str] = {}
        self._accesses: dict[tuple[Statement, Access], Any] = {}
        self._orders: dict[tuple[int, int, int, int], Any] = {}

    def meetings(self, a: Statement, b: Statement, first: Access, second: Access) -> Any:
        """The pairs of instances of `a` and `b` that access the same element."""
        return self._access(a, first).apply_range(self._access(b, second).reverse())

    def are_ordered(self, meetings: Any, a: Statement, b: Statement, level: int) -> bool:
        """True if in some pairs, `b` is later in the loop at `level`, in the same iteration of outer loops."""
        return not meetings.is_disjoint(self._order(a, b, level))

    def is_covered(self, reader: Statement, access: Access, writers: Sequence[tuple[Statement, int]]) -> bool:
        """True if every instance of a reader reads the element of an earlier writer, later in the loop at its level."""
        rest = self._access(reader, access).domain()
        for writer, level in writers:
            if writer.write.indices is not None:
                meetings = self.meetings(writer, reader, writer.write, access)
                rest = rest.subtract(meetings.intersect(self._order(writer, reader, level)).range())
        return bool(rest.is_empty())

    def _access(self, statement: Statement, access: Access) -> Any:
        """The map from the instances of a statement to the indices that it accesses."""
        key = (statement, access)
        if key not in self._accesses:
            names = [f"i{number}" for number in range(len(statement.loops))]
            conditions = []
            for name, loop in zip(names, statement.loops):
                conditions += [f"{name} >= {self._linear(bound, statement)}" for bound in loop.lowers]
                conditions += [f"{name} < {self._linear(bound, statement)}" for bound in loop.uppers]
            indices = [self._linear(index, statement) for index in statement.all_indices(access) or ()]
            head = f"[{', '.join(self._parameters.values())}] -> " if self._parameters else ""
            tail = f" : {' and '.join(conditions)}" if conditions else ""
            self._accesses[key] = self._map(f"{head}{{ [{', '.join(names)}] -> [{', '.join(indices)}]{tail} }}")
        return self._accesses[key]

    def _linear(self, expression: Linear, statement: Statement) -> str:
        parts = [str(expression.constant)] if expression.constant or not expression.factors else []
        for variable, factor in expression.factors.items():
            if isinstance(variable, Loop):
                name = f"i{statement.loops.index(variable)}"
            else:
                name = self._parameters.setdefault(variable, f"p{len(self._parameters)}")
            parts.append(f"{factor}*{name}")
        return " + ".join(parts)

    def _order(self, a: Statement, b: Statement, level: int) -> Any:
        """The pairs of instances of which the second is later in the common loop at `level`."""
        key = (len(a.loops), len(b.loops), len(common_loops(a, b)), level)
        if key not in self._orders:
            first, second, common, _ = key
            conditions = [
                f"a{number} {'<' if number == level else '='} b{number}" for number in range(min(level + 1, common))
            ]
            tail = f" : {' and '.join(conditions)}" if conditions else ""
            indices = [", ".join(f"{side}{n}" for n in range(count)) for side, count in (("a", first), ("b", second))]
            self._orders[key] = self._map(f"{{ [{indices[0]}] -> [{indices[1]}]{tail} }}")
        return self._orders[key]

    def _map(self, text: str) -> Any:
        if self._isl is None:
            self._isl = load_isl()
            self._context = self._isl.Context()
        return self._isl.Map.read_from_str(self._context, text)
