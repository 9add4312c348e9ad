"""Arrays that replace the arguments of a traced function: views, stores, indices, masks, and lists of such arrays."""
