"""Requests for derivatives and batches, written while a function is traced."""
