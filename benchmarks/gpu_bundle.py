"""`make gpu-bundle`: what `make gpu` needs besides Python on a machine with no network, in one archive.

MLIR's bindings without their tools and symbols, libdevice, and the packages that are small. llvmlite is not in it: it
is as large as MLIR, and numba, which most machines with a GPU have, brings it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
MOST_BYTES = 60 << 20
PACKAGES = ("torch-mlir", "islpy", "ml-dtypes", "opt-einsum", "platformdirs", "rich")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_TOOLS = ("torch-mlir-opt",)


def constraint(package: str) -> str:
    """The package with the version that the tests use."""
    lines = (TREE / "constraints.txt").read_text().splitlines()
    return next((line.partition(";")[0].strip() for line in lines if line.startswith(f"{package}==")), package)


def collect(folder: Path, python: str) -> None:
    """Unpack the wheels for a version of Python into a folder, and libdevice as its own wheel has it."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", f"--target={folder}"]
    command += [f"--platform={name}" for name in PLATFORMS]
    subprocess.run([*command, *map(constraint, PACKAGES)], check=True)
    from mlirml.targets.llvm.ptx import libdevice

    found = libdevice()
    if found is None:
        raise SystemExit("there is no libdevice: pip install nvidia-nvvm")
    there = folder / Path(*found.parts[found.parts.index("nvidia") :])
    there.parent.mkdir(parents=True)
    shutil.copy(found, there)


def slim(folder: Path) -> None:
    """Remove tools, and the symbols of libraries where `strip` is installed."""
    for path in [path for name in _TOOLS for path in folder.rglob(name)]:
        path.unlink()
    if (strip := shutil.which("strip")) is not None:
        for path in folder.rglob("*.so*"):
            subprocess.run([strip, "--strip-unneeded", str(path)], check=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archive; 1 where it is too large to be carried."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu_bundle.py", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--python", default="3.12", help="the version of Python there (default: 3.12)")
    parser.add_argument("--out", type=Path, default=TREE / "build" / "gpu" / "site.tar.xz")
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mlirml-gpu-") as name:
        folder = Path(name)
        collect(folder, options.python)
        slim(folder)
        with tarfile.open(options.out, "w:xz", preset=2) as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
    size = options.out.stat().st_size
    print(f"{options.out}: {size / (1 << 20):.1f} MiB, for Python {options.python}")
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
