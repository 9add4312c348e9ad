"""The records of functions under the names of another library, one for each, of which docs and tests are made."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.ops.registry import COMPLEX, FLOATS, NUMBERS, named

Function = Callable[..., Any]


@dataclass(frozen=True)
class Package:
    """A module whose functions have the names, parameters and results of the functions of another one."""

    reference: str
    dtypes: tuple[str, ...]  # that its functions take, if they say nothing else
    definitions: tuple[str, ...]  # the modules with its records


_REAL_AND_COMPLEX = ("f32", "f64", *COMPLEX)
PACKAGES = {
    "numpy.linalg": Package("numpy.linalg", _REAL_AND_COMPLEX, (
        "mlirml.frontend.functions.linear_algebra", "mlirml.frontend.functions.factorizations",
    )),
    "mlirml.linalg": Package("scipy.linalg", _REAL_AND_COMPLEX, ("mlirml.linalg",)),
    "numpy.fft": Package("numpy.fft", _REAL_AND_COMPLEX, ("mlirml.frontend.functions.fourier",)),
    "mlirml.fft": Package("scipy.fft", _REAL_AND_COMPLEX, ("mlirml.fft",)),
    "mlirml.special": Package("scipy.special", FLOATS, ("mlirml.special",)),
    "mlirml.signal": Package("scipy.signal", _REAL_AND_COMPLEX, ("mlirml.signal",)),
    "mlirml.ndimage": Package("scipy.ndimage", NUMBERS, ("mlirml.ndimage",)),
    "mlirml.stats": Package("scipy.stats", FLOATS, ("mlirml.stats",)),
}  # fmt: skip
"""The packages with records, by the module that holds their functions."""


@dataclass(frozen=True)
class FunctionRecord:
    """The record of a function of one of `PACKAGES`, or of a distribution with its functions."""

    package: str
    name: str
    dtypes: tuple[str, ...]
    derivatives: tuple[str, ...]  # the parameters in which it has derivatives
    tolerance: float  # the allowed error as a multiple of the dtype's rounding and of the largest result
    doc: str

    @property
    def function(self) -> Any:
        """The function, which a compiled function may call."""
        return getattr(importlib.import_module(self.package), self.name)

    @property
    def reference(self) -> Any:
        """The function of the other library."""
        return getattr(importlib.import_module(PACKAGES[self.package].reference), self.name)


_RECORDS: dict[tuple[str, str], FunctionRecord] = {}


def library(
    package: str, *derivatives: str, dtypes: tuple[str, ...] | None = None, tolerance: float = 64
) -> Callable[[Function], Function]:
    """Decorator: enter the record of a function, or of a distribution, with the parameters that have derivatives."""

    def enter(function: Function) -> Function:
        name = getattr(function, "name", function.__name__)
        doc = " ".join((inspect.cleandoc(function.__doc__ or "")).split("\n\n")[0].split())
        taken = PACKAGES[package].dtypes if dtypes is None else dtypes
        _RECORDS[package, name] = FunctionRecord(package, name, taken, derivatives, tolerance, doc)
        return function

    return enter


def library_family(package: str, function: Function, docs: Mapping[str, str], *derivatives: str) -> Iterator[Function]:
    """The functions `function(name, ...)` of a package, one for each name that has a docstring."""
    for name, doc in docs.items():
        own = named(function, name, doc, name)
        yield library(package, *derivatives)(
            functools.wraps(own)(lambda *args, own=own, **options: own(*args, **options))
        )


def records_of(package: str) -> dict[str, FunctionRecord]:
    """The records of the public functions of a package, by name."""
    for module in PACKAGES[package].definitions:
        importlib.import_module(module)
    public = importlib.import_module(package).__all__
    return {name: record for (owner, name), record in sorted(_RECORDS.items()) if owner == package and name in public}
