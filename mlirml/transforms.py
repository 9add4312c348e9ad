"""`grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`: transforms of functions, which compose with each other.

A transform gives an ordinary function. Called in a function that is compiled, it becomes part of its program; called
by itself, it is compiled.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.tracebacks import shorten
from mlirml.errors import ArgumentError
from mlirml.frontend.current import current_trace

Function = Callable[..., Any]


def grad(fn: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns one float.

    Parameters:
        fn: a function of arrays, and pytrees of them. With `has_aux` it returns a pair: the float, and anything else.
        argnums: the positions of the arguments to differentiate by, which hold floats; one number, or several. By a
            complex number x + iy the gradient is df/dx - i df/dy, as in JAX. By an object, a model say, the gradient is
            an object of its class with the derivatives in the place of its float arrays.

    Returns a function of the same arguments: the gradient, shaped like the argument (a tuple of them for several), or
    with `has_aux` a pair of it and the rest of the result.

    Where a maximum or minimum has ties, they share the gradient equally, so that of `relu` at 0 is 1/2; equal elements
    of a sort keep their order. At 0 the derivatives of `abs`, `hypot` and `x**0` are 0, and those of a norm and a
    standard deviation, roots of 0, are NaN. At whole numbers `x % 1` changes as on their right.

    Raises `ShapeError` where `fn` returns something else than one float, `DTypeError` for arguments that hold no
    floats, `NoDerivativeError` for an operation without a derivative.

    >>> import numpy as np, mlirml as ml
    >>> ml.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    _check_function("grad", fn)
    both = value_and_grad(fn, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return _callable(fn, gradient, "grad")


def value_and_grad(fn: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the pair of what `fn` returns and its gradient.

    Parameters and errors are those of `grad`. With `has_aux` the first item is the pair that `fn` returns.

    >>> import numpy as np, mlirml as ml
    >>> ml.value_and_grad(lambda x: x * x)(3.0)
    (array(9.), array(6.))
    """
    _check_function("value_and_grad", fn)

    def both(*args: Any, **kwargs: Any) -> Any:
        from mlirml.core.tree import flatten
        from mlirml.frontend.frames import at_user_line
        from mlirml.frontend.tracing.trace import at_function, value_of
        from mlirml.frontend.transforms import derivatives as d

        trace = current_trace()
        assert trace is not None
        positions = _positions("grad", argnums, len(args))
        pulled = d.trace_pull(trace, "grad", fn, args, kwargs, positions)
        first = pulled.result
        if has_aux:
            if not isinstance(pulled.result, tuple) or len(pulled.result) != 2:
                with at_user_line(), at_function(fn):
                    raise ArgumentError("grad: with `has_aux` the function must return a pair, the float and the rest")
            first = pulled.result[0]
        leaves = [value_of(trace, leaf, "result") for leaf in flatten(first)[0]]
        output = d.scalar_output(pulled, fn, leaves)
        pulled.outputs = [output]
        gradients = pulled.pull([d.ones(trace, output)])
        return pulled.result, gradients[0] if _is_one(argnums) else gradients

    return _callable(fn, both, "value_and_grad")


def vjp(fn: Function, *primals: Any) -> tuple[Any, Function]:
    """`fn(*primals)`, and the function that takes cotangents of the result to those of `primals`.

    Parameters:
        fn: a function of arrays, and pytrees of them.
        primals: its arguments, all of them by position.

    The cotangents have the structure, shapes and dtypes of the result; the function returns a tuple with one item for
    each of `primals`, of its structure and shapes. It may be called more than once. Outside of compiled code each of
    its calls computes `fn` again.

    Raises `ShapeError` for cotangents of another shape, `ArgumentError` for those of another structure,
    `NoDerivativeError` for an operation without a derivative.

    >>> import numpy as np, mlirml as ml
    >>> @ml.compile
    ... def f(x):
    ...     y, pull = ml.vjp(np.sin, x)
    ...     return y, pull(np.ones(3))[0]
    >>> f(np.zeros(3))
    (array([0., 0., 0.]), array([1., 1., 1.]))
    """
    from mlirml.frontend.transforms import derivatives as d

    _check_function("vjp", fn)
    trace = current_trace()
    if trace is None:
        return _outside_vjp(fn, primals)
    pulled = d.trace_pull(trace, "vjp", fn, primals, {}, tuple(range(len(primals))))
    return pulled.result, lambda cotangents: pulled.pull(d.cotangents_of(pulled, cotangents))


def _outside_vjp(fn: Function, primals: tuple[Any, ...]) -> tuple[Any, Function]:
    """Compiled calls: the pullback computes the function again."""
    from mlirml.api import compile

    def pulled(cotangents: Any, *again: Any) -> Any:
        return vjp(fn, *again)[1](cotangents)

    program = compile(_of(fn, "vjp", pulled))
    return compile(fn)(*primals), lambda cotangents: program(cotangents, *primals)


def jvp(fn: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`fn(*primals)`, and how it changes when `primals` change along `tangents`.

    Parameters:
        primals: the arguments, which hold floats.
        tangents: as many, of the same structure and shapes.

    Returns a pair of the result and its tangent, of one structure.

    Raises `ArgumentError` where `primals` or `tangents` is no tuple or they differ in structure, `ShapeError` where
    they differ in shape, `NoDerivativeError` for an operation without a derivative.

    >>> import numpy as np, mlirml as ml
    >>> ml.jvp(np.sin, (np.zeros(2),), (np.ones(2),))
    (array([0., 0.]), array([1., 1.]))
    """
    from mlirml.frontend.transforms.derivatives import trace_jvp

    _check_function("jvp", fn)
    _check_tuples("jvp", primals=primals, tangents=tangents)
    trace = current_trace()
    if trace is None:
        from mlirml.api import compile

        program = _cached(fn, "jvp", lambda: compile(_of(fn, "jvp", lambda p, t: jvp(fn, p, t))))
        result, change = program(tuple(primals), tuple(tangents))
        return result, change
    return trace_jvp(trace, fn, tuple(primals), tuple(tangents))


def linearize(fn: Function, *primals: Any) -> tuple[Any, Function]:
    """`fn(*primals)`, and the function that takes tangents of `primals` to that of the result.

    Parameters:
        fn: a function of arrays, and pytrees of them.
        primals: its arguments, all of them by position.

    The function takes as many tangents as there are `primals`, of their structure, shapes and dtypes. Errors are those
    of `jvp`.

    >>> import numpy as np, mlirml as ml
    >>> value, push = ml.linearize(lambda x: x**2, np.array([1.0, 3.0]))
    >>> value, push(np.array([1.0, 1.0]))
    (array([1., 9.]), array([2., 6.]))
    """
    _check_function("linearize", fn)
    trace = current_trace()
    if trace is not None:
        return _callee_in_trace(fn)(*primals), lambda *tangents: jvp(fn, primals, tangents)[1]
    from mlirml.api import compile

    return compile(fn)(*primals), lambda *tangents: jvp(fn, primals, tangents)[1]


def vmap(fn: Function, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None) -> Function:
    """`fn` for each of many examples at once.

    Parameters:
        fn: a function of one example; it may use arrays from outside, which are the same for all examples.
        in_axes: the dimension of each argument along which its examples lie, None for one that all examples share; one
            number for all arguments, or a tuple of them, whose items may have the structure of the arguments. Those of
            arguments given by name lie along dimension 0.
        out_axes: the dimension of each result along which the examples are put; None for one that does not depend on
            the example, which is given once.
        axis_size: the number of examples, where no argument tells it.

    Raises `ShapeError` where arguments have different numbers of examples, `NoBatchingError` for an operation that has
    no batched form.

    >>> import numpy as np, mlirml as ml
    >>> ml.vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    _check_function("vmap", fn)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        from mlirml.frontend.transforms.derivatives import trace_vmap

        trace = current_trace()
        assert trace is not None
        if not kwargs:
            return trace_vmap(trace, fn, args, in_axes, out_axes, axis_size, True)
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)

        def named(*called: Any) -> Any:
            return _callee_in_trace(fn)(*called[:-1], **called[-1])

        return trace_vmap(trace, named, (*args, kwargs), (*axes, 0), out_axes, axis_size, True)

    return _callable(fn, mapped, "vmap")


def jacrev(fn: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian of `fn` in reverse mode: one pullback for each element of the result, computed as one batch.

    Parameters:
        fn: a function of arrays, and pytrees of them; derivatives of results that are no floats are 0.
        argnums: the positions of the arguments to differentiate by, one number, or several.

    Returns a function of the same arguments. It gives for each array of the result an array for each argument, whose
    shape is that of the result + that of the argument, in the structure of the result and, below, of the arguments.

    Raises `DTypeError` for arguments that hold no floats, `NoDerivativeError` for an operation without a derivative.

    >>> import numpy as np, mlirml as ml
    >>> ml.jacrev(lambda x: x[:2] * x[1])(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 4., 0.]])
    """
    return _jacobian(fn, argnums, "jacrev")


def jacfwd(fn: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian of `fn` in forward mode: one pushforward for each element of the arguments, computed as one batch.

    Parameters, result and errors are those of `jacrev`.

    >>> import numpy as np, mlirml as ml
    >>> ml.jacfwd(lambda t: np.stack([np.cos(t), np.sin(t)]))(0.0)
    array([-0.,  1.])
    """
    return _jacobian(fn, argnums, "jacfwd")


def _jacobian(fn: Function, argnums: int | Sequence[int], name: str) -> Function:
    _check_function(name, fn)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        from mlirml.frontend.transforms.jacobians import jacobian_forward, jacobian_reverse

        positions = _positions(name, argnums, len(args))

        def of_wanted(*wanted: Any) -> Any:
            called = list(args)
            for position, value in zip(positions, wanted):
                called[position] = value
            return _callee_in_trace(fn)(*called, **kwargs)

        make = jacobian_reverse if name == "jacrev" else jacobian_forward
        return make(of_wanted, [args[position] for position in positions], positions, _is_one(argnums))

    return _callable(fn, jacobian, name)


def hessian(fn: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The matrix of second derivatives of a function that returns one float: forward mode over reverse mode.

    Parameters:
        fn: a function of arrays, and pytrees of them.
        argnums: the positions of the arguments to differentiate by, one number, or several.

    Returns a function of the same arguments: for an argument of shape s an array of shape s + s; for pytrees or several
    arguments one for each pair of arrays, in their structure twice. Errors are those of `grad`.

    >>> import numpy as np, mlirml as ml
    >>> ml.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    _check_function("hessian", fn)
    return jacfwd(grad(fn, argnums), argnums)


def hvp(fn: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of `fn` with a vector, without the Hessian: the change of the gradient along it.

    Parameters:
        fn: a function that returns one float.
        primals: a tuple of its arguments, which hold floats.
        tangents: the vector, a tuple of as many, of the same structure and shapes.

    Returns an array of the shape of the argument; for several arguments a tuple of them. Errors are those of `grad` and
    `jvp`.

    >>> import numpy as np, mlirml as ml
    >>> ml.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    _check_function("hvp", fn)
    _check_tuples("hvp", primals=primals, tangents=tangents)
    return jvp(grad(fn, 0 if len(primals) == 1 else tuple(range(len(primals)))), primals, tangents)[1]


class custom_vjp:
    """A function whose derivatives in reverse mode are given by its user.

    `f.defvjp(forward, backward)`: `forward(*args)` returns a pair, the result of the function and residuals, anything
    that `backward` needs; `backward(residuals, cotangents)` returns a tuple with a cotangent for each argument, or None
    for one that is no float. Where nothing is differentiated in reverse mode, the function is an ordinary one.

    Parameters:
        fn: the function. What it is differentiated by must be among its arguments.
        nondiff_argnums: the positions of arguments that have no cotangents, functions say; `backward` takes them first,
            by themselves, and returns cotangents for the others.

    >>> import numpy as np, mlirml as ml
    >>> @ml.custom_vjp
    ... def clipped(x):
    ...     return np.sum(x)
    >>> clipped.defvjp(lambda x: (np.sum(x), x), lambda x, ct: (np.clip(x, -1, 1) * ct,))
    >>> ml.grad(clipped)(np.array([-3.0, 0.5]))
    array([-1. ,  0.5])
    """

    def __init__(self, fn: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        _check_function("custom_vjp", fn)
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.rules: tuple[Function, Function] | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Set the derivative."""
        self.rules = forward, backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace, args = current_trace(), _by_position(self.fn, args, kwargs)
        if trace is None:
            return self.fn(*args)
        from mlirml.frontend.transforms.custom import call_with_vjp

        name = getattr(self.fn, "__name__", "function")
        forward, backward = _given(self.rules, "custom_vjp", name, "defvjp(forward, backward)")
        fixed = [place for place, _ in enumerate(args) if place in self.nondiff_argnums]
        return call_with_vjp(trace, self.fn, forward, backward, args, fixed, name)


class custom_jvp:
    """A function whose derivative is given by its user, for both modes.

    `f.defjvp(rule)`: `rule(primals, tangents)` takes the arguments of the function and their tangents, two tuples, and
    returns a pair, the result of the function and its tangent, which is linear in `tangents`. It may call the function.
    Reverse mode transposes what the rule does to the tangents. A tangent of an argument without floats is 0.

    Parameters:
        fn: the function. What it is differentiated by must be among its arguments.
        nondiff_argnums: the positions of arguments that have no tangents; the rule takes them first, by themselves.

    Raises `NoDerivativeError` where the rule uses floats from outside that are differentiated.

    >>> import numpy as np, mlirml as ml
    >>> @ml.custom_jvp
    ... def root(x):
    ...     return np.sqrt(x)
    >>> @root.defjvp
    ... def root_jvp(primals, tangents):
    ...     y = root(*primals)
    ...     return y, np.where(y == 0, 0.0, 0.5 / y) * tangents[0]
    >>> ml.grad(lambda x: np.sum(root(x)))(np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """

    def __init__(self, fn: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        _check_function("custom_jvp", fn)
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.rule: Function | None = None
        self.refusal: tuple[str, str] | None = None
        """The message and the help of the error for derivatives by an argument without tangents."""

    def defjvp(self, rule: Function) -> Function:
        """Set the derivative; returns `rule`, so that this can be a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """Set the derivative by a rule for each argument, of functions with one array for a result.

        `rule(tangent, result, *args)` gives what the tangent of the argument adds to that of the result; None is for
        an argument that the result does not depend on.
        """

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            result = self(*primals)
            parts = [part(t, result, *primals) for part, t in zip(rules, tangents) if part is not None]
            return result, sum(parts[1:], parts[0]) if parts else result * 0

        self.rule = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace, args = current_trace(), _by_position(self.fn, args, kwargs)
        if trace is None:
            return self.fn(*args)
        from mlirml.frontend.transforms.custom import call_with_jvp

        name = getattr(self.fn, "__name__", "function")
        rule = _given(self.rule, "custom_jvp", name, "defjvp(rule)")
        fixed = [place for place, _ in enumerate(args) if place in self.nondiff_argnums]
        return call_with_jvp(trace, self.fn, rule, args, fixed, name, self.refusal)


def _given(rule: Any, transform: str, name: str, how: str) -> Any:
    """The derivative of a function of one's own, where it has been set."""
    if rule is None:
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(f"{transform}: `{name}` has no derivative yet", help=f"call `{name}.{how}` first")
    return rule


def _by_position(fn: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call in positional order: keyword arguments at their positions, defaults filled in."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # a function of C that does not tell
        signature = None
    if signature is None or (any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()) and not kwargs):
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(
                f"`{fn.__name__}` has a derivative of its own, and takes {', '.join(bound.kwargs)} by name only",
                help="let it take all arguments by position",
            )
    return bound.args


def checkpoint(fn: Function, policy: str = "nothing") -> Function:
    """`fn`, of which a gradient keeps the arguments only, and computes what is between again when it needs it.

    With the policy "nothing", loops in `fn` keep what they carry at the square root of their iterations, and compute
    those between twice.

    Parameters:
        policy: what is kept nevertheless: "nothing", or "contractions", the results of matrix products and
            convolutions.

    >>> import numpy as np, mlirml as ml
    >>> ml.grad(lambda x: np.sum(ml.checkpoint(np.sin)(x) ** 2))(np.zeros(2))
    array([0., 0.])
    """
    if policy not in ("nothing", "contractions"):
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(f"checkpoint: policy {policy!r} is neither 'nothing' nor 'contractions'")

    _check_function("checkpoint", fn)

    @functools.wraps(fn, updated=())
    def again(*args: Any, **kwargs: Any) -> Any:
        from mlirml.frontend.transforms.custom import call_again

        trace = current_trace()
        if trace is None:
            return fn(*args, **kwargs)
        if not kwargs:
            return call_again(trace, fn, args, policy)

        def named(*called: Any) -> Any:
            return _callee_in_trace(fn)(*called[:-1], **called[-1])

        return call_again(trace, named, (*args, kwargs), policy)

    return again


def stop_gradient(x: Any) -> Any:
    """`x`, a pytree of arrays and numbers, as a constant for derivatives.

    >>> import numpy as np, mlirml as ml
    >>> ml.grad(lambda x: x * ml.stop_gradient(x))(3.0)
    array(3.)
    """
    from mlirml.frontend.transforms.derivatives import trace_stop_gradient

    trace = current_trace()
    return x if trace is None else trace_stop_gradient(trace, x)


def _check_function(name: str, fn: Any) -> None:
    """That a transform is given something to call."""
    if not callable(fn):
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(
                f"{name}: expected a function, got {type(fn).__name__}",
                help=f"give `{name}` the function itself, and its arguments to what `{name}` returns"
                if name in _OF_FUNCTIONS
                else None,
            )


_OF_FUNCTIONS = ("grad", "value_and_grad", "vmap", "jacrev", "jacfwd", "hessian")
"""Transforms of which the result, not the transform, takes the arguments: calls like `grad(f(x))` are meant for it."""


def _check_tuples(name: str, **given: Any) -> None:
    """Raise `ArgumentError` for arguments that are not tuples: an array would be taken for one argument per row."""
    for what, value in given.items():
        if not isinstance(value, (tuple, list)):
            from mlirml.frontend.frames import at_user_line

            with at_user_line():
                raise ArgumentError(
                    f"{name}: {what} must be a tuple with one item for each argument, got: {type(value).__name__}",
                    help="write `(x,)` for one argument",
                )


def _positions(name: str, argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    positions = (argnums,) if _is_one(argnums) else argnums
    if not isinstance(positions, (tuple, list)) or not all(_is_one(position) for position in positions):
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(f"{name}: argnums must be the number of an argument, or several, got: {argnums!r}")
    for position in positions:
        if not -count <= position < count:
            from mlirml.frontend.frames import at_user_line

            with at_user_line():
                plural = "" if count == 1 else "s"
                raise ArgumentError(f"{name}: argnums={argnums} of a call with {count} positional argument{plural}")
    found = tuple(position % count for position in positions)
    if len(set(found)) < len(found):
        from mlirml.frontend.frames import at_user_line

        with at_user_line():
            raise ArgumentError(f"{name}: argnums={argnums} names an argument twice")
    return found


def _is_one(argnums: Any) -> bool:
    """True if `argnums` is one number, of Python's or of NumPy's."""
    return isinstance(argnums, (int, np.integer))


def _callable(fn: Function, traced_function: Function, name: str) -> Function:
    """`traced_function` while a function is being traced; anywhere else, its compiled form."""

    @functools.wraps(fn, updated=())  # what is kept with `fn` is not of its transform
    def transformed(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            return traced_function(*args, **kwargs)
        from mlirml.api import compile

        try:
            return _cached(transformed, "compiled", lambda: compile(transformed))(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    transformed.__name__ = f"{name}({getattr(fn, '__name__', type(fn).__name__)})"
    return transformed


def _of(fn: Function, name: str, program: Function) -> Function:
    """A program that calls a function, captured by the rules for that one: its loops and branches are kept as there."""
    program.__signature__ = inspect.signature(program)  # type: ignore[attr-defined]  # not that of `fn`
    program.__wrapped__ = fn  # type: ignore[attr-defined]
    program.__name__ = f"{name}({getattr(fn, '__name__', type(fn).__name__)})"
    return program


def _callee_in_trace(fn: Function) -> Function:
    """The callable by which traced code calls a function, for calls from this module, which is not traced."""
    from mlirml.frontend.transforms.nested_calls import callee_in_trace

    trace = current_trace()
    assert trace is not None
    return callee_in_trace(fn, trace)


def _cached(owner: Any, name: str, make: Function) -> Any:
    """The compiled form of a function, cached on the function object where that takes attributes."""
    key = f"_mlirml_{name}"
    held = getattr(owner, "__dict__", {})
    if key not in held:
        made = make()
        try:
            setattr(owner, key, made)
        except AttributeError:
            return made
        return made
    return held[key]
