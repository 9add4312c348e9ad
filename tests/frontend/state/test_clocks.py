"""Clocks that are read while a function is traced."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.ones(3)


def test_what_is_logged_has_its_time() -> None:
    def f(x: Any) -> Any:
        logging.getLogger("mlirml.test").warning("%s is not called", clock)
        return x + 1

    clock = time.monotonic
    assert np.array_equal(ml.compile(f)(X), X + 1)


def test_a_clock_of_the_function_itself_is_refused() -> None:
    def f(x: Any) -> Any:
        return x + clock()

    clock = time.monotonic
    with pytest.raises(ml.UnsupportedSyntaxError, match="would be called once"):
        ml.compile(f)(X)


def test_a_clock_of_a_module_in_a_closure_is_refused() -> None:
    import secrets
    import time as watch

    for f in (lambda x: x + watch.perf_counter(), lambda x: x * secrets.randbelow(9)):
        with pytest.raises(ml.UnsupportedSyntaxError, match="would be called once"):
            ml.compile(f)(X)


def test_a_clock_that_the_function_imports_is_refused() -> None:
    def f(x: Any) -> Any:
        import time

        return x + time.time()

    def g(x: Any) -> Any:
        from time import time

        return x + time()

    for function in (f, g):
        with pytest.raises(ml.UnsupportedSyntaxError, match=r"`time\.time` would be called once"):
            ml.compile(function)(X)


def test_a_module_that_reads_a_clock_when_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        import random  # seeds its generator

        return x * 2 if random else x

    monkeypatch.delitem(sys.modules, "random")
    assert np.array_equal(ml.compile(f)(X), 2 * X)
