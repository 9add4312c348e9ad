"""Plain Python loops as the MLIR that raising starts from: `scf.for` on tensors, elements extracted and inserted."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable

import numpy as np

_ARITH = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_MATH = {"sqrt": "math.sqrt", "exp": "math.exp", "fabs": "math.absf"}
_ORDER = {ast.Gt: "gt", ast.Lt: "lt", ast.GtE: "ge", ast.LtE: "le"}


class Writer:
    """Writes one function. `env` has the names of values by Python name; numbers are all of one type."""

    def __init__(self, arrays: dict[str, np.ndarray], numbers: dict[str, int], kind: str = "f64") -> None:
        self.kind, self.numbers, self.whole = kind, numbers, kind.startswith("i")
        self.types = {name: self.tensor(array) for name, array in arrays.items()}
        self.env = {name: f"%{name}" for name in arrays}
        self.indices: set[str] = set()
        self.lines: list[str] = []
        self.count = 0

    def tensor(self, array: np.ndarray) -> str:
        name = {"f": self.kind, "i": f"i{array.itemsize * 8}"}[array.dtype.kind]
        return f"tensor<{''.join(f'{n}x' for n in array.shape)}{name}>"

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def index(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int(value)):
                return self.op(f"arith.constant {value} : index")
            case ast.Name(id=name) if name in self.numbers:
                return self.op(f"arith.constant {self.numbers[name]} : index")
            case ast.Name(id=name):
                return self.env[name]
            case ast.BinOp(left, op, right):
                a, b = self.index(left), self.index(right)
                return self.op(f"arith.{_ARITH[type(op)]}i {a}, {b} : index")
            case ast.UnaryOp(operand=operand):
                zero = self.op("arith.constant 0 : index")
                return self.op(f"arith.subi {zero}, {self.index(operand)} : index")
            case ast.Subscript():
                return self.op(f"arith.index_cast {self.element(node)} : i64 to index")
            case ast.Call(func=ast.Name(id=name), args=[a, b]):
                return self.op(f"arith.{name}si {self.index(a)}, {self.index(b)} : index")
        raise NotImplementedError(ast.dump(node))

    def place(self, node: ast.Subscript) -> tuple[str, str]:
        assert isinstance(node.value, ast.Name)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return node.value.id, ", ".join(self.index(part) for part in parts)

    def element(self, node: ast.Subscript) -> str:
        name, places = self.place(node)
        return self.op(f"tensor.extract {self.env[name]}[{places}] : {self.types[name]}")

    def value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return self.op(f"arith.constant {value if self.whole else float(value)!r} : {self.kind}")
            case ast.Name(id=name) if name in self.indices:
                number = self.op(f"arith.index_cast {self.env[name]} : index to i64")
                return number if self.whole else self.op(f"arith.sitofp {number} : i64 to {self.kind}")
            case ast.Name(id=name):
                return self.env[name]
            case ast.Subscript():
                return self.element(node)
            case ast.UnaryOp(operand=operand):
                return self.op(f"arith.negf {self.value(operand)} : {self.kind}")
            case ast.BinOp(left, op, right):
                a, b = self.value(left), self.value(right)
                return self.op(f"arith.{_ARITH[type(op)]}{'i' if self.whole else 'f'} {a}, {b} : {self.kind}")
            case ast.IfExp(test, body, orelse):
                c, a, b = self.value(test), self.value(body), self.value(orelse)
                return self.op(f"arith.select {c}, {a}, {b} : {self.kind}")
            case ast.Compare(left, [op], [right]):
                a, b = self.value(left), self.value(right)
                relation = f"cmpi s{_ORDER[type(op)]}" if self.whole else f"cmpf o{_ORDER[type(op)]}"
                return self.op(f"arith.{relation}, {a}, {b} : {self.kind}")
            case ast.Call(func=ast.Name(id=name), args=[a, b]):
                op = f"{name}si" if self.whole else f"{name}imumf"
                return self.op(f"arith.{op} {self.value(a)}, {self.value(b)} : {self.kind}")
            case ast.Call(func=ast.Attribute(attr=name), args=[a]):
                return self.op(f"{_MATH[name]} {self.value(a)} : {self.kind}")
        raise NotImplementedError(ast.dump(node))

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For():
                self.loop(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="zeros"), args=[size])):
                self.types[name] = f"tensor<{ast.literal_eval(size)}x{self.kind}>"
                zero, empty = self.value(ast.Constant(0)), self.op(f"tensor.empty() : {self.types[name]}")
                sides = f"ins({zero} : {self.kind}) outs({empty} : {self.types[name]})"
                self.env[name] = self.op(f"linalg.fill {sides} -> {self.types[name]}")
            case ast.Assign(targets=[target], value=value):
                self.store(target, self.value(value))
            case ast.AugAssign(target, op, value):
                old = ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
                self.store(target, self.value(ast.BinOp(old, op, value)))
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise NotImplementedError(ast.dump(node))

    def store(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
            self.types[target.id] = self.kind
        else:
            assert isinstance(target, ast.Subscript)
            name, places = self.place(target)
            self.env[name] = self.op(f"tensor.insert {value} into {self.env[name]}[{places}] : {self.types[name]}")

    def loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        bounds = node.iter.args
        low = self.index(bounds[0]) if len(bounds) > 1 else self.op("arith.constant 0 : index")
        high = self.index(bounds[-1] if len(bounds) < 3 else bounds[1])
        step = ast.literal_eval(bounds[2]) if len(bounds) == 3 else 1
        variable = self.fresh()
        first = low
        if step < 0:  # the number of rounds
            size = self.op(f"arith.subi {low}, {high} : index")
            more = self.op(f"arith.constant {-step - 1} : index")
            size = self.op(f"arith.addi {size}, {more} : index")
            low, high = self.op("arith.constant 0 : index"), size
            if step < -1:
                raise NotImplementedError("steps of -1 only")
        stored = stored_names(node.body)
        carried = [name for name in self.env if name in stored and name not in self.indices]
        inner = {name: self.fresh() for name in carried}
        pace = self.op(f"arith.constant {abs(step)} : index")
        types = ", ".join(self.types[name] for name in carried)
        pairs = ", ".join(f"{inner[name]} = {self.env[name]}" for name in carried)
        results = [self.fresh() for _ in carried]
        head = f"{', '.join(results)} = " if len(results) == 1 else ""
        base = self.fresh()
        if len(results) > 1:
            head = f"{base}:{len(results)} = "
            results = [f"{base}#{n}" for n in range(len(results))]
        tail = f" iter_args({pairs}) -> ({types})" if carried else ""
        self.lines.append(f"{head}scf.for {variable} = {low} to {high} step {pace}{tail} {{")
        before = dict(self.env)
        self.env.update(inner)
        self.env[node.target.id] = variable
        if step < 0:
            self.env[node.target.id] = self.op(f"arith.subi {first}, {variable} : index")
        self.indices.add(node.target.id)
        for statement in node.body:
            self.statement(statement)
        if carried:
            self.lines.append(f"scf.yield {', '.join(self.env[name] for name in carried)} : {types}")
        self.lines.append("}")
        self.env = before | dict(zip(carried, results))


def stored_names(body: list[ast.stmt]) -> set[str]:
    """The names of what statements store into."""
    targets: list[ast.expr] = []
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                targets += node.targets
            elif isinstance(node, ast.AugAssign):
                targets.append(node.target)
    return {ast.unparse(t.value if isinstance(t, ast.Subscript) else t) for t in targets}


def loop_module(
    source: Callable[..., None] | str, arrays: dict[str, np.ndarray], numbers: dict[str, int], kind: str = "f64"
) -> str:
    """A module whose @main gives the arrays after the function ran on them."""
    text = source if isinstance(source, str) else textwrap.dedent(inspect.getsource(source))
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    writer = Writer(arrays, numbers, kind)
    for statement in function.body:
        writer.statement(statement)
    arguments = ", ".join(f"%{name}: {writer.types[name]}" for name in arrays)
    types = ", ".join(writer.types[name] for name in arrays)
    results = ", ".join(writer.env[name] for name in arrays)
    body = "\n".join(f"  {line}" for line in writer.lines)
    return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {results} : {types}\n}}\n"
