"""Source analysis and rewriting of functions: syntax trees, jumps, live variables, calls of the hooks."""
