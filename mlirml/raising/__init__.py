"""Raising: passes that make structured operations on tensors of loops over elements."""
