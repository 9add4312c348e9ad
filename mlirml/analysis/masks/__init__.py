"""Masks: comparisons of indices in the bodies of structured operations, and what follows from them for blocks."""
