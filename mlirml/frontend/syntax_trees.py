"""Syntax trees of the user's source."""

from __future__ import annotations

import ast

_ATTEMPTS = 10


def parsed(source: str) -> ast.Module:
    """The syntax tree of a text; raises `SyntaxError` if it has none.

    CPython before 3.12 keeps one recursion depth for all threads: if the garbage collector runs Python code during
    parsing, and another thread parses then, there is a SystemError about a "recursion depth mismatch".
    """
    for _ in range(_ATTEMPTS):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)
