"""Builders that write IR as text, without the bindings: types, structured operations, control flow, complex numbers."""
