"""Kernels of contractions: plans, packing, register tiles."""
