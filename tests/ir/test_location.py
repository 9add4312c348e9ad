"""MLIR locations to the user's source."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlirml
from mlirml.errors import SourceLocation
from mlirml.ir.bindings import mlir, parse
from mlirml.ir.location import is_unknown, location_in_text, source_location, source_locations

PACKAGE = Path(mlirml.__file__).parent


def location(text: str) -> mlir.Location:
    return parse(f"module {{}} loc({text})").operation.location


CASES = [
    ('"a.py":3:4', SourceLocation("a.py", 3, 4)),
    ('"a.py":3:4 to :9', SourceLocation("a.py", 3, 4, 3, 9)),
    ('"a.py":3:4 to 5:2', SourceLocation("a.py", 3, 4, 5, 2)),
    ('"loss"("a.py":3:4)', SourceLocation("a.py", 3, 4, function="loss")),
    ('callsite("g"("a.py":1:2) at "f"("b.py":3:4))', SourceLocation("a.py", 1, 2, function="g")),
    ('callsite(unknown at "f"("b.py":3:4))', SourceLocation("b.py", 3, 4, function="f")),
    ('fused[unknown, "x", "a.py":3:4, "b.py":5:6]', SourceLocation("a.py", 3, 4)),
    ('fused<"fusion">["f"("a.py":3:4), "b.py":5:6]', SourceLocation("a.py", 3, 4, function="f")),
    (f'callsite("{PACKAGE}/nn/linear.py":7:1 at "a.py":3:4)', SourceLocation("a.py", 3, 4)),
    (f'"{PACKAGE}/nn/linear.py":7:1', SourceLocation(f"{PACKAGE}/nn/linear.py", 7, 1)),
    ('"a.py":0:0', None),
    ('"only a name"', None),
    ("unknown", None),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0].replace(str(PACKAGE), "mlirml") for case in CASES])
def test_the_innermost_user_place_is_found(text: str, expected: SourceLocation | None) -> None:
    assert source_location(location(text)) == expected


def test_all_places_come_innermost_first_and_once() -> None:
    nested = location('callsite("g"("a.py":1:2) at fused["f"("b.py":3:4), "g"("a.py":1:2), "c.py":5:6])')
    assert [str(place) for place in source_locations(nested)] == ["a.py:1:2 (g)", "b.py:3:4 (f)", "c.py:5:6"]


@pytest.mark.parametrize("text", ["unknown", "fused[unknown, unknown]", "callsite(unknown at fused[unknown])"])
def test_a_place_that_names_nothing_is_unknown(text: str) -> None:
    assert is_unknown(location(text))


@pytest.mark.parametrize("text", ['"name"', 'fused[unknown, "a.py":1:1]', 'callsite(unknown at "a.py":1:1)'])
def test_a_place_that_names_something_is_known(text: str) -> None:
    assert not is_unknown(location(text))


def test_the_place_of_a_diagnostic_is_found() -> None:
    with pytest.raises(mlir.MLIRError) as caught:
        parse('"builtin.module"() ({ "arith.addi"() : () -> () loc("f"("a.py":3:4)) }) : () -> ()')
    place = caught.value.error_diagnostics[0].location
    assert source_location(place) == SourceLocation("a.py", 3, 4, function="f")


def test_a_place_is_found_in_text() -> None:
    assert location_in_text('error at loc("a b.py":12:3): no') == SourceLocation("a b.py", 12, 3)
    assert location_in_text("no place") is None
