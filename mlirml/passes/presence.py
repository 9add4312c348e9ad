"""Conditions on the operations of a module, for `@register(when=...)`: a pass runs where its condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirml.core.dataclass import dataclass
from mlirml.ir.c_api import census

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir


@dataclass(frozen=True)
class Every:
    """Several conditions that must all hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Several:
    """At least `count` operations whose names begin with one of these."""

    count: int
    names: tuple[str, ...]


Condition = tuple[str, ...] | Every | Several
"""Beginnings of names, one of which an operation must have, or conditions on such.

The names are those of `mlirml.ir.c_api.census`, and those of `program_names` for operations that the captured program
had when its derivatives and batches were expanded: all programs are loops in the end.
"""

_PROGRAM = "program."
_REQUESTS = f"{_PROGRAM}mlirml."


def every(*conditions: Condition) -> Every:
    """The condition that all of these hold."""
    return Every(conditions)


def program_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of operations of the program, as they were before it was optimized."""
    return tuple(_PROGRAM + name for name in names)


class Presence:
    """The operations of a module, counted when they are asked for first and after changes only."""

    def __init__(self, module: mlir.Operation) -> None:
        self._module = module
        self._counts: dict[str, int] = {}
        self._names = ""
        self._held: dict[Condition, bool] = {}
        self._program: dict[str, int] = {}

    def changed(self) -> None:
        """Forget the counts, as the module may have changed."""
        self._counts, self._held = {}, {}

    def begin_program(self) -> None:
        """Let the names of the program be those of the module as it is now, and requests that it had before."""
        self.changed()
        requests = {name: count for name, count in self._program.items() if name.startswith(_REQUESTS)}
        self._program = requests | {_PROGRAM + name: count for name, count in census(self._module).items()}

    def fulfils(self, condition: Condition) -> bool:
        """True if a condition holds now."""
        if not self._counts:
            self._counts = census(self._module) | self._program
            self._names = "\n".join(["", *self._counts])  # to search one text is quicker than to compare each name
        if condition not in self._held:
            self._held[condition] = self._holds(condition)
        return self._held[condition]

    def _holds(self, condition: Condition) -> bool:
        if isinstance(condition, Every):
            return all(map(self.fulfils, condition.conditions))
        if isinstance(condition, Several):
            found = [count for name, count in self._counts.items() if name.startswith(condition.names)]
            return sum(found) >= condition.count
        return any(["\n" + name in self._names for name in condition])  # noqa: C419  a generator takes longer


ANY_LOOP = ("affine.", "scf.for", "scf.parallel", "scf.while")
PROGRAM_LOOP = program_names(ANY_LOOP)
"""Loops of the program, for passes on code in which every operation on arrays is a loop."""
ANY_REQUEST = ("mlirml.",)
"""Requests for derivatives and batches, and other operations of ours."""
LOOP_OR_REQUEST = (*ANY_LOOP, *program_names(ANY_REQUEST))
"""Loops, or a program with derivatives or batches, which have values that are saved."""
ANY_CONTRACTION = ("linalg.batch_", "linalg.contract", "linalg.dot", "linalg.mat", "linalg.vecmat")
TWO_CONTRACTIONS = Several(2, ANY_CONTRACTION)
ANY_WINDOW = ("linalg.conv", "linalg.depthwise", "linalg.pooling", "linalg.window")
"""Named operations on windows, and `linalg.window`, which means any generic one (`mlirml.ir.c_api.census`)."""

UPSTREAM = {
    "lower-affine": ("affine.",),
    "convert-math-to-funcs": ("math.",),
    "convert-math-to-llvm": ("math.",),
    "convert-math-to-libm": ("math.",),
}
"""The conditions of passes of MLIR."""
