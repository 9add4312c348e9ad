"""Writes `docs/api.md`, the page of every public name, from the docstrings: `python docs/api.py`."""

from __future__ import annotations

import inspect
import operator
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlirml
from mlirml import errors
from mlirml.api import Compiled, Lowered
from mlirml.errors import MlirmlError

PAGE = Path(__file__).with_name("api.md")
SECTIONS = {
    "Compilation": ("compile", "Compiled", "trace", "lower", "Lowered", "TensorSpec", "config"),
    "Loops and branches": ("loops", "parallel", "fori_loop", "while_loop", "scan", "cond", "switch"),
    "Derivatives": (
        "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "hessian", "hvp", "checkpoint",
        "stop_gradient", "custom_vjp", "custom_jvp",
    ),
    "Batches": ("vmap",),
    "Named axes": ("einop",),
    "Looking inside": ("debug.print", "debug.callback"),
    "Devices": ("devices", "device", "put", "Array", "array", "asarray", "wait_all", "wait_any"),
}  # fmt: skip
NOT_IN_MLIRML = {"Compiled": Compiled, "Lowered": Lowered}
"""What is described beside the public names: the types of their results."""
METHODS = {
    "Compiled": ("explain", "profile", "ir", "lower", "trace", "executable"), "Lowered": ("as_text", "emit"),
    "config": ("override",), "custom_vjp": ("defvjp",), "custom_jvp": ("defjvp", "defjvps"),
    "Array": ("numpy", "to", "block", "is_ready", "item", "from_dlpack"),
}  # fmt: skip

HEAD = """\
# Public names

Written by `python docs/api.py` from the docstrings, which `help(mlirml.compile)` and its like show too. The names are
those of `import mlirml as ml`. NumPy's functions that are compiled are in [ops.md](ops.md), those of
`mlirml.nn.functional` too; the settings of `ml.config` in [settings.md](settings.md).

"""
ERRORS = """\
## Errors

Each error is an `MlirmlError`, and shows the file, the line and the columns of the function where the mistake is. A
subclass of one of Python's exceptions is raised where Python or NumPy would raise that one. An indented error is a
subclass of the one above it.

"""


def public_names() -> list[str]:
    """The public names but the errors, section by section."""
    listed = [name for names in SECTIONS.values() for name in names]
    return listed + _others()


def _others() -> list[str]:
    """The public names that no section lists and that are no errors."""
    listed = {"errors", *(name.partition(".")[0] for names in SECTIONS.values() for name in names)}
    return [name for name in sorted(mlirml.__all__) if name not in listed and not _is_error(getattr(mlirml, name))]


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Warning | MlirmlError)


def entry(name: str) -> str:
    """The section of a name: its signature, docstring and methods."""
    value = NOT_IN_MLIRML[name] if name in NOT_IN_MLIRML else operator.attrgetter(name)(mlirml)
    parts = [f"### {name}\n", _signature(name, value), body(inspect.getdoc(value) or "")]
    for method in METHODS.get(name, ()):
        function = inspect.getattr_static(type(value) if name == "config" else value, method)
        function = getattr(function, "__func__", function)
        parts.append(f"#### {name}.{method}\n\n{_signature(f'{name}.{method}', function)}")
        parts.append(body(inspect.getdoc(function) or ""))
    return "\n".join(parts)


def _signature(name: str, value: Any) -> str:
    if inspect.ismodule(value) or not callable(value) or name in NOT_IN_MLIRML or name == "Array":
        return ""
    parameters = inspect.signature(value).parameters.values()
    shown = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    text = f"{name}{inspect.Signature(shown)}"
    if len(text) > 100:
        text = f"{name}(\n{textwrap.indent(textwrap.fill(text[len(name) + 1 : -1], 90), '    ')}\n)"
    return f"```text\n{text}\n```\n"


def body(doc: str) -> str:
    """A docstring in Markdown: parameters as a list, examples as code."""
    return "\n".join(_blocks(doc)) + "\n"


def _blocks(doc: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", doc):
        if block.startswith(">>>"):
            yield f"```pycon\n{block}\n```\n"
        elif block.startswith("Parameters:"):
            yield _parameters(textwrap.dedent(block.partition("\n")[2])) + "\n"
        else:
            yield block + "\n"


def _parameters(text: str) -> str:
    lines = []
    for line in text.splitlines():
        found = re.match(r"([\w, ]+): (.*)", line)
        if line.startswith(" ") or found is None:
            lines.append(f"  {line.strip()}")
        else:
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            lines.append(f"- {names}: {found[2]}")
    return "\n".join(lines)


def error_lines() -> Iterator[str]:
    """The tree of errors, a line each."""
    yield from _tree(MlirmlError, 0)
    for warning in (errors.CacheWarning, errors.TuningWarning):
        yield f"- `errors.{warning.__name__}`, a `UserWarning`: {_first(warning)}"


def _tree(error_class: type, depth: int) -> Iterator[str]:
    also = [
        base.__name__ for base in error_class.__bases__ if not issubclass(base, MlirmlError) and base is not Exception
    ]
    suffix = f", also `{'`, `'.join(also)}`" if also else ""
    yield f"{'  ' * depth}- `{error_class.__name__}`{suffix}: {_first(error_class)}"
    for child in sorted(error_class.__subclasses__(), key=lambda c: c.__name__):
        if child.__name__ in mlirml.__all__ and error_class is child.__bases__[0]:
            yield from _tree(child, depth + 1)


def _first(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    sections = {**SECTIONS, "Also": tuple(_others())}
    for title, names in sections.items():
        if names:
            parts.append(f"## {title}\n\n" + "".join(entry(name) for name in names))
    parts.append(ERRORS + body("\n\n".join((inspect.getdoc(MlirmlError) or "").split("\n\n")[1:])))
    parts.append("\n" + "\n".join(error_lines()) + "\n")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


if __name__ == "__main__":
    PAGE.write_text(page())
