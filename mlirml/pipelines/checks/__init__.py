"""Checks of indices and assertions: hoisting, removal, deferral to the end of a function, and failure reports."""
