"""The MLIR Python bindings and helpers that build IR with them; `ir.text` writes IR as text, without the bindings."""
