"""Functions of `scipy.special` that NumPy has, too."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.tracing.scipy_functions import NUMPY

special = pytest.importorskip("scipy.special")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int16, np.int8])
@pytest.mark.parametrize("name", [*NUMPY, "sinc"])
def test_a_function_that_numpy_has_is_compiled(name: str, dtype: type) -> None:
    function = getattr(special, name)
    x = np.array([0, 1, 2, 3]).astype(dtype)
    expected, found = function(x), ml.compile(lambda x: function(x))(x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps)


def test_another_function_has_the_name_of_its_module() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"`scipy\.special\.jv` is not compiled"):
        ml.compile(lambda x: special.jv(1, x))(np.ones(3))
