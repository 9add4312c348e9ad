"""What a call of a compiled function goes through: its arguments, the caches, the compilation, the state."""
