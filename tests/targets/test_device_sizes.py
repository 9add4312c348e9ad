"""Programs of dynamic sizes on each kind of device: one program for all sizes, with the numbers of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.driver import dynamic
from mlirml.errors import ArgumentError, TargetError
from tests.driver import test_dynamic_sizes as on_cpu
from tests.driver.test_dynamic_sizes import array, compare, described, lengths, named, softmax
from tests.fuzz import test_dynamic_programs as random_programs
from tests.targets.drivers import on_devices

pytestmark = on_devices
SIZES = {"vulkan": (2, 7, 64, 300), "cuda": (2, 7)}
"""Kernels for CUDA may run in NumPy (`tests/targets/rehearsal.py`), which takes a second for a thousand threads."""
LONG_ON_CUDA = ("encoder", "transforms", "sorted", "grad_of_encoder", "images_of_any_size", "factors", "spectra")
PROGRAMS = 6


@pytest.mark.parametrize("name", [*on_cpu.PROGRAMS, *on_cpu.TRANSFORMED])
def test_one_program_has_the_numbers_of_numpy_for_all_sizes(name: str, target: str) -> None:
    fn, shapes = (on_cpu.PROGRAMS | on_cpu.TRANSFORMED)[name]
    compiled = ml.compile(named(fn, len(shapes)), target=target, dynamic=described(shapes))
    static = ml.compile(fn, dynamic="off") if name in on_cpu.TRANSFORMED else on_cpu.UNCOMPILED.get(name, fn)
    sizes = SIZES[target]
    if name in LONG_ON_CUDA and target == "cuda":
        sizes = sizes[1:]
    elif name in (*on_cpu.LONG, *on_cpu.TRANSFORMED):
        sizes = sizes[:3]
    for n in sizes:
        args = [array(*(lengths(n).get(s, s) for s in shape)) for shape in shapes]
        compare(compiled(*args), static(*args))
    assert compiled._compiled <= on_cpu.COMPILED.get(name, 1)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_have_the_numbers_of_numpy(seed: int, target: str) -> None:
    function = random_programs.program(seed)
    compiled = ml.compile(function, target=target, dynamic=random_programs.DYNAMIC)
    for n, m in random_programs.SIZES[: 4 if target == "vulkan" else 2]:
        given = random_programs.arguments(n, m)
        random_programs.compare(compiled(*given), function(*given))


@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_derivatives_of_random_programs_are_those_of_static_ones(seed: int, target: str) -> None:
    function = random_programs.program(1000 + seed)

    def total(x: Any, y: Any, z: Any, u: Any) -> Any:
        return sum(np.sum(np.tanh(part)) for part in function(x, y, z, u))

    derived = ml.grad(total, argnums=(0, 1, 2, 3))
    compiled = ml.compile(derived, target=target, dynamic=random_programs.DYNAMIC)
    static = ml.compile(derived, dynamic="off")
    for n, m in random_programs.SIZES[: 3 if target == "vulkan" else 1]:
        given = random_programs.arguments(n, m)
        random_programs.compare(compiled(*given), static(*given))


def test_arrays_stay_on_the_device(target: str) -> None:
    step = ml.compile(lambda x: softmax(x) @ np.ones((8, 8), np.float32), target=target, dynamic={"x": ("n", None)})
    for n in (3, 5):
        x = array(n, 8)
        there = ml.put(x, ml.device(target))
        found = step(step(there))
        assert isinstance(found, ml.Array) and found.device.kind == target and found.shape == (n, 8)
        compare(found.numpy(), step.fn(step.fn(x)))
    assert step._compiled == 1


def test_a_decoder_with_a_growing_cache_is_compiled_once(target: str) -> None:
    def attend(query: Any, keys: Any, values: Any, key: Any, value: Any) -> Any:
        keys, values = np.concatenate([keys, key[None]]), np.concatenate([values, value[None]])
        scores = np.exp(keys @ query)
        return keys, values, scores / scores.sum() @ values

    step = ml.compile(attend, target=target, dynamic={"keys": ("n", None), "values": ("n", None)})
    here = there = (array(2, 8), array(2, 8))
    for _ in range(4):
        query, key, value = array(8), array(8), array(8)
        *here, expected = attend(query, *here, key, value)
        *there, found = step(query, *there, key, value)
        compare(found, expected)
    assert step._compiled == 1


def test_results_that_are_read_and_replaced_in_one_loop_are_right(target: str) -> None:
    """Two carried arrays, each of which is computed from both: neither may be overwritten before both are read."""

    def exchanged(x: Any, y: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, s: (s[1] + s[0] * 0.5, s[0][::-1] - s[1]), (x, y))

    compiled = ml.compile(exchanged, target=target, dynamic={"x": ("n",), "y": ("n",)})
    for n in (2, 5):
        x, y = array(n), array(n)
        compare(compiled(x, y), exchanged(x, y))
    assert compiled._compiled == 1


def test_stores_into_arguments_are_seen_by_the_caller(target: str) -> None:
    def f(x: Any) -> Any:
        x[1:] += x[:-1]
        return x.sum()

    compiled = ml.compile(f, target=target, dynamic={"x": ("n",)})
    for n in (4, 9):
        x = array(n)
        y = x.copy()
        compare(compiled(x), f(y))
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    assert compiled._compiled == 1


def test_sizes_that_disagree_are_refused_by_name(target: str) -> None:
    f = ml.compile(lambda x, y: x + y, target=target, dynamic={"x": ("n", None), "y": ("n", None)})
    with pytest.raises(ml.ShapeError, match=r"dimension `n` is 5 in `x` \(axis 0\) and 6 in `y` \(axis 0\)"):
        f(array(5, 2), array(6, 2))


def test_arrays_that_exceed_the_device_are_refused_with_the_dimension(target: str) -> None:
    f = ml.compile(lambda x: x[:, None] + x, target=target, dynamic={"x": ("n",)})
    x = array(3)
    compare(f(x), f.fn(x))
    with pytest.raises(TargetError, match=r"takes arrays of at most .* with `n` = 100,000"):
        f(array(100_000))


def test_the_third_size_is_dynamic_by_default(target: str) -> None:
    weights = array(8, 6)
    f = ml.compile(lambda x: np.maximum(x @ weights, 0) + x.sum(1, keepdims=True), target=target)
    for n in (3, 5, 9, 1, 3, 12, 7):
        x = array(n, 8)
        compare(f(x), f.fn(x))
    assert f._compiled == 4  # of 3, of 5, of all others, of 1
    assert "f32[x.shape[0],8]" in f.explain()


def test_integers_become_dynamic_sizes_by_default(target: str) -> None:
    f = ml.compile(lambda x, n: np.zeros((n, 2), np.float32) + x, target=target)
    x = array(2)
    for n in (3, 4, 5, 6):
        compare(f(x, n), f.fn(x, n))
    assert f._compiled == 3


def test_a_size_that_comes_often_gets_a_program_of_its_own(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "_WORTH", 4 * dynamic._CALL)
    f = ml.compile(lambda x: x * 2 + 1, target=target)
    for n in (3, 4, 5):
        f(array(n))
    before = f._compiled
    there = ml.put(array(6), ml.device(target))
    for _ in range(12):
        compare(f(there).numpy(), there.numpy() * 2 + 1)
    assert (before, f._compiled) == (3, 4)


SLOW: dict[str, Any] = {
    "sorts": lambda x: np.sort(x),
    "running sums": lambda x: np.cumsum(x[:, None] * np.ones(3, np.float32), 0),
    "products of half floats": lambda x: x.astype(np.float16).reshape(-1, 1) @ np.ones((1, 4), np.float16),
}


@pytest.mark.parametrize("what", SLOW)
def test_auto_leaves_static_what_is_much_faster_so(what: str, target: str) -> None:
    f = ml.compile(SLOW[what], target=target)
    for n in (4, 5, 6, 7):
        x = array(n)
        compare(f(x), f.fn(x))
    assert f"every dimension stays static: {what} have faster programs of one size" in f.explain()


def test_the_report_names_kernels_and_sizes(target: str) -> None:
    f = ml.compile(lambda x: np.exp(x), target=target, dynamic={"x": ("n", None)})
    f(array(3, 4))
    assert "what a call moves depends on its sizes" in f.explain()
    assert "kernel k0_exp" in f.explain()


def test_targets_without_dynamic_sizes_refuse_names(target: str) -> None:
    with pytest.raises(ArgumentError, match="has no dynamic dimensions"):
        ml.compile(np.exp, target="webgpu", dynamic={"x": ("n",)})
