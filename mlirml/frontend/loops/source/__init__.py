"""The source of a function as a syntax tree, and its rewriting: jumps, live variables, calls of the hooks."""
