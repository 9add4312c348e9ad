"""Benchmarks of mlirml against its peers: `python -m benchmarks --help`."""
