"""Raising: loops on elements become structured operations on tensors.

`RAISE` is the pipeline text of stage `raise`; `PASSES` are the files of its passes.
"""

RAISE = "mlirml-promote-scalars,mlirml-raise"
PASSES = ("promote_scalars", "raise")
