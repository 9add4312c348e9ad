"""Passes on memrefs: loops, buffers, threads."""
