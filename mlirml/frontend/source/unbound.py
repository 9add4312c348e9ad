"""Errors for variables that are read before they are assigned, naming the loop or branch that is the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import CodeType
from typing import Any

from mlirml.errors import UnassignedNameError
from mlirml.frontend.frames import code_location, is_internal
from mlirml.frontend.source.jumps import RESULT

_NAME = re.compile(r"variable '([^']+)'")


def name_of(error: NameError) -> str | None:
    """The variable that has no value."""
    named = _NAME.search(str(error))
    return getattr(error, "name", None) or (named[1] if named else None)


def in_user_words(error: NameError, reasons: Mapping[str, Any]) -> UnassignedNameError | None:
    """The error for a local variable without a value; None for any other name."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = name_of(error)
    if traceback is None or name is None or is_internal(traceback.tb_frame):
        return None
    code = traceback.tb_frame.f_code
    if name not in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        return None
    location = code_location(code, traceback.tb_lasti)
    construct = reasons.get(name)
    reason = None if construct is None else construct.owner
    if name == RESULT:
        message = f"whether the function comes to a `return` is known only at run time: {reason} may not"
        return UnassignedNameError(message, location=location, help="end the function with a `return` of its own")
    if reason is None:
        message, help_ = f"`{name}` is used before it is assigned", f"give `{name}` a value first"
    else:
        message = f"`{name}` may have no value here: {reason} assigns it, but not in every case"
        help_ = f"give `{name}` a value before {reason}"
    found = UnassignedNameError(message, location=location, help=help_)
    by_loop = [(name, construct.key)] if construct is not None and hasattr(construct, "iterates") else []
    found.unassigned = (*by_loop, maybe(name, code))
    return found


def maybe(name: str, code: CodeType) -> tuple[str, str]:
    """The key of a variable that is None where it has no value, so that this is checked when the program runs."""
    return name, code.co_filename
