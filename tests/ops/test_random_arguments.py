"""Arguments drawn at random for operations with many forms: einsum, pad, roll, tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mlirml as ml
from tests.fuzz.oracle import assert_same

SIZES = dict(zip("abcde", (2, 3, 4, 1, 5)))


def agrees(function: Any, *arrays: np.ndarray, rtol: float = 0.0) -> None:
    """Both targets give what NumPy gives."""
    for target in ("cpu", "reference"):
        assert_same(ml.compile(function, target)(*arrays), function(*arrays), target, rtol)


@st.composite
def subscripts(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """A text for einsum with one to five operands, and their shapes; some sizes are 1 and broadcast."""
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 5))):
        letters = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=3))
        dots = draw(st.booleans())
        shape = [SIZES[c] for c in letters]
        if len(set(letters)) == len(letters) and draw(st.integers(0, 4)) == 0:
            shape[0] = 1
        terms.append(("..." if dots else "") + "".join(letters))
        shapes.append((*([2] if dots else []), *shape))
    text = ",".join(terms)
    used = sorted({c for c in text if c.isalpha()})
    out = draw(
        st.one_of(st.none(), st.permutations(used).flatmap(lambda p: st.integers(0, len(p)).map(lambda n: p[:n])))
    )
    if out is not None:
        text += "->" + ("..." if "..." in text else "") + "".join(out)
    return text, shapes


@settings(max_examples=40)
@given(subscripts(), st.integers(0, 1 << 30))
def test_einsum(drawn: tuple[str, list[tuple[int, ...]]], seed: int) -> None:
    text, shapes = drawn
    random = np.random.default_rng(seed)
    arrays = [random.integers(-3, 4, shape).astype(np.float64) for shape in shapes]
    agrees(lambda *arrays: np.einsum(text, *arrays) + 0.0, *arrays)  # the sign of a zero is as the order of products


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


@settings(max_examples=20)
@given(st.data(), SHAPES, st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
def test_pad(data: st.DataObject, shape: tuple[int, ...], mode: Any) -> None:
    widths = [data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in shape]
    agrees(lambda x: np.pad(x, widths, mode), np.arange(np.prod(shape)).reshape(shape))


@settings(max_examples=15)
@given(st.data(), SHAPES)
def test_roll_and_tile(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axes = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
    shifts = [data.draw(st.integers(-9, 9)) for _ in axes]
    counts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    agrees(lambda x: (np.roll(x, shifts, axes), np.roll(x, shifts[0]), np.tile(x, counts)), x)
