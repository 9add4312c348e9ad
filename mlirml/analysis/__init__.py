"""Who reads, who writes a value or a buffer, and in what order: the one place that passes ask.

`values` is about SSA values: what an operation uses, its regions included, and where uses stand in a block. `memory` is
about buffers: what an operation reads and writes, views and regions seen through, and what may be exchanged with what.
"""
