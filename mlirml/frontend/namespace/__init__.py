"""The namespace that replaces `np` in traced code, and the globals of traced functions."""
