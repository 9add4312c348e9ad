"""Convolutions, filters and spectra under the names of `scipy.signal`, compiled or not.

Compiled functions may call those of `scipy.signal` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import signal
>>> smooth = ml.compile(lambda x: signal.lfilter([0.5], [1.0, -0.5], x))
>>> smooth(np.array([1.0, 1.0, 1.0]))
array([0.5  , 0.75 , 0.875])
"""

from mlirml.signal.convolutions import (
    choose_conv_method,
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    correlation_lags,
    fftconvolve,
    oaconvolve,
)
from mlirml.signal.filters import (
    filtfilt,
    lfilter,
    lfilter_zi,
    savgol_coeffs,
    savgol_filter,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from mlirml.signal.spectra import (
    coherence,
    csd,
    detrend,
    hilbert,
    istft,
    periodogram,
    resample,
    spectrogram,
    stft,
    welch,
)
from mlirml.signal.windows import get_window

__all__ = [
    "choose_conv_method", "coherence", "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "csd",
    "detrend", "fftconvolve", "filtfilt", "get_window", "hilbert", "istft", "lfilter", "lfilter_zi", "oaconvolve",
    "periodogram", "resample", "savgol_coeffs", "savgol_filter", "sosfilt", "sosfilt_zi", "sosfiltfilt", "spectrogram",
    "stft", "welch",
]  # fmt: skip
