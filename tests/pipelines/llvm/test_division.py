"""Exact division by way of floats, on this processor and on one without fma and AVX-512."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.test_division import floats, integers
from tests.pipelines.elementwise import compiled, processors

PROCESSORS = {p.name: p for p in processors()}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_remainder(kind: str, dtype: type, processor: str) -> None:
    x, y = floats(dtype)
    body = f"%y = arith.remf %x0, %x1 : {kind}"
    got = compiled([kind, kind], kind, body, len(x), PROCESSORS[processor])(x, y)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    bits = f"u{x.itemsize}"
    assert ((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_quotient(dtype: str, processor: str) -> None:
    x, y = integers(dtype)
    defined = (y != 0) & ~((x == np.iinfo(dtype).min) & (y == -1)) if dtype[0] == "i" else y != 0
    x, y = x[defined], y[defined]
    kind = f"i{8 * x.itemsize}"
    body = f"%y = arith.div{'s' if dtype[0] == 'i' else 'u'}i %x0, %x1 : {kind}"
    stored = [v.view(f"i{v.itemsize}") for v in (x, y)]
    got = compiled([kind, kind], kind, body, len(x), PROCESSORS[processor])(*stored).view(dtype)
    whole = x // y
    rest = x - whole * y
    np.testing.assert_array_equal(got, whole + ((rest != 0) & ((x < 0) != (y < 0))).astype(dtype))
