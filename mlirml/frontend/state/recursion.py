"""Errors about recursion that ends depending on data, or never."""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mlirml.errors import CaptureError, TracedBoolError, UnboundedRecursionError
from mlirml.frontend.frames import code_location, is_internal
from mlirml.frontend.state.reachable import names_of

DEEPEST = 40
"""How often a loop or branch may be nested in itself: more often it is of a recursion without end at trace time.

The stack of Python holds twice as many. An attempt takes time by the square of the depth.
"""
_HELP = (
    "write a `while` loop that keeps what is left to do in an array, its stack; recursion is compiled where shapes or"
    " static arguments (`static_argnums`) end it"
)


@contextmanager
def recursion_errors(integers: Mapping[str, frozenset[str]]) -> Iterator[None]:
    """Context manager: endless recursion during tracing becomes an error at the recursive call.

    It may end where Python integers among the arguments, of which `integers` are the names, are static. Those in lists
    are data.
    """
    try:
        yield
    except RecursionError as error:
        if isinstance(error, CaptureError):
            raise
        found = _unbounded(error.__traceback__)
        if found is None:
            raise
        found.sizes = frozenset(path for paths in integers.values() for path in paths if "[" not in path)
        raise found from None
    except TracedBoolError as error:
        name = _recursive(error.__traceback__)
        if name is not None:
            error.notes += (f"`{name}` calls itself, and how often depends on the data",)
            error.help = _HELP
        raise


def _frames(traceback: types.TracebackType | None) -> Iterator[tuple[types.CodeType, int]]:
    while traceback is not None:
        if not is_internal(traceback.tb_frame):
            yield traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next


def _unbounded(traceback: types.TracebackType | None) -> UnboundedRecursionError | None:
    """The error at the call in the function that is most often on the stack."""
    frames = list(_frames(traceback))
    if not frames:
        return None
    counts = Counter(code.co_name for code, _ in frames)
    name = counts.most_common(1)[0][0]
    code, offset = next((code, offset) for code, offset in frames if code.co_name == name)
    return UnboundedRecursionError(
        f"`{name}` calls itself without an end that is known when it is traced",
        location=code_location(code, offset),
        help=_HELP,
    )


def _recursive(traceback: types.TracebackType | None) -> str | None:
    """The function whose condition failed, if it calls itself."""
    frames = list(_frames(traceback))
    code = frames[-1][0] if frames else None
    if code is None:
        return None
    called = {*names_of(code)[1], *code.co_freevars}
    if code.co_varnames[:1] == ("self",):
        called |= {*code.co_names}
    return code.co_name if code.co_name in called else None
