"""`np.random.default_rng` in traced code: NumPy's methods on a stream of keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.ops.reductions import normalized_axes
from mlirml.random import continuous, discrete, rejection, transformed, trials
from mlirml.random.keys import as_array, blocks, drawing, fold_in, key


def default_rng(seed: Any = None) -> Generator:
    """The generator of a seed: an integer, which may be dynamic, or another generator."""
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        raise UnsupportedSyntaxError(
            "`np.random.default_rng()` without a seed would draw other numbers at each call",
            help="pass an integer, `np.random.default_rng(0)`, which may be an argument of the function",
        )
    if not isinstance(seed, (int, np.integer, Traced)):
        raise UnsupportedSyntaxError(
            f"`np.random.default_rng` takes an integer in compiled code, not {type(seed).__name__}"
        )
    return Generator(key(seed))


def _method(function: Callable[..., Any]) -> Any:
    """The method of a function that has the parameters of NumPy's method after its key."""

    @drawing
    @functools.wraps(function)
    def method(self: Generator, *args: Any, **kwargs: Any) -> Any:
        return function(self._next(), *args, **kwargs)

    return method


class Generator:
    """NumPy's methods; the n-th call draws by the key of the seed and n.

    The number of calls is an element of an array, so that loops and branches carry it as they do arrays.
    """

    def __init__(self, of: Any) -> None:
        trace: Any = current_trace()
        self._key, self._calls = of, trace.known(np.zeros(1, np.uint32))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        return drawing(_refusal(name))()

    def _next(self) -> Any:
        calls = self._calls[0]
        self._calls[0] = calls + np.uint32(1)
        return fold_in(self._key, calls)

    @drawing
    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform numbers of [0, 1)."""
        return _stored(continuous.uniform(self._next(), size, dtype), out)

    @drawing
    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Normal numbers with mean 0 and standard deviation 1."""
        return _stored(continuous.normal(self._next(), size, dtype), out)

    @drawing
    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Numbers with density exp(-x)."""
        return _stored(continuous.exponential(self._next(), size, dtype), out)

    @drawing
    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Numbers with density proportional to x**(shape - 1) * exp(-x)."""
        return _stored(rejection.gamma(self._next(), shape, size, dtype), out)

    @drawing
    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers with mean `loc` and standard deviation `scale`."""
        return continuous.normal(self._next(), size, loc=loc, scale=scale)

    @drawing
    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform numbers of [low, high)."""
        return continuous.uniform(self._next(), size, low=low, high=high)

    @drawing
    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Numbers with density exp(-x / scale) / scale."""
        return continuous.exponential(self._next(), size, scale=scale)

    @drawing
    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Numbers with the distribution exp(-exp(-(x - loc) / scale))."""
        return continuous.gumbel(self._next(), size, loc=loc, scale=scale)

    @drawing
    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Numbers with density exp(-abs(x - loc) / scale) / (2 * scale)."""
        return continuous.laplace(self._next(), size, loc=loc, scale=scale)

    @drawing
    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Numbers with density proportional to x**(shape - 1) * exp(-x / scale)."""
        return rejection.gamma(self._next(), shape, size, scale=scale)

    @drawing
    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """Numbers with density proportional to x**(a - 1) * (1 - x)**(b - 1)."""
        return rejection.beta(self._next(), a, b, size)

    @drawing
    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """Vectors that sum to 1."""
        return rejection.dirichlet(self._next(), alpha, size)

    @drawing
    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Numbers of events where lam are expected."""
        return rejection.poisson(self._next(), lam, size)

    @drawing
    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Numbers of successes of n trials."""
        return trials.binomial(self._next(), n, p, size)

    lognormal = _method(transformed.lognormal)
    weibull = _method(transformed.weibull)
    rayleigh = _method(transformed.rayleigh)
    logistic = _method(transformed.logistic)
    pareto = _method(transformed.pareto)
    power = _method(transformed.power)
    standard_cauchy = _method(transformed.standard_cauchy)
    triangular = _method(transformed.triangular)
    chisquare = _method(transformed.chisquare)
    noncentral_chisquare = _method(transformed.noncentral_chisquare)
    noncentral_f = _method(transformed.noncentral_f)
    vonmises = _method(transformed.vonmises)
    zipf = _method(transformed.zipf)
    logseries = _method(transformed.logseries)
    f = _method(transformed.f)
    standard_t = _method(transformed.standard_t)
    wald = _method(transformed.wald)
    geometric = _method(transformed.geometric)
    negative_binomial = _method(transformed.negative_binomial)
    hypergeometric = _method(trials.hypergeometric)
    multinomial = _method(trials.multinomial)

    @drawing
    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Any:
        """Numbers of each colour among those that are drawn without replacement."""
        return trials.multivariate_hypergeometric(self._next(), colors, nsample, size)

    @drawing
    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8, *,
        method: str = "cholesky",
    ) -> Any:  # fmt: skip
        """Vectors of a normal distribution, by Cholesky, whatever the method."""
        return continuous.multivariate_normal(self._next(), mean, cov, size)

    @drawing
    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Integers of [low, high), or of [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return discrete.randint(self._next(), size, low, high + 1 if endpoint else high, dtype)

    @drawing
    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Elements of an array along an axis, or of the numbers below an integer."""
        return discrete.choice(self._next(), a, () if size is None else size, replace, p, axis)

    @drawing
    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The rows of an array in random order, or the numbers below an integer."""
        return discrete.permutation(self._next(), x, axis)

    @drawing
    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """The elements of an array, or those of each line along an axis, in random order."""
        x = as_array(x)
        if axis is not None and x.ndim != 1:
            (axis,) = normalized_axes("permuted", x.shape, axis)
            order = np.argsort(blocks(self._next(), tuple(x.shape), "both"), axis=axis, stable=True)
            return _stored(np.take_along_axis(x, order, axis), out)
        return _stored(discrete.permutation(self._next(), x.reshape(-1)).reshape(x.shape), out)

    @drawing
    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the rows of an array in random order."""
        if not isinstance(x, Traced):
            raise DTypeError(f"shuffle: needs an array, got {type(x).__name__}", help="use `rng.permutation`")
        x[...] = discrete.permutation(self._next(), x, axis)

    @drawing
    def spawn(self, n_children: int) -> list[Generator]:
        """Generators with streams of their own."""
        own = self._next()
        return [Generator(fold_in(own, i)) for i in range(n_children)]


def _refusal(name: str) -> Any:
    def refusal() -> None:
        compiled = ", ".join(method for method in vars(Generator) if not method.startswith("_"))
        other = "draw `rng.integers(0, 256, length, np.uint8)`" if name == "bytes" else f"compiled are {compiled}"
        raise UnsupportedSyntaxError(f"`rng.{name}` is not compiled", help=other)

    return refusal


def _stored(drawn: Any, out: Any) -> Any:
    if out is None:
        return drawn
    out[...] = drawn
    return out
