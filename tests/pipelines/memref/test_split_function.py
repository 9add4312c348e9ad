"""Long programs are cut into functions, one for all parts that are equal, and give the same numbers."""

from __future__ import annotations

import re

import numpy as np

import mlirml as ml


def layers(x: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    for _ in range(count):
        x = np.tanh(x) * y + np.sum(x, axis=1, keepdims=True)
        x = x - np.max(x, axis=0)
        x = x[::-1] / (1 + np.abs(x))
    return x


def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 5)), rng.standard_normal((6, 5))


def test_a_program_that_repeats_itself_is_a_few_functions() -> None:
    def repeated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return layers(x, y, 50)

    compiled, arguments = ml.compile(repeated), numbers()
    np.testing.assert_allclose(compiled(*arguments), repeated(*arguments), rtol=1e-10)
    text = compiled.ir("schedule", *arguments)
    functions = re.findall(r"func.func private @main.(part|loops)", text)
    assert functions.count("part") and functions.count("loops") and len(functions) <= 8
    assert len(re.findall(r"call @main.(?:part|loops)", text)) > 4 * len(functions)


def test_the_body_of_a_loop_is_cut_too() -> None:
    def looped(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def step(state: np.ndarray, scale: np.float64) -> tuple[np.ndarray, np.float64]:
            state = layers(state, y * scale, 20)
            return state, state[0, 0] * scale

        return ml.scan(step, x, np.array([0.5, 1.5, 0.25]))

    compiled, arguments = ml.compile(looped), numbers()
    for found, expected in zip(compiled(*arguments), looped(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert "call @main.part" in compiled.ir("schedule", *arguments).partition("func.func @main(")[2]
