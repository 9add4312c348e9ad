"""Optional passes stack in any order: random orders and subsets of them verify and compute the same numbers."""

from __future__ import annotations

import copy
import os
import time
from functools import cache
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.errors import ArgumentError, PipelineError
from mlirml.passes import REGISTRY
from mlirml.passes.files import is_optional, load_passes
from mlirml.passes.syntax import parse_elements
from mlirml.pipelines.selection import optional_steps, with_optional_steps
from mlirml.targets.registry import get_target
from tests.pipelines.real_programs import programs

COUNT = int(os.environ.get("MLIRML_FUZZ", "0")) or 16
SEED = int(os.environ.get("MLIRML_FUZZ_SEED", "0")) or (0 if COUNT == 16 else time.time_ns() % (1 << 32))
NAMES = tuple(programs())


def results(name: str, pipeline: list[str] | None) -> list[np.ndarray]:
    """The results of a program, and what it has stored into its arguments."""
    function, arguments = programs()[name]
    arguments = copy.deepcopy(arguments)
    found = ml.compile(function, pipeline=pipeline)(*arguments)
    return [np.asarray(leaf) for leaf in flatten((found, arguments))[0]]


@cache
def expected(name: str) -> list[np.ndarray]:
    return results(name, None)


def assert_same(name: str, pipeline: list[str]) -> None:
    """Integers are equal, floats differ by the rounding errors of sums in another order."""
    for found, wanted in zip(results(name, pipeline), expected(name), strict=True):
        if wanted.dtype.kind not in "fc":
            np.testing.assert_array_equal(found, wanted)
            continue
        bound = {2: 2e-3, 4: 2e-4}.get(wanted.dtype.itemsize, 1e-9)
        size = np.max(np.abs(wanted), initial=1.0, where=np.isfinite(wanted))
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * float(size))


def random_pipeline(generator: np.random.Generator) -> list[str]:
    """Some of the optional passes in any order, a few of them twice."""
    passes = ml.optional_passes()
    kept = generator.choice([0.1, 0.5, 0.9, 1.0])
    chosen = [name for name in passes if generator.random() < kept]
    chosen += [str(name) for name in generator.choice(passes, generator.integers(0, 4))]
    return [str(name) for name in generator.permutation(chosen)]


@pytest.fixture(autouse=True)
def without_the_cache() -> Any:
    with ml.config.override(cache=False, progress=False):
        yield


@pytest.mark.parametrize("number", range(COUNT))
def test_random_orders_and_subsets_compute_the_same_numbers(number: int) -> None:
    generator = np.random.default_rng([SEED, number])
    name, pipeline = NAMES[number % len(NAMES)], random_pipeline(generator)
    try:
        assert_same(name, pipeline)
    except Exception as error:
        raise AssertionError(f"MLIRML_FUZZ_SEED={SEED}, {name} with pipeline={pipeline}: {error}") from error


@pytest.mark.parametrize("name", NAMES[:: 1 if COUNT > 16 else 5])
def test_programs_need_no_optional_pass(name: str) -> None:
    assert_same(name, [])


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("k_means", ["mlirml-fuse", "mlirml-promote-scalars", "mlirml-fuse"]),  # fused operations were fused wrongly
        ("american_put", ["mlirml-raise", "mlirml-promote-scalars"]),  # slices of dynamic size were not copied
        ("sobel", []),  # constants in loops had no location
    ],
)
def test_pipelines_that_found_a_fault(name: str, pipeline: list[str]) -> None:
    assert_same(name, pipeline)


def test_all_optional_passes_are_the_recipe() -> None:
    target = get_target("cpu")
    assert with_optional_steps(target.stages, ml.optional_passes()) == target.stages
    assert ml.compile(np.sin, pipeline=ml.optional_passes()).target == ml.compile(np.sin).target


def test_other_passes_stay_in_their_order() -> None:
    target = get_target("cpu")
    shortened = with_optional_steps(target.stages, [])
    kept = [str(e) for _, steps in target.stages for e in parse_elements(steps) if not is_optional(e.name)]
    assert [str(e) for _, steps in shortened for e in parse_elements(steps)] == kept
    assert "mlirml-bufferize" in kept and "mlirml-lower-loops" in " ".join(kept)


STAGES = (
    ("optimize", "canonicalize,mlirml-fuse{prologues=true},cse"),
    ("schedule", "mlirml-hoist,mlirml-bufferize,mlirml-elide-copies,canonicalize,mlirml-lower-loops"),
)


@pytest.mark.parametrize(
    ("wanted", "optimize", "schedule"),
    [
        (["cse", "mlirml-fuse"], "cse,mlirml-fuse{prologues=true}", "mlirml-bufferize,mlirml-lower-loops"),
        (["mlirml-fuse{prologues=false}"], "mlirml-fuse{prologues=false}", "mlirml-bufferize,mlirml-lower-loops"),
        (["mlirml-elide-copies", "mlirml-fuse", "canonicalize"], "mlirml-fuse{prologues=true},canonicalize",
         "mlirml-bufferize,mlirml-elide-copies,mlirml-lower-loops"),
        (["mlirml-elide-copies", "canonicalize", "canonicalize"], "",
         "mlirml-bufferize,mlirml-elide-copies,canonicalize,canonicalize,mlirml-lower-loops"),
    ],
)  # fmt: skip
def test_passes_run_in_their_section_in_the_given_order(wanted: list[str], optimize: str, schedule: str) -> None:
    assert with_optional_steps(STAGES, wanted) == (("optimize", optimize), ("schedule", schedule))


def test_options_are_added_to_those_of_the_recipe() -> None:
    stages = (("schedule", "mlirml-read-once{processor=avx512}"),)
    ((_, steps),) = with_optional_steps(stages, ["mlirml-read-once"])
    assert steps == "mlirml-read-once{processor=avx512}"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("mlirml-bufferize", "`mlirml-bufferize` is not optional"),
        ("mlirml-fuze", "unknown pass `mlirml-fuze`"),
        ("mlirml-fuze", "did you mean `mlirml-fuse`"),
        ("mlirml-embed-wgsl", "no part of this target's pipeline"),
        ("nonsense", r"`mlirml.optional_passes\(\)` lists"),
        ("mlirml-fuse,cse", "an item of a pipeline is one pass"),
        ("mlirml-fuse{speed=3}", "has no option `speed`"),
        (3, "names of passes"),
    ],
)
def test_other_names_are_refused_with_help(wanted: Any, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        ml.compile(np.sin, pipeline=[wanted])


def test_a_pipeline_is_for_the_cpu() -> None:
    with pytest.raises(ArgumentError, match='pipeline is for the target "cpu"'):
        ml.compile(np.sin, target="reference", pipeline=[])


def test_a_pipeline_is_part_of_the_key() -> None:
    plain, without = ml.compile(np.sin), ml.compile(np.sin, pipeline=[])
    assert plain.target.fingerprint() != without.target.fingerprint()


def test_the_source_and_the_class_agree_on_what_is_optional() -> None:
    load_passes()
    for name, cls in REGISTRY.items():
        assert is_optional(name) == cls.optional, name
    assert len(optional_steps(get_target("cpu").stages)) > 50


def test_a_pickled_function_keeps_its_pipeline() -> None:
    import pickle

    compiled = ml.compile(np.matmul, pipeline=["mlirml-fuse"])
    assert pickle.loads(pickle.dumps(compiled)).pipeline == ("mlirml-fuse",)
