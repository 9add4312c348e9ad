"""The tracer: arrays that write MLIR for the operations applied to them, and control flow over such arrays."""
