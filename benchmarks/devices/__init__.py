"""Workloads on a GPU, with arrays that lie there, against torch on the same GPU."""
