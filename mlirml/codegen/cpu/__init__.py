"""Loops and kernels for processors, as vector and scalar code."""
