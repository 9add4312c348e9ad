"""Lists and dicts whose length would depend on the data."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

V = np.arange(5.0) - 2


def picked(x: Any) -> Any:
    found = {"high": []}
    for i in range(1):
        if x[i] > 0:
            found["high"].append(x[i])
    return found["high"]


def named(x: Any) -> Any:
    found = {}
    for i in range(2):
        if x[i] > 0:
            found["high"] = i
        else:
            found["low"] = i
    return found


def grown(x: Any) -> Any:
    got = {"a": []}
    i = 0
    while i < len(x):
        got["a"].append(x[i])
        i += 1
    return got["a"]


def test_a_list_in_a_dict_grows_in_one_branch() -> None:
    check_error(
        lambda: ml.compile(picked)(V),
        """
        mlirml.UnsupportedSyntaxError: `found['high']` holds 1 element in one branch and 0 elements in the other
          --> test_loops_containers.py:18:12 (picked)
            |
         18 |         if x[i] > 0:
            |            ^^^^^^^^
           = help: store numbers into an array, and count them in a variable
        """,
    )


def test_a_dict_gets_another_key_in_each_branch() -> None:
    check_error(
        lambda: ml.compile(named, frontend="loops")(V),
        """
        mlirml.UnsupportedSyntaxError: `found` holds 'high' in one branch and 'low' in the other
          --> test_loops_containers.py:26:12 (named)
            |
         26 |         if x[i] > 0:
            |            ^^^^^^^^
           = help: store numbers into an array, and count them in a variable
        """,
    )


def test_a_list_in_a_dict_grows_in_a_while_loop() -> None:
    check_error(
        lambda: ml.compile(grown, frontend="loops")(V),
        """
        mlirml.UnsupportedSyntaxError: `got['a']` has 0 elements before an iteration of the loop and 1 element after it
          --> test_loops_containers.py:36:11 (grown)
            |
         36 |     while i < len(x):
            |           ^^^^^^^^^^
           = help: store into an array made before the loop, `out[i] = x`
        """,
    )
