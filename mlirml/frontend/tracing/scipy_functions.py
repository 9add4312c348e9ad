"""SciPy's functions that are compiled: as those of NumPy, and of packages of `mlirml` with the same names."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing import scipy_linalg

NUMPY: dict[str, np.ufunc] = {
    "cbrt": np.cbrt, "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "round": np.rint
}  # fmt: skip
"""NumPy's ufunc for each name in `scipy.special`; `sinc` is NumPy's own function there."""

_PACKAGES = ("ndimage", "signal")
"""The packages whose functions have packages of the same names here."""

OPERATIONS = ("erf", "erfc")
"""Functions that are operations of their own."""

_NAMES = {"_zeta": "zeta", "_riemann_zeta": "zeta"}
"""The names of functions of which SciPy's ufuncs have others."""


def is_special(ufunc: np.ufunc) -> bool:
    """True for a ufunc of `scipy.special`, without importing that."""
    modules = (sys.modules.get("scipy.special"), sys.modules.get("scipy.special._ufuncs"))
    return any(getattr(module, ufunc.__name__, None) is ufunc for module in modules)


_IGNORED = frozenset(
    [
        "overwrite_a", "overwrite_ab", "overwrite_b", "overwrite_x", "check_finite", "workers", "plan", "driver",
        "lapack_driver",
    ]
)  # fmt: skip
"""Options of SciPy's functions about how they are computed."""


def compiled_form(function: Any) -> Callable[..., Any] | None:
    """The traceable function for one of SciPy's; None without one."""
    owner = compiled_distribution(getattr(function, "__self__", None))
    if owner is not None:
        return getattr(owner, function.__name__, None)
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    if module.startswith("scipy.linalg.") and getattr(sys.modules["scipy.linalg"], name, None) is function:
        linalg = importlib.import_module("mlirml.linalg")
        own = linalg if name in linalg.OF_SCIPY else scipy_linalg if name in scipy_linalg.__all__ else None
        return None if own is None else _without_options(getattr(own, name), function)
    if module.startswith("scipy.fft.") and getattr(sys.modules["scipy.fft"], name, None) is function:
        known = name in np.fft.__all__ and not name.endswith(("shift", "freq"))  # which SciPy has from NumPy
        own = np.fft if known else importlib.import_module("mlirml.fft")
        return _without_options(getattr(own, name), function) if known or name in own.__all__ else None
    for package in _PACKAGES:
        if module.startswith(f"scipy.{package}.") and getattr(sys.modules[f"scipy.{package}"], name, None) is function:
            own = importlib.import_module(f"mlirml.{package}")
            return _without_options(getattr(own, name), function) if name in own.__all__ else None
    name = _NAMES.get(name, name)
    of_scipy = is_special(function) if isinstance(function, np.ufunc) else _is_function(function)
    if not of_scipy or name in OPERATIONS:
        return None
    special = importlib.import_module("mlirml.special")  # which is written in traceable NumPy, above this module
    return getattr(special, name) if name in special.__all__ else None


def refused_form(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of SciPy without a compiled form: it may be traceable, or be called with known values only."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not any(isinstance(x, Traced) for x in flatten((args, kwargs))[0]):
                raise
            module = function.__module__.partition("._")[0]
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"`{module}.{function.__name__}` is not compiled",
                    help="call it outside and pass its result as an argument, or write it with functions of NumPy's",
                ) from error

    return call


def compiled_distribution(value: Any) -> Any:
    """The traceable form of a distribution of `scipy.stats`, or of one with its parameters fixed; None of all else.

    A distribution that is not compiled keeps SciPy's functions, but for those that draw.
    """
    if not str(type(value).__module__).startswith("scipy.stats.") or not hasattr(value, "rvs"):
        return None
    if hasattr(value, "dist") and hasattr(value, "args") and hasattr(value, "kwds"):
        found = compiled_distribution(value.dist)
        return OfSciPy(None if found._own is None else found._own(*value.args, **value.kwds), value)
    module, stats = sys.modules["scipy.stats"], importlib.import_module("mlirml.stats")
    for name in stats.__all__:
        real = getattr(module, name, None)
        if type(real) is type(value) and all(getattr(real, end, 0) == getattr(value, end, 0) for end in "ab"):
            return OfSciPy(type(getattr(stats, name))(wide=True), value)
    return OfSciPy(None, value)


class OfSciPy:
    """Replaces a distribution of SciPy's in a traced function; its other functions are those of SciPy."""

    def __init__(self, own: Any, real: Any) -> None:
        self._own, self._real = own, real

    def __call__(self, *args: Any, **kwds: Any) -> Any:
        """The distribution with its parameters fixed."""
        if self._own is None:
            return OfSciPy(None, self._real(*args, **kwds))
        return OfSciPy(self._own(*args, **kwds), None)

    def __getattr__(self, name: str) -> Any:
        if name in ("rvs", "random_state"):  # which would draw once, while the program is traced
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"`scipy.stats` draws no random numbers in compiled code (`.{name}`)",
                    help="draw with `mlirml.random` by a key, or with `np.random.default_rng(seed)`",
                )
        own = None if name.startswith("_") else getattr(self._own, name, None)
        return getattr(self._real, name) if own is None else own


def _without_options(function: Callable[..., Any], real: Any) -> Callable[..., Any]:
    """The function as SciPy's, `real`, whose options about the computation have no effect.

    An option that only SciPy's has is an error which names it.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        options = {name: value for name, value in kwargs.items() if name not in _IGNORED}
        if "x" in options and not args:
            args = (options.pop("x"),)
        taken = _parameters(function)
        more = [name for name in options if name not in taken] if taken else []
        if more and set(more) <= _parameters(real):
            module = real.__module__.partition("._")[0]
            with at_user_line():
                raise UnsupportedSyntaxError(f"`{module}.{real.__name__}` is not compiled with `{more[0]}`")
        return function(*args, **options)

    return call


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the parameters of a function; none where they are not known."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    return frozenset() if any(p.kind is p.VAR_KEYWORD for p in found) else frozenset(p.name for p in found)


def _is_function(function: Any) -> bool:
    module = sys.modules.get("scipy.special")
    if not isinstance(function, types.FunctionType) or function.__name__ in _NAMES.values():
        return False  # the latter call ufuncs themselves
    return getattr(module, function.__name__, None) is function


def converted(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs in the dtype that SciPy computes in: it has no function of float16."""
    if any(getattr(x, "dtype", np.dtype(float)).kind == "c" for x in inputs):
        return inputs
    samples = (
        x if not hasattr(x, "dtype") else 1.0 if isinstance(x, Traced) and x._is_weak() else np.ones(0, x.dtype)
        for x in inputs
    )
    dtype = ufunc(*samples).dtype
    return tuple(x.astype(dtype) if hasattr(x, "dtype") else x for x in inputs)
