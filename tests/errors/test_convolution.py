"""Convolutions and poolings whose shapes or arguments do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F
from tests.errors.shown import check_error


def convolve(x: Any, w: Any, **options: Any) -> Any:
    return F.conv2d(x, w, **options)


def same(x: Any, w: Any) -> Any:
    return convolve(x, w, stride=2, padding="same")


def with_bias(x: Any, w: Any, b: Any) -> Any:
    return F.conv2d(x, w, b)


def pool(x: Any, **options: Any) -> Any:
    return F.max_pool2d(x, 3, **options)


def mean(x: Any) -> Any:
    return F.avg_pool2d(x, 2)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


CALLS = {
    "channels": lambda: ml.compile(convolve)(ones(1, 4, 8, 8), ones(6, 3, 3, 3)),
    "exchanged": lambda: ml.compile(convolve)(ones(1, 6, 8, 8), ones(6, 4, 3, 3)),
    "depthwise": lambda: ml.compile(convolve)(ones(1, 6, 8, 8), ones(6, 1, 3, 3)),
    "groups_of_channels": lambda: ml.compile(lambda x, w: convolve(x, w, groups=3))(ones(1, 4, 8, 8), ones(6, 1, 3, 3)),
    "groups_of_filters": lambda: ml.compile(lambda x, w: convolve(x, w, groups=2))(ones(1, 4, 8, 8), ones(5, 2, 3, 3)),
    "large_kernel": lambda: ml.compile(lambda x, w: convolve(x, w, padding=1))(ones(1, 4, 2, 8), ones(6, 4, 5, 3)),
    "dilated_kernel": lambda: ml.compile(lambda x, w: convolve(x, w, dilation=4))(ones(1, 4, 8, 8), ones(6, 4, 3, 3)),
    "rank": lambda: ml.compile(convolve)(ones(8, 8), ones(6, 4, 3, 3)),
    "weight_rank": lambda: ml.compile(convolve)(ones(1, 4, 8, 8), ones(6, 4, 3)),
    "bias": lambda: ml.compile(with_bias)(ones(1, 4, 8, 8), ones(6, 4, 3, 3), ones(4)),
    "stride": lambda: ml.compile(lambda x, w: convolve(x, w, stride=(1, 2, 3)))(ones(1, 4, 8, 8), ones(6, 4, 3, 3)),
    "same": lambda: ml.compile(same)(ones(1, 4, 8, 8), ones(6, 4, 3, 3)),
    "bools": lambda: ml.compile(convolve)(np.ones((1, 4, 8, 8), bool), ones(6, 4, 3, 3)),
    "pool_padding": lambda: ml.compile(lambda x: pool(x, padding=2))(ones(1, 4, 8, 8)),
    "pool_rank": lambda: ml.compile(pool)(ones(8, 8)),
    "mean_of_integers": lambda: ml.compile(mean)(np.ones((1, 4, 8, 8), np.int32)),
    "real_arrays": lambda: convolve(ones(1, 4, 8, 8), ones(6, 3, 3, 3)),
}  # fmt: skip


EXPECTED = {
    "channels": """
        mlirml.ShapeError: conv2d: the weight f32[6,3,3,3] has 3 channels, the input f32[1,4,8,8] has 4
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "exchanged": """
        mlirml.ShapeError: conv2d: the weight f32[6,4,3,3] has 4 channels, the input f32[1,6,8,8] has 6
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: the weight is [F, C / groups, kernel]: its first two dimensions look exchanged
        """,
    "depthwise": """
        mlirml.ShapeError: conv2d: the weight f32[6,1,3,3] has 1 channel, the input f32[1,6,8,8] has 6
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: did you mean `groups=6`?
        """,
    "groups_of_channels": """
        mlirml.ShapeError: conv2d: the 4 channels of the input f32[1,4,8,8] do not divide into 3 groups
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "groups_of_filters": """
        mlirml.ShapeError: conv2d: the 5 filters of the weight f32[5,2,3,3] do not divide into 2 groups
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "large_kernel": """
        mlirml.ShapeError: conv2d: a kernel of size [5, 3] is larger than the padded input
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: the input is f32[1,4,2,8], padded to [4, 10]
           = help: pad more, or take a smaller kernel
        """,
    "dilated_kernel": """
        mlirml.ShapeError: conv2d: a kernel of size [3, 3], dilated by 4, is larger than the padded input
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: the input is f32[1,4,8,8], padded to [8, 8]
           = help: pad more, or take a smaller kernel
        """,
    "rank": """
        mlirml.ShapeError: conv2d: the input must be [N, C, H, W], N may be missing, got f32[8,8]
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "weight_rank": """
        mlirml.ShapeError: conv2d: the weight must have 4 dimensions [F, C / groups, kernel], got f32[6,4,3]
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "bias": """
        mlirml.ShapeError: conv2d: the bias must have one element for each of the 6 filters, got f32[4]
          --> test_convolution.py:24:12 (with_bias)
            |
         24 |     return F.conv2d(x, w, b)
            |            ^^^^^^^^^^^^^^^^^
        """,
    "stride": """
        mlirml.ShapeError: conv2d: stride must be an integer or 2 of them, got (1, 2, 3)
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "same": """
        mlirml.ShapeError: conv2d: padding='same' has no meaning with stride 2
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give the padding as numbers
        """,
    "bools": """
        mlirml.DTypeError: conv2d: the input must hold real numbers, got bool[1,4,8,8]
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "pool_padding": """
        mlirml.ShapeError: max_pool2d: padding must lie between 0 and half of the kernel, got 2 with kernel_size 3
          --> test_convolution.py:28:12 (pool)
            |
         28 |     return F.max_pool2d(x, 3, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "pool_rank": """
        mlirml.ShapeError: max_pool2d: the input must be [N, C, H, W], N may be missing, got f32[8,8]
          --> test_convolution.py:28:12 (pool)
            |
         28 |     return F.max_pool2d(x, 3, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    "mean_of_integers": """
        mlirml.DTypeError: avg_pool2d: the input must hold floats, got i32[1,4,8,8]
          --> test_convolution.py:32:12 (mean)
            |
         32 |     return F.avg_pool2d(x, 2)
            |            ^^^^^^^^^^^^^^^^^^
           = help: convert it with `.astype(np.float32)`
        """,
    "real_arrays": """
        mlirml.ShapeError: conv2d: the weight f32[6,3,3,3] has 3 channels, the input f32[1,4,8,8] has 4
          --> test_convolution.py:16:12 (convolve)
            |
         16 |     return F.conv2d(x, w, **options)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
}


@pytest.mark.parametrize("name", CALLS)
def test_shown(name: str) -> None:
    check_error(CALLS[name], EXPECTED[name])
