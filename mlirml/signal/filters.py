"""Linear filters: recursive ones as one loop over time, forwards and backwards, and smoothing by polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend import control
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library
from mlirml.signal.convolutions import direct
from mlirml.special.floats import as_array

__all__ = [
    "filtfilt", "lfilter", "lfilter_zi", "savgol_coeffs", "savgol_filter", "sosfilt", "sosfilt_zi", "sosfiltfilt",
]  # fmt: skip

_MOST_SCALARS = 24
"""Numbers of a filter's state up to which each is carried by itself."""


def axis_of(name: str, x: Any, axis: int) -> int:
    """An axis counted from the front."""
    if not -x.ndim <= axis < x.ndim:
        with at_user_line():
            raise ShapeError(f"{name}: axis {axis} is out of bounds for {x.ndim} dimensions")
    return int(axis % x.ndim)


def floats(*arrays: Any) -> tuple[Any, ...]:
    """Arrays in one dtype of floats or complex numbers; integers become f64."""
    arrays = tuple(as_array(x) for x in arrays)
    dtype = np.result_type(*(x.dtype for x in arrays))
    dtype = dtype if dtype.kind in "fc" else np.result_type(dtype, np.float64)
    return tuple(x.astype(dtype) for x in arrays)


def _coefficients(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    """The coefficients of a filter, of equal length and with a[0] = 1."""
    b, a = (np.atleast_1d(x) for x in (b, a))
    with at_user_line():
        if b.ndim != 1 or a.ndim != 1 or not b.size or not a.size:
            raise ShapeError(f"{name}: b and a are vectors, not of shapes {list(b.shape)} and {list(a.shape)}")
        if not isinstance(a, Traced) and a[0] == 0:
            raise ArgumentError(f"{name}: a[0] is zero")
    size = max(b.size, a.size)
    return np.pad(b, (0, size - b.size)) / a[0], np.pad(a, (0, size - a.size)) / a[0]


@library("mlirml.signal", "b", "a", "x", "zi")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The filter b(z) / a(z) along an axis of `x`, in the transposed direct form II, as one loop over time.

    `b` and `a` are vectors. `zi` is the state before the first element: the shape of `x`, but max(len(a), len(b)) - 1
    elements along the axis, or one that broadcasts to it; with it the result is a pair of the output and the last
    state. A filter without recursion, len(a) = 1, is a convolution.
    """
    recursive = np.size(a) > 1
    if zi is None:
        b, a, x = floats(b, a, x)
    else:
        b, a, x, zi = floats(b, a, x, zi)
    with at_user_line():
        if not x.ndim:
            raise ShapeError("lfilter: takes an array of at least one dimension")
    place = axis_of("lfilter", x, axis)
    b, a = _coefficients("lfilter", b, a)
    x = np.moveaxis(x, place, 0)
    order = b.shape[0] - 1
    state_shape = (order, *x.shape[1:])
    state = np.zeros(state_shape, x.dtype) if zi is None else _state("lfilter", zi, place, state_shape)
    if not order:
        y = x * b[0]
    elif not recursive and x.size:
        y, state = _by_convolution(b, x, state)
    else:
        state, y = control.scan(_step(b, a, order), _carried(state), x)
        state = np.stack(state) if isinstance(state, tuple) else state
    y = np.moveaxis(y, 0, place)
    return y if zi is None else (y, np.moveaxis(state, 0, place))


def _state(name: str, zi: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """The state with its axis first, of the given shape."""
    if zi.ndim == len(shape):
        zi = np.moveaxis(zi, axis, 0)
        if zi.shape[0] == shape[0] and all(n in (1, m) for n, m in zip(zi.shape, shape)):
            return np.broadcast_to(zi, shape)
    with at_user_line():
        raise ShapeError(
            f"{name}: zi has shape {list(zi.shape)}, not that of the state with its axis first, {[*shape]}"
        )


def _carried(state: Any) -> Any:
    return tuple(state[k] for k in range(state.shape[0])) if state.shape[0] <= _MOST_SCALARS else state


def _step(b: Any, a: Any, order: int) -> Any:
    """The output and the next state, by the numbers of the state or by its array."""
    if order <= _MOST_SCALARS:

        def by_scalars(state: Any, x: Any) -> Any:
            y = b[0] * x + state[0]
            moved = (*state[1:], 0)
            return tuple(b[k + 1] * x - a[k + 1] * y + moved[k] for k in range(order)), y

        return by_scalars

    def by_array(state: Any, x: Any) -> Any:
        y = b[0] * x + state[0]
        later = (slice(1, None),) + (None,) * x.ndim
        moved = np.concatenate((state[1:], np.zeros_like(state[:1])))
        return b[later] * x - a[later] * y + moved, y

    return by_array


def _by_convolution(b: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """The output and the last state of a filter without recursion: x has time in its first dimension."""
    count, order = x.shape[0], b.shape[0] - 1
    rows = x.reshape(count, -1)
    full = direct(rows[:, 0], b, "full")[:, None] if rows.shape[1] == 1 else direct(rows, b[:, None], "full")
    full = full.reshape((count + order, *x.shape[1:]))
    full = full + np.pad(state, [(0, count)] + [(0, 0)] * (x.ndim - 1))
    return full[:count], full[count:]


@library("mlirml.signal", "b", "a")
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of `lfilter` in which a constant input of 1 has a constant output."""
    b, a = _coefficients("lfilter_zi", *floats(b, a))
    if b.shape[0] < 2:
        return np.zeros(0, b.dtype)
    driven = b[1:] - a[1:] * b[0]
    first = np.sum(driven) / np.sum(a)
    return np.cumsum(a)[:-1] * first - np.concatenate((np.zeros(1, b.dtype), np.cumsum(driven)[:-1]))


@library("mlirml.signal", "b", "a", "x")
def filtfilt(b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """`lfilter` forwards and then backwards, which leaves the phase as it is.

    `x` is extended by `padlen` elements at both ends, 3 max(len(a), len(b)) by default: "odd" and "even" continue it by
    reflection, "constant" by its ends, None does not.
    """
    b, a, x = floats(b, a, x)
    order = max(np.size(a), np.size(b))
    zi = lfilter_zi(b, a)

    def run(x: Any) -> Any:
        return lfilter(b, a, x, -1, zi * x[..., :1])[0] if order > 1 else lfilter(b, a, x)

    return _both_ways("filtfilt", run, x, axis, padtype, padlen, 3 * order)


def _both_ways(name: str, run: Any, x: Any, axis: int, padtype: Any, padlen: Any, default: int) -> Any:
    place = axis_of(name, x, axis)
    x = np.moveaxis(x, place, -1)
    margin = 0 if padtype is None else default if padlen is None else padlen
    count = x.shape[-1]
    with at_user_line():
        if padtype not in (None, "odd", "even", "constant"):
            raise ArgumentError(f"{name}: padtype is 'odd', 'even', 'constant' or None, not {padtype!r}")
        if not 0 <= margin < max(count, 1):
            raise ShapeError(f"{name}: {count} elements are too few for a padlen of {margin}")
    if not x.size:
        return np.moveaxis(x, -1, place)
    if margin:
        first, last = x[..., :1], x[..., -1:]
        before, after = x[..., margin:0:-1], x[..., -2 : -margin - 2 : -1]
        if padtype == "odd":
            before, after = 2 * first - before, 2 * last - after
        elif padtype == "constant":
            before, after = before * 0 + first, after * 0 + last
        x = np.concatenate((before, x, after), axis=-1)
    y = run(x)
    y = run(y[..., ::-1])[..., ::-1]
    return np.moveaxis(y[..., margin : margin + count], -1, place)


def _sections(name: str, sos: Any) -> Any:
    with at_user_line():
        if sos.ndim != 2 or sos.shape[1] != 6 or not sos.shape[0]:
            raise ShapeError(f"{name}: sos has shape [sections, 6], not {list(sos.shape)}")
        if not isinstance(sos, Traced) and np.any(sos[:, 3] != 1):
            raise ArgumentError(f"{name}: sos[:, 3] are ones")
    return sos


@library("mlirml.signal", "sos", "x", "zi")
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A filter of second-order sections, rows of `sos` with three numbers of b and three of a, as one loop over time.

    `zi` of [sections, ..., 2, ...], the shape of `x` with 2 along the axis, is the state before the first element; with
    it the result is a pair of the output and the last state.
    """
    sos, x, *rest = floats(sos, x) if zi is None else floats(sos, x, zi)
    sos = _sections("sosfilt", sos)
    with at_user_line():
        if not x.ndim:
            raise ShapeError("sosfilt: takes an array of at least one dimension")
    place, count = axis_of("sosfilt", x, axis), sos.shape[0]
    x = np.moveaxis(x, place, 0)
    shape = (count, 2, *x.shape[1:])
    state = np.zeros(shape, x.dtype)
    if rest:
        state = np.moveaxis(rest[0], place + 1, 1) if rest[0].ndim == len(shape) else rest[0]
        if state.shape != shape:
            with at_user_line():
                raise ShapeError(f"sosfilt: zi has shape {list(rest[0].shape)}, which does not fit the input and axis")
    steps = [_step(sos[k, :3], sos[k, 3:], 2) for k in range(count)]

    def step(states: Any, x: Any) -> Any:
        after = []
        for one, state in zip(steps, states):
            state, x = one(state, x)
            after.append(state)
        return tuple(after), x

    states, y = control.scan(step, tuple((state[k, 0], state[k, 1]) for k in range(count)), x)
    y = np.moveaxis(y, 0, place)
    if not rest:
        return y
    return y, np.moveaxis(np.stack([np.stack(pair) for pair in states]), 1, place + 1)


@library("mlirml.signal", "sos")
def sosfilt_zi(sos: Any) -> Any:
    """The state [sections, 2] of `sosfilt` in which a constant input of 1 has a constant output."""
    (sos,) = floats(sos)
    sos = _sections("sosfilt_zi", sos)
    scale: Any = 1
    states = []
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


@library("mlirml.signal", "sos", "x")
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """`sosfilt` forwards and then backwards; `x` is extended as by `filtfilt`."""
    sos, x = floats(sos, x)
    sos = _sections("sosfiltfilt", sos)
    count, zi = sos.shape[0], sosfilt_zi(sos)
    order = 2 * count + 1
    if not isinstance(sos, Traced):  # poles and zeros at the origin count for nothing
        order -= min(int(np.sum(sos[:, 2] == 0)), int(np.sum(sos[:, 5] == 0)))

    def run(x: Any) -> Any:
        at_start = zi.reshape((count, *(1,) * (x.ndim - 1), 2)) * x[..., :1]
        return sosfilt(sos, x, -1, at_start)[0]

    return _both_ways("sosfiltfilt", run, x, axis, padtype, padlen, 3 * order)


@library("mlirml.signal")
def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, pos: int | None = None, use: str = "conv"
) -> np.ndarray:
    """The weights of a Savitzky-Golay filter: derivative `deriv` at `pos` of the polynomial that fits a window best.

    For a convolution, or with `use="dot"` for a product with the window. Savitzky and Golay, Analytical Chemistry 36,
    1964.
    """
    with at_user_line():
        if polyorder >= window_length:
            raise ArgumentError(f"savgol_coeffs: polyorder {polyorder} is not below window_length {window_length}")
        if pos is not None and not 0 <= pos < window_length:
            raise ArgumentError(f"savgol_coeffs: pos {pos} is not in a window of {window_length}")
        if use not in ("conv", "dot"):
            raise ArgumentError(f"savgol_coeffs: use is 'conv' or 'dot', not {use!r}")
    half, even = divmod(window_length, 2)[0], window_length % 2 == 0
    centre = pos if pos is not None else half - 0.5 if even else half
    if deriv > polyorder:
        return np.zeros(window_length)
    powers = np.arange(window_length) - centre
    fit = np.linalg.pinv(np.vander(powers, polyorder + 1, increasing=True))
    weights = fit[deriv] * float(np.prod(np.arange(1, deriv + 1))) / delta**deriv
    return np.asarray(weights[::-1] if use == "conv" else weights)


@library("mlirml.signal", "x")
def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: float = 0.0,
) -> Any:  # fmt: skip
    """A Savitzky-Golay filter along an axis.

    At the ends, by `mode`: "interp", the values of the polynomial that fits the last window; "mirror", "nearest",
    "constant" (`cval`) and "wrap", the filter on elements beyond them.
    """
    (x,) = floats(x)
    place = axis_of("savgol_filter", x, axis)
    x = np.moveaxis(x, place, -1)
    count, half = x.shape[-1], window_length // 2
    with at_user_line():
        if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
            raise ArgumentError(
                f"savgol_filter: mode is 'mirror', 'constant', 'nearest', 'wrap' or 'interp', not {mode!r}"
            )
        if mode == "interp" and window_length > count:
            raise ShapeError(f"savgol_filter: a window of {window_length} does not fit {count} elements")
    weights = savgol_coeffs(window_length, polyorder, deriv, delta).astype(np.zeros((), x.dtype).real.dtype)
    after = window_length - 1 - half
    before, after = (after, half) if window_length % 2 == 0 else (half, after)
    if not x.size:
        return np.moveaxis(x, -1, place)
    if mode == "interp":
        middle = _rows_convolved(x, weights)
        powers = np.arange(window_length) - (window_length - 1) / 2
        basis = np.vander(powers, polyorder + 1, increasing=True)
        slopes = np.zeros_like(basis)
        for k in range(deriv, polyorder + 1):
            factor = float(np.prod(np.arange(k - deriv + 1, k + 1)))
            slopes[:, k] = factor * powers ** (k - deriv) / delta**deriv
        ends = (slopes @ np.linalg.pinv(basis)).astype(weights.dtype)
        first = x[..., :window_length] @ ends[:half].T
        last = x[..., count - window_length :] @ ends[window_length - half :].T
        if window_length % 2 == 0:
            middle = middle[..., 1:]
        y = np.concatenate((first, middle, last), axis=-1)
    else:
        positions = np.arange(-before, count + after)
        if mode == "constant":
            x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], constant_values=cval)
        else:
            period = max(2 * count - 2, 1)
            mirrored = positions % period
            mirrored = np.minimum(mirrored, period - mirrored) if count > 1 else mirrored * 0
            clipped = np.clip(positions, 0, count - 1)
            x = np.take(x, {"mirror": mirrored, "nearest": clipped, "wrap": positions % count}[mode], axis=-1)
        y = _rows_convolved(x, weights)
    return np.moveaxis(y, -1, place)


def _rows_convolved(x: Any, weights: Any) -> Any:
    """The valid convolution of the last dimension with weights."""
    rows = x.reshape(-1, x.shape[-1])
    if rows.shape[0] == 1:
        return direct(rows[0], weights, "valid").reshape((*x.shape[:-1], -1))
    found = direct(rows, weights[None], "valid", kernel_is_second=True)
    return found.reshape((*x.shape[:-1], found.shape[-1]))
