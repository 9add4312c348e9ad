"""From tensors to memrefs: what is decided before and after upstream's one-shot bufferization."""
