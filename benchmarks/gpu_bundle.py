"""`make gpu-bundle`: what `make gpu` needs besides Python on a machine with no network, in two archives.

`site.tar.xz` has MLIR's bindings without their tools and symbols, `ptxas`, and the packages that are small;
`tiles.tar.xz` the assembler of tiles and the compiler that it calls. llvmlite is in neither: it is as large again, and
numba, which most machines with a GPU have, brings it.
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
PACKAGES = ("torch-mlir", "islpy", "ml-dtypes", "opt-einsum", "platformdirs", "rich", "nvidia-cuda-nvcc")
TILE_PACKAGES = ("cuda-tile", "nvidia-cuda-tileiras", "nvidia-nvvm")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_TOOLS = (
    "torch-mlir-opt", "tileirdisasm", "nvcc", "nvlink", "cudafe++", "bin2c", "fatbinary", "__nvcc_device_query",
    "nvcc.profile", "cicc",
)  # fmt: skip
_FOLDERS = ("include", "crt", "lib64")


def constraint(package: str) -> str:
    """The package with the version that the tests use."""
    lines = (TREE / "constraints.txt").read_text().splitlines()
    return next((line.partition(";")[0].strip() for line in lines if line.startswith(f"{package}==")), package)


def collect(folder: Path, python: str, packages: Sequence[str]) -> None:
    """Unpack the wheels of some packages for a version of Python into a folder."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", f"--target={folder}"]
    command += [f"--platform={name}" for name in PLATFORMS]
    subprocess.run([*command, *map(constraint, packages)], check=True)


def slim(folder: Path) -> None:
    """Remove tools and headers, and the symbols of binaries where `strip` is installed."""
    for path in [path for name in _TOOLS for path in folder.rglob(name)]:
        path.unlink()
    for path in [path for name in _FOLDERS for path in folder.glob(f"nvidia/**/{name}")]:
        shutil.rmtree(path)
    if (strip := shutil.which("strip")) is not None:
        for path in [*folder.rglob("*.so*"), *folder.glob("nvidia/*/bin/*")]:
            subprocess.run([strip, "--strip-unneeded", str(path)], check=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archives; 1 where one is too large to be carried."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu_bundle.py", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--python", default="3.12", help="the version of Python there (default: 3.12)")
    parser.add_argument("--out", type=Path, default=TREE / "build" / "gpu", help="the folder of the archives")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    sizes = [
        make(options.out / "site.tar.xz", options.python, PACKAGES),
        make(options.out / "tiles.tar.xz", options.python, TILE_PACKAGES),
    ]
    return int(max(sizes) > MOST_BYTES)


def make(out: Path, python: str, packages: Sequence[str]) -> int:
    """Make an archive of some packages; its size in bytes."""
    with tempfile.TemporaryDirectory(prefix="mlirml-gpu-") as name:
        folder = Path(name)
        collect(folder, python, packages)
        slim(folder)
        with tarfile.open(out, "w:xz", preset=9) as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
    size = out.stat().st_size
    print(f"{out}: {size / (1 << 20):.1f} MiB, for Python {python}")
    return size


if __name__ == "__main__":
    sys.exit(main())
