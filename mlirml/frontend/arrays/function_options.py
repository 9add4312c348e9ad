"""Options of NumPy's functions that are compiled in another form, of arrays whose lengths the data decide."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mlirml.errors import UnsupportedSyntaxError


def with_options(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, the compiled form of `np.<name>`, which refuses options that it does not take."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            raise UnsupportedSyntaxError(
                f"`np.{name}` of an array whose length is known only at run time: {error}",
                help="leave the option out, or write a loop over the elements",
            ) from None
        return function(*args, **kwargs)

    return checked
