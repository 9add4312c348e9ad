"""Filters, morphology and interpolation of images under SciPy's names, compiled or not, of arrays of any rank.

Compiled functions may call those of `scipy.ndimage` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import ndimage
>>> image = np.zeros((3, 3))
>>> image[1, 1] = 1
>>> ml.compile(lambda x: ndimage.uniform_filter(x, (1, 3)))(image)[1].round(3)
array([0.333, 0.333, 0.333])
>>> ml.compile(lambda x: ndimage.shift(x, 0.5, order=1))(image)
array([[0.  , 0.  , 0.  ],
       [0.  , 0.25, 0.25],
       [0.  , 0.25, 0.25]])
"""

from mlirml.ndimage.binary import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_opening,
    binary_propagation,
    generate_binary_structure,
)
from mlirml.ndimage.distances import distance_transform_bf, distance_transform_cdt, distance_transform_edt
from mlirml.ndimage.interpolation import affine_transform, map_coordinates, rotate, shift, zoom
from mlirml.ndimage.labels import (
    center_of_mass,
    histogram,
    label,
    maximum,
    mean,
    minimum,
    standard_deviation,
    sum_labels,
    variance,
)
from mlirml.ndimage.linear_filters import (
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
from mlirml.ndimage.rank_filters import (
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    morphological_gradient,
    percentile_filter,
    rank_filter,
)
from mlirml.ndimage.splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_opening",
    "binary_propagation", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d",
    "distance_transform_bf", "distance_transform_cdt", "distance_transform_edt", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "generate_binary_structure",
    "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "histogram", "label", "laplace",
    "map_coordinates", "maximum", "maximum_filter", "maximum_filter1d", "mean", "median_filter", "minimum",
    "minimum_filter", "minimum_filter1d", "morphological_gradient", "percentile_filter", "prewitt", "rank_filter",
    "rotate", "shift", "sobel", "spline_filter", "spline_filter1d", "standard_deviation", "sum_labels",
    "uniform_filter", "uniform_filter1d", "variance", "zoom",
]  # fmt: skip
