"""Running compiled programs: thread pool, object loader, call path."""

from __future__ import annotations

from mlirml.config import config
from mlirml.runtime import _native
from mlirml.runtime._native import Code, Dispatcher, Program, load_object, number_leaves
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.executable import load_artifact

_native.set_threads(config.threads or 0)

__all__ = ["Artifact", "Buffer", "Code", "Dispatcher", "Program", "load_artifact", "load_object", "number_leaves"]
