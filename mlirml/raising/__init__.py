"""Raising: loops on elements become structured operations on tensors.

`RAISE` is the pipeline text of stage `raise`; `PASSES` are the files of its passes.
"""

PASSES = (
    "promote_scalars",
    "batch_dots",
    "expand_rows",
    "delinearise",
    "convert_ifs",
    "hoist_checks",
    "raise",
    "recognise",
)
_OPTIONS = {"recognise": "{only-raised=true}"}
RAISE = ",".join(f"mlirml-{name.replace('_', '-')}{_OPTIONS.get(name, '')}" for name in PASSES)
