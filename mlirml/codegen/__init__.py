"""Kernels that Python writes as MLIR, and printers of other languages."""
