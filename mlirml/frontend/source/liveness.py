"""Liveness analysis of local variables: names that are read later, before they are assigned.

Statements without jumps are visited backwards. A `for` and a `while` get the attributes `head`, the names that an
iteration may read from the previous one, and `after`, those that may be read after the loop; an `if` gets `after`. Of
these, the attribute `fills` of an `if` has those that are read only where it has assigned them (`jumps.py`), and
`before` those live before it in the user's statements.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

Names = frozenset[str]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def annotate(body: list[ast.stmt]) -> None:
    """Annotate each loop and branch with its live names."""
    held = read_by_functions(body)
    _Liveness(held).block(body, held)


def read_by_functions(body: Iterable[ast.AST]) -> Names:
    """The names that functions among statements read at any time."""
    return frozenset(name for node in _functions(body) for name in loaded(node))


def loaded(node: ast.AST | None) -> Names:
    """The names that are read in a node, and the free variables of functions inside of it."""
    return frozenset() if node is None else frozenset(_loaded(node))


def _loaded(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        found |= _loaded(child)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        outside = [*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ())]
        found = (found - _own_names(node)).union(*map(_loaded, filter(None, outside)))
    elif isinstance(node, _COMPREHENSIONS):
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        found = (found - targets) | _loaded(node.generators[0].iter)
    return found


def _own_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The parameters and local variables of a function."""
    names = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    if not isinstance(node, ast.Lambda):
        shared = {n for s in ast.walk(node) if isinstance(s, (ast.Nonlocal, ast.Global)) for n in s.names}
        names |= assigned(node.body) - shared
    return names


def assigned(nodes: Iterable[ast.AST]) -> Names:
    """The names that statements assign to, without those of functions and comprehensions inside of them."""
    return frozenset(name for node in nodes for name in _assigned(node))


def _assigned(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from _assigned(child)


def stored(nodes: Iterable[ast.AST]) -> Names:
    """The names of arrays that statements store into, as far as that can be seen: `a[i] = x`, `a += x`."""
    found = set()
    for node in (n for root in nodes for n in ast.walk(root)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base: ast.AST = node.value
            while isinstance(base, (ast.Subscript, ast.Attribute)):
                base = base.value
            if isinstance(base, ast.Name):
                found.add(base.id)
    return frozenset(found)


def renewed(body: Sequence[ast.stmt]) -> Names:
    """The names whose values, at the end of an iteration, are results of operations: an array among them is a new one.

    Names that are assigned such a name are included.
    """
    last: dict[str, ast.expr] = {}
    count: Counter[str] = Counter()
    for statement in body:
        count.update(assigned([statement]))
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[-1], statement.value
            if isinstance(target, ast.Name):
                last[target.id] = value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                last |= {one.id: part for one, part in zip(target.elts, value.elts) if isinstance(one, ast.Name)}
    once = {name: value for name, value in last.items() if count[name] == 1}
    found = {name for name, value in once.items() if isinstance(value, ast.BinOp)}
    while more := {n for n, v in once.items() if n not in found and isinstance(v, ast.Name) and v.id in found}:
        found |= more
    return frozenset(found)


_APPENDING = ("append", "appendleft", "extend", "extendleft")


def appended(root: ast.AST) -> Names:
    """The names of lists that a statement appends to, or adds lists to."""
    found = set()
    for node in ast.walk(root):
        if isinstance(node, ast.Attribute) and node.attr in _APPENDING and isinstance(node.value, ast.Name):
            found.add(node.value.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.List):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
            names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            found |= {target.id for target in node.targets if isinstance(target, ast.Name) and target.id in names}
    return frozenset(found)


_OF_HEAPS = ("heappush", "heappop", "heapreplace", "heappushpop", "heapify", "insort", "insort_left", "insort_right")


def heaps(root: ast.AST) -> Names:
    """The names of lists that functions of `heapq` and `bisect` change, judging by names."""
    calls = [node for node in ast.walk(root) if isinstance(node, ast.Call) and node.args]
    own = [c for c in calls if getattr(c.func, "attr", getattr(c.func, "id", None)) in _OF_HEAPS]
    return frozenset(call.args[0].id for call in own if isinstance(call.args[0], ast.Name))


_SHUFFLING = ("shuffle", "sample")
_AT_POSITIONS = ("index", "insert", "pop", "popleft", "remove", "rotate")


def indexed(root: ast.AST) -> Names:
    """The names that are indexed by anything but a literal number, also by methods and functions of positions."""
    found = set()
    for node in ast.walk(root):
        if isinstance(node, ast.Attribute) and node.attr in _AT_POSITIONS and isinstance(node.value, ast.Name):
            found.add(node.value.id)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in _SHUFFLING:
            found |= {part.id for part in node.args[:1] if isinstance(part, ast.Name)}
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Tuple)):
            base: ast.AST = node.value
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                found.add(base.id)
    return frozenset(found)


def with_aliases(root: ast.AST, names: Names) -> Names:
    """The names, with those that are assigned to or from them."""
    pairs = [
        (target.id, node.value.id)
        for node in ast.walk(root)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    while True:
        more = names.union(*(pair for pair in pairs if not names.isdisjoint(pair)))
        if more == names:
            return names
        names = more


def given(root: ast.AST, own: bool = False) -> Names:
    """The names that a statement passes to functions, or only to the user's `own` ones, judging by names."""
    calls = [node for node in ast.walk(root) if isinstance(node, ast.Call)]
    if own:
        calls = [call for call in calls if isinstance(call.func, ast.Name) and not hasattr(builtins, call.func.id)]
    return frozenset(a.id for call in calls for a in call.args if isinstance(a, ast.Name))


def _functions(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        if isinstance(node, _SCOPES):
            if not hasattr(node, "is_consumer"):  # called by the next statement only
                yield node
        else:
            yield from _functions(ast.iter_child_nodes(node))


class _Liveness:
    def __init__(self, held: Names) -> None:
        self.held = held  # names that functions read at any time
        self.own: dict[ast.AST, Names] = {}  # names that an iteration of a loop reads before it assigns them

    def block(self, body: list[ast.stmt], after: Names) -> Names:
        """The names that are live before statements."""
        for statement in reversed(body):
            after = self.statement(statement, after)
        return after

    def statement(self, node: ast.stmt, after: Names) -> Names:
        if isinstance(node, ast.If):
            node.after = after  # type: ignore[attr-defined]
            live = self.block(node.body, after) | self.block(node.orelse, after) | loaded(node.test)
            return live - (getattr(node, "fills", frozenset()) - getattr(node, "before", frozenset()))
        if isinstance(node, ast.For):
            return self._loop(node, after, lambda end: self._round(node, end)) | loaded(node.iter)
        if isinstance(node, ast.While):
            head = self._loop(node, after, lambda end: loaded(node.test) | self.block(node.body, end))
            node.head |= after  # type: ignore[attr-defined]
            return head
        read = loaded(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read |= {node.target.id}
        if isinstance(node, ast.Return):
            after = self.held
        return (after - (assigned([node]) - self.held)) | read

    def _loop(self, node: ast.For | ast.While, after: Names, before: Callable[[Names], Names]) -> Names:
        # The names live before an iteration are those that it reads, and those live after it that it does not assign:
        # reads of the next iteration are among the former, so that no fixed-point iteration is needed. Inner loops are
        # visited once each.
        if node not in self.own:
            self.own[node] = before(frozenset())
        head = after | self.held | self.own[node]
        node.head, node.after = before(head), after  # type: ignore[union-attr]
        return head

    def _round(self, node: ast.For, end: Names) -> Names:
        """The names that are live at the start of an iteration."""
        stop = frozenset([node.stop] if node.stop else [])  # type: ignore[attr-defined]
        live = self.block(node.body, end | stop)
        return (live - (assigned([node.target]) - self.held)) | loaded(node.target) | stop
