"""Settings of the whole test run: a cache folder of its own, so that no test sees a program of an earlier compiler."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

# Before mlirml is imported, which reads the variable; processes that tests start inherit it.
_CACHE = tempfile.mkdtemp(prefix="mlirml-test-cache-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ["MLIRML_CACHE_DIR"] = _CACHE
# What programs print is UTF-8, whatever the locale of the test run.
os.environ["PYTHONUTF8"] = "1"

settings.register_profile(
    "mlirml", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mlirml")
