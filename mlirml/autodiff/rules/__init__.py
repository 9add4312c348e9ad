"""Rules for derivatives and batches, keyed by MLIR operation."""
