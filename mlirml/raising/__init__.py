"""Raising: loops on elements become structured operations on tensors.

`RAISE` is the pipeline text of stage `raise`; `PASSES` are the files of its passes.
"""

PASSES = ("promote_scalars", "convert_ifs", "raise")
RAISE = ",".join("mlirml-" + name.replace("_", "-") for name in PASSES)
