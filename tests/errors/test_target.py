"""Targets that are not there."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def identity(x: Any) -> Any:
    return x


def test_a_misspelt_name() -> None:
    check_error(
        lambda: ml.compile(identity, target="referense"),
        """
        mlirml.TargetError: there is no target 'referense'
           = note: the targets are "cpu", "cuda", "metal", "reference", "vulkan", "webgpu"
           = help: did you mean target="reference"?
        """,
    )


def test_an_unknown_name() -> None:
    check_error(
        lambda: ml.compile(identity, target="fpga"),
        """
        mlirml.TargetError: there is no target 'fpga'
           = note: the targets are "cpu", "cuda", "metal", "reference", "vulkan", "webgpu"
        """,
    )


def test_a_form_that_the_target_lacks() -> None:
    check_error(
        lambda: ml.lower(identity, np.ones(3), target="reference").emit("asm"),
        """
        mlirml.TargetError: target 'reference' has no form 'asm' at stage 'optimize'
           = help: compile with target="cpu" for asm
        """,
    )


def test_a_form_that_another_target_has() -> None:
    check_error(
        lambda: ml.lower(identity, np.ones(3), target="cpu").emit("wgsl"),
        """
        mlirml.TargetError: target 'cpu' has no form 'wgsl' at stage 'lower'
           = help: compile with target="webgpu" for wgsl
        """,
    )


def test_an_unknown_stage() -> None:
    check_error(
        lambda: ml.compile(identity).ir("optimise", np.ones(3)),
        """
        mlirml.PipelineError: the pipeline has no stage `optimise`
           = help: did you mean `optimize`?
        """,
    )
