"""PTX as data: the kernels and functions of a module, their registers, memory and instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_EXTERN = re.compile(r"\.extern \.shared \.align \d+ \.b8 (\w+)\[\]")
_ENTRY = re.compile(r"\.(?:entry|func\s*(\([^)]*\))?)\s*(\w+)\(([^)]*)\)([^{;]*)\{")
_ARRAY = re.compile(r"\.(?:global|const)[^;=]*?\.b(8|32|64) (\S+)\[\d+\] = \{([^}]*)\};")
_REGISTERS = re.compile(r"\.reg \.(\w+) (%?\w+)(?:<(\d+)>)?$")
_VARIABLE = re.compile(r"\.(shared|local) \.align \d+ \.[bsuf](\d+) ([^\s\[]+)(?:\[(\d+)\])?$")
_ALIGNMENT = 16


@dataclass
class Instruction:
    """An instruction: its name and modifiers, its operands, and the predicate under which it is executed."""

    text: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: str = ""
    negated: bool = False

    @property
    def name(self) -> str:
        return self.parts[0]

    @property
    def type(self) -> str:
        """The last modifier, which is the type of the operands."""
        return self.parts[-1]


@dataclass
class Function:
    """A kernel, or a function that one calls. Sizes are in bytes, those of registers in bits, 1 for predicates.

    `at_launch` is the name of the shared memory that the launch asks for, empty if the kernel has none.
    """

    name: str
    parameters: list[tuple[str, int]]
    results: list[str]
    functions: dict[str, Function]
    constants: dict[str, np.ndarray]
    registers: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    at_launch: str = ""
    local: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=lambda: {"shared": 0, "local": 0})
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)


def parse(text: str) -> dict[str, Function]:
    """The functions of a module by name."""
    text = re.sub(r"//[^\n]*", "", text)
    constants = {name: numbers(width, values) for width, name, values in _ARRAY.findall(text)}
    functions: dict[str, Function] = {}
    extern = _EXTERN.search(text)
    for match in _ENTRY.finditer(text):
        results, name, parameters = match[1] or "", match[2], match[3]
        function = Function(
            name,
            [parameter(each) for each in parameters.split(",") if each.strip()],
            re.findall(r"(\w+)\)", results),
            functions,
            constants,
        )
        body = body_at(text, match.end())
        if extern is not None and re.search(rf"\b{extern[1]}\b", body):
            function.at_launch = extern[1]
        parse_body(function, body)
        functions[name] = function
    return functions


def numbers(width: str, values: str) -> np.ndarray:
    """The bytes of an array."""
    found = np.array([int(value, 0) & (1 << int(width)) - 1 for value in values.split(",")], dtype=object)
    return found.astype(UNSIGNED[int(width)]).view(np.uint8)


def parameter(text: str) -> tuple[str, int]:
    """The name of a parameter, and its size."""
    size = re.search(r"\.[a-z](\d+) ", text)
    assert size is not None, text
    return text.split()[-1], int(size[1]) // 8


def body_at(text: str, start: int) -> str:
    """The text up to the brace that ends a body."""
    depth, end = 1, start
    while depth:
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    return text[start : end - 1]


def parse_body(function: Function, text: str) -> None:
    """Read the declarations, labels and instructions of a body."""
    label = ""
    for statement in re.sub(r"(\$?[\w$]+):", r"\1:;", text).split(";"):
        words = " ".join(statement.split())
        if words[:1] in ("{", "}"):  # of a call
            words = words.lstrip("{} ")
        if not words:
            continue
        if words.endswith(":"):
            label = words[:-1]
            function.labels[label] = len(function.instructions)
        elif words.startswith(".branchtargets"):
            function.tables[label] = [each.strip() for each in words.partition(" ")[2].split(",")]
        elif words.startswith("."):
            declare(function, words)
        else:
            function.instructions.append(instruction(words))


def declare(function: Function, words: str) -> None:
    """Read a declaration of registers, or of memory."""
    if match := _REGISTERS.match(words):
        width = 1 if match[1] == "pred" else int(match[1][1:])
        names = [f"{match[2]}{n}" for n in range(int(match[3]))] if match[3] else [match[2]]
        function.registers.update(dict.fromkeys(names, width))
    elif match := _VARIABLE.match(words):
        space, width, name, count = match.groups()
        start = -(-function.sizes[space] // _ALIGNMENT) * _ALIGNMENT
        (function.shared if space == "shared" else function.local)[name] = start
        function.sizes[space] = start + int(width) // 8 * int(count or 1)


def instruction(words: str) -> Instruction:
    """Read an instruction."""
    predicate, rest = "", words
    if words[0] == "@":
        predicate, rest = words[1:].split(None, 1)
    name, _, operands = rest.partition(" ")
    found = Instruction(words, tuple(name.split(".")), tuple(split(operands)))
    found.predicate, found.negated = predicate.lstrip("!"), predicate[:1] == "!"
    return found


def split(text: str) -> list[str]:
    """The operands of a list, where commas in brackets do not part."""
    found, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def names_in(operand: str) -> list[str]:
    """The registers of an operand that may be a vector of them."""
    return [each.strip() for each in operand.strip("{}").split(",")]
