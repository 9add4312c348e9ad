"""Filters and interpolation of images of any number of dimensions: functions of `scipy.ndimage` under their names.

They run compiled and not, and have derivatives; compiled functions may call SciPy's own, too.

>>> import numpy as np, mlirml as ml
>>> from mlirml import ndimage
>>> ml.compile(lambda x: ndimage.gaussian_filter(x, 1.0))(np.eye(3)).round(3).tolist()
[[0.509, 0.297, 0.194], [0.297, 0.406, 0.297], [0.194, 0.297, 0.509]]
"""

from __future__ import annotations

from mlirml.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from mlirml.ndimage.interpolation import affine_transform, map_coordinates, rotate, shift, zoom
from mlirml.ndimage.ranks import (
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    maximum_filter,
    median_filter,
    minimum_filter,
    percentile_filter,
    rank_filter,
)

__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening",
    "laplace", "map_coordinates", "maximum_filter", "median_filter", "minimum_filter", "percentile_filter", "prewitt",
    "rank_filter", "rotate", "shift", "sobel", "uniform_filter", "uniform_filter1d", "zoom",
]  # fmt: skip
