"""Profiles: the times of a program's kernels, measured, beside the work that they do and what the machine can do."""
