"""Derivatives and batches: requests on tensors become ordinary code."""
