"""Units of code: functions of LLVM IR that are compiled on their own, in a form that does not depend on their program.

The text of a unit has only what its functions refer to. Functions, constants, attributes and metadata are numbered in
the order of their use, so that equal kernels have equal texts, whatever they are called in their programs and whatever
is compiled beside them:

    define void @unit0(ptr noalias %0) nounwind #0 {
      call void @unit1(ptr %0)
    ...
    declare void @unit1(ptr)

An object is made of the text, and its symbols get their names back when it is linked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from mlirml.core.dataclass import dataclass
from mlirml.targets.llvm.parts import KEPT, Function, can_be_repeated, functions_of

SHORT, SHORT_OPTIMISED = 64, 200
"""Lines of functions, before and after LLVM's passes, that are not worth a unit of their own. LLVM takes a millisecond
or two for the least unit."""

_SYMBOL = re.compile(r"@([\w.$-]+)")
_METADATA = re.compile(r"!(\d+)")
_ATTRIBUTES = re.compile(r"#(\d+)")
_DECLARED = re.compile(r"declare .*?@([\w.$-]+)\(")
_VARIANT = re.compile(r"_ZGV\w*?N\d+[a-z]+_([\w.$-]+)\(([\w.$-]+)\)")
"""A vector variant in an attribute: the names of the function and of the variant."""
_NAMED_METADATA = re.compile(r"![A-Za-z]")


@dataclass(frozen=True)
class Unit:
    """The text of a unit, and the names that its symbols have in their program."""

    text: str
    names: Mapping[str, str]
    exports: tuple[str, ...]  # the symbols that other units may name


class _Rest:
    """The lines of a module that are not in functions, by what they define."""

    def __init__(self, text: str) -> None:
        self.declared: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.named: list[str] = []
        self.others: list[str] = []
        self.kept: list[str] = []
        for line in text.splitlines():
            self._add(line)

    def _add(self, line: str) -> None:
        if not line or line.startswith((";", "source_filename", "target ")):
            return  # comments, and what each module is given when it is parsed
        name, _, value = line.partition(" = ")
        if declared := _DECLARED.match(line):
            self.declared[declared[1]] = line
        elif name == f"@{KEPT}":
            self.kept = _SYMBOL.findall(value)
        elif line.startswith("@"):
            self.globals[name[1:]] = value
        elif line.startswith("attributes #"):
            self.attributes[name.removeprefix("attributes #")] = value
        elif _METADATA.fullmatch(name):
            self.metadata[name[1:]] = value
        elif _NAMED_METADATA.match(line):
            self.named.append(line)
        else:
            self.others.append(line)


class _Numbers:
    """New names of symbols, attributes and metadata, in the order of their use."""

    def __init__(self, keeps: Collection[str]) -> None:
        self.symbols: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self._keeps = keeps

    def renamed(self, text: str) -> str:
        """The text with new names."""
        text = _SYMBOL.sub(lambda m: "@" + self._symbol(m[1]), text)
        text = _ATTRIBUTES.sub(lambda m: "#" + self.attributes.setdefault(m[1], str(len(self.attributes))), text)
        return _METADATA.sub(lambda m: "!" + self.metadata.setdefault(m[1], str(len(self.metadata))), text)

    def _symbol(self, name: str) -> str:
        if name in self._keeps or name.startswith("llvm."):
            return name
        return self.symbols.setdefault(name, f"unit{len(self.symbols)}")


def whole(text: str, keeps: Collection[str]) -> Unit | None:
    """A module as one unit; None for a module of a form that is not recognized. Symbols of `keeps` keep their names."""
    found = _recognized(text)
    return _unit(found[0], frozenset(), found[1].declared, found[1], keeps) if found is not None else None


def units_to_optimise(text: str, keeps: Collection[str]) -> list[Unit] | None:
    """The units of a module that LLVM's passes have not seen yet: functions that may be inlined are with their callers.

    None for a module of a form that is not recognized.
    """
    found = _recognized(text)
    if found is None:
        return None
    functions, rest = found
    copied = _with_attribute("alwaysinline", functions, rest)
    copied = [function for function in copied if function.text.startswith("define internal ")]
    apart = {function.name for function in _with_attribute("noinline", functions, rest)}
    groups: list[list[Function]] = []
    for function in [f for f in functions if f not in copied]:
        joined = [function]
        for group in [g for g in groups if any(_are_inlined(f, function, apart) for f in g)]:
            groups.remove(group)
            joined = group + joined
        groups.append(joined)
    return _bundled(groups, functions, rest, keeps, SHORT, copied)


def units_to_emit(text: str, keeps: Collection[str]) -> list[Unit] | None:
    """The units of an optimised module: each long function is one, with the short ones that it alone names."""
    found = _recognized(text)
    if found is None:
        return None
    functions, rest = found
    by_name = {function.name: function for function in functions}
    users: dict[str, list[str]] = {name: [] for name in by_name}
    for function in functions:
        for name in function.names:
            if name in users and name != function.name:
                users[name].append(function.name)
    leader = {name: name for name in by_name}
    for name, function in by_name.items():
        if _length([function]) < SHORT_OPTIMISED and len(users[name]) == 1:
            leader[name] = users[name][0]
    groups: dict[str, list[Function]] = {}
    for name, function in by_name.items():
        groups.setdefault(_end(name, leader), []).append(function)
    return _bundled([*groups.values()], functions, rest, keeps, SHORT_OPTIMISED)


def _end(name: str, leader: Mapping[str, str]) -> str:
    """The last function of a chain of only users; of a cycle, the first in the order of names."""
    seen = [name]
    while leader[name] != name:
        name = leader[name]
        if name in seen:
            return min(seen[seen.index(name) :])
        seen.append(name)
    return name


def _recognized(text: str) -> tuple[list[Function], _Rest] | None:
    """The functions and other lines of a module in which all names are plain, and all globals are constants."""
    if '@"' in text or "\n$" in text:
        return None
    found = functions_of(text.splitlines())
    return (found[0], _Rest(found[1])) if found is not None and can_be_repeated(found[1]) else None


def _with_attribute(attribute: str, functions: Sequence[Function], rest: _Rest) -> list[Function]:
    """The functions that have an attribute."""
    groups = {number for number, text in rest.attributes.items() if attribute in text.split()}
    return [
        f
        for f in functions
        if groups.intersection(_ATTRIBUTES.findall(f.declaration)) or attribute in f.declaration.split()
    ]


def _are_inlined(one: Function, other: Function, apart: Collection[str]) -> bool:
    """True if one of two functions calls the other, which may be inlined."""
    return any(f.name in g.calls and f.name not in apart for f, g in ((one, other), (other, one)))


def _length(functions: Sequence[Function]) -> int:
    return sum(function.text.count("\n") for function in functions)


def _bundled(
    groups: Sequence[list[Function]],
    functions: Sequence[Function],
    rest: _Rest,
    keeps: Collection[str],
    least: int,
    copied: Sequence[Function] = (),
) -> list[Unit]:
    """The units of groups of functions, those of which that have less than `least` lines become one.

    Each has its own of `copied` functions.
    """
    short = [function for group in groups if _length(group) < least for function in group]
    long = [group for group in groups if _length(group) >= least]
    hidden = {function.name for function in copied}
    declarations = {f.name: f.declaration for f in functions if f.name not in hidden} | rest.declared
    users: dict[str, set[str]] = {}
    for function in functions:
        for name in function.names if function.name not in hidden else ():
            users.setdefault(name, set()).add(function.name)
    units = []
    for group in (*long, short):
        own = _with_callees(group, copied)
        names = {function.name for function in own}
        named_there = {name for name in names - hidden if not users.get(name, names) <= names}
        units += [_unit(own, named_there, declarations, rest, keeps)] * bool(own)
    return units


def _with_callees(group: Sequence[Function], copied: Sequence[Function]) -> list[Function]:
    """The functions, and those of `copied` that they call."""
    own = [*group]
    for function in own:
        own += [f for f in copied if f.name in function.calls and f not in own]
    return own


def _unit(
    own: Sequence[Function],
    named_there: Collection[str],
    declarations: Mapping[str, str],
    lines: _Rest,
    keeps: Collection[str],
) -> Unit:
    """The unit of functions, of which those `named_there`, in other units, are global."""
    # Vector variants are found by the names of the functions, which are part of an attribute.
    variants = [pair for text in lines.attributes.values() for pair in _VARIANT.findall(text)]
    numbers = _Numbers({*keeps, *lines.kept, *(scalar for scalar, _ in variants)})
    texts = [f.text.replace("define internal ", "define ", 1) if f.name in named_there else f.text for f in own]
    shown = tuple(f.name for f, text in zip(own, texts) if not text.startswith(("define internal ", "define private ")))
    body = numbers.renamed("\n".join(texts))
    own_names = {function.name for function in own}
    named = dict.fromkeys(name for function in own for name in _SYMBOL.findall(function.text))
    parts = [*lines.others, body]
    for name in named:
        if name in lines.globals:
            parts.append(numbers.renamed(f"@{name} = {lines.globals[name]}"))
        elif name in declarations and name not in own_names:
            parts.append(numbers.renamed(declarations[name]))
    parts += [numbers.renamed(line) for line in lines.named]
    attributes = list(_definitions(numbers.attributes, lines.attributes, "attributes #", numbers))
    parts += [*_keeping(attributes, lines), *attributes]
    parts += _definitions(numbers.metadata, lines.metadata, "!", numbers)
    exports = tuple(numbers.symbols.get(name, name) for name in shown)
    return Unit("\n".join([*parts, ""]), {new: old for old, new in numbers.symbols.items()}, exports)


def _keeping(attributes: Sequence[str], lines: _Rest) -> Iterator[str]:
    """The declarations of the vector variants that attributes name, and the list that keeps them."""
    named = {vector for text in attributes for _, vector in _VARIANT.findall(text)}
    kept = [name for name in lines.kept if name in named]
    if kept:
        yield from (lines.declared[name] for name in kept)
        names = ", ".join(f"ptr @{name}" for name in kept)
        yield f'@{KEPT} = appending global [{len(kept)} x ptr] [{names}], section "llvm.metadata"'


def _definitions(new: dict[str, str], values: Mapping[str, str], sign: str, numbers: _Numbers) -> Iterator[str]:
    """The definitions of what is named, and of what they name in turn."""
    done: set[str] = set()
    while left := [old for old in new if old not in done]:
        for old in left:
            done.add(old)
            yield f"{sign}{new[old]} = {numbers.renamed(values[old])}"
