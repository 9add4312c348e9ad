"""Errors of Python in a branch that may never be executed: the program raises them where it comes to them.

if k > 10:                      the check fails in the branch, which otherwise does nothing; k depends on the data
    a[5] = 3                    IndexError, where `a` has two items
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mlirml.errors import MlirmlError, SourceLocation
from mlirml.frontend.arrays.constructs import InlineStore
from mlirml.frontend.frames import code_location, is_internal
from mlirml.ir.text.builder import Check

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

FAILURES = LookupError, ArithmeticError, ValueError, AssertionError
_OPERATIONS = ("hooks.py", "functions.py", "growing_list.py")
"""The files whose functions execute Python's own operations for the user."""
_REGIONS = ("mlirml.ir.text.control", "mlirml.frontend.tracing.regions")
"""The modules that trace functions for regions of operations."""


def is_of_python(error: Exception) -> bool:
    """True if Python would raise an error there too; others are refusals, or errors of the compiler.

    False for one in a region, in which the code may not be executed, that is no branch either.
    """
    traceback, names = error.__traceback__, []
    if isinstance(error, MlirmlError) or getattr(error, "in_loop", False):
        return False
    while traceback is not None:
        frame = traceback.tb_frame
        names.append((str(frame.f_globals.get("__name__", "")), os.path.basename(frame.f_code.co_filename)))
        traceback = traceback.tb_next
    if not names or any(module in _REGIONS for module, _ in names):
        return False
    module, file = names[-1]
    return module.partition(".")[0] != "mlirml" or file in _OPERATIONS


@contextmanager
def failing_apart() -> Iterator[None]:
    """Context manager: an expression that raises an error of Python's has to be a branch."""
    try:
        yield
    except FAILURES as error:
        if is_of_python(error):
            raise InlineStore from None
        raise


def fail(trace: Trace, error: Exception) -> None:
    """Let the call raise an error, at the user's line that has raised it now."""
    b = trace.builder
    b.check(b.scalar(False, np.dtype(np.bool_)), Check("MlirmlError", str(error), raised=error))
    b.checks[-1] = replace(b.checks[-1], location=_location(error) or b.checks[-1].location)
    error.__traceback__ = None  # its frames would keep all arrays of the attempt alive


def _location(error: Exception) -> SourceLocation | None:
    found, traceback = None, error.__traceback__
    while traceback is not None:
        if not is_internal(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return None if found is None else code_location(found.tb_frame.f_code, found.tb_lasti)
