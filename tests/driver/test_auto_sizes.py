"""The default of `dynamic`: which calls have programs of dynamic sizes, and which sizes get programs of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.driver import dynamic
from mlirml.errors import ArgumentError

RNG = np.random.default_rng(3)
WEIGHTS = RNG.standard_normal((16, 24)).astype(np.float32)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def layer(x: Any) -> Any:
    return np.maximum(x @ WEIGHTS, 0)


def check(f: Any, fn: Any, *args: Any) -> None:
    got, want = f(*args), fn(*args)
    for mine, theirs in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_the_third_size_is_dynamic_by_default() -> None:
    f = ml.compile(layer)
    for n in (5, 9, 30, 31, 200, 7):
        check(f, layer, array(n, 16))
    assert f._compiled == 3
    assert "f32[x.shape[0],16]" in f.explain()


def test_a_dimension_of_one_element_leaves_the_others_dynamic() -> None:
    f = ml.compile(layer)
    for n in (1, 5, 9, 30, 31, 200, 7):
        check(f, layer, array(n, 1, 16))
    assert f._compiled == 3  # of 1, of 5, and of all others
    assert "f32[x.shape[0],1,16]" in f.explain()


def test_dimensions_become_dynamic_one_after_another() -> None:
    f = ml.compile(lambda x, y: x[:, None] * y + x.sum())
    sizes = [(3, 4), (5, 4), (6, 4), (7, 7), (8, 9), (30, 31), (5, 64), (64, 5), (9, 2)]
    for n, m in sizes:
        check(f, f.fn, array(n), array(m))
    assert f._compiled == 5  # two of the first sizes, of n, of n where m is 7, and of n and m


@pytest.mark.parametrize("how", ["option", "setting", "names"])
def test_sizes_stay_static_where_that_is_chosen(how: str) -> None:
    with config.override(dynamic="off" if how == "setting" else "auto"):
        f = ml.compile(layer, dynamic={"option": "off", "setting": None, "names": {}}[how])
    for n in (5, 9, 30, 31):
        check(f, layer, array(n, 16))
    assert f._compiled == 4
    assert "stays static" not in f.explain()


def test_the_first_two_sizes_keep_their_programs() -> None:
    f = ml.compile(layer)
    for n in (5, 9, 30):
        check(f, layer, array(n, 16))
    assert f._prepared((array(5, 16),), {})[1].captured.is_dynamic is False
    assert f._prepared((array(9, 16),), {})[1].values is None
    assert f._prepared((array(30, 16),), {})[1].values == {"x.shape[0]": 30}
    assert f._compiled == 3


def test_images_of_batches_of_any_size_have_one_program() -> None:
    functions = ml.nn.functional
    filters = array(4, 3, 3, 3)

    def network(x: Any) -> Any:
        y = functions.max_pool2d(np.maximum(functions.conv2d(x, filters, padding=1), 0), 2)
        return y.reshape(y.shape[0], -1).sum(1), functions.avg_pool2d(y, 3, stride=1), x + 1

    f, static = ml.compile(network), ml.compile(network, dynamic="off")
    for n in (1, 2, 3, 4, 9, 17, 33):
        x = array(n, 3, 10, 12)
        for mine, theirs in zip(f(x), static(x), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)
    assert f._compiled == 3  # of 1, of 2, and of all others


def test_a_size_that_comes_often_gets_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "_WORTH", 20 * dynamic._CALL)
    f = ml.compile(layer)
    for n in (5, 9, 30):
        check(f, layer, array(n, 16))
    often, rarely = array(40, 16), array(50, 16)
    check(f, layer, rarely)
    before = f._compiled
    for _ in range(30):
        check(f, layer, often)
    assert f._compiled == before + 1
    assert f._prepared((often,), {})[1].values is None
    assert f._prepared((rarely,), {})[1].values is not None
    assert f.find((often,)) is f._prepared((often,), {})[1].program


def test_the_sizes_with_programs_of_their_own_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "_WORTH", 2 * dynamic._CALL)
    monkeypatch.setattr(dynamic, "_MOST_OWN", 2)
    f = ml.compile(layer)
    for n in range(5, 15):
        x = array(n, 16)
        for _ in range(5):
            check(f, layer, x)
    assert f._compiled == 5  # two of the first sizes, that for all, and two that came often
    assert f.find((x,)).remaining is None


def test_a_call_that_takes_long_has_a_program_for_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "_WORTH", 400_000)
    f = ml.compile(layer)
    for n in (5, 9, 30):
        check(f, layer, array(n, 16))
    assert f._compiled == 3
    check(f, layer, array(20_000, 16))  # 15 million flops
    assert f._compiled == 4


def test_the_work_of_a_call_is_estimated_from_its_sizes() -> None:
    f = ml.compile(lambda x, w: x @ w, dynamic={"x": ("n", "k"), "w": ("k", None)})
    f(array(10, 20), array(20, 8))
    (build,) = f._builds.values()
    values = {"n": 100, "k": 50}
    flops, moved = 2 * 100 * 50 * 8, 4 * 4 * (100 * 50 + 50 * 8 + 100 * 8)
    assert flops + moved <= build.program.work(values) <= flops + 2 * moved


@pytest.mark.parametrize("given", ["auto", {"x": ("n", None)}])
def test_numbers_that_become_nan_fail_calls_of_any_size(given: Any) -> None:
    with config.override(check_nan=True):
        f = ml.compile(lambda x: (np.sqrt(x).T + 1, x.sum(0)), dynamic=given)
        for n in (3, 4, 5, 6):
            check(f, f.fn, np.ones((n, 3)))
            with pytest.raises(ml.FloatOperationError, match="NaN"):
                f(-np.ones((n, 3)))


def test_donated_arguments_have_static_sizes() -> None:
    f = ml.compile(lambda x: x + 1, donate_argnums=0)
    for n in (4, 5, 6, 7):
        x = array(n)
        assert f(x) is x
    assert f._compiled == 4


def test_another_word_is_refused() -> None:
    with pytest.raises(ArgumentError, match="dynamic='on' is not known"):
        ml.compile(layer, dynamic="on")


def test_errors_of_the_function_leave_its_dimensions_dynamic() -> None:
    def checked(x: Any) -> Any:
        if x.shape[1] != 16:
            raise ValueError("sixteen columns are needed")
        return layer(x)

    f = ml.compile(checked)
    for n in (5, 9, 30):
        check(f, checked, array(n, 16))
    for n in (31, 32, 33, 34):
        with pytest.raises(ValueError, match="sixteen columns are needed"):
            f(array(n, 17))
    before = f._compiled
    for n in (40, 50, 60):
        check(f, checked, array(n, 16))
    assert f._compiled == before
    assert "stays static" not in f.explain()


def pair_with_sum(numbers: list[int], target: int) -> Any:
    seen = {}
    for index, number in enumerate(numbers):
        if target - number in seen:
            return [seen[target - number], index]
        seen[number] = index
    return [-1, -1]


def listed(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            total += x[i] if n in {3, 4, 5} else 2
    return total * {(4, 2): 3, (6, 2): 5}.get((len(x), 2), 1) * {6: 2}.get(n - 1, 1)


def test_keys_of_dicts_and_items_of_sets_are_values() -> None:
    """The hash of a dynamic size is not that of its value, and the lookup failed without an error."""
    f, g = ml.compile(pair_with_sum), ml.compile(listed)
    for target in (9, 17, 18, 26, 8, 22):
        np.testing.assert_array_equal(f([2, 7, 11, 15], target), pair_with_sum([2, 7, 11, 15], target))
    for n in (3, 4, 5, 6, 7, 8):
        for k in (3, 4, 5, 6, 7, 8):
            check(g, listed, np.abs(array(n)), k)
