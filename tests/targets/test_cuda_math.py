"""Elementary functions on NVIDIA's devices, whose instructions are exact when they are executed in NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.targets.emulation.run import run

BF16 = ml_dtypes.bfloat16


def test_exponentials_are_powers_of_two_of_an_instruction() -> None:
    """Within 1.5 ulp of f64, from where results are denormal to infinity; 2^f itself is exact here."""
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, -87.4, -103.9, -104.1, 88.72, 88.73, 1e38, -1e38, 1e-40])
    x = np.r_[np.linspace(-104, 89, (1 << 15) - len(special)), special].astype(np.float32)
    (found,), _, text = run(np.exp, x, outs=[np.zeros_like(x)])
    assert text.count("ex2.approx") and text.count("fma.rn.f32") == 3 * text.count("ex2.approx")
    with np.errstate(all="ignore"):
        wanted = np.exp(x.astype(np.float64))
        nearest = wanted.astype(np.float32)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(found[~finite], nearest[~finite])
    ulp = np.spacing(np.maximum(nearest[finite], np.float32(0)))
    assert (np.abs(found[finite].astype(np.float64) - wanted[finite]) <= 1.5 * ulp).all()


def test_exponentials_of_f16_are_nearest() -> None:
    """Of all f16: one instruction and a product, rounded once; one in a thousand is the neighbour of the nearest."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        (found,), _, text = run(np.exp, x, outs=[np.zeros_like(x)])
        wanted = np.exp(x.astype(np.float64)).astype(np.float16)
    assert "fma" not in text
    valid = ~np.isnan(x)
    assert np.isnan(found[~valid]).all()
    apart = np.abs(found.view(np.int16).astype(int) - wanted.view(np.int16).astype(int))[valid]
    assert apart.max() <= 1 and apart.mean() < 1e-3


def test_bf16_is_rounded_by_an_instruction() -> None:
    rng = np.random.default_rng(0)
    x = np.r_[rng.integers(0, 1 << 32, 5000).astype(np.uint32).view(np.float32), np.inf, -np.inf, np.nan, 3.4e38]
    x = np.resize(x.astype(np.float32), 5120)
    (found,), _, text = run(lambda x: x.astype(BF16), x, outs=[np.zeros(x.shape, BF16)])
    assert "cvt.rn.bf16" in text and "shr" not in text.partition("$")[0].partition("cvt.rn.bf16")[2]
    with np.errstate(all="ignore"):
        wanted = x.astype(BF16)
    nan = np.isnan(wanted)
    assert np.isnan(found[nan]).all()
    np.testing.assert_array_equal(found[~nan], wanted[~nan])
