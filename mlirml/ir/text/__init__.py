"""IR written as text, without the bindings: types, structured operations, control flow, complex numbers."""
