"""Reads and stores at positions given by arrays."""
