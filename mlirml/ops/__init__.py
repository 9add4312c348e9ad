"""The op records: each module of this package enters its own in the tables of `registry` when it is imported."""

from mlirml.ops.registry import BY_FUNCTION, BY_METHOD, OPS, OpDef

__all__ = ["BY_FUNCTION", "BY_METHOD", "OPS", "OpDef"]
