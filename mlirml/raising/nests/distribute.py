"""Distribute loops over statements (Allen and Kennedy): dependence cycles stay in a loop, the rest is raised.

    for i in 1..n:                      for i in 1..n:
        A[i] = A[i - 1] + B[i]    ->        A[i] = A[i - 1] + B[i]
        C[i] = 2 * A[i]                 C[1:n] = 2 * A[1:n]

Statements that depend on each other in a cycle share the outermost loop; within an iteration of it only the dependences
that it does not carry count, so their inner loops are distributed recursively.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from mlirml.analysis import cost
from mlirml.analysis.affine import Loop, Variable
from mlirml.core.affine import Span
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import match_combination
from mlirml.raising.nests.dependences import Dependence, Isl, dependences
from mlirml.raising.nests.generic import (
    FORMS,
    Layout,
    Raised,
    Spans,
    form_of,
    layout_of,
    match_raised,
    spans_of,
)
from mlirml.raising.nests.model import Array, Nest, Statement, is_pure
from mlirml.raising.nests.privatise import privatised
from mlirml.raising.nests.skew import skewed


@dataclass(frozen=True)
class Single:
    """One iteration of one statement: all its loops enclose it."""

    statement: Statement


@dataclass(frozen=True)
class Sequence_:
    """A loop that is not raised, and its body; `reasons` are (statement, why) for those it cannot be raised with."""

    loop: Loop
    scope: Scope
    reasons: tuple[tuple[Statement, str], ...]
    independent: bool


@dataclass(frozen=True)
class Scope:
    """The sequence of nodes in one iteration of the enclosing loops; `local` arrays are allocated here."""

    level: int
    nodes: tuple[Raised | Sequence_ | Single, ...]
    local: dict[Array, Layout] = field(default_factory=dict)


Component = tuple[Statement, ...]


class _Planner:
    def __init__(self, nest: Nest, spans: Spans, isl: Isl, forms: Collection[str]) -> None:
        self.nest, self.all, self.forms = nest, dependences(nest, isl), forms
        self.spans: dict[Variable, Span] = dict(spans)
        for statement in nest.statements:
            self.spans.update(spans_of(statement.loops, self.spans))
        self.layouts: dict[Array, Layout] = {}
        self.left: dict[Statement, str] = {}

    def scope(self, statements: Sequence[Statement], level: int) -> Scope:
        """Plan statements that have the outer `level` loops in common, within an iteration of those."""
        members = set(statements)
        edges = [d for d in self.all if d.level >= level and d.source in members and d.sink in members]
        before = dict(self.layouts)
        tentative = {array for s in statements for array in arrays_of(s) if array.local} - set(before)
        reasons: dict[Statement, str] = {}
        raised: dict[Component, Raised] = {}
        components = strongly_connected(statements, [*edges, *self.bound(statements, tentative, level)])
        for component in components:
            try:
                raised[component] = self.match(component, level, edges)
            except NoMatch as reason:
                for statement in component:
                    reasons[statement] = str(reason)
        worth = {
            c: found
            for c, found in raised.items()
            if not is_minor(c, components, raised, level) and not is_entangled(c, components, raised, level)
        }
        # The cost model saw all that could be raised: a statement that is left out is not a loop.
        for component, found in list(raised.items()):
            form = form_of(found)
            if form not in self.forms and found.dims[0].loop.op is not None:  # array statements have no loops
                del raised[component]
                reasons[found.statement] = self.left[found.statement] = f"`forms` leaves out {form}"
        groups = self.merged(components, edges, level, worth.keys() & raised.keys())
        local = {
            array: self.layouts[array]
            for array in arrays_in(statements)
            if array in tentative and (array.depth == level or is_shared(groups, array, raised, level))
        }
        self.layouts = before | local
        nodes: list[Raised | Sequence_ | Single] = []
        for group in groups:
            if group in raised:
                nodes.append(raised[group])
            elif len(group) == 1 and len(group[0].loops) == level:
                nodes.append(Single(group[0]))
            else:
                nodes.append(self.sequence(group, level, reasons))
        self.layouts = before
        return Scope(level, tuple(nodes), local)

    def sequence(self, group: Component, level: int, reasons: dict[Statement, str]) -> Sequence_:
        members = set(group)
        carried = any(d.level == level and d.source in members and d.sink in members for d in self.all)
        why = tuple((s, reasons[s]) for s in group if s in reasons)
        return Sequence_(group[0].loops[level], self.scope(group, level + 1), why, not carried)

    def bound(self, statements: Sequence[Statement], arrays: set[Array], level: int) -> list[Dependence]:
        """Lay local arrays out; returns edges between statements that share scalars which cannot be stored."""
        found = []
        for array in arrays_in(statements):
            if array not in arrays:
                continue
            users = [s for s in statements if array in arrays_of(s)]
            try:
                self.layouts[array] = layout_of(array, users[0], level, self.spans)
            except NoMatch:
                following = [*users[1:], users[0]]
                found += [Dependence(a, b, level, "output") for a, b in zip(users, following)]
        return found

    def match(self, component: Component, level: int, edges: Sequence[Dependence]) -> Raised:
        """The generic that a component becomes; raises `NoMatch`."""
        if len(component) > 1:
            raise NoMatch("statements in it need each other's results from iteration to iteration")
        (statement,) = component
        if len(statement.loops) == level:
            raise NoMatch("")
        if statement in self.left:
            raise NoMatch(self.left[statement])
        small = len(statement.loops) - level < level and statement.loops[level].op is not None
        flows = [d for d in edges if d.source is statement and d.sink is statement and d.kind == "flow"]
        try:
            old = match_combination(statement).old
        except NoMatch:
            old = None
        if flows and (old is None or any(d.read != old for d in flows)):
            raise NoMatch("later iterations need what it stores")
        antis = [d for d in edges if d.source is statement and d.sink is statement and d.kind == "anti"]
        ordered = any(old is None or d.read != old for d in antis)
        try:
            return match_raised(statement, level, self.layouts, self.spans, small, ordered)
        except NoMatch as reason:
            try:
                skew = skewed(statement, level, self.nest.reader)
            except NoMatch:
                raise reason from None
            if small:
                raise reason from None
            return match_raised(skew.statement, level, self.layouts, self.spans, small, ordered, skew)

    def merged(
        self, components: Sequence[Component], edges: Sequence[Dependence], level: int, raised: set[Component]
    ) -> list[Component]:
        """The components in an order that dependences allow, adjacent ones with the same loop merged."""
        component_of = {statement: number for number, component in enumerate(components) for statement in component}
        needs: dict[int, set[int]] = {number: set() for number in range(len(components))}
        for edge in edges:
            if component_of[edge.source] != component_of[edge.sink]:
                needs[component_of[edge.sink]].add(component_of[edge.source])
        groups: list[Component] = []
        last: Loop | None = None
        done: set[int] = set()
        while len(done) < len(components):
            ready = [n for n in needs if n not in done and needs[n] <= done]
            kept = {n: self.loop_kept(components[n], level, raised) for n in ready}
            same = [n for n in ready if last is not None and kept[n] is last]
            number = min(same or ready, key=lambda n: components[n][0].position)
            done.add(number)
            if same:
                groups[-1] = tuple(sorted((*groups[-1], *components[number]), key=lambda s: s.position))
            else:
                groups.append(components[number])
            last = kept[number]
        return groups

    def loop_kept(self, component: Component, level: int, raised: set[Component]) -> Loop | None:
        if component in raised or len(component[0].loops) == level:
            return None
        return component[0].loops[level]


class _Distributor(_Planner):
    """Plans loops only: just array statements become operations."""

    def match(self, component: Component, level: int, edges: Sequence[Dependence]) -> Raised:
        statement = component[0]
        if len(statement.loops) > level and statement.loops[level].op is None:
            return super().match(component, level, edges)
        raise NoMatch("")

    def loop_kept(self, component: Component, level: int, raised: set[Component]) -> Loop | None:
        return None  # adjacent components do not share a loop


def distribution(nest: Nest, spans: Spans) -> Scope:
    """Separate loops for each dependence cycle, and for each statement outside of cycles."""
    return _Distributor(nest, spans, Isl(), FORMS).scope(nest.statements, 0)


def plan(nest: Nest, spans: Spans, forms: Collection[str]) -> Scope:
    """The plan of a nest if statements may take these forms."""
    isl = Isl()
    found = _Planner(nest, spans, isl, forms).scope(nest.statements, 0)
    if not loops_in(found):
        return found
    try:
        other = _Planner(privatised(nest, spans, isl), spans, isl, forms)
        separate = other.scope(other.nest.statements, 0)
    except NoMatch:
        return found
    return separate if loops_in(separate) < loops_in(found) else found


def arrays_of(statement: Statement) -> list[Array]:
    return [statement.write.array, *(access.array for access in statement.reads.values())]


def arrays_in(statements: Sequence[Statement]) -> list[Array]:
    return list(dict.fromkeys(array for statement in statements for array in arrays_of(statement)))


def uses_array(statements: Sequence[Statement], array: Array) -> bool:
    return any(array in arrays_of(statement) for statement in statements)


def is_minor(
    component: Component, components: Sequence[Component], raised: Mapping[Component, Raised], level: int
) -> bool:
    """True if a component has fewer loops than one that keeps the same loop: it may as well stay there."""
    (statement,) = component
    return any(
        len(other.loops) > len(statement.loops) and other.loops[level] is statement.loops[level]
        for kept in components
        if kept not in raised
        for other in kept
    )


def is_entangled(
    component: Component, components: Sequence[Component], raised: Mapping[Component, Raised], level: int
) -> bool:
    """True if a component would exchange scalars with a loop that is not raised, for cheap work alone.

    A loop that compares adjacent elements and exchanges them is not split into three that pass values in memory.
    """
    (statement,) = component
    if is_costly(statement):
        return False
    own = {array for array in arrays_of(statement) if array.local and array.depth > level}
    return any(
        other.loops == statement.loops and own & set(arrays_of(other))
        for kept in components
        if kept not in raised
        for other in kept
    )


def is_costly(statement: Statement) -> bool:
    """True if a statement is worth its own loop, because it calls a function or divides."""
    todo, seen = [statement.value], {statement.value}
    while todo:
        op = defining_op(todo.pop())
        if op is None or not is_pure(op):
            continue
        if cost.is_costly(op):
            return True
        todo += [v for v in op.operands if v not in seen and v not in statement.reads]
        seen.update(op.operands)
    return False


def is_shared(groups: Sequence[Component], array: Array, raised: Mapping[Component, Raised], level: int) -> bool:
    """True if an array is live across iterations of a loop that is not raised."""
    users = [group for group in groups if uses_array(group, array)]
    return len(users) > 1 or any(group in raised or len(group[0].loops) == level for group in users)


def loops_in(scope: Scope) -> int:
    """The number of loops that are not raised."""
    return sum(1 + loops_in(node.scope) for node in scope.nodes if isinstance(node, Sequence_))


def raised_in(scope: Scope) -> list[Raised]:
    """All raised statements of a plan."""
    found: list[Raised] = []
    for node in scope.nodes:
        if isinstance(node, Raised):
            found.append(node)
        elif isinstance(node, Sequence_):
            found += raised_in(node.scope)
    return found


def strongly_connected(statements: Sequence[Statement], edges: Sequence[Dependence]) -> list[Component]:
    """The strongly connected components of the graph (Tarjan), in textual order, sorted by their first statement."""
    following: dict[Statement, list[Statement]] = {statement: [] for statement in statements}
    for edge in edges:
        if edge.sink not in following[edge.source]:
            following[edge.source].append(edge.sink)
    order: dict[Statement, int] = {}
    lowest: dict[Statement, int] = {}
    stack: list[Statement] = []
    found: list[Component] = []

    def visit(statement: Statement) -> None:
        order[statement] = lowest[statement] = len(order)
        stack.append(statement)
        for other in following[statement]:
            if other not in order:
                visit(other)
                lowest[statement] = min(lowest[statement], lowest[other])
            elif other in stack:
                lowest[statement] = min(lowest[statement], order[other])
        if lowest[statement] == order[statement]:
            start = stack.index(statement)
            found.append(tuple(sorted(stack[start:], key=lambda s: s.position)))
            del stack[start:]

    for statement in statements:
        if statement not in order:
            visit(statement)
    return sorted(found, key=lambda component: component[0].position)
