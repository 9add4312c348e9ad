"""The trace: what operations on traced arrays write, and structured control flow over such arrays."""
