"""The command `mlirml-opt`."""
