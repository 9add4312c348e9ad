"""Look inside of compiled functions while they run: `print`, and `callback` for any function of Python's."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from mlirml.frontend.current import current_trace

__all__ = ["callback", "print"]


def print(format: Any, *args: Any, **kwargs: Any) -> None:
    """Print when the program runs: `format.format(*args, **kwargs)`, where `format` is a string.

    In compiled functions `print` itself does the same with its arguments. Both print in the order of the program, at
    each call and in each iteration of a loop, on devices too, whose values are copied to the host for it. Under `vmap`
    the values of all examples are printed at once, and those in a branch or an iteration that only some examples come
    to one by one, for these; a gradient prints what the function prints.

    >>> import numpy as np, mlirml as ml
    >>> @ml.compile
    ... def f(x):
    ...     y = x * 2
    ...     ml.debug.print("y = {}, sum {total:.1f}", y, total=np.sum(y))
    ...     return y
    >>> _ = f(np.array([1.0, 2.0]))
    y = [2. 4.], sum 6.0
    """
    trace = current_trace()
    if trace is None:
        _show(format, *args, **kwargs)
        return
    from mlirml.frontend.frames import at_user_line
    from mlirml.frontend.tracing import host_calls

    with at_user_line():
        host_calls.call(trace, _show, (format, *args), kwargs, name="debug.print")


def _show(format: Any, *args: Any, **kwargs: Any) -> None:
    builtins.print(format.format(*args, **kwargs) if isinstance(format, str) else format, flush=True)


def callback(function: Callable[..., Any], result: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Python function when the program runs, and go on with what it returns.

    Parameters:
        function: gets `args` and `kwargs`, in which values of the program are NumPy arrays and numbers. It is called
            at each call of the program, in the order of the program, with Python's lock held.
        result: a `TensorSpec`, a pytree of them, or None: the shapes and dtypes of what the function returns.

    Returns what the function returns, as arrays of the program. They have no derivatives: a gradient takes them for
    constants, as those of `ml.stop_gradient`.

    Raises what the function raises, from the call of the program, and `LaunchError` where it returns something else
    than was declared.

    >>> import numpy as np, mlirml as ml
    >>> @ml.compile
    ... def spectrum(a):
    ...     symmetric = (a + a.T) / 2
    ...     return ml.debug.callback(np.linalg.eigvalsh, ml.TensorSpec((2,), np.float64), symmetric) * 2
    >>> spectrum(np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([4., 6.])
    """
    trace = current_trace()
    if trace is None:
        return function(*args, **kwargs)
    from mlirml.core.tree import flatten
    from mlirml.errors import ArgumentError
    from mlirml.frontend.frames import at_user_line
    from mlirml.frontend.namespace.numpy_namespace import users_function
    from mlirml.frontend.spec import TensorSpec
    from mlirml.frontend.tracing import host_calls

    with at_user_line():
        specs, tree = flatten(result, lambda x: isinstance(x, TensorSpec))
        if not all(isinstance(spec, TensorSpec) for spec in specs):
            raise ArgumentError(
                "debug.callback: `result` is a TensorSpec, a container of them, or None",
                help="write `ml.debug.callback(f, ml.TensorSpec(shape, dtype), x)`",
            )
        name = f"debug.callback of `{getattr(function, '__name__', 'a function')}`"
        found = host_calls.call(
            trace, users_function(function), args, kwargs, [(s.dtype, s.shape) for s in specs], name
        )
        return tree.unflatten(found)
