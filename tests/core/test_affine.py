"""Linear expressions: arithmetic, substitution, ranges."""

from __future__ import annotations

from mlirml.core.affine import Linear

ROW, COLUMN = Linear.of("i"), Linear.of("j")


def test_terms_add_up_and_vanish() -> None:
    assert ROW * 2 + COLUMN - ROW == ROW + COLUMN
    assert (ROW + COLUMN - ROW - COLUMN).is_constant
    assert Linear() == ROW * 0
    assert Linear(5, {"i": 2}) == (ROW + 3) * 2 - 1


def test_equal_expressions_are_one_key_whatever_the_order_of_their_terms() -> None:
    assert {ROW + COLUMN: 1}[COLUMN + ROW] == 1


def test_a_product_has_a_constant_factor() -> None:
    assert ROW.times(Linear(3)) == Linear(3).times(ROW) == ROW * 3
    assert ROW.times(COLUMN) is None


def test_a_variable_is_replaced_by_an_expression() -> None:
    assert (ROW * 2 + COLUMN).replaced("i", COLUMN - 1) == COLUMN * 3 - 2
    assert COLUMN.replaced("i", COLUMN) == COLUMN
    assert (ROW + COLUMN + 1).without("i") == COLUMN + 1


def test_the_only_variable() -> None:
    assert ROW.variable == "i"
    assert (ROW + 1).variable is (ROW * 2).variable is (ROW + COLUMN).variable is None


def test_the_range_over_spans() -> None:
    assert (ROW * 2 - COLUMN + 1).range({"i": (0, 4), "j": (1, 3)}) == (-2, 8)
    assert (ROW + COLUMN).range({"i": (0, 4)}) == (None, None)
    assert Linear(7).range({}) == (7, 7)
