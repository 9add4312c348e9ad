"""An MLIR-based compiler for Python numeric code."""
