"""The folder that compiled programs and measurements are kept in."""

from __future__ import annotations

import os

from mlirml.core.config import config


def cache_folder() -> str:
    """`config.cache_dir`, or the user's cache folder for mlirml."""
    if config.cache_dir is not None:
        return config.cache_dir
    if os.uname().sysname == "Linux":  # as platformdirs has it, which imports too much for one path
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(base, "mlirml")
    import platformdirs

    return platformdirs.user_cache_dir("mlirml")
