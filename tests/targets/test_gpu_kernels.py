"""Kernels of every kind, run on a Vulkan driver and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("wgpu")
from tests.targets.gpu_harness import device, program

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


SOFTMAX = """
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func private @k(%x: tensor<{m}x{n}xf32>, %out: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    attributes {{mlirml.kernel}} {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<{m}xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %max = linalg.generic {{indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{m}x{n}xf32>) outs(%f : tensor<{m}xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  }} -> tensor<{m}xf32>
  %big = tensor.empty() : tensor<{m}x{n}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %exp:2 = linalg.generic {{indexing_maps = [#map, #row, #map, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x, %max : tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%big, %z : tensor<{m}x{n}xf32>, tensor<{m}xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %d = arith.subf %a, %b : f32
    %g = math.exp %d : f32
    %s = arith.addf %g, %p : f32
    linalg.yield %g, %s : f32, f32
  }} -> (tensor<{m}x{n}xf32>, tensor<{m}xf32>)
  %r = linalg.generic {{indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}}
      ins(%exp#0, %exp#1 : tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%out : tensor<{m}x{n}xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  }} -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
}}
"""


@pytest.mark.parametrize(("m", "n"), [(8, 100), (3, 7)])
def test_softmax(m: int, n: int) -> None:
    x = draw(m, n)
    (result,) = program(SOFTMAX.format(m=m, n=n), "k")(x, np.zeros_like(x))
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert abs(result - wide / wide.sum(1, keepdims=True)).max() < 1e-6
