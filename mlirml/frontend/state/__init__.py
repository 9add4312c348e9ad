"""State that a function reaches besides its arguments: closures, globals and attributes, read and changed."""
