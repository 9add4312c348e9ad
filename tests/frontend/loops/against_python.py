"""Run a loop function in Python and compiled, on copies of the same arguments, and compare everything it leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml

TARGETS = ("cpu", "reference")


def check(function: Callable[..., Any], *arguments: Any, exact: bool = True, targets: tuple[str, ...] = TARGETS) -> Any:
    """Assert that results, dtypes and stores are Python's; gives Python's result."""
    expected_arguments = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        expected = function(*expected_arguments)
    for target in targets:
        given = copy.deepcopy(arguments)
        with ml.config.override(checks=target == "reference"):  # cpu is what runs by default
            result = ml.compile(function, target, frontend="loops")(*given)
        same(result, expected, exact, f"the result on {target}")
        for number, (one, other) in enumerate(zip(given, expected_arguments, strict=True)):
            same(one, other, exact, f"argument {number} on {target}")
    return expected


def same(found: Any, expected: Any, exact: bool, what: str) -> None:
    """Equal up to the last digits, of one structure and dtype."""
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected), what
        for one, other in zip(found, expected, strict=True):
            same(one, other, exact, what)
        return
    if expected is None or isinstance(expected, str):
        assert found == expected, what
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert one.shape == other.shape, what
    assert one.dtype == other.dtype, f"{what}: {one.dtype}, not {other.dtype}"
    tolerance = 16 * np.finfo(other.dtype).eps if other.dtype.kind in "fc" else 0
    if exact:
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_allclose(one, other, rtol=1e3 * tolerance, atol=1e3 * tolerance, err_msg=what)
