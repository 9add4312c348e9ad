"""Windows, which are computed when a function is traced."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library

__all__ = ["get_window"]

_COSINES: dict[str, tuple[float, ...]] = {
    "hann": (0.5, 0.5), "hamming": (0.54, 0.46), "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}  # fmt: skip
"""Coefficients of windows that are sums of cosines (Harris, Proceedings of the IEEE 66, 1978)."""


def _sum_of_cosines(count: int, coefficients: Sequence[float]) -> np.ndarray:
    phase = np.linspace(-math.pi, math.pi, count)
    return np.asarray(np.sum([a * np.cos(k * phase) for k, a in enumerate(coefficients)], axis=0))


def _triangle(count: int) -> np.ndarray:
    n = np.minimum(np.arange(count), np.arange(count)[::-1])
    return np.asarray((2 * n + 1) / count if count % 2 == 0 else 2 * (n + 1) / (count + 1))


def _tukey(count: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(count)
    edge = np.minimum(np.arange(count), np.arange(count)[::-1]) * 2 / (min(alpha, 1) * (count - 1))
    return np.asarray(0.5 * (1 - np.cos(math.pi * np.minimum(edge, 1))))


def _parzen(count: int) -> np.ndarray:
    n = np.abs(np.arange(count) - (count - 1) / 2) / (count / 2)
    near = n <= (count - 1) / 4 / (count / 2)
    return np.asarray(np.where(near, 1 - 6 * n**2 + 6 * n**3, 2 * (1 - n) ** 3))


def _bohman(count: int) -> np.ndarray:
    n = np.abs(np.linspace(-1, 1, count))
    return np.where(n < 1, (1 - n) * np.cos(math.pi * n) + np.sin(math.pi * n) / math.pi, 0)


def _centred(count: int) -> np.ndarray:
    return np.arange(count) - (count - 1) / 2


_WINDOWS: dict[str, Callable[..., np.ndarray]] = {
    **{name: functools.partial(_sum_of_cosines, coefficients=row) for name, row in _COSINES.items()},
    "boxcar": np.ones,
    "triang": _triangle,
    "bartlett": np.bartlett,
    "cosine": lambda count: np.sin(math.pi / count * (np.arange(count) + 0.5)),
    "bohman": _bohman,
    "parzen": _parzen,
    "tukey": _tukey,
    "kaiser": np.kaiser,
    "gaussian": lambda count, std: np.exp(-0.5 * (_centred(count) / std) ** 2),
    "general_gaussian": lambda count, p, sig: np.exp(-0.5 * np.abs(_centred(count) / sig) ** (2 * p)),
    "general_hamming": lambda count, alpha: _sum_of_cosines(count, (alpha, 1 - alpha)),
    "general_cosine": _sum_of_cosines,
    "exponential": lambda count, center=None, tau=1.0: np.exp(
        -np.abs(np.arange(count) - ((count - 1) / 2 if center is None else center)) / tau
    ),
}
_OTHER_NAMES = {
    "han": "hann", "hamm": "hamming", "ham": "hamming", "black": "blackman", "blk": "blackman",
    "box": "boxcar", "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar", "triangle": "triang",
    "tri": "triang", "bart": "bartlett", "brt": "bartlett", "halfcosine": "cosine", "blackharr": "blackmanharris",
    "bkh": "blackmanharris", "nutl": "nuttall", "nut": "nuttall", "flat": "flattop", "flt": "flattop",
    "bman": "bohman", "bmn": "bohman", "parz": "parzen", "par": "parzen", "tuk": "tukey", "ksr": "kaiser",
    "gauss": "gaussian", "gss": "gaussian", "poisson": "exponential",
}  # fmt: skip


@library("mlirml.signal")
def get_window(window: Any, Nx: int, fftbins: bool = True) -> np.ndarray:
    """The window of `Nx` numbers with a name, `(name, *parameters)`, or `beta` of a Kaiser window; f64[Nx].

    The names are SciPy's. With `fftbins` the window is periodic, for spectra; else it is symmetric, for filters. Raises
    `ArgumentError` for another name.
    """
    parameters: tuple[Any, ...] = ()
    if isinstance(window, (int, float)):
        window = ("kaiser", window)
    if isinstance(window, tuple):
        window, *rest = window
        parameters = tuple(rest)
    for suffix, periodic in (("_periodic", True), ("_symmetric", False)):
        if isinstance(window, str) and window.endswith(suffix):
            window, fftbins = window.removesuffix(suffix), periodic
    function = _WINDOWS.get(_OTHER_NAMES.get(window, window)) if isinstance(window, str) else None
    with at_user_line():
        if function is None:
            raise ArgumentError(f"get_window: no window {window!r}", help=f"take one of {', '.join(_WINDOWS)}")
        if Nx < 1:
            raise ArgumentError(f"get_window: the number of points is positive, not {Nx}")
        if Nx == 1:
            return np.ones(Nx)
        try:
            return function(Nx + 1, *parameters)[:Nx] if fftbins else np.asarray(function(Nx, *parameters))
        except TypeError:
            raise ArgumentError(f"get_window: {window!r} has other parameters than {parameters}") from None
