"""Complex numbers in compiled functions: arguments, parts as views, weak numbers, stores, control flow, programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

RANDOM = np.random.default_rng(7)


def draw(*shape: int, dtype: Any = np.complex64) -> np.ndarray:
    """Numbers with parts around 0."""
    return np.asarray(RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)


Z = draw(6, 4)
CAPTURED = draw(300, 2)


# Arguments and results.

LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "contiguous": lambda: draw(4, 3),
    "Fortran": lambda: np.asfortranarray(draw(4, 3)),
    "strided": lambda: draw(8, 6)[::2, ::2],
    "backwards": lambda: draw(4, 3)[::-1, ::-1],
    "stretched": lambda: np.broadcast_to(draw(3), (4, 3)),
    "0-d": lambda: np.asarray(draw()),
    "empty": lambda: draw(0, 3),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arguments(layout: str, dtype: Any) -> None:
    check(lambda x: (x + 1, x.imag, x), LAYOUTS[layout]().astype(dtype))


def misaligned(array: np.ndarray) -> np.ndarray:
    """The array one byte off."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def test_misaligned_and_read_only_arguments() -> None:
    odd, fixed = misaligned(Z), Z.copy()
    fixed.flags.writeable = False
    assert not odd.flags.aligned
    compiled = ml.compile(lambda x: x * 2)
    assert np.array_equal(compiled(odd), Z * 2) and np.array_equal(compiled(fixed), Z * 2)


def test_results_own_their_memory() -> None:
    result = ml.compile(lambda x: x + 1)(Z)
    assert result.dtype == np.complex64 and result.flags.owndata and result.flags.c_contiguous


def test_out_receives_a_result() -> None:
    out = np.zeros((8, 6), np.complex64)[::2, 1:5:1]
    given = ml.compile(lambda x: x[:4] * 1j)(Z, out=out)
    assert given is out and np.allclose(out, Z[:4] * 1j)


def test_an_argument_returned_as_it_is() -> None:
    check(lambda x: [x, x.T, x[::-1], x.reshape(-1)], Z)


def test_captured_arrays_are_read_at_each_call() -> None:
    small, total = draw(3), CAPTURED.copy()
    compiled = ml.compile(lambda x: (x + small, x[:2] * total))
    for _ in range(2):
        one, other = compiled(Z[0, :3])
        assert np.allclose(one, Z[0, :3] + small) and np.allclose(other, Z[0, :2] * total)
        small[1] += 5
        total *= 2


def test_numpy_scalars_and_pytrees() -> None:
    check(lambda p: {"a": p["z"] * 2, "b": [p["s"] + 1, p["n"]]}, {"z": Z, "s": np.complex64(1 + 2j), "n": 3})


def test_signatures_show_complex_types() -> None:
    compiled = ml.compile(lambda x, a: x * a)
    compiled(Z, 1j)
    assert "(c64[6,4], Python complex) -> (c64[6,4])" in compiled.explain()


# Promotion.


def test_python_numbers_give_way() -> None:
    f32, i8 = np.ones(3, np.float32), np.arange(3, dtype=np.int8)
    check(lambda x, y: [x * 1j, x + 1, y * 1j, 2.5 - x, y + (1 + 0j)], f32, i8)
    check(lambda x: [x * 1j, x + 1, 2.5 / x, x**2, 1j - x], Z, rtol=1e-6)


def test_python_numbers_as_arguments_give_way() -> None:
    check(lambda x, a: [x * a, a * a, a + 1, a.real, a.imag], Z, 2 - 1j, rtol=1e-6)
    check(lambda x, a: x * a, np.ones(3, np.float32), 2 - 1j)


def test_a_literal_has_both_zeros() -> None:
    check(lambda x: [x * complex(-0.0, 0.0), x + complex(0.0, -0.0)], np.array([1 + 1j, -0.0 - 0.0j]))


def test_casts() -> None:
    real = np.array([1.5, -2.0, 0.0])
    check(lambda x: [x.astype(np.complex64), x.astype(complex), np.zeros(3, complex) + x], real)
    check(lambda x: [x.astype(np.complex128), x.astype(bool)], Z)


def test_creation() -> None:
    check(lambda x: [np.zeros(3, np.complex64), np.full((2,), 1j), np.ones_like(x), np.eye(2, dtype=complex)], Z)


def test_a_discarded_imaginary_part_is_warned_of_at_the_line() -> None:
    def cast(x: Any) -> Any:
        return x.astype(np.float32)

    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part") as caught:
        assert np.array_equal(ml.compile(cast)(Z), Z.real)
    assert caught[0].filename == __file__ and caught[0].lineno == cast.__code__.co_firstlineno + 1


# Parts and other views.


def test_stores_through_parts() -> None:
    def store(x: Any) -> Any:
        y = x.copy()
        y.real = 1
        y.imag[1:3] = x.real[:2]
        y.T.imag[0] *= 3
        y[0].real[::2] = -y[0].imag[1::2]
        return y, y.real, y.imag

    check(store, Z)


def test_stores_into_arguments() -> None:
    def store(x: Any, y: Any) -> None:
        x *= 2
        x.imag = 0
        y[1:] = x[:-1]
        y[0] = 1j

    check(store, Z.copy(), draw(6, 4))


def test_a_store_sees_the_old_parts() -> None:
    def exchange(x: Any) -> None:
        x[...] = x.imag + 1j * x.real

    check(exchange, Z.copy())


def test_a_store_of_one_part_into_an_argument() -> None:
    def store(x: Any) -> Any:
        x.real += 1
        return x.sum()

    check(store, np.ones((3, 2), complex))


def test_arguments_that_change_places() -> None:
    def exchange(x: Any, y: Any) -> None:
        old = x.copy()
        x[...] = y
        y[...] = old

    check(exchange, draw(5), draw(5))


def test_parts_of_real_arrays() -> None:
    check(lambda x: [x.real, x.imag, np.real(x), np.imag(x), np.conj(x)], np.arange(3.0))
    check(lambda x: [np.iscomplexobj(x), np.isrealobj(x), np.isreal(x), np.iscomplex(x)], np.arange(3.0))
    check(lambda x: [np.iscomplexobj(x), np.isrealobj(x), np.isreal(x), np.iscomplex(x)], np.array([1j, 1]))


def test_indexing_and_joins() -> None:
    check(lambda x: [x[1], x[1, 2], x[::-2, None], x[..., -1], np.stack([x, x.real]), np.concatenate([x, x[:1]])], Z)


def test_positions_and_masks() -> None:
    def store(x: Any, i: Any, v: Any) -> Any:
        x[i] = v
        x[np.abs(x) < 1] = 0
        np.add.at(x, i, 1j)
        return np.take(x, i, 0), x[i, 1]

    check(store, Z.copy(), np.array([0, 3, 3]), draw(3, 4), rtol=1e-6)
    check(store, Z.copy(), np.array([0, 3, 3]), 2.5, rtol=1e-6)


# Control flow.


def test_loops_and_branches_carry_complex_values() -> None:
    check(lambda x: ml.fori_loop(0, 5, lambda i, z: z * z * 0.1 + x, x), Z, rtol=1e-5)
    check(lambda z: ml.while_loop(lambda z: np.abs(z) < 100, lambda z: z * 2, z), np.complex64(1 + 1j))
    check(lambda z: ml.cond(np.abs(z) < 9, lambda z: z * 2, lambda z: z, z), np.complex64(1 + 1j))
    check(lambda i, z: ml.switch(i, [np.conj, np.negative], z), 1, Z)


def test_scans_carry_and_collect_complex_values() -> None:
    check(lambda x: ml.scan(lambda s, z: (s + z, s * z), np.zeros(4, np.complex64), x), Z, rtol=1e-5)
    check(lambda x: ml.scan(lambda s, z: (s + z, s), 0j, x), Z[:, 0], rtol=1e-5)


# Contractions and reductions beyond the records.


def test_products_of_real_and_complex_operands() -> None:
    real = RANDOM.standard_normal((4, 5)).astype(np.float32)
    check(lambda x, y: [x @ y, y.T @ x.T, np.einsum("ij,jk->", x, y), np.dot(x[0], y)], Z, real, rtol=1e-5)


def test_a_product_large_enough_for_the_tiled_kernel() -> None:
    check(lambda x, y: x @ y.conj().T, draw(70, 65), draw(33, 65), rtol=1e-5)


def test_sums_over_either_axis() -> None:
    check(lambda x: [x.sum(0), x.sum(1), x.mean(), (x * x).sum(0), x.T.sum(0)], draw(67, 130), rtol=1e-4)


def test_norms_are_real() -> None:
    check(lambda x: [np.linalg.norm(x), np.linalg.norm(x, axis=0), np.vdot(x, x), np.abs(x).max()], Z, rtol=1e-6)


# Programs.


def mandelbrot(c: Any) -> Any:
    z, steps = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(20):
        inside = np.abs(z) <= 2
        z, steps = np.where(inside, z * z + c, z), steps + inside
    return steps


def test_mandelbrot() -> None:
    x, y = np.meshgrid(np.linspace(-2.03, 1.01, 37), np.linspace(-1.52, 1.53, 29))
    check(mandelbrot, x + 1j * y)


def fourier(x: Any) -> Any:
    k = np.arange(x.shape[-1])
    return x @ np.exp(-2j * np.pi * k[:, None] * k / x.shape[-1])


def test_discrete_fourier_transform() -> None:
    signal = RANDOM.standard_normal((3, 64))
    check(fourier, signal, rtol=1e-12)
    assert np.allclose(ml.compile(fourier)(signal), np.fft.fft(signal))


def test_roots_of_unity_and_branch_cuts() -> None:
    check(lambda z: [np.log(z), np.sqrt(z), z**0.5, np.angle(z)], np.array([-1 + 0j, -1 - 0j, 1j, -4 + 0j]), rtol=1e-15)


def test_large_magnitudes_do_not_overflow() -> None:
    z = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, 3e200j, 4e-305])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in (np.abs, np.sqrt, np.log, np.arcsinh, np.reciprocal):
            exact = np.asarray(f(z.astype(np.clongdouble)))
            given = ml.compile(f)(z)
            assert np.allclose(given / np.abs(exact), exact / np.abs(exact), rtol=1e-14), f


def doubled_behind_a_store(z: Any) -> Any:
    z[z > 0] = 1
    doubled = ml.fori_loop(0, 2, lambda i, x: ml.fori_loop(i, 3, lambda j, y: y + y, x), z)
    return [doubled, z.reshape(-1)]


def test_what_a_loop_begins_with_is_returned_behind_its_result() -> None:
    argument = draw(6)
    expected_argument = argument.copy()
    expected, given = doubled_behind_a_store(expected_argument), ml.compile(doubled_behind_a_store)(argument)
    for one, other in zip([*given, argument], [*expected, expected_argument]):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("limit", [-2, -2.0])
def test_the_limits_of_clip_promote_together(limit: float) -> None:
    for kind in (np.bool_, np.int8, np.int64):
        a, high = np.ones(2, kind), np.array([1 - 1j, 2], np.complex64)
        given, expected = ml.compile(lambda a, high: np.clip(a, limit, high))(a, high), np.clip(a, limit, high)
        np.testing.assert_array_equal(given, expected, strict=True)
