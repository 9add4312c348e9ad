"""Loop nests as statements on memory: reading them, dependences, distribution, rebuilding."""
