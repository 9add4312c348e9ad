"""Distributions with a location and a scale, of which subclasses have the standard forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.special.floats import as_array, float_dtype

INFINITE = math.inf


class Distribution:
    """A distribution, continuous or discrete: its parameters, masks and tails.

    A subclass has static methods of a standard variable and the shape parameters, which are named as SciPy's:
    `_allowed(*shapes)`, where the parameters are valid; `_support(*shapes)`, the least and the greatest value;
    `_inner(*shapes)`, a value between them; `_logarithm(x, *shapes)`, the logarithm of the density inside of the
    support, and where there are better or further formulas `_density`, `_cdf`, `_sf`, `_logcdf`, `_logsf`, `_ppf`,
    `_isf`. They are called with values inside of the support only, so that derivatives outside of it are zeros.
    """

    name = ""
    shapes: tuple[str, ...] = ()
    places: tuple[str, ...] = ("loc", "scale")
    _wide = False

    def __init__(self, wide: bool = False) -> None:
        self._wide = wide

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return True

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return -INFINITE, INFINITE

    @staticmethod
    def _inner(*shapes: Any) -> Any:
        return 0.5

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, args, kwds)

    def _arguments(self, method: str, x: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[Any, ...]:
        """x, shapes, loc and scale as arrays of the dtype that is computed in, and the dtype of the result."""
        what, names = f"{self.name}.{method}", (*self.shapes, *self.places)
        with at_user_line():
            if len(args) > len(names):
                raise ArgumentError(f"{what}: takes at most {len(names)} parameters, got {len(args)}")
            given = dict(zip(names, args))
            for key, value in kwds.items():
                if key not in names or key in given:
                    raise ArgumentError(f"{what}: a parameter `{key}` is given twice or unknown")
                given[key] = value
            missing = [name for name in self.shapes if name not in given]
            if missing:
                raise ArgumentError(f"{what}: missing parameters {', '.join(missing)}")
            numbers = [x, *(given[name] for name in names if name in given)]
            numbers = [_listed(v) for v in numbers]
            dtypes = [getattr(v, "dtype", None) for v in numbers]
            if any(dtype is not None and dtype.kind not in "biuf" and dtype.name != "bfloat16" for dtype in dtypes):
                raise DTypeError(f"{what}: a function of real numbers", help="give it floats")
        dtype = float_dtype(what, *numbers)
        if self._wide:
            dtype = np.promote_types(dtype, np.float64)
        wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
        values = {name: as_array(given.get(name, float(name == "scale"))).astype(wide) for name in names}
        return as_array(numbers[0]).astype(wide), values, dtype

    def _standard(self, x: Any, values: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        """The standard variable, the shapes, the scale, and where all parameters are valid."""
        shapes = [values[name] for name in self.shapes]
        scale = values.get("scale", np.ones((), x.dtype))
        valid = (scale > 0) & self._allowed(*shapes)
        valid = valid & ~np.isnan(x) & ~np.isnan(values["loc"]) & (scale < INFINITE)
        for shape in shapes:
            valid = valid & ~np.isnan(shape)
        safe = np.where(scale > 0, scale, 1)
        return (x - values["loc"]) / safe, shapes, safe, valid

    def _safe(self, y: Any, shapes: list[Any], mask: Any) -> tuple[Any, list[Any]]:
        """The variable and the shapes where a mask is true, and elsewhere ordinary ones."""
        allowed = self._allowed(*shapes)
        shapes = [np.where(allowed, s, _as(d, s)) for s, d in zip(shapes, self._defaults())]
        return np.where(mask, y, _as(self._inner(*shapes), y)), shapes

    @classmethod
    def _defaults(cls) -> tuple[float, ...]:
        """Valid shape parameters."""
        return (1.0,) * len(cls.shapes)

    def _tail(self, method: str, formula: Callable[..., Any], x: Any, args: Any, kwds: Any, ends: Any) -> Any:
        """A function that has a value below and one above the support."""
        x, values, dtype = self._arguments(method, x, args, kwds)
        with np.errstate(all="ignore"):
            y, shapes, _, valid = self._standard(x, values)
            low, high = self._support(*shapes)
            y = self._whole(y)
            inside = (y >= low if self._is_discrete() else y > low) & (y < high)
            z, safe = self._safe(y, shapes, inside & valid)
            result = np.where(inside, formula(z, *safe), np.where(y >= high, _as(ends[1], y), _as(ends[0], y)))
            return _result(np.where(valid, result, math.nan), dtype)

    def _whole(self, y: Any) -> Any:
        return y

    @classmethod
    def _is_discrete(cls) -> bool:
        return False

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values up to `x`."""
        return self._tail("cdf", self._of("_cdf"), x, args, kwds, (0, 1))

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values above `x`, 1 - cdf, exact where it is small."""
        return self._tail("sf", self._of("_sf"), x, args, kwds, (1, 0))

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `cdf`."""
        return self._tail("logcdf", self._of("_logcdf"), x, args, kwds, (-INFINITE, 0))

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `sf`."""
        return self._tail("logsf", self._of("_logsf"), x, args, kwds, (0, -INFINITE))

    def _of(self, formula: str) -> Callable[..., Any]:
        found = getattr(self, formula, None)
        if found is None:
            with at_user_line():
                raise ArgumentError(f"{self.name}.{formula[1:]}: there is no formula of it here")
        return found

    def _cdf(self, x: Any, *shapes: Any) -> Any:
        raise NotImplementedError

    def _sf(self, x: Any, *shapes: Any) -> Any:
        return 1 - self._cdf(x, *shapes)

    def _logcdf(self, x: Any, *shapes: Any) -> Any:
        return logarithm_of(self._cdf(x, *shapes), self._sf(x, *shapes))

    def _logsf(self, x: Any, *shapes: Any) -> Any:
        return logarithm_of(self._sf(x, *shapes), self._cdf(x, *shapes))

    def _quantile(self, method: str, formula: Callable[..., Any], q: Any, args: Any, kwds: Any, upper: bool) -> Any:
        q, values, dtype = self._arguments(method, q, args, kwds)
        with np.errstate(all="ignore"):
            _, shapes, scale, valid = self._standard(q, values)
            low, high = self._support(*shapes)
            low = low - 1 if self._is_discrete() else low
            first, last = (high, low) if upper else (low, high)
            z, safe = self._safe(q, shapes, (q > 0) & (q < 1) & valid)
            z = np.where((q > 0) & (q < 1), q, 0.5)
            found = np.where(q == 0, _as(first, q), np.where(q == 1, _as(last, q), formula(z, *safe)))
            found = found * scale + values["loc"]
            return _result(np.where(valid & (q >= 0) & (q <= 1), found, math.nan), dtype)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The quantile, the inverse of `cdf`; NaN outside of [0, 1]."""
        return self._quantile("ppf", self._of("_ppf"), q, args, kwds, False)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The inverse of `sf`."""
        formula = getattr(self, "_isf", None)
        if formula is None:
            ppf = self._of("_ppf")
            return self._quantile("isf", lambda q, *shapes: ppf(1 - q, *shapes), q, args, kwds, True)
        return self._quantile("isf", formula, q, args, kwds, True)


class Continuous(Distribution):
    """A continuous distribution."""

    def _logpdf_of(self, method: str, x: Any, args: Any, kwds: Any, logarithmic: bool) -> Any:
        x, values, dtype = self._arguments(method, x, args, kwds)

        @pointwise
        def density(x: Any, *numbers: Any) -> Any:
            y, shapes, scale, valid = self._standard(x, dict(zip(values, numbers)))
            low, high = self._support(*shapes)
            inside = (y >= low) & (y <= high) & np.isfinite(y)
            z, safe = self._safe(y, shapes, inside & valid)
            if logarithmic:
                found = np.where(inside, self._logarithm(z, *safe) - np.log(scale), -INFINITE)
            else:
                found = np.where(inside, self._density(z, *safe) / scale, 0)
            return np.where(valid, found, math.nan)

        with np.errstate(all="ignore"):
            return _result(density(x, *values.values()), dtype)

    def _logarithm(self, x: Any, *shapes: Any) -> Any:
        raise NotImplementedError

    def _density(self, x: Any, *shapes: Any) -> Any:
        return exponential(self._logarithm(x, *shapes))

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density, minus infinity outside of the support."""
        return self._logpdf_of("logpdf", x, args, kwds, True)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The density, 0 outside of the support."""
        return self._logpdf_of("pdf", x, args, kwds, False)


class FromZero:
    """The support of a distribution on numbers from 0 on."""

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 0, INFINITE

    @staticmethod
    def _inner(*shapes: Any) -> Any:
        return 1.0


class Discrete(FromZero, Distribution):
    """A distribution of integers."""

    places = ("loc",)

    def _whole(self, y: Any) -> Any:
        return np.floor(y)

    @classmethod
    def _is_discrete(cls) -> bool:
        return True

    def _mass_of(self, method: str, k: Any, args: Any, kwds: Any, logarithmic: bool) -> Any:
        k, values, dtype = self._arguments(method, k, args, kwds)

        @pointwise
        def mass(k: Any, *numbers: Any) -> Any:
            y, shapes, _, valid = self._standard(k, dict(zip(values, numbers)))
            low, high = self._support(*shapes)
            inside = (y >= low) & (y <= high) & np.isfinite(y) & (y == np.floor(y))
            z, safe = self._safe(y, shapes, inside & valid)
            formula = self._logarithm if logarithmic else self._density
            found = np.where(inside, formula(z, *safe), -INFINITE if logarithmic else 0)
            return np.where(valid, found, math.nan)

        with np.errstate(all="ignore"):
            return _result(mass(k, *values.values()), dtype)

    def _logarithm(self, k: Any, *shapes: Any) -> Any:
        raise NotImplementedError

    def _density(self, k: Any, *shapes: Any) -> Any:
        return exponential(self._logarithm(k, *shapes))

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability of `k`, minus infinity where that is none of the values."""
        return self._mass_of("logpmf", k, args, kwds, True)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of `k`."""
        return self._mass_of("pmf", k, args, kwds, False)


METHODS = ("cdf", "isf", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf", "ppf", "sf")
"""The functions of distributions."""


class Frozen:
    """A distribution with its parameters, whose functions take the variable alone."""

    def __init__(self, distribution: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwds

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.dist, name) if name in METHODS else None
        if function is None:
            raise AttributeError(name)
        return lambda x: function(x, *self.args, **self.kwds)


def exponential(logarithm: Any) -> Any:
    """exp, with the derivative 0 where it is 0."""
    zero = logarithm == -INFINITE
    return np.where(zero, 0, np.exp(np.where(zero, 0, logarithm)))


def logarithm_of(probability: Any, rest: Any) -> Any:
    """The logarithm of a probability, by that of its complement `rest` where this is the smaller one."""
    large = probability > 0.5
    return np.where(large, np.log1p(-np.where(large, rest, 0)), np.log(np.where(large, 0.5, probability)))


def _as(value: Any, like: Any) -> Any:
    """A number or an array in the dtype of another array."""
    return value.astype(like.dtype) if hasattr(value, "dtype") else np.asarray(value, like.dtype)


def _listed(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, (list, tuple)) else x


def _result(x: Any, dtype: np.dtype) -> Any:
    x = as_array(x).astype(dtype)
    return x if isinstance(x, Traced) else x[()]
