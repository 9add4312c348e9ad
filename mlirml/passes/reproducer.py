"""Files that show a failed pass again: the module before it, the pass, the versions.

A file reads

    // mlirml reproducer: 'arith.addi' op expected 2 operands
    // pipeline: builtin.module(mlirml-fuse)
    // stage: optimize
    // versions: mlirml 0.1.0, torch-mlir 20261001, llvmlite 0.50.0, Python 3.11.7, Linux x86_64
    // run: mlirml-opt --run-reproducer reproducer.mlir
    module { ... }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirml.passes.base import Step

if TYPE_CHECKING:
    from pathlib import Path

_PIPELINE = "// pipeline: "


def write_reproducer(text: str, steps: Sequence[Step], stage: str, message: str, folder: Path | None) -> Path:
    """Write the file into `folder` (a fresh temporary one when None) and return its path."""
    import tempfile
    from pathlib import Path

    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="mlirml-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "reproducer.mlir"
    header = [
        f"// mlirml reproducer: {' '.join(message.split())}",
        f"{_PIPELINE}builtin.module({','.join(map(str, steps))})",
        f"// stage: {stage or '(none)'}",
        f"// versions: {versions()}",
        f"// run: mlirml-opt --run-reproducer {path.name}",
    ]
    path.write_text("\n".join([*header, text]), encoding="utf-8")
    return path


def pipeline_of_reproducer(text: str) -> str | None:
    """The pipeline in the header of a reproducer; None when the text has none."""
    for line in text.splitlines():
        if line.startswith(_PIPELINE):
            return line[len(_PIPELINE) :].strip()
        if line and not line.startswith("//"):
            break
    return None


def versions() -> str:
    """The versions of mlirml, the bindings, llvmlite, Python and the platform."""
    import platform
    from importlib import metadata  # 40 ms, and only failures need it

    def version(distribution: str) -> str:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return "(not installed)"

    parts = [f"{name} {version(name)}" for name in ("mlirml", "torch-mlir", "llvmlite")]
    return ", ".join([*parts, f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"])
