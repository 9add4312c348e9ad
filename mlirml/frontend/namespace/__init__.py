"""NumPy's functions that are no operation records: what `np` is for traced code."""
