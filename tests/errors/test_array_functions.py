"""Arguments that functions which rearrange, scan, sort and summarise arrays do not take."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
import mlirml.numpy as mnp
from tests.errors.shown import check_error


def sorted_along(x: Any) -> Any:
    return np.sort(x, axis=2)


def rolled(x: Any, n: Any) -> Any:
    return np.roll(x, n)


def repeated(x: Any) -> Any:
    return np.repeat(x, [1, 2], axis=0)


def padded(x: Any) -> Any:
    return np.pad(x, 1, "maximum")


def widths(x: Any) -> Any:
    return np.pad(x, ((1, 1), (1, 1), (1, 1)))


def largest(x: Any) -> Any:
    return mnp.topk(x, 9)


def masked(x: Any) -> Any:
    return np.max(x, where=x > 0)


def normed(x: Any) -> Any:
    return np.linalg.norm(x, 3)


def share(x: Any, q: Any) -> Any:
    return np.quantile(x, q, method="lower")


def binned(x: Any) -> Any:
    return np.histogram(x, "auto")


def summed(x: Any) -> Any:
    return np.einsum("ij,jk,k", x, x, x)


def crossed(x: Any) -> Any:
    return np.cross(x, x)


def test_an_axis_that_is_not_there() -> None:
    check_error(
        lambda: ml.compile(sorted_along)(np.ones((3, 4))),
        """
        mlirml.IndexOutOfBoundsError: sort: axis 2 is out of bounds for an array of shape [3, 4]
          --> test_array_functions.py:15:12 (sorted_along)
            |
         15 |     return np.sort(x, axis=2)
            |            ^^^^^^^^^^^^^^^^^^
           = help: an axis lies between -2 and 1
        """,
    )


def test_an_array_of_shifts_known_at_run_time() -> None:
    check_error(
        lambda: ml.compile(rolled)(np.ones(4), np.array([1, 2])),
        """
        mlirml.ShapeError: roll: shifts known at run time are one number, or a tuple of one for each axis
          --> test_array_functions.py:19:12 (rolled)
            |
         19 |     return np.roll(x, n)
            |            ^^^^^^^^^^^^^
        """,
    )


def test_repeats_that_do_not_fit() -> None:
    check_error(
        lambda: ml.compile(repeated)(np.ones((3, 4))),
        """
        mlirml.ShapeError: repeat: 2 repeats for 3 elements along axis 0 of f64[3,4]
          --> test_array_functions.py:23:12 (repeated)
            |
         23 |     return np.repeat(x, [1, 2], axis=0)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_mode_that_is_not_compiled() -> None:
    check_error(
        lambda: ml.compile(padded)(np.ones((3, 4))),
        """
        mlirml.UnsupportedSyntaxError: pad: mode 'maximum' is not compiled
          --> test_array_functions.py:27:12 (padded)
            |
         27 |     return np.pad(x, 1, "maximum")
            |            ^^^^^^^^^^^^^^^^^^^^^^^
           = help: compiled are constant, edge, reflect, symmetric, wrap
        """,
    )


def test_widths_that_do_not_fit() -> None:
    check_error(
        lambda: ml.compile(widths)(np.ones((3, 4))),
        """
        mlirml.ShapeError: pad: pad_width [[1, 1], [1, 1], [1, 1]] gives no pair for each of 2 axes
          --> test_array_functions.py:31:12 (widths)
            |
         31 |     return np.pad(x, ((1, 1), (1, 1), (1, 1)))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_more_than_there_are() -> None:
    check_error(
        lambda: ml.compile(largest)(np.ones((3, 4))),
        """
        mlirml.ShapeError: topk: k is 9, but there are 4 elements along axis -1 of f64[3,4]
          --> test_array_functions.py:35:12 (largest)
            |
         35 |     return mnp.topk(x, 9)
            |            ^^^^^^^^^^^^^^
        """,
    )


def test_a_mask_without_an_initial_value() -> None:
    check_error(
        lambda: ml.compile(masked)(np.ones((3, 4))),
        """
        mlirml.ShapeError: max: with a mask, `initial` is needed too: there may be nothing to choose from
          --> test_array_functions.py:39:12 (masked)
            |
         39 |     return np.max(x, where=x > 0)
            |            ^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_norm_that_matrices_lack() -> None:
    check_error(
        lambda: ml.compile(normed)(np.ones((3, 4))),
        """
        mlirml.ShapeError: norm: 3 is no norm of a matrix
          --> test_array_functions.py:43:12 (normed)
            |
         43 |     return np.linalg.norm(x, 3)
            |            ^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_quantile_known_at_run_time() -> None:
    check_error(
        lambda: ml.compile(share)(np.ones(4), np.float64(0.5)),
        """
        mlirml.UnsupportedSyntaxError: quantile: only method='linear' is compiled for a q known at run time
          --> test_array_functions.py:47:12 (share)
            |
         47 |     return np.quantile(x, q, method="lower")
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: leave out `method` and `weights`, or make q static (`static_argnums`)
        """,
    )


def test_a_histogram_without_a_number_of_bins() -> None:
    check_error(
        lambda: ml.compile(binned)(np.ones(4)),
        """
        mlirml.ShapeError: histogram: the number of bins would depend on the data
          --> test_array_functions.py:51:12 (binned)
            |
         51 |     return np.histogram(x, "auto")
            |            ^^^^^^^^^^^^^^^^^^^^^^^
           = help: give `bins` as a number
        """,
    )


def test_subscripts_that_do_not_fit() -> None:
    check_error(
        lambda: ml.compile(summed)(np.ones((3, 4))),
        """
        mlirml.ShapeError: einsum: subscript 'k' in 'ij,jk,k' does not fit f64[3,4]
          --> test_array_functions.py:55:12 (summed)
            |
         55 |     return np.einsum("ij,jk,k", x, x, x)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_vectors_of_the_wrong_size() -> None:
    check_error(
        lambda: ml.compile(crossed)(np.ones((3, 4))),
        """
        mlirml.ShapeError: cross: vectors have 3 elements, not 4 and 4
          --> test_array_functions.py:59:12 (crossed)
            |
         59 |     return np.cross(x, x)
            |            ^^^^^^^^^^^^^^
        """,
    )
