"""The targets by name, found in this folder: `@target("cuda", forms=("ptx",))` above a function declares one.

The declarations are read from the source, so that a target is imported when it is named, and MLIR and llvmlite when a
target needs them.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
from functools import cache
from typing import TYPE_CHECKING

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.errors import TargetError

if TYPE_CHECKING:
    from mlirml.targets.target import Target, Writer

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_DECLARED = re.compile(r"^@target(\(.*?\))\n(?:@\w+\n)*def (\w+)\(", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Declaration:
    """The `@target(name, forms=..., portable=...)` of a function in a module."""

    name: str
    module: str
    function: str
    forms: tuple[str, ...]
    portable: str

    def make(self, *, portable: bool = False) -> Target:
        """The target, with minimum capabilities if it is to be `portable`; imports its module."""
        function = self.portable or self.function if portable else self.function
        return getattr(importlib.import_module(self.module), function)()


def target_names() -> tuple[str, ...]:
    """The names that `compile(target=...)` takes."""
    return tuple(sorted(found.name for found in _declarations()))


def form_names() -> tuple[str, ...]:
    """The forms in which targets show their programs, "asm" or "ptx", those of the CPU first."""
    return tuple(dict.fromkeys(form for found in _declarations() for form in found.forms))


def targets_with(form: str) -> tuple[str, ...]:
    """The names of the targets whose programs have a form."""
    return tuple(found.name for found in _declarations() if form in found.forms)


def writer_of(form: str) -> Writer:
    """The function that writes a module after stage `lower` in a form; opens no device."""
    found = next(found for found in _declarations() if form in found.forms)
    return found.make(portable=True).forms[form]


def get_target(name: str, float64: str = "refuse") -> Target:
    """The target of a name; raises `TargetError` for one that does not exist.

    With `float64="float32"`, programs for devices without 64-bit floats compute with 32-bit ones. With
    `config.check_nan` programs fail if an operation computes a NaN.
    """
    declared = _declared(name)
    if declared is None:
        import difflib

        names = target_names()
        close = difflib.get_close_matches(str(name), names, n=1)
        known = ", ".join(f'"{n}"' for n in names)
        raise TargetError(
            f"there is no target {name!r}",
            notes=(f"the targets are {known}",),
            help=f'did you mean target="{close[0]}"?' if close else None,
        )
    target = declared.make()
    if float64 == "float32" and not target.float64:
        from mlirml.targets.target import demoting

        target = demoting(target)
    if config.check_nan:
        from mlirml.targets.target import checking_nan

        target = checking_nan(target)
    return target


def portable_targets() -> list[Target]:
    """The targets with minimum capabilities, as on machines without devices; opens no device."""
    return [found.make(portable=True) for found in _declarations()]


def _declared(name: str) -> Declaration | None:
    """The declaration of a target: in the file of its name, else in any."""
    file = f"{name}.py"
    own = _declarations_in(file) if os.path.exists(os.path.join(_FOLDER, file)) else ()
    return next((found for found in own if found.name == name), None) or next(
        (found for found in _declarations() if found.name == name), None
    )


@cache
def _declarations() -> tuple[Declaration, ...]:
    files = sorted(file for file in os.listdir(_FOLDER) if file.endswith(".py"))
    return tuple(found for file in files for found in _declarations_in(file))


@cache
def _declarations_in(file: str) -> tuple[Declaration, ...]:
    with open(os.path.join(_FOLDER, file), encoding="utf-8") as opened:
        source = opened.read()
    module = f"mlirml.targets.{file.removesuffix('.py')}"
    return tuple(Declaration(*_arguments(m[1], module, m[2])) for m in _DECLARED.finditer(source))


def _arguments(text: str, module: str, function: str) -> tuple[str, str, str, tuple[str, ...], str]:
    call = ast.parse(f"target{text}", mode="eval").body
    assert isinstance(call, ast.Call)
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    return ast.literal_eval(call.args[0]), module, function, options.get("forms", ()), options.get("portable", "")
