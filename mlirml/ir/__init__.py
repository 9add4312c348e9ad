"""The MLIR Python bindings, and how this package builds IR with them; `ir.text` writes IR as text, without them."""
