"""The target `cuda`: PTX kernels for NVIDIA GPUs, and host code that launches them. Compiling needs no GPU."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from mlirml.core.config import config
from mlirml.core.dataclass import replace
from mlirml.pipelines.gpu import TO_NVVM, sized_stages, stages
from mlirml.runtime.artifact import Artifact
from mlirml.targets import gpu
from mlirml.targets.llvm import ptx, tileiras
from mlirml.targets.machine import DEVICES, Processor, processor
from mlirml.targets.target import Target, target

ARCHITECTURE = "sm_80"
"""The default architecture: PTX for it runs on every later GPU too."""


@target("cuda", forms=("ptx", "tiles"))
def cuda_target() -> Target:
    """The target for NVIDIA GPUs of compute capability 8.0 or later."""
    return target_for(
        config.checkpoint_bytes,
        config.matmul_precision,
        config.deterministic,
        processor(),
        tile_architecture(),
        cubin_architecture(),
        exact=config.algebra == "exact",
    )


@cache
def target_for(
    checkpoint_bytes: int,
    matmul_precision: str,
    deterministic: bool,
    machine: Processor,
    tiles: str,
    cubins: str = "",
    *,
    exact: bool = False,
) -> Target:
    """The target, with the memory limit of checkpoints, the precision of f32 products, the order of scatters, the
    architectures of the kernels of tiles and of the others' cubins, and the choice of `config.algebra`.
    """
    tf32 = matmul_precision == "tf32"
    device = replace(DEVICES["cuda"], tile=tiles)
    return Target(
        name="cuda",
        stages=stages(device, machine, checkpoint_bytes, TO_NVVM, deterministic=deterministic, tf32=tf32, exact=exact),
        codegen=partial(codegen, machine=machine, tiles=tiles, cubins=cubins),
        depends_on=(
            *machine.key_entries(),
            ("cuda.architecture", ARCHITECTURE),
            ("cuda.tiles", f"{tiles} {tileiras.version()}" if tiles else ""),
            ("cuda.cubins", f"{cubins} {ptx.assembler_version()}" if cubins else ""),
        ),
        device="cuda",
        processor=machine,
        forms={"ptx": emit_ptx, "ptx-": emit_ptx, "tiles": emit_tiles},
        open=gpu.load,
        sized=partial(sized_target, checkpoint_bytes, matmul_precision, deterministic, machine, tiles, exact=exact),
    )


@cache
def sized_target(
    checkpoint_bytes: int,
    matmul_precision: str,
    deterministic: bool,
    machine: Processor,
    tiles: str,
    *,
    exact: bool = False,
) -> Target:
    """The target for programs of dynamic sizes, which have no kernels of tiles."""
    device = DEVICES["cuda"]
    return replace(
        target_for(checkpoint_bytes, matmul_precision, deterministic, machine, tiles, exact=exact),
        stages=sized_stages(device, machine, checkpoint_bytes, TO_NVVM, deterministic=deterministic, exact=exact),
        open=gpu.load_sized,
        sized=None,
    )


def tile_architecture() -> str:
    """The architecture that kernels of tiles are assembled for; empty if there are none.

    That is `config.tiles`, or for "auto" that of the device that programs run on, where an assembler is installed.
    """
    if config.tiles != "auto":
        return "" if config.tiles == "off" else config.tiles
    if not tileiras.is_installed():
        return ""
    architecture, driver = device_at_hand()
    return architecture if architecture in tileiras.ARCHITECTURES and driver >= tileiras.OLDEST_DRIVER else ""


def cubin_architecture() -> str:
    """The architecture that the other kernels are assembled for, beside their PTX; empty if they are not.

    That is `config.cubins`, or for "auto" that of the device that programs run on, where an assembler is installed.
    """
    if config.cubins == "off" or ptx.assembler() is None:
        return ""
    if config.cubins != "auto":
        return config.cubins
    architecture, driver = device_at_hand()
    return architecture if driver // 1000 >= ptx.assembler_major() else ""  # older ones do not know the format


@cache
def device_at_hand() -> tuple[str, int]:
    """The architecture of the first device, and the version of CUDA that its driver is for; empty and 0 without one."""
    from mlirml.errors import TargetError
    from mlirml.runtime.device import device

    try:
        found = device("cuda").capabilities
    except TargetError:
        return "", 0
    return str(found.get("architecture", "")), int(found.get("driver", 0))


def kernels_of(module: Any) -> Any:
    """The gpu.module of a module after stage `lower`; None if no operation runs on the device."""
    from mlirml.ir.bindings import block_ops

    operation = getattr(module, "operation", module)
    return next((op for op in block_ops(operation.regions[0].blocks[0]) if op.name == "gpu.module"), None)


def emit_ptx(module: Any, architecture: str = ARCHITECTURE) -> str:
    """The PTX of a module after stage `lower`; empty if no operation runs on the device."""

    from mlirml.targets.llvm.codegen import to_llvm_ir

    kernels = kernels_of(module)
    return "" if kernels is None else ptx.to_ptx(to_llvm_ir(kernels), architecture)


def emit_tiles(module: Any) -> str:
    """The text of the tile kernels of a module after stage `lower`, in cuTile Python."""
    return "\n".join(f"# {name}\n{kernel.text}" for name, kernel in tileiras.kernels_of(module).items())


def cubin_of(code: str, architecture: str) -> bytes:
    """PTX as assembled for an architecture; empty if the assembler refuses it, as the driver's own may take it."""
    from mlirml.errors import InternalError

    try:
        return ptx.assemble(code, architecture).cubin if code and architecture else b""
    except (InternalError, OSError):
        return b""


def codegen(module: Any, *, machine: Processor, tiles: str, cubins: str) -> Artifact:
    """The object of the host code, and the kernels as PTX and cubins, of a module after stage `lower`."""
    operation = getattr(module, "operation", module)
    code = emit_ptx(operation)
    kernels = kernels_of(operation)
    if kernels is not None:
        kernels.erase()
    own = tileiras.kernels_of(operation)
    images = dict(zip(own, tileiras.assemble_all(list(own.values()), tiles)))
    for binary in tileiras.binaries_of(operation):
        binary.erase()
    return gpu.artifact(operation, "cuda", code.encode(), machine, DEVICES["cuda"], images, cubin_of(code, cubins))
