"""Passes on tensors: fusion, tiling, algebra, and preparation of bufferization."""
