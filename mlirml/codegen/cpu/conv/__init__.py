"""Kernels of convolutions and poolings."""
