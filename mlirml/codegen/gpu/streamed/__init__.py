"""Kernels that compute a matrix of scores tile by tile, use it at once, and never store it."""
