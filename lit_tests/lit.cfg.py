"""lit configuration: `python -m lit lit_tests`, with the Python of the environment that mlirml is installed in."""

import shlex
import sys
from importlib import metadata
from pathlib import Path

import lit.formats

HERE = Path(__file__).parent

config.name = "mlirml"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output"]
config.test_source_root = str(HERE)
config.test_exec_root = str(HERE.parent / "build" / "lit" / lit_config.params.get("group", "all"))

python = shlex.quote(sys.executable)
server = lit_config.params.get("server")  # of tests/lit_server.py, which spares each command the start of Python
run = f"{python} -IS {shlex.quote(str(HERE.parent / 'tests' / 'lit_server.py'))} {server}" if server else f"{python} -m"
config.substitutions.append((r"\bmlirml-opt\b(?!:)", f"{run} mlirml.cli.opt"))
config.substitutions.append((r"\bfilecheck\b", f"{run} filecheck"))
config.substitutions.append((r"%python", python))

try:
    metadata.distribution("mlirml")
except metadata.PackageNotFoundError:
    config.environment["PYTHONPATH"] = str(HERE.parent)
