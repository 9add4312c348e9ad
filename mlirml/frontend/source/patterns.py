"""Statements and expressions for which there are hooks of their own."""

from __future__ import annotations

import ast


def exchanged(node: ast.Assign) -> tuple[ast.Subscript, ast.Subscript] | None:
    """The two items that an assignment exchanges, `a[i], a[j] = a[j], a[i]`."""
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return None
    if len(target.elts) != 2 or [*map(ast.unparse, target.elts)] != [*map(ast.unparse, value.elts[::-1])]:
        return None
    one, other = target.elts
    if not isinstance(one, ast.Subscript) or not isinstance(other, ast.Subscript):
        return None
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
    parts = (one.value, one.slice, other.value, other.slice)
    return (one, other) if all(isinstance(n, plain) for part in parts for n in ast.walk(part)) else None


def is_extension(node: ast.AST) -> bool:
    """True for a statement `items.extend(values)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "extend"


def factorial_in(node: ast.BinOp) -> ast.Call | None:
    """The call of a function of this name by which an expression divides, `x / math.factorial(n)`."""
    call = node.right if isinstance(node.op, ast.Div) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        return None
    return call if getattr(call.func, "id", getattr(call.func, "attr", None)) == "factorial" else None
