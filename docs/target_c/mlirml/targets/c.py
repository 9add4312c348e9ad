"""The target `c`: the program as C, which the C compiler of this system makes code of."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from typing import Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.pipelines import cpu as recipes
from mlirml.pipelines.recipe import recipe, step
from mlirml.runtime.artifact import Artifact
from mlirml.targets.cpu import signature
from mlirml.targets.target import Target, target

_OPTIONS = ("-O2", "-fPIC", "-fno-strict-aliasing", "-fno-stack-protector", "-fno-asynchronous-unwind-tables")
_BUFFERIZE = ("mlirml-bufferize", "mlirml-elide-copies", "mlirml-widen-bools")


@target("c", forms=("c",))
def c_target() -> Target:
    """The target for any processor with a C compiler."""
    stages = recipe(
        **{
            "raise": ["mlirml-choose-library", *recipes.RAISE],
            "transform": ["mlirml-lower-lengths", *recipes.expand(config.checkpoint_bytes)],
            "optimize": [*recipes.CLEAN, *recipes.fuse(), "canonicalize", "cse"],
            "schedule": [
                *_BUFFERIZE,
                step("mlirml-lower-loops", processor="scalar"),
                "scf-parallel-for-to-nested-fors",
                "mlirml-plan-buffers",
            ],
            "lower": ["canonicalize", "cse"],
        }
    )
    legal = ("arith", "func", "math", "memref", "scf")
    compiler = ("cc", shutil.which("cc") or "")
    return Target("c", stages, codegen, (compiler,), forms={"c": emit_c}, legal=legal, about="by the C compiler `cc`")


def emit_c(module: Any) -> str:
    """The C of a module after stage `lower`."""
    from mlirml.codegen.c import program

    return program(getattr(module, "operation", module))


def codegen(module: Any) -> Artifact:
    """The object that the C compiler makes of a module after stage `lower`."""
    from mlirml.ir.bindings import main_function

    if shutil.which("cc") is None:
        raise TargetError("there is no C compiler `cc`", help="`.lower(...).emit('c')` is the program")
    text = emit_c(module)
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        command = ["cc", *_OPTIONS, "-c", "-x", "c", "-", "-o", file.name]
        subprocess.run(command, input=text.encode(), check=True)
        return Artifact(object=file.read(), entry="entry", **signature(main_function(module)))
