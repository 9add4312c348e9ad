"""NumPy's functions that are no operations: stores, creation, comparisons, linear algebra, calls of functions."""
