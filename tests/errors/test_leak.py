"""Traced arrays that outlive the function, or that are used in the trace of another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

KEPT: Any = threading.local()


def keep(x: Any) -> Any:
    KEPT.value = x + 1
    return x


def use(x: Any) -> Any:
    return x * KEPT.value


def use_outside() -> Any:
    return np.sum(KEPT.value)


def two_traces(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return x + y

    return ml.compile(inner)(2.0)


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    ml.compile(keep)(np.ones(3))
    yield
    del KEPT.value


def test_in_a_later_trace() -> None:
    check_error(
        lambda: ml.compile(use)(np.ones(3)),
        """
        mlirml.LeakedTracerError: a traced array (f64[3]) is used after `keep` was traced
          --> test_leak.py:24:12 (use)
            |
         24 |     return x * KEPT.value
            |            ^^^^^^^^^^^^^^
           = help: return it from the function; do not keep it in a global, a closure or an attribute
        """,
    )


def test_outside_of_any_trace() -> None:
    check_error(
        use_outside,
        """
        mlirml.LeakedTracerError: a traced array (f64[3]) is used after `keep` was traced
          --> test_leak.py:28:12 (use_outside)
            |
         28 |     return np.sum(KEPT.value)
            |            ^^^^^^^^^^^^^^^^^^
           = help: return it from the function; do not keep it in a global, a closure or an attribute
        """,
    )


def test_in_an_inner_trace() -> None:
    check_error(
        lambda: ml.compile(two_traces)(np.ones(3)),
        """
        mlirml.CaptureError: an array of the trace of `inner` is used in the trace of `two_traces`
          --> test_leak.py:33:16 (inner)
            |
         33 |         return x + y
            |                ^^^^^
           = help: pass it as an argument
        """,
    )
