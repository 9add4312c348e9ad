"""Passes and pipelines: a pass is a frozen dataclass whose fields are its options; a `Pipeline` is a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirml.ir import mlir


class NoMatch(Exception):
    """A pattern or matcher does not apply here; the text is the reason, shown as a remark."""


@dataclass(frozen=True)
class Pass:
    """A pass over a module. Subclasses are frozen dataclasses; their fields are the options, `max_ops` -> `max-ops`.

    `name` is the flag: `mlirml-fuse` is run by `mlirml-opt --mlirml-fuse` and stands in `fuse.py`.
    """

    name: ClassVar[str]

    def run(self, module: mlir.Operation) -> None:
        """Change the module (a `builtin.module` operation) in place; raise an `MlirmlError` to fail."""
        raise NotImplementedError


REGISTRY: dict[str, type[Pass]] = {}


def register(cls: type[Pass]) -> type[Pass]:
    """Class decorator: make the pass known to `mlirml-opt` and the pipeline parser."""
    REGISTRY[cls.name] = cls
    return cls
