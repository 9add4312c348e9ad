"""Passes for programs of dynamic sizes: arguments, loops and temporaries whose sizes arrive with the call."""
