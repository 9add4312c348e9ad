"""Rewrite a function so that its loops and branches call hooks, which execute them in Python or capture them.

    for i in range(n):              def body(item):
        s += a[i]                       nonlocal i, s
                                        i = item
                                        s += a[i]
                                    __mlirml__.for_(range(n), body, ("i", "s"), ("s",), ("s",), (), "i", "", False, ())

The rewritten function has the file, lines and columns of the source, and the user's name in every part of it. Its state
are the cells of its closures, which the hooks read and set.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import types
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.source.closures import with_shared_lists
from mlirml.frontend.source.functions import Definition, Source, source_of
from mlirml.frontend.source.generators import (
    Callees,
    consumes,
    first_item_of,
    is_call,
    is_generator,
    with_consumer,
    with_consumers,
)
from mlirml.frontend.source.jumps import RESULT, without_jumps
from mlirml.frontend.source.liveness import (
    Names,
    annotate,
    appended,
    assigned,
    given,
    heaps,
    indexed,
    renewed,
    stored,
    with_aliases,
)
from mlirml.frontend.source.patterns import exchanged, factorial_in, is_extension
from mlirml.frontend.source.simplify import simplified
from mlirml.frontend.source.tail_calls import calls_itself, is_looped, note_parts, with_branches, with_loop
from mlirml.frontend.source.unsupported import (
    READERS,
    check_syntax,
    has_loops,
    has_selections,
    is_call_of,
    is_filter,
    is_folded,
    is_selection,
    may_be_loop,
    reads_filter,
    reads_items,
    refused,
    takes_first,
    text_of,
)

HOOKS = "__mlirml__"
"""The global by which rewritten functions access the hooks."""

_MARK = ".made"  # a parameter that marks the lambdas made here
_TOTAL, _ITEM = ".total", ".item"  # parameters of the functions that generators become
_Node = TypeVar("_Node", bound=ast.AST)


_Versions = dict[tuple[Names, bool, bool], types.CodeType]
_REWRITTEN: weakref.WeakKeyDictionary[types.CodeType, tuple[Callees, _Versions]] = weakref.WeakKeyDictionary()


def loop_code(function: types.FunctionType, stops: bool = False) -> types.CodeType:
    """The code of a function with hooks; its own code if it has no source, or no loops and branches.

    That of a generator calls a function for each item, which may end it if it `stops`.
    """
    code = function.__code__
    known = _REWRITTEN.get(code)
    if known is None:
        source = source_of(function)
        yields = inspect.isgeneratorfunction(function)
        if source is None and yields:
            raise UnsupportedSyntaxError(f"the source of the generator `{code.co_name}` cannot be read")
        if source is None or (refused(source.node) and not has_loops(source.node) and not yields):
            callees, versions = (
                Callees(frozenset(), frozenset()),
                {(frozenset[str](), stops, False): code},
            )  # without hooks
        else:
            check_syntax(source, code.co_name)
            callees, versions = Callees.of(source.node), {}
        known = _REWRITTEN[code] = callees, versions
    callees, versions = known
    version = callees.generators(function), stops, is_looped(code)
    if version not in versions:
        source = source_of(function)
        assert source is not None
        node, loop = source.node, None
        if isinstance(node, ast.FunctionDef) and calls_itself(function, node.name):
            loop = with_loop(node)
            source = source if loop is None else replace(source, node=loop if is_looped(code) else with_branches(node))
        made = versions[version] = rewritten(source, code, *version[:2])
        if loop is not None:
            note_parts(made, code)
    return versions[version]


def rewritten(
    source: Source, code: types.CodeType, generators: Names = frozenset(), stops: bool = False
) -> types.CodeType:
    """The code of a definition with hooks, which calls generators of the given names."""
    node = source.node
    if isinstance(node, ast.Lambda) and has_selections(node):  # which become statements
        node = _at(ast.FunctionDef(".function", node.args, [_at(ast.Return(node.body), node)], [], None), node)
    if isinstance(node, ast.FunctionDef) and is_generator(node):
        node = with_consumer(node, stops)
    node = _Rewriter(generators).definition(node)
    body: list[ast.stmt]
    if isinstance(node, ast.Lambda):
        body, name = [ast.copy_location(ast.Return(node), node)], code.co_name
    else:  # under its own name the function would be local, and hide the global of this name
        node.name = name = ".function"
        body = [node]
    none: list[ast.expr] = []
    scope = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, none)
    outer = ast.FunctionDef(".outer", scope, body, [], None)
    outer.type_params = []  # type: ignore[attr-defined]  # from Python 3.12 on
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, source.file, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE)
    made = _inner(_inner(compiled, ".outer"), name)
    return _named(made, code.co_name, getattr(code, "co_qualname", code.co_name))


_FUTURE = 0x1000000  # `from __future__ import annotations`


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _named(code: types.CodeType, name: str, qualified: str) -> types.CodeType:
    """The code with the user's name as that of the functions made here."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_name.startswith(".") or _MARK in const.co_varnames[: const.co_argcount + 1]:
                const = _named(const, name, qualified)
            else:
                const = _named(const, const.co_name, getattr(const, "co_qualname", const.co_name))
        consts.append(const)
    names = {"co_name": name, "co_qualname": qualified} if hasattr(code, "co_qualname") else {"co_name": name}
    return code.replace(co_consts=tuple(consts), **names)  # type: ignore[arg-type]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, generators: Names) -> None:
        self.count = 0
        self.generators = generators
        self.appended: Names = frozenset()  # lists that loops, or functions called in them, may append to
        self.indexed: Names = frozenset()  # lists that may have a dynamic index
        self.stored: Names = frozenset()  # arrays that are stored into, or passed to functions that may do so
        self._before: list[ast.stmt] | None = None  # what goes before the statement that is rewritten, if it may

    # Functions.

    def definition(self, node: Definition) -> Definition:
        """The definition itself, without its defaults, decorators and annotations: those are the original
        function's.
        """
        arguments = node.args
        plain = [ast.arg(a.arg) for a in [*arguments.posonlyargs, *arguments.args]]
        first = len(arguments.posonlyargs)
        kept = ast.arguments(
            plain[:first],
            plain[first:],
            arguments.vararg and ast.arg(arguments.vararg.arg),
            [ast.arg(a.arg) for a in arguments.kwonlyargs],
            [None for _ in arguments.kwonlyargs],
            arguments.kwarg and ast.arg(arguments.kwarg.arg),
            [],
        )
        if isinstance(node, ast.Lambda):
            return _at(ast.Lambda(kept, self.visit(node.body)), node)
        return self.function(with_shared_lists(node), kept, [])

    def function(self, node: ast.FunctionDef, args: ast.arguments, decorators: list[ast.expr]) -> ast.FunctionDef:
        node = with_consumers(node, self.generators)
        loops = [n for n in ast.walk(node) if isinstance(n, (ast.For, ast.While)) or hasattr(n, "is_consumer")]
        others = [n for n in ast.walk(node) if isinstance(n, ast.If) or is_extension(n)]
        self.appended = with_aliases(
            node, self.appended.union(heaps(node), *map(appended, [*loops, *others]), *map(given, loops))
        )
        self.indexed = with_aliases(node, self.indexed | indexed(node))
        self.stored = with_aliases(node, self.stored | stored([node]) | given(node, own=True))
        statements = without_jumps(simplified(node))
        annotate(statements)
        body = self.statements(statements)
        local = assigned(statements) - _parameters(node.args)
        if local:  # never executed: it makes the names local to this function
            unset = [ast.Name(name, ast.Store()) for name in sorted(local)]
            body.insert(0, _at(ast.If(ast.Constant(False), [ast.Assign(list(unset), ast.Constant(None))], []), node))
        new = _at(ast.FunctionDef(node.name, args, body, decorators, None), node)
        new.type_params = []  # type: ignore[attr-defined]
        return new

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | list[ast.stmt]:
        if is_generator(node):
            return self.generator(node)
        decorators = [self.visit(d) for d in node.decorator_list]
        return self.function(node, self.visit(node.args), decorators)

    def generator(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """The two functions of a generator, of which the second may end early."""
        made: list[ast.stmt] = []
        names = [node.name, f".stopping {node.name}"]
        for name, stops in zip(names, (False, True)):
            copy = with_consumer(deepcopy(node), stops)
            copy.name = name
            made += [self.function(copy, self.visit(copy.args), [])]
        parts = [*(_at(ast.Name(name, ast.Load()), node) for name in names), *map(self.visit, node.decorator_list)]
        new = _call("generator", parts, node)
        return [*made, _at(ast.Assign([_at(ast.Name(node.name, ast.Store()), node)], new), node)]

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        outer = self._before
        for statement in body:
            self._before = []
            new = self.visit(statement)
            found += [*self._before, *(new if isinstance(new, list) else [new])]
        self._before = outer
        return found

    def part(self, origin: ast.AST, body: list[ast.stmt], own: Names, argument: str = "") -> ast.FunctionDef:
        """A nested function for some statements, which assigns some of the names."""
        self.count += 1
        if own:
            body = [_at(ast.Nonlocal(sorted(own)), origin), *body]
        args = ast.arguments([], [ast.arg(argument)] if argument else [], None, [], [], None, [])
        new = _at(ast.FunctionDef(f".part{self.count}", args, body or [ast.Pass()], [], None), origin)
        new.type_params = []  # type: ignore[attr-defined]
        return new

    # Statements.

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        own, changed, new = assigned([node.target, *node.body]), stored(node.body), renewed(node.body)
        take = _at(ast.Assign([node.target], _at(ast.Name(".item", ast.Load()), node.target)), node.target)
        body = self.part(node, [self.visit(take), *self.statements(node.body)], own, ".item")
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        if target in assigned(node.body):
            target = ""
        names = _name_tuples(own, node.head & own, node.after & own, changed)  # type: ignore[attr-defined]
        header = _span(node, node.iter)
        nests = any(isinstance(n, (ast.For, ast.While)) for s in node.body for n in ast.walk(s))
        constants = [ast.Constant(x) for x in (target, node.stop, nests)]  # type: ignore[attr-defined]
        iterable = self.filter_call(node.iter) if is_filter(node.iter) else self.visit(node.iter)
        arguments = [iterable, _name(body), *names, *constants, *_name_tuples(new - changed)]
        return [body, _hook("for_", arguments, header)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        own, changed, new = assigned(node.body), stored(node.body), renewed(node.body)
        test = self.part(node.test, [_at(ast.Return(self.condition(node.test)), node.test)], frozenset())
        body = self.part(node, self.statements(node.body), own)
        names = _name_tuples(own, node.head & own, node.after & own, changed, new - changed)  # type: ignore[attr-defined]
        return [test, body, _hook("while_", [_name(test), _name(body), *names], node.test)]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        then, other = (assigned(part) for part in (node.body, node.orelse))
        parts = [self.part(node, self.statements(body), own) for body, own in ((node.body, then), (node.orelse, other))]
        after: Names = node.after  # type: ignore[attr-defined]
        fills: Names = getattr(node, "fills", frozenset())
        names = _name_tuples(then, other, after & (then | other), stored([*node.body, *node.orelse]), fills)
        test = self.condition(node.test)
        again = [_later(test)] if appended(node) else []
        return [*parts, _hook("if_", [test, *map(_name, parts), *names, *again], node.test)]

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if (pair := exchanged(node)) is not None:
            return _hook("exchange", [self.visit(part) for one in pair for part in (one.value, one.slice)], node)
        targets = [self.visit(target) for target in node.targets]
        if isinstance(targets[0], ast.Name) and targets[0].id in self.stored and is_new_array(node.value):
            value = self.new_array(node.value)
        else:
            value = self.visit(node.value) if len(targets) > 1 else self.assigned(targets[0], node.value)
        if len(targets) == 1:
            value = self.growing(targets[0], value)
        if not isinstance(node.value, (ast.Constant, ast.Name)) and any(map(_is_name, node.targets)):
            value = _call("named", [value], node.value)
        elif isinstance(node.value, ast.Name) and any(map(_is_name, node.targets)):
            value = _call("renamed", [value], node.value)
        return _at(ast.Assign(targets, value), node)

    def assigned(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value of an assignment; a long comprehension becomes a loop that appends to a list."""
        if isinstance(target, ast.Name):
            return self.listed(value, target.id in self.appended | self.indexed)
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            return _at(ast.Tuple([*map(self.assigned, target.elts, value.elts)], ast.Load()), value)
        return self.visit(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target, value = self.visit(node.target), self.visit(node.value)
        if isinstance(target, ast.Name):
            value = _call("addend", [value, _at(ast.Name(target.id, ast.Load()), node.value)], node.value)
        return _at(ast.AugAssign(target, node.op, value), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if (divisor := factorial_in(node)) is not None:
            divisor.hook = "divisor", ()  # type: ignore[attr-defined]
        new: ast.expr = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(new, ast.BinOp) and isinstance(new.op, ast.Mult):
            sides = (new.left, new.right), (new.right, new.left)
            for items, count in sides[: 2 if isinstance(new.left, (ast.Name, ast.Constant)) else 1]:
                if isinstance(items, ast.List) and len(items.elts) == 1 and not isinstance(count, ast.Constant):
                    return _call("times", [items, count, _at(ast.Constant(None), node)], node)
        return new

    def visit_List(self, node: ast.List) -> ast.expr:
        """A list with the items of others in it, `[x, *items]`, as a sum of lists."""
        if not isinstance(node.ctx, ast.Load) or not any(isinstance(item, ast.Starred) for item in node.elts):
            return self.generic_visit(node)  # type: ignore[return-value]
        parts: list[ast.expr] = []
        for starred, items in itertools.groupby(node.elts, lambda item: isinstance(item, ast.Starred)):
            if starred:
                values = [item.value for item in items if isinstance(item, ast.Starred)]
                parts += [_at(ast.Call(_list_type(x), [x], []), x) for x in values]
            else:
                parts.append(_at(ast.List([*items], ast.Load()), node))
        total = reduce(lambda one, other: _at(ast.BinOp(one, ast.Add(), other), node), parts)
        return self.visit(total)

    def new_array(self, node: ast.expr) -> ast.expr:
        """A new array of a name that is stored into, made by the hook where the program knows the operands."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = _call("captured", [self.visit(node.func.value)], node.func.value)
            method = _at(ast.Attribute(base, node.func.attr, ast.Load()), node.func)
            args, keywords = [self.visit(a) for a in node.args], [self.visit(k) for k in node.keywords]
            new: ast.expr = _at(ast.Call(_call("function", [method], node.func), args, keywords), node)
        else:
            new = self.visit(node)
        return new if is_new_list(new) else _call("fresh", [new], node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is None:
            return node
        result = _at(ast.Name(RESULT, ast.Store()), node)
        if isinstance(node.value, ast.Tuple):
            value: ast.expr = _at(ast.Tuple([*map(self.listed, node.value.elts)], ast.Load()), node.value)
        else:
            value = self.listed(node.value)
        return _at(ast.Return(self.growing(result, value)), node)

    def growing(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value of an assignment, with a new list that loops may append to or index made by the hook.

        Loops of the caller may index a list that a function returns.
        """
        if isinstance(target, (ast.Name, ast.Subscript)) and is_new_list(value):
            names = [target.id] if isinstance(target, ast.Name) and target.id != RESULT else []
            grows = any(name in self.appended for name in names)
            if grows or not names or names[0] in self.indexed:
                return _new_list(value, grows)
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            return _at(ast.Tuple([*map(self.growing, target.elts, value.elts)], ast.Load()), value)
        return value

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return _at(ast.Pass(), node)
        return self.visit(_at(ast.Assign([node.target], node.value), node))

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        if node.exc is None:
            return node
        error = _at(ast.Name(".error", ast.Load()), node)
        made: list[ast.expr] = [self.message(node.exc)]
        if isinstance(node.exc, ast.Call):
            made = [_later(made[0]), _later(self.visit(deepcopy(node.exc.func))), ast.Constant(text_of(node.exc))]
        raised = _call("raising", made, node)
        found = _at(ast.NamedExpr(ast.Name(".error", ast.Store()), raised), node)
        test = ast.Compare(found, [ast.IsNot()], [ast.Constant(None)])
        return _at(ast.If(test, [_at(ast.Raise(error, node.cause), node)], []), node)

    def message(self, node: ast.expr) -> ast.expr:
        """An exception whose f-strings show the source of dynamic values."""
        strings = [n for n in ast.walk(node) if isinstance(n, ast.JoinedStr)]
        parts = [part for string in strings for part in string.values if isinstance(part, ast.FormattedValue)]
        inner = {n for part in parts if part.format_spec for n in ast.walk(part.format_spec)}
        texts = {part: ast.unparse(part.value) for part in parts if part not in inner}
        new: ast.expr = self.visit(node)
        for string in strings:
            for number, part in enumerate(string.values):
                if isinstance(part, ast.FormattedValue) and part in texts:
                    text, value = _at(ast.Constant(f"{{{texts[part]}}}"), part), part.value
                    part.value = _at(ast.Name(".value", ast.Load()), part)
                    arguments = ast.arguments([], [ast.arg(".value")], ast.arg(_MARK), [], [], None, [])
                    show = _at(ast.Lambda(arguments, _at(ast.JoinedStr([part]), part)), part)
                    string.values[number] = _at(ast.FormattedValue(_call("shown", [text, value, show], part), -1), part)
        return new

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt] | ast.stmt:
        parts = [target for target in node.targets if not isinstance(target, ast.Name)]
        return [_at(ast.Delete([self.visit(part)]), node) for part in parts] or _at(ast.Pass(), node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = [] if node.msg is None else [_later(self.visit(node.msg))]
        text = ast.Constant(ast.unparse(node.test))
        return _hook("assert_", [self.condition(node.test), text, *message], node)

    # Expressions.

    def condition(self, node: ast.expr, chosen: bool = False) -> ast.expr:
        """An expression of which only the truth is used; `chosen` if it is one of several that may be the value.

        Those have one type then, also where one of them is a list: in Python, `found and items` is a bool or a list.
        """
        if isinstance(node, ast.BoolOp):
            return self.joined(node, [self.condition(value, True) for value in node.values])
        if isinstance(node, ast.IfExp):
            return self.choice(node, [self.condition(part, True) for part in (node.body, node.orelse)])
        new: ast.expr = self.visit(node)
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if not chosen or negated or isinstance(node, (ast.Compare, ast.Constant)):
            return new
        return _call("as_truth", [new], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.joined(node, [self.visit(value) for value in node.values])

    def joined(self, node: ast.BoolOp, values: Sequence[ast.expr]) -> ast.expr:
        """`and` or `or` of rewritten operands."""
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _call(name, [values[0], *map(_later, values[1:])], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return _call("not_", [self.condition(node.operand)], node)
        return _at(ast.UnaryOp(node.op, self.visit(node.operand)), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.choice(node, [self.visit(part) for part in (node.body, node.orelse)])

    def choice(self, node: ast.IfExp, values: Sequence[ast.expr]) -> ast.expr:
        """A conditional expression of two rewritten ones."""
        return _call("select", [self.condition(node.test), *map(_later, values)], node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        target, iterable = self.visit(node.target), self.visit(node.iter)
        return ast.comprehension(target, iterable, list(map(self.filter, node.ifs)), node.is_async)

    def filter(self, node: ast.expr) -> ast.expr:
        """The condition of a comprehension. Python locates the truth test of a comparison only, not that of a call."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], _BY_HOOKS):
            return _at(ast.Compare(self.visit(node.left), node.ops, [self.visit(node.comparators[0])]), node)
        return self.condition(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        left, *rest = (self.visit(part) for part in (node.left, *node.comparators))
        if len(rest) == 1 and not isinstance(node.ops[0], _BY_HOOKS):
            return _call("compare_two", [_constant(type(node.ops[0]).__name__), left, rest[0]], node)
        names = _constant(tuple(type(op).__name__ for op in node.ops))
        return _call("compare", [names, left, *map(_later, rest)], node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        base, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load) and not isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple)):
            return _call("item", [base, index], node)
        if not isinstance(node.ctx, ast.Load):
            base = _call("target", [base], node.value)
        return _at(ast.Subscript(base, index, node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if (hook := getattr(node, "hook", None)) is not None:
            return self.hook_call(node, *hook)
        if (early := self.ended_early(node)) is not None:
            return early
        if any(is_call_of(node, name) for name in READERS) and node.args and is_call(node.args[0], self.generators):
            node.args[0].hook = "items_of", ()  # type: ignore[attr-defined]
        if isinstance(node.func, ast.Attribute) and node.func.attr in LEFT and not node.keywords:
            args = [self.visit(node.func.value), _at(ast.Constant(node.func.attr), node), *map(self.visit, node.args)]
            return _call("at_left", args, node)
        if is_folded(node) and not consumes(node.args[0], self.generators):
            return self.folded(node)
        return self.plain_call(node)

    def hook_call(self, node: ast.Call, name: str, options: tuple[bool, ...]) -> ast.expr:
        """A call of a hook, or of what a hook makes of a function."""
        args = [*map(self.visit, node.args)]
        if isinstance(node.func, ast.Constant):
            return _call(name, [*map(_later, args)] if name == "boxed" else args, node)
        function = _call(name, [self.visit(node.func), *map(_constant, options)], node.func)
        return _at(ast.Call(function, args, [*map(self.visit, node.keywords)]), node)

    def ended_early(self, node: ast.Call) -> ast.expr | None:
        """`next`, `any` or `all` of a generator function's items, as a loop that takes no more of them than Python."""
        found = None if self._before is None else first_item_of(node, self.generators)
        if found is None:
            return None
        generator, ends = found
        looped = self.in_loops(generator, lambda _: [*ends])
        return _call("first", [self.visit(node.func), _later(looped)], node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return self._in_scope(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._in_scope(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._in_scope(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self._in_scope(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        items = self.kept_items(node)
        if items is not None and consumes(node, self.generators):
            return items
        new = self._in_scope(node)
        return new if items is None else self.filtered(new, new, items, node)

    def filtered(self, comprehension: ast.expr, traced: ast.expr, looped: ast.expr, node: ast.AST) -> ast.expr:
        """An expression with a comprehension, of which the hook counts the items, or one with loops."""
        assert isinstance(comprehension, (ast.ListComp, ast.GeneratorExp))
        comprehension.elt = _call("produced", [comprehension.elt], comprehension.elt)
        return _call("filtered", [_later(traced), _later(looped)], node)

    def _in_scope(self, node: ast.expr) -> ast.expr:
        """An expression with variables of its own, which no statement before it may read."""
        outer, self._before = self._before, None
        new: ast.expr = self.generic_visit(node)  # type: ignore[assignment]
        self._before = outer
        return new

    def kept_items(self, node: ast.AST) -> ast.expr | None:
        """The items of a comprehension with conditions, as loops that append them to a list; None for others."""
        if self._before is None or not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return None
        if not is_selection(node) and not consumes(node, self.generators):
            return None
        kept = f".kept{self.count + 1}"
        append = _at(ast.Attribute(_at(ast.Name(kept, ast.Load()), node), "append", ast.Load()), node)
        begin = _at(ast.Assign([_at(ast.Name(kept, ast.Store()), node)], _at(ast.List([], ast.Load()), node)), node)
        end = _at(ast.Return(_at(ast.Name(kept, ast.Load()), node)), node)
        return self.in_loops(node, lambda elt: [begin, _at(ast.Expr(_at(ast.Call(append, [elt], []), elt)), elt), end])

    def first_item(self, node: ast.Call) -> ast.expr | None:
        """`next(items, default)` as loops that return the first item of a comprehension with conditions."""
        generator, default = node.args
        if self._before is None or not isinstance(generator, ast.GeneratorExp) or not is_selection(generator):
            return None
        end = _at(ast.Return(deepcopy(default)), default)
        return self.in_loops(generator, lambda elt: [_at(ast.Return(elt), elt), end])

    def in_loops(
        self, node: ast.ListComp | ast.GeneratorExp, statements: Callable[[ast.expr], list[ast.stmt]]
    ) -> ast.expr:
        """A call of a function before the statement, which has the loops of a comprehension.

        `statements` are those for an item, what comes before the loops and what comes after them.
        """
        self.count += 1
        function = f".kept_items{self.count}"
        elt, generators = deepcopy((node.elt, node.generators))
        *begin, body, end = statements(elt)
        for generator in generators[::-1]:
            for test in generator.ifs[::-1]:
                body = _at(ast.If(test, [body], []), test)
            body = _at(ast.For(generator.target, generator.iter, [body], []), generator.iter)
        none, before = ast.arguments([], [], None, [], [], None, []), self._before
        assert before is not None
        definition = _at(ast.FunctionDef(function, none, [*begin, body, end], [], None), node)
        before.append(self.function(definition, none, []))
        return _at(ast.Call(_at(ast.Name(function, ast.Load()), node), [], []), node)

    def listed(self, node: ast.expr, grows: bool = False) -> ast.expr:
        """An expression; a long comprehension becomes a loop that appends to a list."""
        new: ast.expr = self.visit(node)
        if not isinstance(node, ast.ListComp) or not isinstance(new, ast.ListComp) or not may_be_loop(node):
            return new
        if grows and is_new_list(new.elt):
            return new
        (generator,) = new.generators
        parts = [generator.iter, _of_item(generator.target, new.elt)]
        return _call("listed", [*parts, _constant(True)] if grows else parts, node)

    def folded(self, node: ast.Call) -> ast.expr:
        """A call of `sum` or its like for a generator; the hook computes it by a loop that carries the total."""
        copy, name = deepcopy(node), node.func.id  # type: ignore[attr-defined]
        callee, *start = self.visit(node.func), *(self.visit(a) for a in node.args[1:])
        generator = self.visit(node.args[0])
        assert isinstance(generator, ast.GeneratorExp)
        total, element = _at(ast.Name(_TOTAL, ast.Load()), node), generator.elt
        if name == "sum":
            step: ast.expr = _at(ast.BinOp(total, ast.Add(), element), element)
        elif name in ("any", "all"):
            found = [_constant(name == "any"), total][:: 1 if name == "any" else -1]
            step = _call("select", [element, *(_later(_at(x, element)) for x in found)], element)
        else:
            is_first = _call("compare", [_constant(("Is",)), total, _later(_at(ast.Constant(None), node))], node)
            better = _at(ast.Call(_call("function", [callee], node.func), [total, element], []), element)
            step = _call("select", [is_first, _later(element), _later(better)], element)
        first, *rest = generator.generators
        for inner in [*rest[::-1], None]:
            part = inner or first
            for test in part.ifs[::-1]:
                step = _call("select", [test, _later(step), _later(total)], test)
            if inner is not None:
                step = _call("repeated", [inner.iter, _of_item(inner.target, step, _TOTAL), total], inner.iter)
        original = self.plain_call(copy)
        several = _constant(bool(rest))
        return _call(
            "folded",
            [callee, first.iter, _of_item(first.target, step, _TOTAL), _later(original), several, *start],
            node,
        )

    def plain_call(self, node: ast.Call) -> ast.expr:
        """A call of a function by the hook; one that reads a generator with conditions may get a list instead."""
        if reads_filter(node):
            args, function = [self.filter_call(node.args[0]), *map(self.visit, node.args[1:])], self.visit(node.func)
            if node.func.id == "list":  # type: ignore[attr-defined]
                return self.list_of(function, args[0], node)
            return _at(ast.Call(_call("function", [function], node.func), args, []), node)
        items = self.kept_items(node.args[0]) if reads_items(node) else None
        if takes_first(node):
            items = self.first_item(node)
            items = None if items is None else _call("first", [self.visit(node.func), _later(items)], node)
        generator = node.args[0] if items is not None and consumes(node.args[0], self.generators) else None
        args, keywords = [self.listed(a) for a in node.args], [self.visit(k) for k in node.keywords]
        function = _call("function", [self.visit(node.func)], node.func)
        call = _at(ast.Call(function, args, keywords), node)
        if items is None:
            return call
        if takes_first(node):
            return self.filtered(args[0], call, items, node)
        of_list = _at(ast.Call(function, [items, *args[1:]], keywords), node)
        if isinstance(node.func, ast.Name) and node.func.id == "list":
            of_list = self.list_of(deepcopy(node.func), items, node)
        if generator is not None:
            return of_list
        return self.filtered(args[0], call, of_list, node)

    def list_of(self, callee: ast.expr, items: ast.expr, node: ast.AST) -> ast.Call:
        """A call of `list` by the hook."""
        call = _call("list_", [callee, items], node)
        call.keywords = [ast.keyword("grows", _at(ast.Constant(False), node))]
        return call

    def filter_call(self, node: ast.expr) -> ast.expr:
        """A call of `filter` by the hook, which makes a list."""
        assert isinstance(node, ast.Call)
        return _call("filter_", [self.visit(node.func), *map(self.visit, node.args)], node)


LEFT = ("popleft", "appendleft", "extendleft")
"""The methods of a deque that a list does not have."""


def _of_item(target: ast.expr, value: ast.expr, *others: str) -> ast.expr:
    """A function of an item, and of other values, whose names are those of a target: a name or a tuple of names."""
    item = _ITEM if isinstance(target, ast.Tuple) else target.id  # type: ignore[attr-defined]
    if isinstance(target, ast.Tuple):
        names = [ast.arg(name.id) for name in target.elts]  # type: ignore[attr-defined]
        inner = _at(ast.Lambda(ast.arguments([], names, ast.arg(_MARK), [], [], None, []), value), value)
        starred = _at(ast.Starred(_at(ast.Name(_ITEM, ast.Load()), value), ast.Load()), value)
        value = _at(ast.Call(inner, [starred], []), value)
    names = [ast.arg(name) for name in (item, *others)]
    return _at(ast.Lambda(ast.arguments([], names, ast.arg(_MARK), [], [], None, []), value), value)


def is_new_array(node: ast.expr) -> bool:
    """True if the value of an expression is an array that nothing else refers to, if it is an array."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("copy", "astype", "flatten")
    return isinstance(node, ast.BinOp)


def is_new_list(node: ast.expr) -> bool:
    """True if the value of an expression is a list that nothing else refers to."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Mult)) and (is_new_list(node.left) or is_new_list(node.right))
    rewritten = any(_is_hook(node, name) for name in ("filtered", "times")) or _is_hook(node, "listed", 3)
    return isinstance(node, (ast.List, ast.ListComp)) or _is_call_of_list(node) or rewritten


def _is_hook(node: ast.expr, name: str, fewest: int = 0) -> bool:
    """True for a call of a hook, as `filtered` of a rewritten list comprehension with conditions."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and node.func.attr == name and len(node.args) >= fewest  # type: ignore[attr-defined]


def _is_call_of_list(node: ast.AST) -> bool:
    """True if a rewritten expression calls `list` or `deque`, judging by names."""
    if not isinstance(node, ast.Call) or len(node.args) > 1 or node.keywords or not isinstance(node.func, ast.Call):
        return False
    callee = node.func.args[0] if node.func.args else None
    name = getattr(callee, "id", getattr(callee, "attr", None))
    return name in ("list", "deque")


def _new_list(node: ast.expr, grows: bool) -> ast.expr:
    """A new list, with new lists in it, made by the hook."""
    if isinstance(node, ast.List):
        node = _at(ast.List([_new_list(e, grows) if is_new_list(e) else e for e in node.elts], node.ctx), node)
    elif isinstance(node, ast.ListComp) and is_new_list(node.elt):
        node = _at(ast.ListComp(_new_list(node.elt, grows), node.generators), node)
    elif _is_hook(node, "times"):
        assert isinstance(node, ast.Call)
        items, count, _ = node.args
        new = _new_list(items, grows)
        assert isinstance(new, ast.Call)
        return _call("times", [new.args[0], count, _at(ast.Constant(grows), node)], node)
    elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.List):
        items = _new_list(node.left, grows)
        assert isinstance(items, ast.Call)
        node = _at(ast.BinOp(items.args[0], node.op, node.right), node)
    elif _is_call_of_list(node):
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Call)
        call = _call("list_", [node.func.args[0], *node.args], node)
        call.keywords = [ast.keyword("grows", _at(ast.Constant(grows), node))]
        return call
    return _call("growing", [node, _at(ast.Constant(grows), node)], node)


def _parameters(arguments: ast.arguments) -> Names:
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return frozenset(a.arg for a in given if a is not None)


def _is_name(target: ast.expr) -> bool:
    """True if a target assigns names."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return any(isinstance(part, (ast.Name, ast.Starred)) for part in parts)


def _at(node: _Node, origin: ast.AST) -> _Node:
    return ast.copy_location(node, origin)


def _span(node: ast.stmt, end: ast.expr) -> ast.AST:
    """The head of a statement, up to an expression in it."""
    head = _at(ast.Pass(), node)
    head.end_lineno, head.end_col_offset = end.end_lineno, end.end_col_offset
    return head


_BY_HOOKS = (ast.In, ast.NotIn, ast.Is, ast.IsNot)


def _name_tuples(*groups: Names) -> list[ast.expr]:
    return [_constant(tuple(sorted(group))) for group in groups]


def _constant(names: tuple[str, ...] | str | bool) -> ast.expr:
    return ast.Constant(names)  # type: ignore[arg-type]


def _name(function: ast.FunctionDef) -> ast.expr:
    return ast.Name(function.name, ast.Load())


def _call(name: str, arguments: Sequence[ast.expr], origin: ast.AST) -> ast.Call:
    hook = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
    if getattr(origin, "end_lineno", None) != getattr(origin, "lineno", None):
        # Python would give the call the location of the attribute's name, counted from the end.
        origin = _at(ast.Pass(), origin)
        origin.end_lineno, origin.end_col_offset = origin.lineno, origin.col_offset
    call = _at(ast.Call(hook, list(arguments), []), origin)
    for part in (hook, hook.value, *(a for a in arguments if not hasattr(a, "lineno"))):
        _at(part, origin)
    return call


def _list_type(origin: ast.AST) -> ast.expr:
    """Python's `list`, whatever the function calls by that name."""
    return _at(ast.Attribute(_at(ast.Name(HOOKS, ast.Load()), origin), "list", ast.Load()), origin)


def _hook(name: str, arguments: Sequence[ast.expr], origin: ast.AST) -> ast.stmt:
    return _at(ast.Expr(_call(name, arguments, origin)), origin)


def _later(node: ast.expr) -> ast.expr:
    """An expression wrapped in a lambda, which a hook evaluates."""
    arguments = ast.arguments([], [], ast.arg(_MARK), [], [], None, [])
    return _at(ast.Lambda(arguments, node), node)
