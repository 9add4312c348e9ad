"""Passes on kernels: from outlined functions on tensors to the dialects that drivers accept."""
