"""Modules that the whole package uses and that do not import MLIR: settings, pytrees, private folders, tracebacks."""
