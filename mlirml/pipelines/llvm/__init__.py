"""Passes from loops and arithmetic to the LLVM dialect."""
