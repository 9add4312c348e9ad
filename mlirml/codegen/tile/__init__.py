"""Kernels of tiles for NVIDIA's GPUs, in the `vector` dialect, and their text for CUDA Tile IR."""
