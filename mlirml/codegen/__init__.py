"""Kernels built as MLIR from Python, and printers for other languages."""
