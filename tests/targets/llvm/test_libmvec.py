"""`config.math = "libmvec"`: loops call glibc's vector functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.targets import cpu
from mlirml.targets.registry import get_target
from tests.pipelines.llvm.test_expand_math import errors, reference

HERE = cpu.has_libmvec()
needs_libmvec = pytest.mark.skipif(not HERE, reason="needs the vector functions of glibc 2.35 on x86-64")
FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "atan": np.arctan, "cbrt": np.cbrt,
}  # fmt: skip


def compiled(function: Any) -> Any:
    with ml.config.override(math="libmvec"):
        return ml.compile(function)


@needs_libmvec
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_glibc(name: str, dtype: type) -> None:
    x = np.random.default_rng(0).uniform(0.01, 30, 1003).astype(dtype)
    function = compiled(FUNCTIONS[name])
    assert re.search(rf"call .*_ZGV[bde]N\d+v_{name}", optimised(function, x))
    assert errors(function(x), reference(name, x)).max() <= 4


def optimised(function: Any, x: Any) -> str:
    """The program in LLVM's language after its passes."""
    from mlirml.targets.llvm.codegen import optimised_ir

    return optimised_ir(function.lower(x).module.operation)


@needs_libmvec
def test_functions_of_two_arguments_and_small_floats() -> None:
    x = np.random.default_rng(0).uniform(0.1, 5, (2, 1000)).astype(np.float32)
    given = compiled(lambda x, y: x**y + np.arctan2(x, y))(*x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(given, wide[0] ** wide[1] + np.arctan2(*wide), rtol=5e-7)
    half = x[0].astype(np.float16)
    np.testing.assert_array_equal(compiled(np.exp)(half), ml.compile(np.exp)(half))


@needs_libmvec
def test_programs_of_either_kind_have_different_keys() -> None:
    ours = get_target("cpu")
    with ml.config.override(math="libmvec"):
        theirs = get_target("cpu")
    assert ours.fingerprint() != theirs.fingerprint()
    assert get_target("cpu") == ours


def test_error_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_libmvec", lambda: False)
    with pytest.raises(ml.errors.TargetError, match="no vector functions of glibc"):
        compiled(np.exp)


def test_setting_takes_two_words() -> None:
    with pytest.raises(ValueError, match="expected 'builtin' or 'libmvec'"):
        ml.config.math = "svml"
