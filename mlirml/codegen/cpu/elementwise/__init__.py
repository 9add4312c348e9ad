"""Loops of elementwise operations and transposes."""
