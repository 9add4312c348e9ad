"""The thirty algorithms of the PolyBench suite as plain Python loops, and gemm in ten more forms."""

from benchmarks.polybench import dense, dynamic, solvers, stencils  # noqa: F401  (importing them fills KERNELS)
from benchmarks.polybench.kernels import KERNELS, SMALL, Kernel

__all__ = ["KERNELS", "SMALL", "Kernel"]
