"""The words of the code: `python -m tests.words [PATH ...]` lists those that are not the field's.

Comments, docstrings, messages, names of functions, classes, parameters and modules, and the prose of the documents are
read; what is in backticks or in a block of code is not.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent

WORDS = {
    r"rounds?(?! (to|towards?|half|up|down|once|like|as|it|them|each|every|ties)\b)": "iteration, trip count",
    r"behind": "after",
    r"in front( of)?": "before",
    r"stand(s|ing)?": "is",
    r"gone": "replaced, erased",
    r"(?<!in )(?<!in-)places?(?! of)": "index, position, location, offset",
    r"kinds?": "type, dtype, form",
    r"outs": "inits, outputs",
    r"told": "explained, known",
    r"(written|computed|built|traced|made|looked at|asked|stored|read) again": "cloned, recomputed, retried",
    r"(cut|cuts) (in|into|up)": "split, partition",
    r"walks? along": "iterates over",
    r"(known|is known) (only )?when the program runs": "dynamic",
    r"what comes out": "live-out, result",
    r"held (in|inside|between|to)": "clamped",
    r"varying": "dynamic slice, dynamic",
    r"sweeps?": "stencil, loop, pass",
    r"one after the other": "sequential, in order",
}
"""Words, and what to write instead."""

NAMES = {
    "places": "positions, indices", "place": "position, index", "kinds": "types", "kind": "type, dtype, form",
    "unread": "", "picking": "", "picked": "", "selected": "masked", "inside": "", "guards": "", "facts": "",
    "ahead": "", "crew": "", "gone": "replaced", "rounds": "trip_count, iterations", "round_": "iteration",
    "outs": "inits, outputs", "behind": "after", "told": "", "words": "message", "varying": "dynamic",
}  # fmt: skip
"""Names of functions, classes, parameters and modules that say nothing, and better ones."""

OPENINGS = ("What", "Whether", "How", "Where", "Which", "Who")
"""A docstring names a thing or an action: it does not begin with a question."""

_PATTERN = re.compile("|".join(rf"(?P<w{i}>\b(?:{word})\b)" for i, word in enumerate(WORDS)), re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`|^ *>>>.*$|^ {4,}.*[%=({].*$", re.MULTILINE)
_MESSAGE = re.compile(r"^[^%={}#;\\]*[a-z]{2,} [^%={}#;\\]*$", re.DOTALL)

Finding = tuple[int, str]


def findings_in_prose(text: str, first_line: int) -> Iterator[Finding]:
    """The words in comments, docstrings or documents that are not the field's, with their lines."""
    plain = _CODE.sub(lambda code: re.sub(r"[^\n]", "`", code.group()), text)
    for match in _PATTERN.finditer(plain):
        instead = list(WORDS.values())[int(str(match.lastgroup)[1:])]
        yield first_line + plain.count("\n", 0, match.start()), f"`{match.group()}`: write {instead}"


def findings_in_python(source: str) -> Iterator[Finding]:
    """The words and names of a Python file that are not the field's."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from findings_in_prose(token.string, token.start[0])
    tree = ast.parse(source)
    documented = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.add(node.value)
            yield from findings_in_prose(node.value.value, node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from findings_in_name(node.name.strip("_"), node.lineno)
            opening = (ast.get_docstring(node) or "").partition(" ")[0]
            if opening in OPENINGS:
                yield node.lineno, f"the docstring of `{node.name}` begins with `{opening}`: name what it is or returns"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            parameters = ast.walk(node.args)
            yield from (
                finding
                for parameter in parameters
                if isinstance(parameter, ast.arg) and not is_of_numpy(node, parameter.arg)
                for finding in findings_in_name(parameter.arg.strip("_"), parameter.lineno)
            )
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented
        if is_text and _MESSAGE.match(node.value):
            yield from findings_in_prose(node.value, node.lineno)


def is_of_numpy(function: ast.AST, parameter: str) -> bool:
    """True if a function has the name of one of NumPy's that has this parameter, as `sort` has `kind`."""
    numpy_function = vars(np).get(getattr(function, "name", "").strip("_"))
    try:
        return callable(numpy_function) and parameter in inspect.signature(numpy_function).parameters
    except (TypeError, ValueError):
        return False


def findings_in_name(name: str, line: int) -> Iterator[Finding]:
    if name in NAMES:
        yield line, f"`{name}` says nothing" + (f": {NAMES[name]}" if NAMES[name] else "")


def findings_in_document(text: str) -> Iterator[Finding]:
    """The words in a Markdown file, outside of its blocks of code."""
    blank = re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    yield from findings_in_prose(blank, 1)


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: word` for each word in these files and folders."""
    for path in paths:
        files = sorted((*path.rglob("*.py"), *path.rglob("*.md"))) if path.is_dir() else [path]
        for file in files:
            find = findings_in_python if file.suffix == ".py" else findings_in_document
            for line, finding in sorted(find(file.read_text())):
                yield f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{line}: {finding}"


def main() -> int:
    found = list(findings([Path(path).resolve() for path in sys.argv[1:]] or [ROOT / "mlirml"]))
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
