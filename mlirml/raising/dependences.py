"""Which statement instances must come before which: exact memory dependences, by the loop that carries them.

For `for i: A[i] = A[i - 1]` the store of round i is read in round i + 1: a flow dependence of the statement on itself,
carried by the loop (level 0). A dependence inside one round has the level of the number of common loops.

Places that differ by constants are compared here; for all others isl is asked (by way of `islpy`) whether two instances
can meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mlirml.dataclass import dataclass
from mlirml.raising.affine import Linear, Loop, Variable
from mlirml.raising.model import Access, Nest, Statement, common_loops

if TYPE_CHECKING:
    from mlirml.ir import mlir

Places = Sequence[Linear]


@dataclass(frozen=True)
class Dependence:
    """Instances of `sink` come after instances of `source`: in later rounds of common loop number `level`.

    `kind` is flow (written, then read), anti (read, then written) or output. `read` is the value that is read.
    """

    source: Statement
    sink: Statement
    level: int
    kind: str
    read: mlir.Value | None = None


def dependences(nest: Nest) -> list[Dependence]:
    """All dependences of a nest."""
    isl = Isl()
    found: list[Dependence] = []
    for a, b, kind, first, second, read in pairs(nest.statements):
        loops = common_loops(a, b)
        for level in levels(a, b, first, second, isl):
            if level < len(loops) and loops[level].independent:
                continue
            found.append(Dependence(a, b, level, kind, read))
    return found


Pair = tuple[Statement, Statement, str, Access, Access, "mlir.Value | None"]


def pairs(statements: Sequence[Statement]) -> Iterator[Pair]:
    """All pairs of accesses of which one writes, in both orders."""
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


def levels(a: Statement, b: Statement, first: Access, second: Access, isl: Isl) -> list[int]:
    """The levels at which an instance of `b` can meet an earlier instance of `a` at the same place."""
    loops = common_loops(a, b)
    own = first.array.depth
    depth = len(loops)
    later = a is not b and a.position < b.position
    candidates = [*range(own, depth), *([depth] if later else [])]
    at, to = a.places(first), b.places(second)
    if at is None or to is None:
        return candidates
    if not first.indices and not second.indices:
        return candidates
    simple = uniform(a, b, at, to, loops)
    if simple is not None:
        return [level for level in simple if level in candidates]
    return [level for level in candidates if isl.meet(a, b, at, to, level)]


def uniform(a: Statement, b: Statement, at: Places, to: Places, loops: Sequence[Loop]) -> list[int] | None:
    """The levels for places that differ by constants in each dimension; None where that is not so simple.

    An upper bound: that loops end somewhere is left out.
    """
    distance: dict[Loop, int] = {}
    for one, other in zip(at, to, strict=True):
        if dict(one.factors) != dict(other.factors):
            return None
        inner = one.loops
        if not inner:
            if one.constant != other.constant:
                return []
            continue
        if len(inner) > 1 or inner[0] not in loops:
            return None
        # factor * i + c = factor * i' + c'
        steps, rest = divmod(one.constant - other.constant, one.factor(inner[0]))
        if rest or distance.get(inner[0], steps) != steps:
            return []
        distance[inner[0]] = steps
    found = []
    for level, loop in enumerate(loops):
        steps = distance.get(loop, 0)
        if loop not in distance or steps > 0:
            found.append(level)
        if loop in distance and steps != 0:
            return found
    return [*found, len(loops)]


class Isl:
    """Asks isl; `islpy` is imported with the first question."""

    def __init__(self) -> None:
        self._isl: Any = None
        self._context: Any = None

    def meet(self, a: Statement, b: Statement, at: Places, to: Places, level: int) -> bool:
        """Whether instances of `a` and `b` exist that meet, those of `b` in later rounds of the loop at `level`."""
        names: dict[tuple[int, Variable], str] = {}
        parameters: dict[Variable, str] = {}

        def text(expression: Linear, side: int) -> str:
            parts = [str(expression.constant)]
            for variable, factor in expression.factors.items():
                if isinstance(variable, Loop):
                    name = names[side, variable]
                else:
                    name = parameters.setdefault(variable, f"p{len(parameters)}")
                parts.append(f"{factor}*{name}")
            return " + ".join(parts)

        conditions: list[str] = []
        for side, statement in enumerate((a, b)):
            for number, loop in enumerate(statement.loops):
                names[side, loop] = f"{'ab'[side]}{number}"
        for side, statement in enumerate((a, b)):
            for loop in statement.loops:
                name = names[side, loop]
                conditions += [f"{name} >= {text(bound, side)}" for bound in loop.lowers]
                conditions += [f"{name} < {text(bound, side)}" for bound in loop.uppers]
        conditions += [f"{text(one, 0)} = {text(other, 1)}" for one, other in zip(at, to, strict=True)]
        for number, loop in enumerate(common_loops(a, b)[: level + 1]):
            relation = "<" if number == level else "="
            conditions.append(f"{names[0, loop]} {relation} {names[1, loop]}")
        head = f"[{', '.join(parameters.values())}] -> " if parameters else ""
        return not self._is_empty(f"{head}{{ [{', '.join(names.values())}] : {' and '.join(conditions)} }}")

    def _is_empty(self, text: str) -> bool:
        if self._isl is None:
            import islpy

            self._isl, self._context = islpy, islpy.Context()
        empty: bool = self._isl.Set.read_from_str(self._context, text).is_empty()
        return empty
