"""What the whole package uses and what knows nothing of MLIR: settings, pytrees, private folders, tracebacks."""
