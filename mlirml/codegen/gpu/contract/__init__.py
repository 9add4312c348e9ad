"""Kernels of contractions on GPUs: tiles in shared memory, tensor cores."""
