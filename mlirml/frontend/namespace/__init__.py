"""NumPy's functions without op records, and the namespace that replaces `np` in traced code."""
