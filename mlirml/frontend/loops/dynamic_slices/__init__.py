"""Slices of dynamic length, and functions of them, as loops."""
