"""Generator functions: what a `for` loop does with an item becomes a function, which the generator calls.

    def above(x, limit):                            def above(x, limit, *, consume):
        for v in x:                                     for v in x:
            if v > limit:                                   if v > limit:
                yield v                                         if consume(v):
                                                                    return

    total = 0                                       total = [0]
    for v in above(x, 0):                           def body(v):
        if v > 9:                                       if v > 9:
            break                                           return True
        total += v                                      total[0] += v
                                                        return False
                                                    above(x, 0, consume=body)
                                                    total = total[0]

The variables that outlive an iteration are the items of lists meanwhile, which loops of the generator carry.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, TypeVar

from mlirml.core.dataclass import dataclass
from mlirml.frontend.source.closures import Items
from mlirml.frontend.source.definite_assignment import Live
from mlirml.frontend.source.liveness import Names, assigned, read_by_functions

CONSUME = ".consume"
"""The parameter of a generator: a function of an item, which returns True to end it."""

_Node = TypeVar("_Node", bound=ast.AST)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ENUMERATE, _ZIP = "enumerate", "zip"


def is_generator(node: ast.AST) -> bool:
    """True for the definition of a generator function."""
    return isinstance(node, ast.FunctionDef) and any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _own(node))


def plain_yields(node: ast.AST) -> list[ast.AST]:
    """The `yield`s of which nothing reads the value, in generator functions of a definition and in itself."""
    statements = [n for n in ast.walk(node) if isinstance(n, ast.Expr)]
    return [s.value for s in statements if isinstance(s.value, (ast.Yield, ast.YieldFrom))]


@dataclass(frozen=True)
class Callees:
    """The names, and attributes of names, that a definition calls: `own` are generators that it defines itself."""

    own: Names
    others: Names
    first: str = ""

    @staticmethod
    def of(node: ast.FunctionDef | ast.Lambda) -> Callees:
        """Those of a definition; `first` is its first parameter, of a method the object."""
        own = {n.name for n in ast.walk(node) if n is not node and is_generator(n) and isinstance(n, ast.FunctionDef)}
        parameters = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
        local = {*parameters[1:], *(assigned(node.body) if isinstance(node, ast.FunctionDef) else ())}
        paths = {path for n in ast.walk(node) if isinstance(n, ast.Call) and (path := _path(n.func)) is not None}
        others = {path for path in paths if path.partition(".")[0] not in local}
        first = next(iter(parameters), "")
        return Callees(frozenset(own), frozenset(others - own - {first}), first)

    def generators(self, function: types.FunctionType) -> Names:
        """Those that are generator functions."""
        return self.own | {path for path in self.others if inspect.isgeneratorfunction(self._value(function, path))}

    def _value(self, function: types.FunctionType, path: str) -> Any:
        root, *names = path.split(".")
        value = _class_of(function) if root == self.first else global_value(function, root)
        for name in names:
            value = getattr(value, name, None) if isinstance(value, (type, types.ModuleType)) else None
        return value


def with_consumer(node: ast.FunctionDef, stops: bool) -> ast.FunctionDef:
    """A generator function as one that calls a function for each item, which may end it, by True, if it `stops`."""
    node.args.kwonlyargs.append(_at(ast.arg(CONSUME), node))
    node.args.kw_defaults.append(None)
    node.body = [*_Yields(stops).block(node.body)]
    return node


class _Yields(ast.NodeTransformer):
    def __init__(self, stops: bool) -> None:
        self.stops = stops

    def block(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in statements:
            new = self.visit(statement)
            yield from new if isinstance(new, list) else [new]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        value = [] if node.value is None else [_at(ast.Expr(node.value), node)]
        return [*value, _at(ast.Return(None), node)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Yield):
            return self.item(node.value.value or _at(ast.Constant(None), node), node)
        if isinstance(node.value, ast.YieldFrom):
            name = f".item{node.lineno}_{node.col_offset}"
            body = self.item(_at(ast.Name(name, ast.Load()), node), node)
            return _at(ast.For(_at(ast.Name(name, ast.Store()), node), node.value.value, [body], []), node)
        return node

    def item(self, value: ast.expr, node: ast.stmt) -> ast.stmt:
        call = _at(ast.Call(_at(ast.Name(CONSUME, ast.Load()), node), [value], []), node)
        return _at(ast.If(call, [_at(ast.Return(None), node)], []) if self.stops else ast.Expr(call), node)


def with_consumers(function: ast.FunctionDef, names: Names) -> ast.FunctionDef:
    """A function whose `for` loops over calls of generators, which have these names, are functions of an item."""
    if any(isinstance(n, ast.For) and consumed(n.iter, names) is not None for n in _own(function)):
        function.body = _Consumers(function, names).block(function.body)
    return function


def is_call(node: ast.expr, names: Names) -> bool:
    """True for a call of a generator that has one of the names."""
    return isinstance(node, ast.Call) and _path(node.func) in names


def first_item_of(node: ast.Call, names: Names) -> tuple[ast.GeneratorExp, list[ast.stmt]] | None:
    """The comprehension that `next`, `any` or `all` takes items of a generator from, and two statements.

    The first one is for the first item of the comprehension, the other one for when there is none.
    """
    name, items = _path(node.func), node.args[0] if node.args else None
    if name not in ("next", "any", "all") or node.keywords or len(node.args) != (2 if name == "next" else 1):
        return None
    if isinstance(items, ast.GeneratorExp) and is_call(items.generators[0].iter, names):
        elt, generators = deepcopy((items.elt, items.generators))
    elif items is not None and is_call(items, names):
        elt = _at(ast.Name(".item", ast.Load()), node)
        generators = [ast.comprehension(_at(ast.Name(".item", ast.Store()), node), items, [], 0)]
    else:
        return None
    if name != "next":
        generators[-1].ifs.append(elt if name == "any" else _at(ast.UnaryOp(ast.Not(), elt), elt))
    found = elt if name == "next" else _at(ast.Constant(name == "any"), node)
    other = node.args[1] if name == "next" else _at(ast.Constant(name == "all"), node)
    return _at(ast.GeneratorExp(elt, generators), node), [_at(ast.Return(x), node) for x in (found, other)]


def consumes(node: ast.AST, names: Names) -> bool:
    """True for a comprehension with a loop over a generator, which becomes a loop that appends to a list."""
    of_lists = isinstance(node, (ast.ListComp, ast.GeneratorExp))
    return of_lists and any(consumed(part.iter, names) is not None for part in node.generators)  # type: ignore[attr-defined]


def consumed(iterable: ast.expr, names: Names) -> ast.Call | None:
    """The call of a generator that an iterable takes the items of; `enumerate` and `zip` of one included."""
    if isinstance(iterable, ast.Call) and _path(iterable.func) in names:
        return iterable
    if isinstance(iterable, ast.Call) and _path(iterable.func) in (_ENUMERATE, _ZIP):
        calls = [a for a in iterable.args if is_call(a, names)]
        is_zip, options = _path(iterable.func) == _ZIP, [keyword.arg for keyword in iterable.keywords]
        fits = not options if is_zip else calls == iterable.args[:1] and options in ([], ["start"])
        if len(calls) == 1 and fits and not any(isinstance(a, ast.Starred) for a in iterable.args):
            return calls[0]  # type: ignore[return-value]
    return None


class _Consumers:
    def __init__(self, function: ast.FunctionDef, names: Names) -> None:
        self.function, self.names, self.live = function, names, Live(function)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements with the loops over generators in them rewritten."""
        found: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            if isinstance(statement, ast.For) and (call := consumed(statement.iter, self.names)) is not None:
                rest = statements[number + 1 : number + 2]
                after = self.live.before[rest[0]] if rest else self.live.after.get(statement, frozenset())
                if not self.is_read_by_functions(statement):
                    statement.orelse = self.block(statement.orelse)
                    found += _Consumer(statement, call, after, self.live).statements()
                    continue
            if not isinstance(statement, _SCOPES):
                for part in ("body", "orelse"):
                    if getattr(statement, part, None):
                        setattr(statement, part, self.block(getattr(statement, part)))
            found.append(statement)
        return found

    def is_read_by_functions(self, loop: ast.For) -> bool:
        """True if a function beside a loop reads a variable that it assigns."""
        inner = {*ast.walk(loop)}
        others = [n for n in _own(self.function) if isinstance(n, _SCOPES) and n not in inner]
        return bool(read_by_functions(others) & assigned([loop.target, *loop.body]))


class _Consumer:
    """The statements for a loop over a generator."""

    def __init__(self, loop: ast.For, call: ast.Call, after: Names, live: Live) -> None:
        self.loop, self.call = loop, call
        self.number = f"{loop.lineno}_{loop.col_offset}"
        self.stop, self.result, self.count = f".stop{self.number}", f".result{self.number}", f".count{self.number}"
        own, target = assigned([loop.target, *loop.body]), assigned([loop.target])
        read_before = live.before[loop.body[0]] - target if loop.body else frozenset()
        ended = live.before[loop.orelse[0]] if loop.orelse and loop.orelse[0] in live.before else frozenset()
        self.outlive = sorted(own & (after | read_before | ended))
        self.stops = False
        self.ends: list[ast.expr] = []  # conditions after which there is no next item
        jumps = [*_jumps(loop.body)]
        self.returns = [j for j in jumps if isinstance(j, ast.Return)]
        self.breaks = any(isinstance(j, ast.Break) for j in jumps)
        self.lists: list[tuple[str, bool]] = []  # the others of a `zip`, and whether before it

    def statements(self) -> list[ast.stmt]:
        """Lists of the variables, the function of an item, the call, the variables again, and what follows."""
        before: list[ast.stmt] = []
        first, self.ends = self.items(before)
        is_flagged = bool(self.returns or (self.breaks and self.loop.orelse))
        if is_flagged:
            before.append(self.assign(self.stop, self.new_list(ast.Constant(0))))
        if self.returns:
            before.append(self.assign(self.result, self.new_list(ast.Constant(None))))
        outlive = [ast.Name(name, ast.Load()) for name in self.outlive]
        before += [self.assign(name.id, self.hook("boxed", name)) for name in outlive]
        is_optional = ast.Constant(bool(self.loop.orelse))
        ends = [self.assign(name.id, self.hook("unboxed", name, is_optional)) for name in outlive]
        self.stops = bool(self.returns or self.breaks or self.lists)
        body = [*first, *_Jumps(self, is_flagged).block(self.loop.body), *self.continuing(self.loop)]
        return [*before, *self.consumed(body), *ends, *self.after(is_flagged)]

    def consumed(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The function of an item, and the call of the generator with it, unless another iterable is empty."""
        name, shared = f".body{self.number}", Items(frozenset(self.outlive))
        item = ast.arguments([], [self.at(ast.arg(".item"))], None, [], [], None, [])
        definition = self.at(ast.FunctionDef(name, item, [shared.visit(statement) for statement in body], [], None))
        definition.is_consumer = True  # type: ignore[attr-defined]
        consumer = self.at(ast.keyword(CONSUME, ast.Name(name, ast.Load())))
        call = self.at(ast.Call(self.call.func, self.call.args, [*self.call.keywords, consumer]))
        call.hook = "consumed", (self.stops,)  # type: ignore[attr-defined]
        found: ast.stmt = self.at(ast.Expr(call))
        for items in (items for items, is_before in self.lists if is_before):
            found = self.at(ast.If(self.compare(self.length(items), ast.Gt(), ast.Constant(0)), [found], []))
        return [definition, found]

    def after(self, is_flagged: bool) -> list[ast.stmt]:
        """The statements after the loop: the `return` of an iteration, and the `else`."""
        found: list[ast.stmt] = []
        if self.returns:
            always = all(j.value is not None and not _is_none(j.value) for j in self.returns)
            result: ast.expr = self.first(self.result)
            result = self.hook("present", result) if always else result
            end = self.at(ast.Return(result))
            found.append(self.at(ast.If(self.compare(self.first(self.stop), ast.Eq(), ast.Constant(2)), [end], [])))
        if self.loop.orelse and is_flagged:
            test = self.compare(self.first(self.stop), ast.Eq(), ast.Constant(0))
            found.append(self.at(ast.If(test, self.loop.orelse, [])))
        else:
            found += self.loop.orelse
        return found

    def items(self, before: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.expr]]:
        """The statements that assign an item to the target, and conditions after which there is no next one."""
        iterable, item = self.loop.iter, self.at(ast.Name(".item", ast.Load()))
        if iterable is self.call:
            return [self.at(ast.Assign([self.loop.target], item))], []
        assert isinstance(iterable, ast.Call)
        name = _path(iterable.func)
        before.append(self.at(ast.Expr(self.hook("of_python", iterable.func, ast.Constant(name)))))
        more = self.at(ast.AugAssign(self.first(self.count, ast.Store()), ast.Add(), self.at(ast.Constant(1))))
        if name == _ENUMERATE:
            given = [*iterable.args[1:], *(keyword.value for keyword in iterable.keywords)]
            start = given[0] if given else self.at(ast.Constant(0))
            before.append(self.assign(self.count, self.new_list(start)))
            return [self.at(ast.Assign([self.loop.target], self.tuple([self.first(self.count), item]))), more], []
        before.append(self.assign(self.count, self.new_list(ast.Constant(0))))
        parts: list[ast.expr] = []
        place = iterable.args.index(self.call)
        for number, part in enumerate(iterable.args):
            if part is self.call:
                parts.append(item)
                continue
            items = f".zipped{self.number}_{number}"
            self.lists.append((items, number < place))
            before.append(self.assign(items, self.hook("zipped", part)))
            parts.append(self.hook("zipped_item", ast.Name(items, ast.Load()), self.first(self.count)))
        first: list[ast.stmt] = [
            self.at(ast.If(self.is_end(items), [self.at(ast.Return(self.at(ast.Constant(True))))], []))
            for items, is_before in self.lists
            if not is_before
        ]
        first += [self.at(ast.Assign([self.loop.target], self.tuple(parts))), more]
        return first, [self.is_end(items) for items, is_before in self.lists if is_before]

    def continuing(self, origin: ast.AST) -> list[ast.stmt]:
        """The end of an iteration, which may be that of the loop; None where nothing ends it."""
        if not self.stops:
            return [_at(ast.Return(None), origin)]
        ends = deepcopy(self.ends)
        value = ast.Constant(False) if not ends else ends[0] if len(ends) == 1 else ast.BoolOp(ast.Or(), ends)
        return [_at(ast.Return(_at(value, origin)), origin)]

    def stopping(self, node: ast.Break | ast.Return, is_flagged: bool) -> list[ast.stmt]:
        """The end of the loop by a jump."""
        found: list[ast.stmt] = []
        if is_flagged:
            value = self.at(ast.Constant(2 if isinstance(node, ast.Return) else 1))
            found.append(_at(ast.Assign([self.first(self.stop, ast.Store())], value), node))
        if isinstance(node, ast.Return):
            value_ = node.value or _at(ast.Constant(None), node)
            found.append(_at(ast.Assign([self.first(self.result, ast.Store())], value_), node))
        return [*found, _at(ast.Return(_at(ast.Constant(True), node)), node)]

    def is_end(self, items: str) -> ast.expr:
        return self.compare(self.first(self.count), ast.GtE(), self.length(items))

    def at(self, node: _Node) -> _Node:
        return ast.fix_missing_locations(_at(node, self.loop.iter))

    def assign(self, name: str, value: ast.expr) -> ast.stmt:
        return self.at(ast.Assign([ast.Name(name, ast.Store())], value))

    def new_list(self, item: ast.expr) -> ast.expr:
        return self.at(ast.List([item], ast.Load()))

    def first(self, name: str, context: ast.expr_context | None = None) -> ast.Subscript:
        return self.at(ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(0), context or ast.Load()))

    def tuple(self, parts: list[ast.expr]) -> ast.expr:
        return self.at(ast.Tuple(parts, ast.Load()))

    def length(self, name: str) -> ast.expr:
        return self.hook("zipped_length", ast.Name(name, ast.Load()))

    def compare(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
        return self.at(ast.Compare(left, [operator], [right]))

    def hook(self, name: str, *args: ast.expr) -> ast.expr:
        call = self.at(ast.Call(ast.Name(name, ast.Load()), [*args], []))
        call.func = self.at(ast.Constant(None))  # the rewriter calls the hook
        call.hook = name, ()  # type: ignore[attr-defined]
        return call


class _Jumps:
    """The jumps of a loop's body as `return`s of a function."""

    def __init__(self, consumer: _Consumer, is_flagged: bool) -> None:
        self.consumer, self.is_flagged = consumer, is_flagged

    def block(self, statements: list[ast.stmt], inner: bool = False) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in statements:
            if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and not inner):
                found += self.consumer.stopping(node, self.is_flagged)
                continue
            if isinstance(node, ast.Continue) and not inner:
                found += self.consumer.continuing(node)
                continue
            if not isinstance(node, _SCOPES):
                is_loop = isinstance(node, (ast.For, ast.While))
                for part in ("body", "orelse"):
                    if getattr(node, part, None):
                        setattr(node, part, self.block(getattr(node, part), inner or (is_loop and part == "body")))
            found.append(node)
        return found


def _jumps(statements: list[ast.stmt], inner: bool = False) -> Iterator[ast.stmt]:
    """The statements of a loop's body that leave it, and those that end an iteration."""
    for node in statements:
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not inner):
            yield node
        elif not isinstance(node, _SCOPES):
            is_loop = isinstance(node, (ast.For, ast.While))
            for part in ("body", "orelse"):
                yield from _jumps(getattr(node, part, []), inner or (is_loop and part == "body"))


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside."""
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


def _path(node: ast.expr) -> str | None:
    """A name, or attributes of one, as text."""
    if isinstance(node, ast.Name):
        return node.id
    base = _path(node.value) if isinstance(node, ast.Attribute) else None
    return None if base is None else f"{base}.{node.attr}"  # type: ignore[attr-defined]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def global_value(function: types.FunctionType, name: str) -> Any:
    """The value of a name that a function reads from outside; None if it has none yet."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    try:
        return cells[name].cell_contents if name in cells else function.__globals__.get(name)
    except ValueError:  # no value yet
        return None


def _class_of(function: types.FunctionType) -> Any:
    """The class of a method, judging by its name."""
    *path, _ = function.__qualname__.split(".")
    value: Any = function.__globals__.get(path[0]) if path else None
    for name in path[1:]:
        value = getattr(value, name, None)
    return value if isinstance(value, type) else None


def _at(node: _Node, origin: ast.AST) -> _Node:
    return ast.copy_location(node, origin)
