"""From tensors to memrefs: preparations for upstream's one-shot bufferization, and cleanups after it."""
