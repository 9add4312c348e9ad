"""The families of operations that mlirml-recognise names, one file each."""
