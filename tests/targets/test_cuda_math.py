"""Elementary functions on NVIDIA's devices, whose instructions are exact when they are executed in NumPy."""

from __future__ import annotations

import numpy as np

from tests.targets.emulation.run import run


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
