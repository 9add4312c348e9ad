"""The Fourier transforms of the array API: NumPy's functions, which are operations in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.fft import *  # noqa: F403
from numpy.fft import __all__ as __all__

from mlirml.numpy.standard import _check_device


def fftfreq(  # type: ignore[no-redef]
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Any:
    """The frequencies of the `n` bins of `fft`, for samples `d` apart; f64 without `dtype`."""
    _check_device(device)
    return np.fft.fftfreq(n, d=d).astype(dtype, copy=False)


def rfftfreq(  # type: ignore[no-redef]
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Any:
    """The frequencies of the bins of `rfft` of `n` samples that are `d` apart; f64 without `dtype`."""
    _check_device(device)
    return np.fft.rfftfreq(n, d=d).astype(dtype, copy=False)
