"""The shape of the code base: import order, light import, names, sizes, a lit test for every pass."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlirml.passes import REGISTRY, Pass
from mlirml.passes.files import condition_of, load_passes
from tests.short_run import SHARES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mlirml"

TIERS = [
    {"core", "errors"},
    {"targets.machine"},
    {"targets.measured"},
    {"runtime"},
    {"ir"},
    {"dialects", "analysis", "passes"},
    {"ops", "raising", "autodiff", "offload", "codegen"},
    {"pipelines"},
    {"targets", "interpreter"},
    {"frontend"},
    {"frontend.source"},
    {"frontend.arrays"},
    {"frontend.state"},
    {"frontend.tracing"},
    {"random"},
    {"frontend.namespace"},
    {"frontend.transforms"},
    {"frontend.functions"},
    {"frontend.loops"},
    {"frontend.capture"},
    {"frontend.control"},
    {"linalg", "numpy"},
    {"nn", "optim"},
    {"driver"},
    {"tuning"},
    {"api", "debug", "transforms"},
    {"lazy"},
    {"ndimage", "special"},
    {"fft", "signal", "stats"},
    {"cli"},
]
"""Parts of the package, lowest first: a part imports from its own tier and from those above it in this list.

`frontend` are the files of that folder that are not named themselves.
"""

SIBLINGS = {"raising", "autodiff", "offload", "codegen", "ops"}
"""Parts that do not import each other."""

ONLY = {
    "core": {"core", "errors"},
    "errors": {"errors", "core"},
    "targets.machine": {"errors", "core"},
    "targets.measured": {"errors", "core", "targets.machine"},
    "runtime": {"runtime", "errors", "core"},
}
"""Parts that may import nothing but these."""

HEAVY = (
    "torch_mlir",
    "llvmlite",
    "torch",
    "jax",
    "rich",
    "opt_einsum",
    "islpy",
    "triton",
    "cuda",
    "wgpu",
    "iree",
    "onnx",
    "numba",
)


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(module: str) -> str:
    """`mlirml.pipelines.tensor.fuse` -> `pipelines`; the longest name in `TIERS` wins."""
    path = module.split(".")[1:]
    known = set().union(*TIERS)
    for length in (2, 1):
        if ".".join(path[:length]) in known:
            return ".".join(path[:length])
    return path[0] if path else ""


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports_of(file: Path) -> tuple[str, ...]:
    """The modules that a file imports when it runs, at its top or in a function; not those for type checking only."""
    return tuple(imports_in(file))


def imports_in(file: Path) -> Iterator[str]:
    for node in run_time_nodes(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write the full name of the module"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from run_time_nodes(child)


def tier_of(part: str) -> int:
    return next(position for position, tier in enumerate(TIERS) if part in tier)


@pytest.mark.parametrize("file", python_files(), ids=module_of)
def test_imports_go_one_way(file: Path) -> None:
    importer = part_of(module_of(file))
    wrong = []
    for name in imports_of(file):
        imported = part_of(name) if name.startswith("mlirml.") else ""
        if imported in ("", importer) or importer == "":
            continue
        allowed = tier_of(imported) <= tier_of(importer) and not {importer, imported} <= SIBLINGS
        if not allowed or imported not in ONLY.get(importer, {imported}):
            wrong.append(name)
    assert wrong == [], f"{importer} may not import these"


def import_graph(files: list[Path]) -> dict[str, set[str]]:
    """The modules of files, each with those among them that it imports, at its top or in a function."""
    sources = {module_of(file): file for file in files}
    graph = {}
    for module, file in sources.items():
        found = {name if name in sources else name.rpartition(".")[0] for name in imports_of(file)}
        graph[module] = found & sources.keys() - {module}
    return graph


def shortest_circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a shortest circle of imports, the first one again at the end; none if there is no circle."""
    left = dict(graph)
    while done := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in done:
            del left[module]
    circles = [path for module in left if (path := path_back(left, module))]
    return min(circles, key=len, default=[])


def path_back(graph: dict[str, set[str]], module: str) -> list[str]:
    """A shortest path of imports from a module to itself."""
    paths = [[module]]
    seen = set()
    for path in paths:
        for imported in sorted(graph.get(path[-1], ())):
            if imported == module:
                return [*path, module]
            if imported not in seen:
                seen.add(imported)
                paths.append([*path, imported])
    return []


def test_no_imports_go_in_a_circle() -> None:
    circle = shortest_circle(import_graph(python_files()))
    assert circle == [], f"imports go in a circle, those in functions included: {' -> '.join(circle)}"


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"b", "e"}, "e": set(), "f": {"a"}}
    assert shortest_circle(graph) == ["b", "d", "b"]
    assert shortest_circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_every_part_has_its_place() -> None:
    known = set().union(*TIERS)
    assert {part_of(module_of(file)) for file in python_files()} - {""} <= known


def test_only_ir_imports_the_bindings() -> None:
    importers = [module_of(f) for f in python_files() if any(n.split(".")[0] == "torch_mlir" for n in imports_of(f))]
    assert importers == ["mlirml.ir.upstream"]


def test_dataclasses_are_made_by_the_quick_decorator() -> None:
    slow = [f for f in python_files() if f.stem != "dataclass" and "dataclasses.dataclass" in imports_of(f)]
    assert slow == [], "write `from mlirml.core.dataclass import dataclass`"


def test_importing_is_light() -> None:
    program = "import sys, mlirml; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(loaded.stdout.split()) & set(HEAVY) == set()


def test_importing_loads_neither_the_pipeline_nor_the_bindings() -> None:
    program = "import sys, mlirml; print(*[name for name in sys.modules if name.startswith('mlirml.')])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    parts = {part_of(name) for name in loaded.stdout.split()} | {*loaded.stdout.split()}
    assert parts & {"mlirml.ir.upstream", "passes", "pipelines", "cli"} == set()
    assert "mlirml.ops" not in loaded.stdout.split(), "the records of operations take as long as all the rest"


def test_no_file_is_too_long() -> None:
    sources = [p for folder in ("mlirml", "tests", "benchmarks", "examples") for p in (ROOT / folder).rglob("*")]
    long = [p for p in sources if p.suffix in (".py", ".cpp", ".h") and len(p.read_text().splitlines()) > 800]
    assert long == []


def test_no_file_is_a_catch_all() -> None:
    assert [p for p in python_files() if p.stem in ("util", "utils", "helpers", "common", "misc")] == []


@pytest.mark.parametrize("file", [f for f in python_files() if f.read_text().strip()], ids=module_of)
def test_a_file_opens_with_its_purpose(file: Path) -> None:
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    assert docstring.split("\n")[0].endswith("."), "the first line of the docstring is one sentence"


load_passes()
PASSES = sorted(REGISTRY.values(), key=lambda cls: cls.name)


@pytest.mark.parametrize("cls", PASSES, ids=lambda cls: cls.name)
def test_flag_file_and_class_have_one_name(cls: type[Pass]) -> None:
    words = cls.name.removeprefix("mlirml-").split("-")
    assert cls.name.startswith("mlirml-")
    assert cls.__name__ == "".join(map(str.capitalize, words)) + "Pass"
    assert cls.__module__.rpartition(".")[2] == "_".join(words)


@pytest.mark.parametrize("cls", PASSES, ids=lambda cls: cls.name)
def test_every_pass_has_a_lit_file_or_folder_that_runs_it(cls: type[Pass]) -> None:
    folder = ROOT.joinpath("lit_tests", *cls.__module__.split(".")[1:])
    files = [path for path in (folder.with_suffix(".mlir"), *folder.glob("*.mlir")) if path.exists()]
    assert files
    for path in files:
        runs = [line for line in path.read_text().splitlines() if "RUN:" in line]
        assert any(cls.name in line for line in runs), path


@pytest.mark.parametrize("cls", PASSES, ids=lambda cls: cls.name)
def test_a_pass_says_what_it_does(cls: type[Pass]) -> None:
    assert (cls.__doc__ or "").strip().split("\n")[0].endswith(".")
    assert not (cls.__doc__ or "").startswith(f"{cls.__name__}("), "the docstring is the dataclass's own"


@pytest.mark.parametrize("cls", PASSES, ids=lambda cls: cls.name)
def test_the_condition_of_a_pass_is_read_from_its_source(cls: type[Pass]) -> None:
    assert condition_of(cls.name) == cls.when


def test_marks_of_gpus_come_from_one_file() -> None:
    """By whose name, or the word cuda, `tests/targets/rehearsal.py` finds the tests for a GPU."""
    tests = ROOT / "tests"
    helpers = [path for path in tests.rglob("*.py") if not path.name.startswith("test_")]
    marking = [path for path in helpers if re.search(r"mark\.cuda|needs_cuda|on_devices", path.read_text("utf-8"))]
    assert marking == [tests / "targets" / "drivers.py"]


def test_what_the_short_run_leaves_out_exists() -> None:
    """Each name of tests/short_run.py is one of a test, or all of a file."""
    for folder, names in SHARES.items():
        for name in names:
            file, _, test = name.partition("::")
            path = ROOT / folder / f"{file}.py"
            assert path.is_file(), name
            assert not test or f"def {test.partition('[')[0]}(" in path.read_text(), name
