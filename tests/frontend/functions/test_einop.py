"""`ml.einop` against a product over all axes, over random patterns; its errors show the axis in the pattern."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml

REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def grouped(rng: np.random.Generator, names: list[str]) -> list[list[str]]:
    """Neighbouring names in groups, and now and then a group of nothing."""
    groups: list[list[str]] = []
    for name in names:
        if groups and groups[-1] and rng.random() < 0.3:
            groups[-1].append(name)
        else:
            groups.append([name])
        if rng.random() < 0.1:
            groups.append([])
    return groups


def shown(rng: np.random.Generator, groups: list[list[str]]) -> str:
    one = ["()", "1"]
    return " ".join(one[rng.integers(2)] if not g else g[0] if len(g) == 1 else f"({' '.join(g)})" for g in groups)


def sizes_of(groups: list[list[str]], sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(math.prod(sizes[name] for name in group) for group in groups)


def random_case(seed: int) -> tuple[str, list[np.ndarray], dict[str, Any], np.ndarray]:
    """A pattern, its operands and options, and the result by one product over all axes."""
    rng = np.random.default_rng(seed)
    names = ["batch", "q", "key_2", "d", "height"][: rng.integers(1, 6)]
    sizes = {name: int(rng.integers(1, 4)) for name in [*names, "more"]}
    every, texts, arrays = [*names, "more"], [], []
    product = np.ones((), np.float64)
    for _ in range(rng.integers(1, 4)):
        own = list(rng.permutation(names)[: rng.integers(1, len(names) + 1)])
        groups = grouped(rng, own)
        array = rng.uniform(0.5, 1.5, sizes_of(groups, sizes))
        texts.append(shown(rng, groups))
        arrays.append(array)
        spread = array.reshape([sizes[name] for name in own]).transpose([own.index(n) for n in names if n in own])
        product = product * spread.reshape([sizes[n] if n in own else 1 for n in every])
    used = {name for text in texts for name in text.replace("(", " ").replace(")", " ").split()}
    wanted = [str(n) for n in rng.permutation([n for n in names if n in used])][: rng.integers(0, len(used) + 1)]
    if rng.random() < 0.3:
        wanted.insert(int(rng.integers(len(wanted) + 1)), "more")
    reduction = REDUCTIONS[rng.integers(5)]
    axes = tuple(i for i, name in enumerate(every) if name not in wanted and name != "more")
    reduced = getattr(np, reduction)(product, axis=axes, keepdims=True)
    full = np.broadcast_to(reduced, [sizes[n] if n in wanted else 1 for n in every])
    groups = grouped(rng, wanted)
    order = [every.index(name) for name in wanted] + [i for i, name in enumerate(every) if name not in wanted]
    expected = full.transpose(order).reshape(sizes_of(groups, sizes))
    given = {name: sizes[name] for name in [*used, *wanted] if name in sizes}
    return f"{', '.join(texts)} -> {shown(rng, groups)}", arrays, {**given, "reduction": reduction}, expected


@pytest.mark.parametrize("seed", range(200))
def test_random_patterns(seed: int) -> None:
    pattern, arrays, options, expected = random_case(seed)
    result = ml.einop(pattern, *arrays, **options)
    assert np.shape(result) == expected.shape, pattern
    np.testing.assert_allclose(result, expected, rtol=1e-12, err_msg=pattern)
    if seed < 40:
        target = ("cpu", "reference")[seed % 2]
        compiled = ml.compile(lambda *arrays: ml.einop(pattern, *arrays, **options), target=target)(*arrays)
        assert np.shape(compiled) == expected.shape, pattern
        np.testing.assert_allclose(compiled, expected, rtol=1e-12, err_msg=pattern)


X = np.arange(24.0).reshape(4, 6)


def test_an_ellipsis_is_any_number_of_axes() -> None:
    z = np.arange(20.0).reshape(5, 2, 2)
    np.testing.assert_array_equal(ml.einop("a ... -> (...) a", z), z.reshape(5, 4).T)
    np.testing.assert_array_equal(ml.einop("... a -> a", z, reduction="max"), z.max((0, 1)))
    w = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_allclose(ml.einop("... i j, ... j k -> ... i k", w[:1], w), w[:1] @ w)
    np.testing.assert_allclose(ml.einop("... i j, j k -> i k ...", w, w[0]), np.moveaxis(w @ w[0], 0, 2))


def test_a_number_is_an_axis_without_a_name() -> None:
    np.testing.assert_array_equal(
        ml.einop("(h 2) (w 3) -> h w", X, reduction="mean"), X.reshape(2, 2, 2, 3).mean((1, 3))
    )
    np.testing.assert_array_equal(ml.einop("h w -> (h 2) (w 3)", X), X.repeat(2, 0).repeat(3, 1))
    np.testing.assert_array_equal(ml.einop("h w -> h 1 w 1", X), X[:, None, :, None])


def test_an_axis_twice_is_a_diagonal() -> None:
    square = X[:, :4]
    np.testing.assert_array_equal(ml.einop("a a -> a", square), np.diag(square))
    assert ml.einop("a a ->", square) == np.trace(square)


def test_truth_is_counted_and_combined() -> None:
    mask = X > 7
    np.testing.assert_array_equal(ml.einop("a b -> b", mask), mask.sum(0))
    np.testing.assert_array_equal(ml.einop("a b, a b -> b", mask, mask), mask.sum(0))
    np.testing.assert_array_equal(ml.einop("a b -> b", mask, reduction="all"), mask.all(0))


def test_a_result_is_no_view_that_cannot_be_stored_into() -> None:
    result = ml.einop("a -> a b", np.ones(2), b=3)
    result[0, 0] = 5.0
    assert result.tolist() == [[5, 1, 1], [1, 1, 1]]


def test_derivatives_and_batches() -> None:
    def loss(q: Any, k: Any) -> Any:
        return np.sum(np.tanh(ml.einop("l (h d), s (h d) -> h l s", q, k, h=2)))

    q, k = np.sin(X), np.cos(X)
    scores = np.einsum("lhd,shd->hls", q.reshape(4, 2, 3), k.reshape(4, 2, 3))
    expected = np.einsum("hls,shd->lhd", 1 - np.tanh(scores) ** 2, k.reshape(4, 2, 3)).reshape(4, 6)
    np.testing.assert_allclose(ml.grad(loss)(q, k), expected, rtol=1e-12)
    batch = np.stack([q, k])
    lanes = ml.vmap(lambda x: ml.einop("a b -> b", x, reduction="max"))(batch)
    np.testing.assert_array_equal(lanes, batch.max(1))


ERRORS = {
    "a b c -> a": ("operand 1 has the shape [4, 6], and the pattern 3 dimensions", "^^^^^"),
    "(left right) c -> c": ("the sizes of left and right are not known", " ^^^^"),
    "a a -> a": ("axis a is 4, not the dimension of size 6", "  ^"),
    "rows (cols 4) -> rows": ("does not divide by 4", "      ^^^^"),
    "a 5 -> a": ("the axes make 5, not the dimension of size 6", "  ^"),
    "a b -> a new": ("no operand has axis new", "         ^^^"),
    "a b -> a a": ("the result has axis a twice", "         ^"),
    "a b -> a ...": ("no operand has", "         ^^^"),
    "a (b 2) -> a b 2": ("this 2 repeats the result", "               ^"),
    "(...) b -> b": ("`...` on the left is in no parentheses", " ^^^"),
    "a ( b -> a": ("this is not closed", "  ^"),
    "a b) -> a": ("nothing is open here", "   ^"),
    "a ((b)) -> a": ("parentheses in parentheses", "   ^"),
    "a b": ("no `->`", "   ^"),
    "a -> b -> a": ("2 `->`", "       ^^"),
    "a % b -> a": ("the pattern has '%'", "  ^"),
    "a b -> a, b": ("there is one result", "        ^"),
    "a, b -> a b": ("2 on the left, and there are 1 operand", "^^^^^"),
}


@pytest.mark.parametrize("pattern", ERRORS)
def test_errors_show_the_pattern(pattern: str) -> None:
    message, carets = ERRORS[pattern]
    with pytest.raises((ml.ShapeError, ml.ArgumentError)) as caught:
        ml.einop(pattern, X)
    text = str(caught.value)
    assert message in text and "test_einop.py" in text
    assert caught.value.notes[-2:] == (pattern, carets)


def test_wrong_options() -> None:
    with pytest.raises(ml.ArgumentError, match="no axis c"):
        ml.einop("a b -> a", X, c=3)
    with pytest.raises(ml.ShapeError, match="must be an integer"):
        ml.einop("a b -> a", X, b=6.0)  # type: ignore[arg-type]
    with pytest.raises(ml.ArgumentError, match="no reduction 'median'"):
        ml.einop("a b -> a", X, reduction="median")
    with pytest.raises(ml.ShapeError, match="axis b is 6, not the dimension of size 4 of operand 2"):
        ml.einop("a b, b -> a", X, np.ones(4))
