"""The public tests of the array API standard, on `mlirml.numpy` and on compiled calls of its functions."""
