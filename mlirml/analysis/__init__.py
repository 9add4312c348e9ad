"""Def-use, aliasing and dependence queries on values and buffers, shared by all passes.

`values` is about SSA values: the values that an operation uses, its regions included, and the positions of uses in a
block. `memory` is about buffers: reads and writes of an operation (through views and regions), and reorderings that
keep dependences.
"""
