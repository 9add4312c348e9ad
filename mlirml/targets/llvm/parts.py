"""Splits LLVM IR text into functions for LLVM's vectorisers, and functions that are vector code already.

Kernels of contractions and convolutions are emitted as vector operations, in the order in which they should execute.
Among LLVM's default passes, which take as long as code generation, only cleanups help them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from mlirml.core.dataclass import dataclass

_DEFINE = re.compile(r"define (?:(?:internal|private) )?(?P<rest>.*@(?P<name>[\w.$-]+)\(.*) \{")
_NAME = re.compile(r"@([\w.$-]+)")
_DECLARED = re.compile(r"^declare .*?@([\w.$-]+)\(", re.MULTILINE)
KEPT = "llvm.compiler.used"
"""The list of functions that LLVM keeps although nothing calls them."""
_CALLED = re.compile(r"@([\w.$-]+)\(")
# Two patterns with a fixed beginning: Python matches them ten times as quickly as one with alternatives.
_SCALAR_VALUE = re.compile(
    r" = (?:phi (?:float|double|half|bfloat)\b|(?:load|atomicrmw|cmpxchg)(?: volatile| atomic)? i\d)"
)
_SCALAR_STORE = re.compile(r"store (?:volatile |atomic )?(?:float|double|half|bfloat|i\d)")
_FIELD_STORE = re.compile(r"(%[\w.]+) = getelementptr \{.*\n *store .*, ptr \1\b")
"""A store of a scalar to the argument struct of a parallel loop, which cannot be vectorised."""
_CALL = re.compile(r" call (?!void)[^@\n]*@([\w.$-]+)\(")
_GLOBAL = re.compile(r"^@.*? = (?P<linkage>\w+)(?P<rest>.*)", re.MULTILINE)
_LABEL = re.compile(r"(\d+):")
_JUMP = re.compile(r" label %(\d+)")
_COMPUTES = re.compile(r"<\d+ x | switch | (?:load|store) (?:float|double|half|bfloat)\b")
_KERNEL = re.compile(r" call [^@\n]*@(?!llvm\.)")


@dataclass(frozen=True)
class Parts:
    """Two modules that are linked into one: `vectors` is vector code already. An empty text means no module."""

    vectors: str
    others: str


@dataclass(frozen=True)
class Function:
    """A function that a module defines; `declaration` is what other modules need to name it."""

    name: str
    text: str
    declaration: str
    names: frozenset[str]
    calls: frozenset[str]
    has_loops: bool
    is_vector_code: bool


def split(text: str) -> Parts:
    """The two parts of a module. A function of one part that the other calls gets external linkage.

    A module of a form that this file does not recognize is not split: all of it is `others`.
    """
    found = functions_of(text.splitlines())
    if found is None:
        return Parts("", text)
    functions, rest = found
    if not can_be_repeated(rest):
        return Parts("", text)
    others = [function for function in functions if not function.is_vector_code]
    for function in others:  # scalar functions are inlined into loops and vectorised with them
        called = set(_CALL.findall(function.text))
        others += [f for f in functions if f.name in called and not f.has_loops and f not in others]
    vectors = [function for function in functions if function not in others]
    if not vectors or not others:
        return Parts(text if vectors else "", text if others else "")
    return Parts(_module(vectors, others, rest), _module(others, vectors, rest))


def drivers(text: str) -> frozenset[str]:
    """The names of the functions whose loops only compute indices and sizes, and call others in each iteration.

    Their callees run hundreds of times as long, so their own code need not be fast.
    """
    found = functions_of(text.splitlines())
    return frozenset(f.name for f in found[0] if _only_calls(f)) if found is not None else frozenset()


def longest_block(text: str) -> int:
    """The lines of the longest basic block of a module."""
    longest = length = 0
    for line in text.splitlines():
        length = 0 if _LABEL.match(line) or line.startswith("define") else length + 1
        longest = max(longest, length)
    return longest


def _only_calls(function: Function) -> bool:
    if not function.is_vector_code or _COMPUTES.search(function.text):
        return False
    begins: dict[str, int] = {}
    calls = 0
    for line in function.text.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            begins[label[1]] = calls
        elif " call " in line:
            calls += _KERNEL.search(line) is not None
        elif line.startswith("  br ") and any(begins.get(target) == calls for target in _JUMP.findall(line)):
            return False  # an iteration without a call
    return calls > 0


def can_be_repeated(rest: str) -> bool:
    """True if every global variable is a private constant or lists declared functions: each piece may define it."""
    return all(
        (m["linkage"] in ("private", "internal") and " constant " in m["rest"]) or _is_list_of_declared(m[0], rest)
        for m in _GLOBAL.finditer(rest)
    )


def _is_list_of_declared(line: str, rest: str) -> bool:
    """True for the global that keeps functions, vector variants of others, none of which the module defines."""
    listed, *names = _NAME.findall(line)
    return listed == KEPT and set(names) <= {m[1] for m in _DECLARED.finditer(rest)}


def functions_of(lines: Iterable[str]) -> tuple[list[Function], str] | None:
    """The functions of a module, and all other lines; None for text that LLVM has not printed."""
    functions: list[Function] = []
    rest: list[str] = []
    body: list[str] = []
    for line in lines:
        if not body and not line.startswith("define "):
            rest.append(line)
            continue
        body.append(line)
        if line == "}":
            head = _DEFINE.fullmatch(body[0])
            if head is None:
                return None
            functions.append(_function(head, body))
            body = []
    return (functions, "\n".join(rest)) if functions and not body else None


def _function(head: re.Match[str], lines: list[str]) -> Function:
    body = "\n".join(lines[1:])
    # Without a loop there is nothing to vectorise, either.
    has_loops = " = phi " in body
    is_vector_code = not has_loops or not (
        _SCALAR_VALUE.search(body) or (_SCALAR_STORE.search(body) and _SCALAR_STORE.search(_FIELD_STORE.sub("", body)))
    )
    names, calls = frozenset(_NAME.findall(body)), frozenset(_CALLED.findall(body))
    return Function(head["name"], "\n".join(lines), f"declare {head['rest']}", names, calls, has_loops, is_vector_code)


def _module(own: Collection[Function], foreign: Collection[Function], rest: str) -> str:
    named_here = frozenset().union(*(function.names for function in own))
    named_there = frozenset().union(*(function.names for function in foreign))
    texts = [f.text.replace("define internal ", "define ", 1) if f.name in named_there else f.text for f in own]
    declarations = [function.declaration for function in foreign if function.name in named_here]
    return "\n".join([rest, *declarations, *texts, ""])
