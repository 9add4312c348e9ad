"""Numbers of successes: of independent trials, and of draws without replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.random.checks import (
    check_real,
    check_vectors,
    refuse,
    refuse_negative,
    refuse_no_probability,
    repeated,
    shape_of,
    spread,
)
from mlirml.random.continuous import open_unit, unit
from mlirml.random.discrete import bernoulli
from mlirml.random.keys import as_array, checked_key, drawing, dtype_in, fold_in, known_value, split
from mlirml.random.proposals import accepted

__all__ = ["binomial"]

_DOUBLE, _INTEGER = np.dtype(np.float64), np.dtype(np.int64)
_FEW_TRIALS = 32
"""Trials that are drawn one by one, where their number is known."""
_FEW = 10.0
"""The expected number of successes below which they are drawn by inversion."""
_MOST_VALUES = 1 << 20
"""The most values whose probabilities are in a table."""


def _count(name: str, parameter: str, n: Any) -> int | None:
    """A number of trials or things where it is one known integer; integers are not negative where they are known."""
    if isinstance(n, (bool, np.bool_)) or (type(n) is not int and dtype_in(n).kind not in "iu"):
        raise DTypeError(f"{name}: {parameter} must be an integer, got {n!r}")
    refuse_negative(name, **{parameter: n})
    value = known_value(n)
    return None if value is None or value.ndim else int(value)


@drawing
def binomial(key: Any, n: Any, p: Any, shape: Any = None) -> Any:
    """Numbers (i64) of successes in n trials, each of which succeeds with probability p.

    -1 where n is negative, or p not in [0, 1].
    """
    key, trials = checked_key("binomial", key), _count("binomial", "n", n)
    refuse_no_probability("binomial", p=p)
    wanted = shape_of("binomial", shape, n, p)
    if trials is not None and trials <= _FEW_TRIALS:
        drawn = bernoulli(key, as_array(p)[..., None], (*wanted, trials))
        return np.sum(drawn, axis=-1, dtype=_INTEGER)
    count, p = spread(n, wanted, _DOUBLE), spread(p, wanted, _DOUBLE)
    is_valid = (count >= 0) & (p >= 0) & (p <= 1)
    rarer = np.where(is_valid, np.minimum(p, 1 - p), 0.0)
    has_many = is_valid & (count * rarer >= _FEW)
    first, second = split(key)
    few = _few_successes(first, np.where(is_valid & ~has_many, count, 0.0), np.where(has_many, 0.0, rarer))
    many = _many_successes(second, np.where(has_many, count, np.nan), rarer)
    drawn = np.where(has_many, many, few)
    return np.where(is_valid, np.where(p > 0.5, count - drawn, drawn), -1.0).astype(_INTEGER)


def _few_successes(key: Any, n: Any, p: Any) -> Any:
    """By inversion: the number of sums of probabilities that a uniform number is not below."""
    u = unit(key, n.shape, _DOUBLE)
    odds, first = p / (1 - p), np.exp(n * np.log1p(-p))

    def add(carry: Any) -> Any:
        k, found, probability, total = carry
        more = u >= total
        probability = probability * odds * np.maximum(n - k, 0.0) / (k + 1)
        return k + 1, found + more, probability, total + probability

    # With less than 10 successes expected, the probabilities after the hundredth are below the spacing of the numbers.
    start = as_array(np.float64(0)), np.zeros_like(u), first, first
    found = repeated(lambda carry: np.any(u >= carry[3]) & (carry[0] < 100), add, start)[1]
    return np.minimum(found, n)


_TAILS = np.array([
    0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509, 0.01664469118982119,
    0.01387612882307075, 0.01189670994589177, 0.01041126526197209, 0.009255462182712733, 0.008330563433362871,
])  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2."""
    z = k + 1
    square = z * z
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / z
    return np.where(k <= 9, np.take(as_array(_TAILS), np.where(k < 9, k, 9).astype(np.int64)), series)


def _many_successes(key: Any, n: Any, p: Any) -> Any:
    """By transformed rejection, for at least 10 expected successes and p up to 1/2; where n is NaN, NaN.

    W. Hoermann: The generation of binomial random variates. Journal of Statistical Computation and Simulation 46, 1993,
    algorithm BTRD, with the bound of its exact test for every proposal.
    """
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p

    def propose(i: Any, at: Any, n: Any, p: Any, deviation: Any, b: Any, a: Any) -> tuple[Any, Any]:
        first, second = split(fold_in(key, i))
        u, v = (open_unit(one, n.shape, _DOUBLE, at) for one in (first, second))
        u = u - 0.5
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a / us + b) * u + n * p + 0.5)
        odds, mode, near = p / (1 - p), np.floor((n + 1) * p), np.minimum(np.maximum(k, 0.0), n)
        bound = (
            (mode + 0.5) * np.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * np.log((n - mode + 1) / (n - near + 1))
            + (near + 0.5) * np.log(odds * (n - near + 1) / (near + 1))
            + (_stirling_tail(mode) + _stirling_tail(n - mode) - _stirling_tail(near) - _stirling_tail(n - near))
        )
        ratio = v * (2.83 + 5.1 / b) * deviation / (a / (us * us) + b)
        exact = (k == near) & (np.log(ratio) <= bound)
        return ((us >= 0.07) & (v <= 0.92 - 4.2 / b)) | exact, k

    # A quarter of the proposals for 10 expected successes are not accepted.
    return accepted(propose, (n, p, deviation, b, a), ~(n > 0), np.where(n > 0, 0.0, np.nan), share=2)


def multinomial(key: Any, n: Any, pvals: Any, size: Any = None) -> Any:
    """The number of occurrences of each of k results in n trials (i64), [*size, k].

    Where n is not known, they are binomial numbers of the trials that the results before have left.
    """
    check_real("multinomial", pvals)
    trials, pvals = _count("multinomial", "n", n), as_array(pvals)
    check_vectors("multinomial", "pvals", pvals)
    refuse_no_probability("multinomial", pvals=pvals)
    refuse("multinomial", "pvals sum to more than 1", pvals, lambda value: value[..., :-1].sum(-1) > 1 + 1e-12)
    wanted, sums = shape_of("multinomial", size, n, pvals[..., 0]), np.cumsum(pvals, axis=-1)
    if trials is not None and trials <= _FEW_TRIALS:
        u = unit(key, (*wanted, trials), _DOUBLE)
        below = np.sum(u[..., None, :] < sums[..., :-1, None], axis=-1, dtype=_INTEGER)
        ends = np.zeros((*wanted, 1), _INTEGER), np.full((*wanted, 1), trials)
        return np.diff(np.concatenate([ends[0], below, ends[1]], axis=-1), axis=-1)
    rest = 1 - (sums - pvals)
    shares = np.where(rest > 0, np.minimum(pvals / np.where(rest > 0, rest, 1), 1.0), 0.0)[..., :-1]

    shares = np.moveaxis(shares, -1, 0)
    return _one_after_another(
        lambda i, left: binomial(fold_in(key, i), left, shares[i], wanted), len(shares), spread(n, wanted, _INTEGER)
    )


def _one_after_another(draw: Callable[[Any, Any], Any], count: int, left: Any) -> Any:
    """The numbers of the first `count` results, `draw(i, left)` of what those before have left, and of the last one."""
    if not count:
        return left[..., None]

    def step(carry: Any) -> Any:
        i, left, found = carry
        drawn, found = draw(i, left), found.copy()
        found[i] = drawn
        return i + np.int64(1), left - drawn, found

    start = as_array(np.int64(0)), left + np.int64(0), as_array(np.zeros((count, *left.shape), _INTEGER))
    _, left, found = repeated(lambda carry: carry[0] < count, step, start)
    return np.concatenate([np.moveaxis(found, 0, -1), left[..., None]], axis=-1)


def hypergeometric(key: Any, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
    """The number (i64) of good ones among `nsample` that are drawn without replacement.

    By inversion where the parameters are known integers, else by a loop over the draws; -1 where there are not as many.
    """
    name, numbers = "hypergeometric", {"ngood": ngood, "nbad": nbad, "nsample": nsample}
    good, bad, drawn = (_count(name, parameter, n) for parameter, n in numbers.items())
    wanted = shape_of(name, size, ngood, nbad, nsample)
    if good is None or bad is None or drawn is None:
        return _drawn_in_turn(key, *(spread(n, wanted, _INTEGER) for n in numbers.values()))
    if good + bad < drawn:
        raise ShapeError("hypergeometric: nsample must not be above ngood + nbad")
    least, most = max(0, drawn - bad), min(good, drawn)
    if most - least >= _MOST_VALUES:
        raise ShapeError(f"hypergeometric: more than {_MOST_VALUES:,} values are possible")
    k = np.arange(least, most, dtype=np.float64)
    ratios = np.log((good - k) * (drawn - k)) - np.log((k + 1) * (bad - drawn + k + 1))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    ends = np.cumsum(np.exp(logs - logs.max()))
    u = unit(key, wanted, _DOUBLE)
    return np.searchsorted(ends[:-1] / ends[-1], u, side="right") + least


def _drawn_in_turn(key: Any, good: Any, bad: Any, count: Any) -> Any:
    """One draw after another, of those that are taken or of those that are left, whichever are fewer."""
    total = good + bad
    is_valid = (good >= 0) & (bad >= 0) & (count >= 0) & (count <= total)
    takes_more = count > total - count
    draws = np.where(is_valid, np.where(takes_more, total - count, count), 0)

    def draw(carry: Any) -> Any:
        i, left, rest = carry
        u = unit(fold_in(key, i), left.shape, _DOUBLE)
        is_drawn = i.astype(_INTEGER) < draws
        is_good = is_drawn & (u * rest < left)
        return i + np.uint32(1), left - is_good, rest - is_drawn

    start = as_array(np.uint32(0)), good + np.int64(0), total
    left = repeated(lambda carry: np.any(carry[0].astype(_INTEGER) < draws), draw, start)[1]
    return np.where(is_valid, np.where(takes_more, left, good - left), -1)


def multivariate_hypergeometric(key: Any, colors: Any, nsample: Any, size: Any) -> Any:
    """The number (i64) of each colour among `nsample` that are drawn without replacement, [*size, k]."""
    name, wanted = "multivariate_hypergeometric", shape_of("multivariate_hypergeometric", () if size is None else size)
    _count(name, "colors", colors)
    _count(name, "nsample", nsample)
    known, colors = (known_value(colors), known_value(nsample)), as_array(colors)
    check_vectors(name, "colors", colors)
    if colors.ndim != 1:
        raise ShapeError(f"{name}: colors is a vector, got shape {list(colors.shape)}")
    if known[0] is not None and known[1] is not None and np.any(known[1] > known[0].sum()):
        raise ShapeError(f"{name}: nsample must not be above the sum of colors")
    colors = colors.astype(_INTEGER)
    after = np.sum(colors) - np.cumsum(colors)

    def draw(i: Any, left: Any) -> Any:
        own, others = (np.broadcast_to(x[i], wanted) for x in (colors, after))
        return _drawn_in_turn(fold_in(key, i), own, others, left)

    return _one_after_another(draw, colors.shape[0] - 1, spread(nsample, wanted, _INTEGER))
