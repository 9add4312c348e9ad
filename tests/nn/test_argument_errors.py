"""Errors about the arguments of functions of `mlirml.nn.functional`."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml.nn.functional as F


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "max_pool2d"])
def test_pythons_errors_about_arguments_name_the_function(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'foo'"):
        getattr(F, name)(np.ones((1, 1, 4)), np.ones((1, 1, 2)), foo=1)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required positional argument"):
        getattr(F, name)(np.ones((1, 1, 4)))
