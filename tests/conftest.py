"""Settings of the whole test run: a cache folder of its own, so that no test sees a program of an earlier compiler."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.short_run import is_long

# Before mlirml is imported, which reads the variable; processes that tests start inherit it.
_CACHE = tempfile.mkdtemp(prefix="mlirml-test-cache-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ["MLIRML_CACHE_DIR"] = _CACHE
# What programs print is UTF-8, whatever the locale of the test run.
os.environ["PYTHONUTF8"] = "1"
# A slow machine prints no more than a fast one.
os.environ["MLIRML_PROGRESS"] = "0"

settings.register_profile(
    "mlirml", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mlirml")

LONG = ("tests/ops/test_records.py", "tests/library/", "tests/fuzz/", "tests/special/", "tests/test_lit.py")
"""Files of minutes, some of them with few tests: at the end of the list one would leave the other workers idle."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="without the tests that only `make test-all` has")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on GPUs of NVIDIA where there is none; with `-m cuda` they are skipped, with the reason. With
    `--short`, leave out long ones.

    Workers begin with the long files, then those of most tests (`--no-loadscope-reorder`: in this order).
    """
    if hasattr(config, "workerinput"):
        files = [item.nodeid.partition("::")[0] for item in items]
        tests = Counter(files)
        order = sorted(zip(files, items), key=lambda x: (not x[0].startswith(LONG), -tests[x[0]], x[0]))
        items[:] = [item for _, item in order]
    left_out = {item for item in items if config.option.short and is_long(item.nodeid)}
    on_cuda = {item for item in items if item.get_closest_marker("cuda")}
    if on_cuda and "cuda" not in config.option.markexpr:
        from tests.targets.drivers import missing

        left_out |= on_cuda if missing("cuda") else set()
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
