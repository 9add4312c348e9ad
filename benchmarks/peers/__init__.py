"""One module a peer. Each has `version()`, `build(name, arguments, threads)` and `to_numpy(result)`.

`build` gives a function without parameters that does the workload once and waits for the result, or None where the
peer has nothing that a user would take for it.
"""

PEERS = ("numpy", "mlirml", "torch", "inductor", "jax", "numba", "iree")
"""All peers; `numpy` is what the others are compared with."""
