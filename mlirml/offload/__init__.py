"""Passes on programs for devices: kernels, their placement, transfers and launches."""
