"""The schedule of a contraction as its attribute `mlirml.schedule`, which users can read and override."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mlirml.codegen.cpu.contract.plan import KERNELS, Schedule, power_of_two
from mlirml.errors import LoweringError
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location

NAME = "mlirml.schedule"
_WORDS = {"kernel": KERNELS, "pack": ("", "a", "b", "ab"), "parallel": ("none", "outer", "rows", "columns")}
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Schedule)}


def to_attribute(schedule: Schedule) -> mlir.Attribute:
    """The attribute, without fields that have their default value."""
    shown = []
    for name, default in _DEFAULTS.items():
        value = getattr(schedule, name)
        if value != default:
            shown.append(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value} : i64")
    return mlir.Attribute.parse("{" + ", ".join(shown) + "}")


def to_words(schedule: Schedule) -> str:
    """The fields as text without spaces: `kernel=packed/lanes=16/mr=8`; the reverse of `from_words`."""
    return "/".join(f"{name}={getattr(schedule, name)}" for name in _DEFAULTS)


def from_words(text: str) -> dict[str, Any] | None:
    """The fields of a text that `to_words` has made, all of them; None for any other text."""
    found: dict[str, Any] = {}
    for word in text.split("/"):
        name, _, value = word.partition("=")
        if name in _WORDS and value in _WORDS[name]:
            found[name] = value
        elif name in _DEFAULTS and name not in _WORDS and value.isascii() and value.isdigit():
            found[name] = int(value)
    is_whole = found.keys() == _DEFAULTS.keys() and all(
        value >= min(1, _DEFAULTS[name]) for name, value in found.items() if isinstance(value, int)
    )
    return found if is_whole and found["lanes"] == power_of_two(found["lanes"]) else None


def read_fields(op: mlir.Operation) -> dict[str, Any]:
    """The fields of an operation's attribute; none without one. Raises `LoweringError` for unknown fields."""
    if NAME not in op.attributes:
        return {}
    found: dict[str, Any] = {}
    for item in mlir.DictAttr(op.attributes[NAME]):
        value = item.attr.value if isinstance(item.attr, mlir.StringAttr | mlir.IntegerAttr) else None
        if item.name not in _DEFAULTS:
            raise _error(op, f"{item.name} is no field of a schedule", f"the fields are {', '.join(_DEFAULTS)}")
        if item.name in _WORDS and value not in _WORDS[item.name]:
            raise _error(op, f"{item.name} cannot be {item.attr}", f'it is one of "{", ".join(_WORDS[item.name])}"')
        if item.name not in _WORDS and (not isinstance(value, int) or value < min(1, _DEFAULTS[item.name])):
            raise _error(op, f"{item.name} must be a positive integer, not {item.attr}", None)
        found[item.name] = value
    if found.get("lanes", 1) != power_of_two(found.get("lanes", 1)):
        raise _error(op, "lanes must be a power of two", None)
    return found


def _error(op: mlir.Operation, message: str, help: str | None) -> LoweringError:
    return LoweringError(f"{NAME} of {op.name}: {message}", location=source_location(op.location), help=help)
