"""The reference interpreter of MLIR modules, one file a dialect."""
