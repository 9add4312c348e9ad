"""The tracer: arrays that write MLIR for what is done with them, and the control flow around it."""
