"""Chains of products in another order, against NumPy, and what `config.algebra` and `explain` make of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.no_match import NoMatch
from mlirml.pipelines.tensor.products.orders import Problem, best_tree, cost_of


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    numbers = np.random.default_rng(7)
    return [(numbers.standard_normal(shape) * 3).astype(dtype) for shape in shapes]


def chain(a: Any, b: Any, c: Any, d: Any) -> Any:
    return ((a @ b) @ c) @ d


LONG = [(300, 5), (5, 300), (300, 5), (5, 70)]


def algebra_of(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


def test_a_chain_gets_cheaper_and_explain_names_it() -> None:
    given = arrays(*LONG)
    compiled = ml.compile(chain)
    np.testing.assert_allclose(compiled(*given), chain(*given), rtol=1e-10)
    text = algebra_of(compiled)
    assert "((a @ b) @ c) @ d is computed as a @ ((b @ c) @ d): 2.01 Mflop become 228 kflop" in text
    line = chain.__code__.co_firstlineno + 1
    assert f"test_order_products.py:{line}:" in text


def test_explain_tells_the_same_of_a_program_from_the_cache(tmp_path: Any) -> None:
    given = arrays(*LONG)
    with ml.config.override(cache=True, cache_dir=tmp_path):
        texts = []
        for _ in range(2):
            compiled = ml.compile(chain)
            compiled(*given)
            texts.append(algebra_of(compiled))
    assert texts[0] == texts[1] != ""


def test_exact_leaves_floats_and_orders_integers() -> None:
    with ml.config.override(algebra="exact"):
        compiled = ml.compile(chain)
        given = arrays(*LONG)
        np.testing.assert_allclose(compiled(*given), chain(*given), rtol=1e-10)
        assert algebra_of(compiled) == ""
        given = arrays(*LONG, dtype=np.int16)
        compiled = ml.compile(chain)
        np.testing.assert_array_equal(compiled(*given), chain(*given))
        assert "become" in algebra_of(compiled)


def test_exact_keeps_infinities_that_another_order_would_not_meet() -> None:
    """With `a @ b` first the products overflow; `b @ c` is zero."""
    a, b, c = np.full((8, 1), 1e300), np.full((1, 8), 1e300), np.array([1.0, -1.0] * 4)
    with ml.config.override(algebra="exact"), np.errstate(all="ignore"):
        got, expected = ml.compile(lambda a, b, c: a @ b @ c)(a, b, c), a @ b @ c
    assert np.isnan(expected).all() and np.isnan(got).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap_around_to_the_same_numbers(dtype: Any) -> None:
    numbers = np.random.default_rng(3)
    top = np.iinfo(dtype).max
    given = [numbers.integers(-top, top, shape, dtype=dtype) for shape in LONG]
    np.testing.assert_array_equal(ml.compile(chain)(*given), chain(*given))


def test_truth_values_are_no_integers() -> None:
    given = arrays((40, 3), (3, 40), (40,), dtype=np.bool_)
    given = [np.arange(array.size).reshape(array.shape) % 3 == 0 for array in given]
    compiled = ml.compile(lambda a, b, c: a @ b @ c)
    np.testing.assert_array_equal(compiled(*given), given[0] @ given[1] @ given[2])


FORMS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (lambda a, b, v: a @ b @ v, [(90, 4), (4, 80), (80,)]),
    (lambda v, a, b: v @ (a @ b), [(90,), (90, 4), (4, 80)]),
    (lambda a, b, c: (a @ b).T @ c, [(90, 4), (4, 80), (90, 3)]),
    (lambda a, b, c: a @ b @ c, [(2, 90, 4), (4, 80), (2, 80, 3)]),
    (lambda a, b, c: a @ b @ c, [(5, 2, 90, 4), (2, 4, 80), (80, 3)]),
    (lambda a, b, c: np.swapaxes(a @ b, 1, 2) @ c, [(2, 90, 4), (2, 4, 80), (2, 90, 3)]),
    (lambda a, v: a.T @ (a @ a.T) @ v, [(4, 90), (4,)]),
    (lambda a, v: np.linalg.matrix_power(a, 3) @ v, [(70, 70), (70,)]),
]


@pytest.mark.parametrize("form", range(len(FORMS)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_forms_of_chains(form: int, dtype: Any) -> None:
    function, shapes = FORMS[form]
    given = arrays(*shapes, dtype=dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert "become" in algebra_of(compiled)


def test_products_that_are_used_elsewhere_stay() -> None:
    def both(a: Any, b: Any, v: Any) -> Any:
        product = a @ b
        return product, product @ v

    given = arrays((90, 4), (4, 80), (80,))
    compiled = ml.compile(both)
    for one, other in zip(compiled(*given), both(*given)):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    assert algebra_of(compiled) == ""


def test_gradients_order_their_products() -> None:
    def loss(a: Any, b: Any, c: Any) -> Any:
        return np.sum((a @ b @ c) ** 2)

    a, b, c = given = arrays((90, 4), (4, 80), (80, 6))
    compiled = ml.compile(ml.grad(loss))
    np.testing.assert_allclose(compiled(*given), 2 * (a @ b @ c) @ c.T @ b.T, rtol=1e-10)
    assert algebra_of(compiled).count("become") == 2


def test_loops_keep_what_does_not_change_out_of_the_loop() -> None:
    def repeated(a: Any, b: Any, x: Any) -> Any:
        return ml.fori_loop(0, 300, lambda i, x: np.tanh(x @ a @ b), x)

    given = arrays((40, 40), (40, 40), (40,))
    given = [given[0] / 100, given[1] / 100, given[2]]
    compiled = ml.compile(repeated)
    np.testing.assert_allclose(compiled(*given), repeated(*given), rtol=1e-8, atol=1e-12)
    assert "(a @ b) @ c is computed as a @ (b @ c)" in algebra_of(compiled)


def problem(sizes: list[int]) -> Problem:
    """The chain of matrices of these sizes."""
    factors = tuple(frozenset([d, d + 1]) for d in range(len(sizes) - 1))
    return Problem(factors, frozenset([0, len(sizes) - 1]), dict(enumerate(sizes)), 4)


def all_trees(first: int, count: int) -> list[Any]:
    if count == 1:
        return [first]
    return [
        (left, right)
        for size in range(1, count)
        for left, right in itertools.product(all_trees(first, size), all_trees(first + size, count - size))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_is_the_cheapest_of_all(seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(1, 300, 7).tolist()
    tree, cost = best_tree(problem(sizes))
    assert cost.time == pytest.approx(min(cost_of(problem(sizes), each).time for each in all_trees(0, 6)))
    assert cost_of(problem(sizes), tree).time == pytest.approx(cost.time)


def test_factors_without_a_dim_in_common_have_no_order() -> None:
    with pytest.raises(NoMatch):
        best_tree(Problem((frozenset([0]), frozenset([1])), frozenset([0, 1]), {0: 3, 1: 4}, 4))
